// Python's operators on arrays and on numbers that are arguments.

#include <algorithm>

#include "graph/numpy/integer_ranges.h"
#include "graph/numpy/loops.h"
#include "graph/numpy/ufuncs.h"
#include "graph/search.h"

namespace rune::graph::numpy {

namespace {

// Whether a result of Python's integers fits 64 bits. It may do so only if integer arguments fit 32
// bits. The program then gets guards for that, and calls with other arguments run on NumPy.
bool keeps_within_64_bits(TracedGraph& t, Value result) {
  if (integer_range(t, result)) return true;
  bool is_narrower = false;
  search(t, {result}, [&](Value v) {
    const auto* argument = t[v].as<Placeholder>();
    if (!argument || t.dtype(v) != DType::Int64 || !t.shape(v).empty()) return true;
    const ScalarGuard guard{ScalarGuard::Check::FitsDtype, argument->index, DType::Int32};
    if (!contains(t.guards, guard)) t.guards.push_back(guard);
    is_narrower |= t.ranges.try_emplace(v, INT32_MIN, INT32_MAX).second;
    return true;
  });
  if (!is_narrower) return false;
  t.integer_ranges.clear();  // they may belong to values computed from these arguments
  return integer_range(t, result).has_value();
}

// Assumes that two numbers are equal, and returns the first one.
Value assumed_equal(TracedGraph& t, Value kept, Value number) {
  assume(t, t.alu(AluOp::Cmpeq, {kept, number}));
  t.has_checked_integers = true;
  return kept;
}

// The result of an operation on Python's integers that may exceed 64 bits. If it may be assumed
// that it does not, the program checks that.
Operand checked(TracedGraph& t, std::string_view name, const Operands& operands, Value result) {
  const bool is_in_loop = !t.open_loops.empty();
  if (is_in_loop ? !t.checked_at.contains(t.location()) : !t.may_check_integers) {
    if (!is_in_loop)
      user_error(ErrorKind::Unsupported, name, ": cannot compute with Python integers that may",
                 " exceed 64 bits");
    t.must_fit.push_back({result, t.location()});
    return {result, Kind::Int};
  }
  constexpr int64_t kMost = (int64_t{1} << 62) - 1;
  constexpr double kBelow = 4.6e18;  // less than kMost by more than float64's rounding
  std::vector<Value> floats;
  for (const Operand& x : operands) floats.push_back(t.cast(value_of(t, x), DType::Float64));
  if (name == "power") floats[0] = t.alu(AluOp::Abs, {floats[0]});
  const Value about = name == "negative" || name == "absolute" ? floats[0]
                      : name == "power"                        ? t.alu(AluOp::Pow, floats)
                      : name == "add"                          ? t.alu(AluOp::Add, floats)
                      : name == "subtract"                     ? t.alu(AluOp::Sub, floats)
                                                               : t.alu(AluOp::Mul, floats);
  const Value fits =
      elementwise(t, AluOp::Cmplt, {t.alu(AluOp::Abs, {about}), scalar(t, DType::Float64, kBelow)});
  assume(t, fits);
  const Value kept = t.alu(AluOp::Where, {fits, result, t.constant(Scalar::zero(DType::Int64))});
  t.ranges.try_emplace(kept, -kMost, kMost);
  t.has_checked_integers = true;
  return {kept, Kind::Int};
}

// A Python integer to the power of a computed one that is not negative.
Value integer_power(TracedGraph& t, const Operands& operands) {
  const Value base = t.cast(value_of(t, operands[0]), DType::Int64);
  const Value exponent = t.cast(value_of(t, operands[1]), DType::Int64);
  const std::optional<IntegerRange> range = integer_range(t, exponent);
  if (range && range->low >= 0) return t.alu(AluOp::Pow, {base, exponent});
  if (!t.may_check_integers)
    user_error(ErrorKind::Unsupported, "power: cannot raise a Python integer to a computed one",
               " that may be negative (the result is a float then)");
  const Value none = t.constant(Scalar::zero(DType::Int64));
  const Value kept = assumed_equal(t, t.alu(AluOp::Max, {exponent, none}), exponent);
  return t.alu(AluOp::Pow, {base, kept});
}

// A Python integer shifted by another one.
Operand shifted(TracedGraph& t, std::string_view name, const Operands& operands) {
  const bool is_left = name == "left_shift";
  Value count = t.cast(value_of(t, operands[1]), DType::Int64);
  const std::optional<IntegerRange> by = integer_range(t, count);
  if (!by || by->low < 0 || by->high > 62) {
    if (!t.may_check_integers)
      user_error(ErrorKind::Unsupported, name, ": cannot shift a Python integer by a computed one",
                 " (whether it is from 0 to 62 is not known while tracing)");
    const Operand least(Literal::of(int64_t{0})), most(Literal::of(int64_t{62}));
    count = assumed_equal(t, clip(t, count, least, most).value, count);
  }
  const Value number = t.cast(value_of(t, operands[0]), DType::Int64);
  const Value result = t.alu(is_left ? AluOp::Shl : AluOp::Shr, {number, count});
  if (!is_left || integer_range(t, result)) return {result, Kind::Int};
  const Value one = t.constant(Scalar::of(DType::Int64, 1));
  return checked(t, name, {number, t.alu(AluOp::Shl, {one, count})}, result);
}

// Python's own arithmetic on numbers that are arguments of the traced function.
Operand weak_operator(TracedGraph& t, std::string_view name, const Operands& operands) {
  Kind widest = Kind::Bool;
  for (const Operand& x : operands)
    if (static_cast<int>(*x.weak) > static_cast<int>(widest)) widest = *x.weak;
  const bool divides = name == "floor_divide" || name == "remainder" || name == "divide";
  if (divides) {
    // Python raises ZeroDivisionError.
    const Operand& divisor = operands[1];
    const auto* argument = divisor.literal ? nullptr : t[divisor.value].as<Placeholder>();
    if (argument) {
      t.guards.push_back({ScalarGuard::Check::NonZero, argument->index, dtype_of(t, divisor)});
    } else if (may_be_zero(t, divisor)) {
      user_error(ErrorKind::Unsupported, name, ": cannot divide Python numbers by a ",
                 divisor.literal ? "zero" : "computed one", " (Python raises ZeroDivisionError)");
    }
  }
  const bool logic = name.starts_with("bitwise") || name == "invert";
  const bool shift = name == "left_shift" || name == "right_shift";
  if (shift) return shifted(t, name, operands);
  const bool has_positive_base = operands[0].literal && operands[0].literal->real > 0;
  if (widest == Kind::Complex && (name.starts_with("less") || name.starts_with("greater")))
    user_error(ErrorKind::Type, name, ": cannot order Python's complex numbers");
  if (widest == Kind::Complex && name == "power")
    user_error(ErrorKind::Unsupported, "power: cannot trace it on Python's complex numbers");
  const bool is_whole = operands[1].weak == Kind::Int || operands[1].weak == Kind::Bool;
  if (widest == Kind::Float && name == "power" && !is_whole && !operands[1].literal &&
      !has_positive_base)
    user_error(ErrorKind::Unsupported,
               "power: cannot raise a Python float to a traced one (the result may be complex)");
  // Python gives a float for an int to a negative power.
  if (widest == Kind::Int && name == "power" && operands[1].literal &&
      operands[1].literal->integer < 0)
    return weak_operator(t, name, {operands[0], Literal::of(operands[1].literal->real)});
  if (widest == Kind::Int && name == "power" && !operands[1].literal) {
    const std::optional<IntegerRange> by = integer_range(t, value_of(t, operands[1]));
    if (by && by->high < 0) {
      const Operand& base = operands[0];
      return weak_operator(t, name,
                           {base.literal ? Operand(Literal::of(base.literal->real)) : base,
                            python_number(t, operands[1], false)});
    }
    const Value result = integer_power(t, operands);
    return keeps_within_64_bits(t, result) ? Operand(result, Kind::Int)
                                           : checked(t, name, operands, result);
  }
  Operands wide;
  for (const Operand& x : operands) {
    const DType d = widest == Kind::Complex         ? DType::Complex128
                    : widest == Kind::Float         ? DType::Float64
                    : widest == Kind::Bool && logic ? DType::Bool
                                                    : DType::Int64;
    if (x.literal && name == "power")
      wide.push_back(x);
    else
      wide.push_back(convert(t, x, d));
  }
  Operand result = name == "power" ? power(t, wide, true) : ufunc(t, name, wide)[0];
  result.weak = kind(t.dtype(result.value));
  const bool may_grow = name == "add" || name == "subtract" || name == "multiply" ||
                        name == "power" || name == "negative" || name == "absolute";
  // For integers that a loop computes, find_unbounded checks this when the loop has ended.
  if (result.weak == Kind::Int && may_grow && !keeps_within_64_bits(t, result.value))
    return checked(t, name, wide, result.value);
  return result;
}

// An operation on numbers that may be NumPy's or Python's. Both give the same for comparisons, and
// for sums, differences, products and quotients of integers that fit. For floats, they differ only
// in quotients by 0 and in powers that Python refuses. The caller assumes that there are no such
// powers. Numbers that are Python's integers or NumPy's floats have float dtypes. Their sums and
// differences are the same, but -0 is 0 for the integer and -0.0 for the float.
Operand unsure_operator(TracedGraph& t, std::string_view name, const Operands& operands,
                        Kind widest) {
  const bool divides = name == "divide" || name == "floor_divide" || name == "remainder";
  const bool compares = name.starts_with("less") || name.starts_with("greater") ||
                        name == "equal" || name == "not_equal";
  const bool of_floats = divides || name == "multiply" || name == "power" || name == "negative" ||
                         name == "positive" || name == "absolute";
  const bool of_integers = name == "floor_divide" || name == "remainder" || name == "multiply" ||
                           name == "negative" || name == "absolute";
  const bool has_floats = std::ranges::any_of(operands, [&](const Operand& x) {
    const DType d = dtype_of(t, x);
    return is_float(d) || is_complex(d);
  });
  const bool is_same = name == "add" || name == "subtract" || compares ||
                       (of_floats && widest == Kind::Float) ||
                       (of_integers && widest == Kind::Int && !has_floats);
  if (!is_same || (divides && may_be_zero(t, operands[1])))
    user_error(ErrorKind::Undecided, name,
               ": cannot tell whether a loop's result is NumPy's number or Python's");
  Operand result = name == "power" ? power(t, operands, true) : ufunc(t, name, operands)[0];
  const bool may_exceed = !divides && !compares && t.dtype(result.value) == DType::Int64;
  if (may_exceed && !integer_range(t, result.value))
    result = checked(t, name, operands, result.value).value;
  Value all_pythons;
  for (const Operand& x : operands) {
    if (!unsure_kind(t, x)) continue;
    const Value is = is_python(t, x).value;
    all_pythons = all_pythons.valid() ? t.alu(AluOp::And, {all_pythons, is}) : is;
  }
  mark_unsure(t, result, compares ? Kind::Bool : widest, {all_pythons});
  return result;
}

}  // namespace

Operand python_operator(TracedGraph& t, std::string_view name, const Operands& operands) {
  bool all_weak = true, any_unsure = false;
  Kind widest = Kind::Bool;
  for (const Operand& x : operands) {
    const std::optional<Kind> unsure = unsure_kind(t, x);
    any_unsure |= unsure.has_value();
    all_weak &= x.weak.has_value() || unsure.has_value();
    const Kind kind = x.weak ? *x.weak : unsure.value_or(Kind::Bool);
    if (static_cast<int>(kind) > static_cast<int>(widest)) widest = kind;
  }
  if (all_weak && any_unsure) return unsure_operator(t, name, operands, widest);
  if (all_weak) return weak_operator(t, name, operands);
  if (name == "power") return power(t, operands, true);
  return ufunc(t, name, operands)[0];
}

Operand python_number(TracedGraph& t, const Operand& x, bool to_int) {
  const Value v = value_of(t, x);
  const DType dtype = t.dtype(v);
  if (is_complex(dtype))
    user_error(ErrorKind::Type, to_int ? "int" : "float", "() argument must be a string or a real ",
               "number, not 'complex'");
  if (!to_int) return {t.cast(v, DType::Float64), Kind::Float};
  if (!is_float(dtype)) {
    const std::optional<IntegerRange> range = integer_range(t, v);
    if (dtype == DType::Uint64 && (!range || range->high > INT64_MAX))
      user_error(ErrorKind::Unsupported, "int: cannot trace a uint64 that may exceed 63 bits");
    const Operand result{t.cast(v, DType::Int64), Kind::Int};
    constexpr int64_t kMost = int64_t{1} << 40;
    const bool is_small = range && range->low >= -kMost && range->high <= kMost;
    return is_small ? result : assume_small(t, result);
  }
  const Value number = t.cast(v, DType::Float64);
  const Value fits = elementwise(t, AluOp::Cmplt,
                                 {t.alu(AluOp::Abs, {number}), scalar(t, DType::Float64, 0x1p63)});
  assume(t, fits);
  const Value kept = t.alu(AluOp::Where, {fits, number, scalar(t, DType::Float64, 0)});
  return assume_small(t, {t.cast(kept, DType::Int64), Kind::Int});
}

}  // namespace rune::graph::numpy
