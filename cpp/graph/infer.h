// Infers the shape and dtype of a node from its kind and its operands.
#pragma once

#include <span>

#include "graph/node.h"

namespace rune::graph {

// The metadata of a node with this payload on these operands. `declared` gives what cannot be
// inferred: the dtype and shape of Buffer, Placeholder, Custom and Host_Callback. Throws UserError
// with the message `op: cannot <do> <from> to <to> (<which dim, both values>)` if the operands do
// not fit.
Metadata infer(const Payload& payload, std::span<const Metadata* const> operands,
               const Metadata& declared);

// Whether an integer dtype holds the numbers of an Iota of this shape.
bool holds_iota(DType dtype, const Shape& shape);

// The axes of a contraction's operand (0 or 1) of this rank that it neither sums over nor pairs as
// a batch, ascending. Axes of the result are the batch's, then those of operand 0, then those of
// operand 1.
Ints free_axes(const Contract& contract, size_t operand, size_t rank);

}  // namespace rune::graph
