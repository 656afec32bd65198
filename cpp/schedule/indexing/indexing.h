// Inside a kernel a value is a function of an index tuple; a movement node rewrites that tuple.
// This is the one place that knows how, for the scheduler's analysis and for the lowerer alike.
#pragma once

#include <vector>

#include "graph/node.h"
#include "symbolic/expr.h"

namespace rune::schedule {

using Index = std::vector<sym::Expr>;

// An element of an operand, wanted where the mask holds. Where it does not, the node's value does
// not depend on this operand and the index may be out of range.
struct Access {
  graph::Value value;
  Index index;
  sym::Mask mask;
};

// How a node's value at an index follows from its operands' values.
enum class Evaluation : uint8_t {
  Alu,        // scalar operation on all operands at the same index; Custom, too
  Forward,    // the operand's value; 0 where the access's mask is false
  Select,     // the operand whose mask holds; exactly one does
  Constant,   // no operands
  Variable,   // given when the program runs: Define_Var
  Reduction,  // a fold over many elements of the operands: Reduce_Axis, Contract, Wmma
  Gathered,   // an element whose position is data: Gather, Index
  Scattered,  // in a buffer that begins as the first operand; a stage then writes the updates:
              // Scatter
  Scanned,    // in a buffer that a stage fills in order: Scan
  Moved,      // in a buffer that a transfer fills: a Copy to another device
  Memory,     // lives in a buffer: Placeholder, Vconst
  Mask,       // 1 where the tracker's mask holds, else 0: Valid
  Called,     // in a buffer that a function of the host fills: Host_Callback
};

// Throws UserError(Unsupported) naming a node kind that the scheduler cannot place in a kernel.
Evaluation evaluation_of(const graph::Node& node);

// What an Alu, Forward or Select node reads of each operand, in order, for its element at `index`.
std::vector<Access> operand_accesses(const graph::Graph& graph, graph::Value v, const Index& index);

// The two operands of a Contract, and the one of a Reduce_Axis, for the result's element at `index`
// and the point `inner` of the reduced sub-shape.
std::vector<Access> reduction_accesses(const graph::Graph& graph, graph::Value v,
                                       const Index& index, const Index& inner);
// Of a Gather or Index: first what gives the position (and, of an Index, whether it counts), last
// the source's element there, `position` standing for the loaded and wrapped index.
std::vector<Access> gathered_accesses(const graph::Graph& graph, graph::Value v, const Index& index,
                                      const sym::Expr& position);
// How many positions the node may load: the source's size along its axis, or all of it.
int64_t gathered_extent(const graph::Graph& graph, graph::Value v);

// What update number `number` of a Scatter reads for the element at `index` (whose coordinate along
// the scattered axis does not matter): its position along the axis, and the update.
std::vector<Access> scattered_accesses(const graph::Graph& graph, graph::Value v,
                                       const Index& index, const sym::Expr& number);
// What a Scan reads at `index`: the element and, where it has one, the initial value.
std::vector<Access> scanned_accesses(const graph::Graph& graph, graph::Value v, const Index& index);

// Whether a stage of its own computes the node, in order along an axis: Scatter and Scan.
bool is_sequential(const graph::Node& node);
// The axis of the operand that a sequential node runs along.
int64_t sequential_axis(const graph::Node& node);

// Sizes of the axes that the node reduces, in order; of a Scatter, the number of updates.
Shape reduced_shape(const graph::Graph& graph, graph::Value v);

// By which a Reduce_Axis or Contract combines elements.
ReduceOp reduction_op(const graph::Node& node);

// Where the tracker's mask holds at `index`.
sym::Mask tracker_mask(const ShapeTracker& tracker, const Index& index);

}  // namespace rune::schedule
