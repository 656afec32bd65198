// Exact evaluation of scalar operations: the definition that every target is checked against, and
// what constant folding and the interpreter use.
#pragma once

#include <span>

#include "alu/alu.h"
#include "types/scalar.h"

namespace rune {

// The operation on these operands, whose dtypes result_dtype(op, ...) must accept. Float results
// are rounded once to the dtype (float32 functions are computed in double).
Scalar evaluate(AluOp op, std::span<const Scalar> operands);

// What a reduction of no elements gives: 0, 1, or the dtype's lowest or highest value.
Scalar identity(ReduceOp op, DType dtype);
// The value that leaves every operand unchanged, signed zeros included: the identity, except for
// sums of floats, where it is -0.0.
Scalar neutral(ReduceOp op, DType dtype);

}  // namespace rune
