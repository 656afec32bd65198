// Rewrites scalar operations that a target does not compute itself into ones that it does.
#pragma once

#include <initializer_list>

#include "lower/instr.h"
#include "types/capabilities.h"

namespace rune::lower {

// Replaces every Alu instruction whose operation is not native on its operands' dtype by native
// ones, lane by lane. Runs once, after widen_narrow_floats; it may add If, Range and Acc for the
// rare operands of some functions (sine of huge angles), executed only if a lane needs them.
//
// Results follow the float contract: NumPy's answer on NaN, infinities, -0.0 and denormals; float32
// and float64 functions within 2 ulp (tan of float32: 2.1) where a rule exists. Integers wrap;
// division and remainder by zero give 0; shifts by the width or more give 0 or -1. The rules need
// native add, subtract, multiply, divide, sqrt, fused mulacc, comparisons and where on the float.
//
// Raw operations: on integers, a Div, Fmod, Shl or Shr that is not native on the target appears in
// the result only with safe operands: the divisor is neither 0 nor (signed) -1, the shift amount is
// in [0, width). Renderers print them as the machine's own sdiv, srem, shl ...
//
// Where on float16 and bfloat16 moves bits and is left alone even without native arithmetic.
//
// Throws UserError(Unsupported) that names operation, dtype and target if there is no rule.
Kernel decompose(const Kernel& kernel, const Capabilities& caps);

// Makes operations on float16 and bfloat16 that are not native, all where `caps.arithmetic` lacks
// the dtype, run in float32: operands are cast, the operation is done once in float32, its result
// is cast back. Loads, stores, Where, Cast and Bitcast keep the narrow dtype.
Kernel widen_narrow_floats(const Kernel& kernel, const Capabilities& caps);

// `caps` with these operations of `dtype` not native.
Capabilities without(const Capabilities& caps, std::initializer_list<AluOp> ops, DType dtype);

}  // namespace rune::lower
