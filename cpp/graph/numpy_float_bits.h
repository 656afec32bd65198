// NumPy's ufuncs that work on the bits of numbers.
#pragma once

#include "graph/numpy_ops.h"

namespace rune::graph {

// Each takes a ufunc's operands and gives its results.
struct FloatBits {
  // Mantissa in [0.5, 1) with x's sign and int32 exponent; 0, infinities and NaN have exponent 0.
  static Operands frexp(NumpyBuilder& n, const Operands& xs);
  // x * 2^exponent, rounded once.
  static Operands ldexp(NumpyBuilder& n, const Operands& xs);
  static Operands nextafter(NumpyBuilder& n, const Operands& xs);
  // The distance to the next number: away from zero, of float16 towards infinity.
  static Operands spacing(NumpyBuilder& n, const Operands& xs);
  // How many bits of |x| are set, as uint8.
  static Operands bitwise_count(NumpyBuilder& n, const Operands& xs);
};

}  // namespace rune::graph
