// Infers the shape and dtype of a node from its kind and its operands.
#pragma once

#include <span>

#include "graph/node.h"

namespace rune::graph {

// The metadata of a node with this payload and these operands. `declared` has the dtype and shape
// of Buffer, Placeholder, Custom and Host_Callback, which cannot be inferred. Throws UserError with
// the message `op: cannot <do> <from> to <to> (<which dim, both values>)` if the operands do not
// fit.
Metadata infer(const Payload& payload, std::span<const Metadata* const> operands,
               const Metadata& declared);

// Whether an integer dtype can represent all numbers of an Iota of this shape.
bool holds_iota(DType dtype, const Shape& shape);

// The free axes of a contraction's operand (0 or 1) of this rank, ascending: those that are neither
// summed over nor paired as a batch. The axes of the result are those of the batch, then the free
// axes of operand 0, then those of operand 1.
Ints free_axes(const Contract& contract, size_t operand, size_t rank);

}  // namespace rune::graph
