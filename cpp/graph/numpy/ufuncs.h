// NumPy's ufuncs and other functions of each element, and Python's operators.
#pragma once

#include <string_view>

#include "graph/numpy/operands.h"

namespace rune::graph::numpy {

// A ufunc, by NumPy's name. It has one result, except for divmod.
Operands ufunc(TracedGraph& t, std::string_view name, const Operands& operands,
               std::optional<DType> dtype = std::nullopt);
bool has_ufunc(std::string_view name);
// A Python operator. It does the same as the ufunc, except that Python scalars alone give a Python
// scalar, and some constant exponents have NumPy's shortcuts.
Operand python_operator(TracedGraph& t, std::string_view ufunc_name, const Operands& operands);
// Python's int() or float() of a 0-d value. int() assumes that floats are finite. It also assumes
// that numbers are at most 2^31 in magnitude, unless this is known from their dtype or operands.
// Throws UserError(Type) for complex numbers, as Python does.
Operand python_number(TracedGraph& t, const Operand& x, bool to_int);
// numpy.power. The operator and the ufunc differ in the dtype of squares of bool, and in the
// results for an exponent of 0.5.
Operand power(TracedGraph& t, const Operands& operands, bool is_operator);

Operand where(TracedGraph& t, const Operand& condition, const Operand& x, const Operand& y);
Operand clip(TracedGraph& t, const Operand& x, const std::optional<Operand>& low,
             const std::optional<Operand>& high);
Operand astype(TracedGraph& t, const Operand& x, DType dtype);
// x's bits as a dtype of the same size.
Operand bitcast(TracedGraph& t, const Operand& x, DType dtype);
Operand full(TracedGraph& t, const Shape& shape, const Operand& fill, std::optional<DType> dtype);
// 0, 1, 2, ... of a 1-d shape and an integer dtype.
Operand iota(TracedGraph& t, const Shape& shape, DType dtype);

}  // namespace rune::graph::numpy
