// Python's operators on arrays and on numbers that are arguments.
#include "graph/numpy_ops.h"

namespace rune::graph {

// Python's own arithmetic on numbers that are arguments of the traced function.
Operand NumpyBuilder::weak_operator(std::string_view name, const Operands& operands) {
  Kind widest = Kind::Bool;
  for (const Operand& x : operands)
    if (static_cast<int>(*x.weak) > static_cast<int>(widest)) widest = *x.weak;
  const bool divides = name == "floor_divide" || name == "remainder" || name == "divide";
  if (divides) {
    // Python raises ZeroDivisionError.
    const Operand& divisor = operands[1];
    const auto* argument = divisor.literal ? nullptr : b_[divisor.value].as<Placeholder>();
    if (argument) {
      guards_.push_back({ScalarGuard::Check::NonZero, argument->index, dtype(divisor)});
    } else if (divisor.literal ? divisor.literal->real == 0 : name != "divide") {
      user_error(ErrorKind::Unsupported, name, ": cannot divide Python numbers by a ",
                 divisor.literal ? "zero" : "computed one", " (Python raises ZeroDivisionError)");
    }
  }
  const bool logic = name.starts_with("bitwise") || name == "invert";
  const bool shift = name == "left_shift" || name == "right_shift";
  if (shift)
    user_error(ErrorKind::Unsupported, name, ": cannot shift Python integers of unknown size");
  const bool has_positive_base = operands[0].literal && operands[0].literal->real > 0;
  if (widest == Kind::Float && name == "power" && !operands[1].literal && !has_positive_base)
    user_error(ErrorKind::Unsupported,
               "power: cannot raise a Python float to a traced one (the result may be complex)");
  // Python gives a float for an int to a negative power.
  if (widest == Kind::Int && name == "power" && operands[1].literal &&
      operands[1].literal->integer < 0)
    return weak_operator(name, {operands[0], Literal::of(operands[1].literal->real)});
  Operands wide;
  for (const Operand& x : operands) {
    const DType d = widest == Kind::Float           ? DType::Float64
                    : widest == Kind::Bool && logic ? DType::Bool
                                                    : DType::Int64;
    if (x.literal && name == "power")
      wide.push_back(x);
    else
      wide.push_back(as(x, d, "operator"));
  }
  Operand result = name == "power" ? power(wide, true) : ufunc(name, wide)[0];
  result.weak = kind(b_.dtype(result.value));
  return result;
}

Operand NumpyBuilder::python_operator(std::string_view name, const Operands& operands) {
  bool all_weak = true;
  for (const Operand& x : operands) all_weak &= x.weak.has_value();
  if (all_weak) return weak_operator(name, operands);
  if (name == "power") return power(operands, true);
  return ufunc(name, operands)[0];
}

}  // namespace rune::graph
