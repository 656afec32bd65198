// Reading and writing x[items].
#pragma once

#include "graph/numpy/operands.h"

namespace rune::graph::numpy {

// One item of an index expression.
struct IndexItem {
  enum class Kind : uint8_t { Integer, Slice, NewAxis, Ellipsis, Array } kind = Kind::Ellipsis;
  Dim integer;
  std::optional<Dim> start, stop;
  std::optional<int64_t> step;
  Operand array;  // integers

  bool is_index() const { return kind != Kind::NewAxis && kind != Kind::Ellipsis; }
};
using IndexItems = std::vector<IndexItem>;

// An error names the axis `reported` if that is given, else `axis`.
Operand take(TracedGraph& t, const Operand& x, const Operand& indices, std::optional<int64_t> axis,
             std::optional<int64_t> reported = std::nullopt);
// x[items]: basic indexing and arrays of integers.
Operand index(TracedGraph& t, const Operand& x, const IndexItems& items);
// x with x[items], by basic indexing, replaced by `value` of x's dtype and of the selection's
// shape, or 0-d.
Operand put(TracedGraph& t, const Operand& x, const IndexItems& items, const Operand& value);
// The shape of x[items].
Shape indexed_shape(TracedGraph& t, const Operand& x, const IndexItems& items);
// x with `updates`, of the shape of x[items] and x's dtype, written to or combined with x[items],
// in order. There is an array among the items.
Operand scatter(TracedGraph& t, const Operand& x, const IndexItems& items, const Operand& updates,
                ScatterMode mode);

}  // namespace rune::graph::numpy
