// Parts of float functions that several decompositions share. All take float32 or float64.
#pragma once

#include "lower/passes/decompose_emitter.h"

namespace rune::lower::decomposition {

// decompose_exp.cpp

// e^x = factor * 2^power, for |x| below the bounds of exp. NaN gives NaN.
struct ScaledExp {
  Value factor;  // in [0.7, 1.42]
  Rounded power;
};
ScaledExp exp_scaled(Value x);
// e^x - 1 for |x| small enough that 2^(x / ln 2) is a normal number.
Value expm1_in_range(Value x);
// 2^(high + low), where |low| is at most a few ulp of high.
Value exp2_sum(Value high, Value low);

// decompose_log.cpp

// x = 2^exponent * (1 + fraction), with 1 + fraction in [sqrt(1/2), sqrt(2)).
struct LogParts {
  Value exponent;  // a float
  Value fraction;
};
// The parts of a positive finite x, which may be denormal. For other x the result is undefined.
LogParts split_exponent(Value x);
// log(2^exponent * (1 + fraction)).
Value log_of(const LogParts& parts);
// log((high + low) 2^doublings), for finite high >= 1 and low of at most a few ulp of high.
Value log_of_sum(Value high, Value low, Value doublings);

}  // namespace rune::lower::decomposition
