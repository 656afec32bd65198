// Exact evaluation of scalar operations. Every target is checked against it. Constant folding and
// the interpreter use it.
#pragma once

#include <span>

#include "alu/alu.h"
#include "types/scalar.h"

namespace rune {

// Computes the operation. result_dtype(op, ...) must accept the operands' dtypes. Float results
// are rounded once to the dtype (float32 functions are computed in double).
Scalar evaluate(AluOp op, std::span<const Scalar> operands);

// Computes an operation on many values at once, as words (types/word.h). Writes `count` words of
// dst. The pointers of operands that the operation does not have may be null.
using WordFunction = void (*)(uint64_t* dst, const uint64_t* a, const uint64_t* b,
                              const uint64_t* c, uint32_t count);
// The function of this operation for operands of this dtype (for Where: for its last two operands).
// The operation must accept the dtype.
WordFunction alu_function(AluOp op, DType dtype);
// The function of Scalar::cast.
WordFunction cast_function(DType from, DType to);
// The words of values with these bits; bits beyond the dtype's width are ignored.
WordFunction bitcast_function(DType to);

// What a reduction of no elements gives: 0, 1, or the dtype's lowest or highest value.
Scalar identity(ReduceOp op, DType dtype);
// The value that leaves every operand unchanged, even the sign of a zero: the identity, but -0.0
// for sums of floats.
Scalar neutral(ReduceOp op, DType dtype);

}  // namespace rune
