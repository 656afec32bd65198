// NumPy's functions of complex numbers, as nodes on their parts.
#pragma once

#include <string_view>

#include "graph/numpy/operands.h"

namespace rune::graph::numpy {

// The number real + imag j as a 0-d constant.
Value complex_constant(TracedGraph& t, DType dtype, double real, double imag);
// x * y of two complex values of one dtype, which are broadcast.
Value complex_product(TracedGraph& t, Value x, Value y);
// Whether each element is not 0.
Value complex_is_nonzero(TracedGraph& t, Value x);

// A ufunc, if an operand or the dtype is complex. Special values are as NumPy's. Throws
// UserError(Type) if NumPy has no such loop, and UserError(Unsupported) for functions that only
// NumPy computes, on the host.
Operands complex_ufunc(TracedGraph& t, std::string_view name, const Operands& operands);
// base ** exponent, for a literal exponent for which NumPy multiplies. Nothing for other exponents.
std::optional<Value> complex_power(TracedGraph& t, Value base, const Literal& exponent,
                                   bool is_operator);

// The parts of an array. If it is not complex, these are the array itself and zeros.
Operand real(TracedGraph& t, const Operand& x);
Operand imag(TracedGraph& t, const Operand& x);
// real + imag j of two floats of one dtype.
Operand make_complex(TracedGraph& t, const Operand& real, const Operand& imag);

}  // namespace rune::graph::numpy
