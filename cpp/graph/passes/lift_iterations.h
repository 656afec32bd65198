// Lifts the values of a loop's body: computes them for all iterations together, along an additional
// axis.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "graph/builder.h"
#include "graph/passes/iterations.h"

namespace rune::graph {

// The most elements of a lifted value that may have to be stored. A larger value must have a single
// user, with which it shares a kernel.
inline constexpr int64_t kMostElements = 1 << 27;

// An axis whose size depends on the counter. Its elements in an iteration are [low, high) of the
// axis of the lifted value. If `is_uniform`, all are equal, and that axis has only one element.
struct Window {
  Dim low, high;
  bool is_uniform = false;
};

struct Lifted {
  Value value;
  bool by_iteration = false;  // whether it has an additional first axis, the axis of iterations
  std::vector<std::optional<Window>> windows;  // by axis of the value in the body

  bool has_windows() const;
};

// Builds the lifted values. Elements outside of the windows are computed, but not used.
class Lifter {
 public:
  // `map` has the values in the builder's graph of the nodes outside of the loop.
  Lifter(const Graph& graph, const LoopTree::Loop& loop, const Iterations& iterations,
         Builder& builder, const std::vector<Value>& map);
  virtual ~Lifter() = default;

  // The lifted value of `v`; nothing if it cannot be computed for all iterations together.
  std::optional<Lifted> lift(Value v);
  // The value with the axis of iterations.
  Value by_iteration(const Lifted& lifted);

 protected:
  bool is_member(Value v) const { return members_.contains(v.id); }
  const std::set<uint32_t>& members() const { return members_; }
  // Lifts a Shrink.
  virtual std::optional<Lifted> lift_part(const Node& node);
  std::optional<Lifted> lift_shrink(const Shrink& shrink, Lifted lifted);
  std::optional<Lifted> lift_contract(const Contract& contract, const Lifted& a, const Lifted& b);
  const Dim& trip() const { return iterations_.count; }
  // The axis of a lifted value for an axis of the value in the body, and its size.
  static int64_t axis_of(const Lifted& lifted, int64_t axis) {
    return axis + (lifted.by_iteration ? 1 : 0);
  }
  const Dim& size_of(const Lifted& lifted, int64_t axis) const {
    return builder_.shape(lifted.value)[axis_of(lifted, axis)];
  }

  const Graph& graph_;
  const Iterations iterations_;
  Builder& builder_;
  const std::vector<Value>& map_;

 private:
  using Operands = std::vector<Lifted>;
  std::optional<Lifted> lift_node(const Node& node, int num_users);
  std::optional<Lifted> lift_uniform(const Node& node, const Operands& inputs);
  std::optional<Lifted> lift_operation(const Node& node, const Operands& inputs);
  std::optional<Lifted> lift_fixed(const Node& node, const Operands& inputs);
  std::optional<Lifted> lift_elementwise(const Node& node, const Operands& inputs);
  std::optional<Lifted> lift_reshape(const Shape& from, const Shape& to, const Lifted& x);
  std::optional<Lifted> lift_expand(const Shape& from, const Shape& to, const Lifted& x);
  std::optional<Lifted> lift_permute(const Ints& axes, const Lifted& x);
  std::optional<Lifted> lift_reduce(const Reduce_Axis& reduce, const Lifted& x);
  std::optional<Lifted> lift_view(const View& view, Value x);
  Value divide(Value x, int64_t axis, int64_t stride);
  std::optional<Value> overlap(const Lifted& lifted, const Ints& walked, const Ints& strides,
                               const Ints& sizes);

  bool decides_sizes(const Node& node) const;

  const std::set<uint32_t> members_;
  std::map<uint32_t, int> users_;  // in the body
  std::map<uint32_t, Lifted> lifted_;
};

}  // namespace rune::graph
