// Rewrites scalar operations that a target lacks into operations that it has.
#pragma once

#include "lower/instr.h"
#include "types/capabilities.h"

namespace rune::lower {

// Replaces every Alu instruction that is not native for its operands' dtype by native instructions,
// lane by lane. It runs once, after widen_narrow_floats. For rare operands of some functions, such
// as the sine of huge angles, it adds Ifs, Ranges and Accs that run only if a lane needs them.
//
// Results follow the float contract: NumPy's results for NaN, infinities, -0.0 and denormals;
// float32 and float64 functions that have a rule are within 2 ulp (tan of float32: 2.1). Integers
// wrap; division and remainder by zero give 0; shifts by the width or more give 0 or -1. The
// elementary operations (alu.def) must be native.
//
// Raw operations: an integer Div, Fmod, Shl or Shr that is not native occurs in the result only
// with safe operands. The divisor is neither 0 nor (signed) -1; the shift amount is in [0, width).
// Renderers print the machine's sdiv, srem, shl and so on for them.
//
// A Where on float16 or bfloat16 only moves bits, so it stays even without native arithmetic.
//
// Throws UserError(Unsupported) that names operation, dtype and target if there is no rule.
Kernel decompose(const Kernel& kernel, const Capabilities& caps);

// Computes float16 and bfloat16 operations that are not native (all of them if `caps.arithmetic`
// lacks the dtype) in float32: casts the operands, applies the operation and casts the result back.
// Loads, stores, Where, Cast and Bitcast keep the narrow dtype.
Kernel widen_narrow_floats(const Kernel& kernel, const Capabilities& caps);

}  // namespace rune::lower
