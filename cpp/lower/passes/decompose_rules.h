// The decomposition rules by file. Each takes the operands and returns the result; which operation
// and dtypes it serves is said by the table in decompose_rules.cpp.
#pragma once

#include "lower/passes/decompose_emitter.h"

namespace rune::lower::decomposition {

using Operands = std::span<const Value>;

// decompose_integer.cpp: integers, and comparisons of any dtype.
Value divide_truncated(Operands x);
Value remainder_truncated(Operands x);
Value divide_floored(Operands x);
Value remainder_floored(Operands x);
Value shift_left(Operands x);
Value shift_right(Operands x);
Value power_of_integers(Operands x);
Value larger_integer(Operands x);
Value smaller_integer(Operands x);
Value negate_integer(Operands x);
Value magnitude_of_integer(Operands x);
Value sign_of_integer(Operands x);
Value complement(Operands x);
Value multiply_add_integers(Operands x);
Value not_greater(Operands x);
Value same(Operands x);
Value different(Operands x);
Value bool_and(Operands x);
Value bool_or(Operands x);
Value bool_less(Operands x);
Value bool_less_equal(Operands x);
Value bool_different(Operands x);
Value bool_same(Operands x);

// decompose_float.cpp: bits, rounding, choice and division of floats.
Value negate(Operands x);
Value absolute(Operands x);
Value copy_sign(Operands x);
Value sign(Operands x);
Value test_nan(Operands x);
Value test_infinite(Operands x);
Value test_finite(Operands x);
Value test_sign(Operands x);
Value maximum(Operands x);
Value minimum(Operands x);
Value larger_number(Operands x);
Value smaller_number(Operands x);
Value round_to_even(Operands x);
Value round_down(Operands x);
Value round_up(Operands x);
Value round_to_zero(Operands x);
Value reciprocal(Operands x);
Value ldexp(Operands x);
Value fmod(Operands x);
Value floor_divide(Operands x);
Value floor_remainder(Operands x);

// decompose_exp.cpp
Value exp(Operands x);
Value exp2(Operands x);
Value expm1(Operands x);
// decompose_log.cpp
Value log(Operands x);
Value log2(Operands x);
Value log10(Operands x);
Value log1p(Operands x);
// decompose_trig.cpp
Value sin(Operands x);
Value cos(Operands x);
Value tan(Operands x);
// decompose_inverse_trig.cpp
Value asin(Operands x);
Value acos(Operands x);
Value atan(Operands x);
Value atan2(Operands x);
// decompose_hyperbolic.cpp
Value sinh(Operands x);
Value cosh(Operands x);
Value tanh(Operands x);
Value asinh(Operands x);
Value acosh(Operands x);
Value atanh(Operands x);
// decompose_power.cpp
Value pow(Operands x);
Value cbrt(Operands x);
Value hypot(Operands x);
// decompose_erf.cpp
Value erf(Operands x);

}  // namespace rune::lower::decomposition
