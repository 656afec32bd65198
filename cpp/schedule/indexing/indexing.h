// How elements are addressed inside of a kernel: a value is a function of an index tuple, and a
// movement node rewrites the tuple. The scheduler's analysis and the lowerer both use this file.
#pragma once

#include <vector>

#include "graph/node.h"
#include "symbolic/expr.h"

namespace rune::schedule {

using Index = std::vector<sym::Expr>;

// The variable for a symbolic size in index expressions is this number plus the id of the size's
// Define_Var.
inline constexpr uint32_t kFirstSizeVariable = 1u << 30;
inline bool is_size_variable(uint32_t variable) {
  return variable >= kFirstSizeVariable && variable < 2 * kFirstSizeVariable;
}
// A size as an index expression.
sym::Expr size_expr(const graph::Graph& graph, const Dim& size);

// sym::flatten_index and sym::unflatten_index, for memory that has room for the sizes' bounds.
sym::Expr flatten_index(const Index& index, const Shape& shape);
Index unflatten_index(const sym::Expr& position, const Shape& shape);

// An element of an operand that is needed where the mask holds. Elsewhere the node's value does not
// depend on this operand, and the index may be out of range.
struct Access {
  graph::Value value;
  Index index;
  sym::Mask mask;
};

// How a node's element at an index follows from its operands.
enum class Evaluation : uint8_t {
  Alu,        // scalar operation on all operands at the same index; Custom, too
  Forward,    // the operand's value; 0 where the access's mask is false
  Select,     // the operand whose mask holds; exactly one does
  Constant,   // no operands
  Variable,   // given when the program runs: Define_Var
  Reduction,  // a fold over many elements of the operands: Reduce_Axis, Contract
  Gathered,   // an element whose position is data: Gather
  Scattered,  // in a buffer that begins as the first operand; a stage then writes the updates:
              // Scatter
  Scanned,    // in a buffer that a stage fills in order: Scan
  Moved,      // in a buffer that a transfer fills: Copy to another device
  Counted,    // follows from the index: Iota
  Memory,     // lives in a buffer: Placeholder, Vconst
  Called,     // in a buffer that a function of the host or a kernel of its own fills:
              // Host_Callback, Loop_Nest
};

// Throws InternalError for a Sink, which has no elements, and for source nodes.
Evaluation evaluation_of(const graph::Node& node);

// The elements of its operands, in order, that an Alu, Forward or Select node reads at `index`.
std::vector<Access> operand_accesses(const graph::Graph& graph, graph::Value v, const Index& index);

// The elements of the operands that a Contract or Reduce_Axis reads for the result's element at
// `index`, at the point `inner` of the reduced axes.
std::vector<Access> reduction_accesses(const graph::Graph& graph, graph::Value v,
                                       const Index& index, const Index& inner);
// The elements that a Gather reads: the one that gives the position, and the source's element at
// `position`, the loaded and wrapped index.
std::vector<Access> gathered_accesses(const graph::Graph& graph, graph::Value v, const Index& index,
                                      const sym::Expr& position);
// The number of positions that a Gather may read: the source's size along its axis.
Dim gathered_extent(const graph::Graph& graph, graph::Value v);

// The elements that update number `number` of a Scatter reads for the element at `index`: the
// update's position along the scattered axis, and the update. The index's coordinate along that
// axis does not matter.
std::vector<Access> scattered_accesses(const graph::Graph& graph, graph::Value v,
                                       const Index& index, const sym::Expr& number);
// The elements that a Scan reads at `index`: the operand's element, and the initial value if there
// is one.
std::vector<Access> scanned_accesses(const graph::Graph& graph, graph::Value v, const Index& index);

// Whether a separate stage computes the node, in order along an axis: Scatter and Scan.
bool is_sequential(const graph::Node& node);
// The axis of the operand that a sequential node runs along.
int64_t sequential_axis(const graph::Node& node);

// The sizes of the axes that the node reduces, in order; for a Scatter, the number of updates.
Shape reduced_shape(const graph::Graph& graph, graph::Value v);

// The operation by which a Reduce_Axis or Contract combines elements.
ReduceOp reduction_op(const graph::Node& node);

}  // namespace rune::schedule
