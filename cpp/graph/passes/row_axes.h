// Finds the axes along which a loop's body does not mix elements.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "graph/loops.h"

namespace rune::graph {

// Joins axes of the values of a loop's body into groups. A row is a position along a group: element
// i of an axis is in row i + shift. Along the axes of a group, an element depends only on elements
// of its own row. A value from outside of the loop has separate axes for each of its uses, because
// each use may read other rows of it.
class RowAxes {
 public:
  // `loop` is in no other loop.
  RowAxes(const Graph& graph, const LoopTree& tree, const LoopTree::Loop& loop);

  struct Place {
    size_t group = 0;
    int64_t shift = 0;
  };
  // The place of an axis of a value of the body.
  Place of(Value v, size_t axis) const { return find(values_.at(v.id) + axis); }
  // The place of an axis of operand number `input` of a node of the body.
  Place of_operand(uint32_t user, size_t input, size_t axis) const;
  // The axis of the value that is in the group, if there is one.
  std::optional<size_t> axis_in(Value v, size_t group) const;

  // The rows [first, second) that all axes of a group have. Nothing if some rows depend on others,
  // or if sizes are not constant.
  std::optional<std::pair<int64_t, int64_t>> rows_of(size_t group) const;
  // All groups that have rows.
  std::vector<size_t> groups() const;

  bool is_member(Value v) const { return values_.contains(v.id); }
  // The nodes of the loop and of all loops in it, ascending, without the loop's end.
  const std::vector<uint32_t>& body() const { return body_; }
  // Whether the rows of all nodes of the body are known.
  bool is_known() const { return is_known_; }

 private:
  struct Axis {
    size_t parent = 0;
    int64_t shift = 0;  // element i is in row i + shift of the parent
    Dim size;
    bool is_mixed = false;
  };
  Place find(size_t axis) const;
  size_t add_axes(const Shape& shape);
  size_t operand(uint32_t user, size_t input) const;
  // Element i of `a` is in the row of element i + distance of `b`.
  void join(size_t a, size_t b, int64_t distance = 0);
  void mix(size_t axis) { axes_[axis].is_mixed = true; }
  void mix_all(size_t first, size_t rank);

  void add_loop(const LoopTree::Loop& loop);
  void connect(uint32_t id);
  void connect_moved(uint32_t id);
  void connect_indexed(uint32_t id);
  void connect_reshape(uint32_t id);
  void connect_part(uint32_t id);
  void connect_contract(uint32_t id);
  void join_all(uint32_t id, size_t input);
  void collect_rows();

  const Graph& graph_;
  std::vector<uint32_t> body_;
  std::map<uint32_t, size_t> values_;  // the first axis of each value of the body
  std::map<std::pair<uint32_t, size_t>, size_t> others_;  // that of each use of another value
  std::vector<Axis> axes_;
  std::map<size_t, std::pair<int64_t, int64_t>> rows_;
  bool is_known_ = true;
};

}  // namespace rune::graph
