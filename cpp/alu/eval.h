// Exact evaluation of scalar operations: the definition that every target is checked against.
// Constant folding and the interpreter compute by it.
#pragma once

#include <span>

#include "alu/alu.h"
#include "types/scalar.h"

namespace rune {

// The operation on these operands, whose dtypes result_dtype(op, ...) must accept. Float results
// are rounded once to the dtype (float32 functions are computed in double).
Scalar evaluate(AluOp op, std::span<const Scalar> operands);

// The same on many values at once, as words (types/word.h).
// Computes `count` words of dst. Operands that the operation does not have may be null.
using WordFunction = void (*)(uint64_t* dst, const uint64_t* a, const uint64_t* b,
                              const uint64_t* c, uint32_t count);
// The operation on (last) operands of this dtype, which it must accept.
WordFunction alu_function(AluOp op, DType dtype);
// Scalar::cast.
WordFunction cast_function(DType from, DType to);
// The words of values with these bits; bits beyond the dtype's width are ignored.
WordFunction bitcast_function(DType to);

// What a reduction of no elements gives: 0, 1, or the dtype's lowest or highest value.
Scalar identity(ReduceOp op, DType dtype);
// The value that leaves every operand as it is, to the sign of zero: the identity, but -0.0 for
// sums of floats.
Scalar neutral(ReduceOp op, DType dtype);

}  // namespace rune
