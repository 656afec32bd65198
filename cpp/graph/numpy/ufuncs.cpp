#include "graph/numpy/ufuncs.h"

#include <limits>
#include <unordered_map>

#include "graph/numpy/complex.h"

namespace rune::graph::numpy {

namespace {

// The row of alu.def whose NumPy name this is.
std::optional<AluOp> alu_by_numpy_name(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, AluOp> result;
    for (const AluInfo& row : all_alu_ops())
      if (*row.numpy) result.emplace(row.numpy, row.op);
    return result;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? std::nullopt : std::optional(found->second);
}

[[noreturn]] void no_loop(std::string_view name, DType dtype) {
  user_error(ErrorKind::Type, name, ": cannot compute on ", numpy_name(dtype),
             " (NumPy has no loop for it)");
}

// If NumPy has no loop for bool, it computes in int8.
DType widen_bool(DType dtype) {
  return is_bool(dtype) ? DType::Int8 : dtype;
}

// x to the power of 1.5, -0.5 or -1.5, within 2 units in the last place. Intermediate results leave
// the dtype's range only if the result does. Like C's pow, it treats -inf as inf and -0.0 as 0.0.
Value power_by_root(TracedGraph& t, Value x, double exponent) {
  const auto full = [&](double value) { return t.full(Scalar::of(t.dtype(x), value), t.shape(x)); };
  const double infinity = std::numeric_limits<double>::infinity();
  const Value is_lowest = t.alu(AluOp::Cmpeq, {x, full(-infinity)});
  x = t.alu(AluOp::Add, {t.alu(AluOp::Where, {is_lowest, full(infinity), x}), full(0.0)});
  if (exponent == 1.5) return t.alu(AluOp::Mul, {x, t.alu(AluOp::Sqrt, {x})});
  if (exponent == -0.5) return t.alu(AluOp::Recip, {t.alu(AluOp::Sqrt, {x})});
  return t.alu(AluOp::Fdiv, {t.alu(AluOp::Sqrt, {t.alu(AluOp::Recip, {x})}), x});
}

// Whether a value of `from` may be cast to `to` under NumPy's "same_kind" rule.
bool same_kind(DType from, DType to) {
  if (is_complex(from)) return is_complex(to);
  if (is_float(from)) return is_inexact(to);
  if (is_bool(to)) return is_bool(from);
  if (kind(from) == Kind::Int) return kind(to) != Kind::Uint;
  return true;
}

Operand arithmetic(TracedGraph& t, const char* name, AluOp op, const Operands& operands,
                   DType dtype) {
  std::vector<Value> values;
  for (const Operand& x : operands) values.push_back(convert(t, x, dtype));
  return t.alu(op, broadcast_all(t, name, std::move(values)));
}

// A ufunc that is one scalar operation, in the dtype that NumPy's list of loops gives.
Operand alu_ufunc(TracedGraph& t, AluOp op, const Operands& operands) {
  const AluInfo& row = info(op);
  DType dtype = result_type(t, operands);
  const std::string_view kinds = row.operands;
  if (kinds == "f") {
    dtype = float_type(t, operands);
  } else if (kinds == "bi" || kinds == "i") {
    if (is_float(dtype)) no_loop(row.numpy, dtype);
    if (kinds == "i") dtype = widen_bool(dtype);
  } else if (kinds.starts_with("if") && is_bool(dtype)) {
    if (op == AluOp::Neg || op == AluOp::Sign) no_loop(row.numpy, dtype);
    dtype = widen_bool(dtype);
  }
  return arithmetic(t, row.numpy, op, operands, dtype);
}

// Compares a signed and a uint64 operand. NumPy compares their values, which no common dtype holds.
Value compare_signed_unsigned(TracedGraph& t, AluOp op, Value a, Value b) {
  const bool a_signed = kind(t.dtype(a)) == Kind::Int;
  const Value s = t.cast(a_signed ? a : b, DType::Int64);
  const Value below = elementwise(t, AluOp::Cmplt, {s, t.constant(Scalar::zero(DType::Int64))});
  const Value as_unsigned = t.cast(s, DType::Uint64);
  const Value equal_range =
      a_signed ? elementwise(t, op, {as_unsigned, b}) : elementwise(t, op, {a, as_unsigned});
  // A negative operand is the smaller one. If it is on the left, `<`, `<=` and `!=` hold; if it is
  // on the right, only `!=` does.
  const bool holds = op == AluOp::Cmpne || (a_signed && op != AluOp::Cmpeq);
  return holds ? elementwise(t, AluOp::Or, {below, equal_range})
               : elementwise(t, AluOp::And, {t.alu(AluOp::Not, {below}), equal_range});
}

// 1 or -1 if x is a literal that is greater or less than all integers of the other operand's dtype,
// otherwise 0.
int out_of_range(const TracedGraph& t, const Operand& x, const Operand& other) {
  if (!x.literal || x.literal->kind != Kind::Int || other.weak) return 0;
  const DType dtype = dtype_of(t, other);
  if (!is_integer(dtype)) return 0;
  if (x.literal->integer > highest_integer(dtype)) return 1;
  return x.literal->integer < lowest_integer(dtype) ? -1 : 0;
}

Operand compare(TracedGraph& t, AluOp op, const Operand& a, const Operand& b) {
  // With a number that the dtype cannot hold, the result is the same for all elements.
  if (const int sign = out_of_range(t, b, a) - out_of_range(t, a, b)) {
    const bool result = op == AluOp::Cmpne || (op != AluOp::Cmpeq && sign > 0);
    return t.full(Scalar::of(DType::Bool, result), a.literal ? shape_of(t, b) : shape_of(t, a));
  }
  const bool any_float = is_float(dtype_of(t, a)) || is_float(dtype_of(t, b));
  // A Python int that is an argument may be out of range too: compare values, not wrapped bits.
  const auto plain = [&](const Operand& x) {
    return x.weak == Kind::Int && !x.literal && !any_float ? Operand(x.value) : x;
  };
  const Operand x = plain(a), y = plain(b);
  const DType common = result_type(t, {x, y});
  if (is_float(common) && !any_float) return compare_signed_unsigned(t, op, x.value, y.value);
  return arithmetic(t, info(op).numpy, op, {x, y}, common);
}

// Ufuncs that are more than one scalar operation, or have dtypes of their own.

Operands square(TracedGraph& t, const Operands& xs) {
  const Value x = convert(t, xs[0], widen_bool(dtype_of(t, xs[0])));
  return {t.alu(AluOp::Mul, {x, x})};
}

Operands positive(TracedGraph& t, const Operands& xs) {
  if (is_bool(dtype_of(t, xs[0]))) no_loop("positive", DType::Bool);
  return {value_of(t, xs[0])};
}

Operands conjugate(TracedGraph& t, const Operands& xs) {
  return {convert(t, xs[0], widen_bool(dtype_of(t, xs[0])))};
}

// An operation that is computed in a float dtype, even for integers.
template <AluOp op>
Operands of_floats(TracedGraph& t, const Operands& xs) {
  return {arithmetic(t, info(op).text, op, xs, float_type(t, xs))};
}

Operands absolute(TracedGraph& t, const Operands& xs) {
  const Value x = value_of(t, xs[0]);
  const Kind k = kind(t.dtype(x));
  return {k == Kind::Bool || k == Kind::Uint ? x : t.alu(AluOp::Abs, {x})};
}

// floor, ceil, trunc leave integers and bool as they are.
template <AluOp op>
Operands round_to_integer(TracedGraph& t, const Operands& xs) {
  const Value x = value_of(t, xs[0]);
  return {is_float(t.dtype(x)) ? t.alu(op, {x}) : x};
}

// isnan, isinf are false and isfinite true of integers and bool.
template <AluOp op, bool of_integers>
Operands classify(TracedGraph& t, const Operands& xs) {
  const Value x = value_of(t, xs[0]);
  if (is_float(t.dtype(x))) return {t.alu(op, {x})};
  return {t.full(Scalar::of(DType::Bool, of_integers), Shape(t.shape(x)))};
}

Operands divide(TracedGraph& t, const Operands& xs) {
  const DType dtype = result_type(t, xs);
  return {arithmetic(t, "divide", AluOp::Fdiv, xs, is_float(dtype) ? dtype : DType::Float64)};
}

Operands divmod(TracedGraph& t, const Operands& xs) {
  const DType dtype = widen_bool(result_type(t, xs));
  return {arithmetic(t, "divmod", AluOp::Idiv, xs, dtype),
          arithmetic(t, "divmod", AluOp::Mod, xs, dtype)};
}

Operands power_ufunc(TracedGraph& t, const Operands& xs) {
  return {power(t, xs, false)};
}

Operands float_power(TracedGraph& t, const Operands& xs) {
  const bool is_bfloat16 = result_type(t, xs) == DType::Bfloat16;
  const DType dtype = is_bfloat16 ? DType::Bfloat16 : DType::Float64;
  return {arithmetic(t, "float_power", AluOp::Pow, xs, dtype)};
}

// Operations that differ by kind: for bool, add is `or` and multiply is `and`; for dtypes without
// NaN, fmax and fmin are max and min.
template <AluOp op, AluOp of_bool, AluOp of_integers = op>
Operands by_kind(TracedGraph& t, const Operands& xs) {
  const DType dtype = result_type(t, xs);
  const AluOp used = is_bool(dtype) ? of_bool : is_integer(dtype) ? of_integers : op;
  return {arithmetic(t, info(op).numpy, used, xs, dtype)};
}

Operands subtract(TracedGraph& t, const Operands& xs) {
  const DType dtype = result_type(t, xs);
  if (is_bool(dtype))
    user_error(ErrorKind::Type, "subtract: cannot compute on bool (NumPy has no loop for it)\n",
               "hint: use the bitwise_xor, the `^` operator, or logical_xor instead");
  return {arithmetic(t, "subtract", AluOp::Sub, xs, dtype)};
}

template <AluOp op>
Operands logical(TracedGraph& t, const Operands& xs) {
  std::vector<Value> values;
  for (const Operand& x : xs) values.push_back(to_bool(t, x));
  return {elementwise(t, op, std::move(values))};
}

template <AluOp op, bool mirrored = false>
Operands comparison(TracedGraph& t, const Operands& xs) {
  return {compare(t, op, xs[mirrored], xs[!mirrored])};
}

// ml_dtypes' sign of bfloat16 keeps -0.0, unlike NumPy's sign.
Operands sign(TracedGraph& t, const Operands& xs) {
  const Operand result = alu_ufunc(t, AluOp::Sign, xs);
  if (dtype_of(t, result) != DType::Bfloat16) return {result};
  const Value x = value_of(t, xs[0]);
  const Value is_zero = elementwise(t, AluOp::Cmpeq, {x, scalar(t, DType::Bfloat16, 0)});
  return {t.alu(AluOp::Where, {is_zero, x, result.value})};
}

Operands clip_ufunc(TracedGraph& t, const Operands& xs) {
  return {clip(t, xs[0], xs[1], xs[2])};
}

struct Ufunc {
  int arity;
  Operands (*function)(TracedGraph&, const Operands&);
};

const std::unordered_map<std::string_view, Ufunc>& compositions() {
  using enum AluOp;
  static const std::unordered_map<std::string_view, Ufunc> table = {
      {"square", {1, square}},
      {"positive", {1, positive}},
      {"conjugate", {1, conjugate}},
      {"fabs", {1, of_floats<Abs>}},
      {"absolute", {1, absolute}},
      {"floor", {1, round_to_integer<Floor>}},
      {"ceil", {1, round_to_integer<Ceil>}},
      {"trunc", {1, round_to_integer<Trunc>}},
      {"isnan", {1, classify<Isnan, false>}},
      {"isinf", {1, classify<Isinf, false>}},
      {"isfinite", {1, classify<Isfinite, true>}},
      {"sign", {1, sign}},
      {"divide", {2, divide}},
      {"divmod", {2, divmod}},
      {"power", {2, power_ufunc}},
      {"float_power", {2, float_power}},
      {"ldexp", {2, of_floats<Ldexp>}},
      {"add", {2, by_kind<Add, Or>}},
      {"multiply", {2, by_kind<Mul, And>}},
      {"subtract", {2, subtract}},
      {"maximum", {2, by_kind<Max, Max>}},
      {"minimum", {2, by_kind<Min, Min>}},
      {"fmax", {2, by_kind<Fmax, Max, Max>}},
      {"fmin", {2, by_kind<Fmin, Min, Min>}},
      {"logical_and", {2, logical<And>}},
      {"logical_or", {2, logical<Or>}},
      {"logical_xor", {2, logical<Xor>}},
      {"logical_not", {1, logical<Not>}},
      {"less", {2, comparison<Cmplt>}},
      {"less_equal", {2, comparison<Cmple>}},
      {"equal", {2, comparison<Cmpeq>}},
      {"not_equal", {2, comparison<Cmpne>}},
      {"greater", {2, comparison<Cmplt, true>}},
      {"greater_equal", {2, comparison<Cmple, true>}},
      {"clip", {3, clip_ufunc}},
  };
  return table;
}

}  // namespace

bool has_ufunc(std::string_view name) {
  return compositions().contains(name) || alu_by_numpy_name(name).has_value();
}

Operands ufunc(TracedGraph& t, std::string_view name, const Operands& operands,
               std::optional<DType> dtype) {
  const auto found = compositions().find(name);
  const bool is_composed = found != compositions().end();
  const std::optional<AluOp> op = alu_by_numpy_name(name);
  if (!is_composed && !op) user_error(ErrorKind::Unsupported, name, ": cannot trace this function");
  const int arity = is_composed ? found->second.arity : info(*op).arity;
  if (static_cast<int>(operands.size()) != arity)
    user_error(ErrorKind::Type, name, ": cannot take ", operands.size(), " operands (it has ",
               arity, ")");
  if (dtype) {
    Operands converted = operands;
    for (Operand& x : converted) {
      if (!x.weak && !same_kind(dtype_of(t, x), *dtype))
        user_error(ErrorKind::Type, name, ": cannot cast ", numpy_name(dtype_of(t, x)), " to ",
                   numpy_name(*dtype), " (casting rule 'same_kind')");
      x = convert(t, x, *dtype);
    }
    return ufunc(t, name, converted);
  }
  // These functions handle complex operands themselves.
  const bool takes_complex = name == "power" || name.starts_with("logical_");
  for (const Operand& x : operands)
    if (is_complex(dtype_of(t, x)) && !takes_complex) return complex_ufunc(t, name, operands);
  if (is_composed) return found->second.function(t, operands);
  return {alu_ufunc(t, *op, operands)};
}

Operand power(TracedGraph& t, const Operands& operands, bool is_operator) {
  const Operand &base = operands[0], &exponent = operands[1];
  if (const DType dtype = result_type(t, operands); is_complex(dtype)) {
    std::optional<Value> product;
    if (exponent.literal)
      product = complex_power(t, convert(t, base, dtype), *exponent.literal, is_operator);
    return product ? Operand(*product) : complex_ufunc(t, "power", operands)[0];
  }
  // For bool, NumPy's operator ** gives int8, because it calls square. Its ufunc gives int64.
  const bool is_square_of_bool = is_operator && dtype_of(t, base) == DType::Bool &&
                                 exponent.literal && exponent.literal->integer == 2 &&
                                 !is_float(result_type(t, operands));
  const DType dtype = is_square_of_bool ? DType::Int8 : widen_bool(result_type(t, operands));
  if (is_integer(dtype)) {
    if (exponent.literal && exponent.literal->integer < 0) {
      convert(t, exponent, dtype);  // raises if it does not fit
      user_error(ErrorKind::Value, "Integers to negative integer powers are not allowed.");
    }
    const bool may_be_negative =
        exponent.literal ? false : kind(dtype_of(t, exponent)) == Kind::Int;
    if (may_be_negative)
      user_error(ErrorKind::Unsupported, "power: cannot raise ", numpy_name(dtype_of(t, base)),
                 " to a traced ", numpy_name(dtype_of(t, exponent)),
                 " (NumPy raises ValueError if an exponent is negative)",
                 "\nhint: make the exponent a constant, unsigned, or a float");
  }
  const Value x = convert(t, base, dtype);
  if (exponent.literal) {
    if (is_integer(dtype)) convert(t, exponent, dtype);  // raises if it does not fit
    const double e = exponent.literal->real;
    if (e == 1) return x;
    if (e == 2) return t.alu(AluOp::Mul, {x, x});
    if (e == 3 || e == 4) {
      // Floats of 16 bits are computed in float32, so that the result rounds once.
      const bool widens = is_float(dtype) && bits_of(dtype) == 16;
      const Value wide = widens ? t.cast(x, DType::Float32) : x;
      const Value square = t.alu(AluOp::Mul, {wide, wide});
      return t.cast(t.alu(AluOp::Mul, {square, e == 3 ? wide : square}), dtype);
    }
    if (is_float(dtype) && e == -1) return t.alu(AluOp::Recip, {x});
    // NumPy takes the root, except in its ufunc on float16. pow differs at -0.0 and -inf.
    const bool is_wide = dtype == DType::Float32 || dtype == DType::Float64;
    if (e == 0.5 && (is_operator ? is_float(dtype_of(t, base)) : is_wide))
      return t.alu(AluOp::Sqrt, {x});
    if (is_wide && (e == 1.5 || e == -0.5 || e == -1.5)) return power_by_root(t, x, e);
  }
  return arithmetic(t, "power", AluOp::Pow, {x, convert(t, exponent, dtype)}, dtype);
}

Operand where(TracedGraph& t, const Operand& condition, const Operand& x, const Operand& y) {
  const DType dtype = common_type(t, {x, y});
  const auto converted = [&](const Operand& v) {
    // NumPy converts a Python int to int64 or uint64, which then wraps to the dtype.
    if (!v.literal || v.literal->kind != Kind::Int || !is_integer(dtype))
      return convert(t, v, dtype);
    const bool large = v.literal->integer > highest_integer(DType::Int64);
    return t.cast(convert(t, v, large ? DType::Uint64 : DType::Int64), dtype);
  };
  return elementwise(t, AluOp::Where, {to_bool(t, condition), converted(x), converted(y)});
}

Operand clip(TracedGraph& t, const Operand& x, const std::optional<Operand>& low,
             const std::optional<Operand>& high) {
  Operand result = x;
  if (!low && !high) return result;
  Operands all{x};
  if (low) all.push_back(*low);
  if (high) all.push_back(*high);
  // NumPy's clip is one ufunc, so its dtype is the common one of all three operands. It has no loop
  // for bfloat16.
  DType dtype = result_type(t, all);
  if (is_complex(dtype)) {
    for (Operand& operand : all) operand = convert(t, operand, dtype);
    if (low) result = complex_ufunc(t, "maximum", {all[0], all[1]})[0];
    if (high) result = complex_ufunc(t, "minimum", {low ? result : all[0], all.back()})[0];
    return result;
  }
  if (dtype == DType::Bfloat16 && low && high) dtype = DType::Float32;
  Value value = convert(t, x, dtype);
  // Of two zeros, Max and Min give the second. NumPy keeps x if both bounds are numbers.
  const bool keeps = low && high && shape_of(t, *low).empty() && shape_of(t, *high).empty();
  const auto limit = [&](AluOp op, const Operand& bound) {
    const Value other = convert(t, bound, dtype);
    value = keeps ? elementwise(t, op, {other, value}) : elementwise(t, op, {value, other});
  };
  if (low) limit(AluOp::Max, *low);
  if (high) limit(AluOp::Min, *high);
  return value;
}

Operand astype(TracedGraph& t, const Operand& x, DType dtype) {
  if (x.literal) return convert(t, x, dtype);
  return cast(t, x.value, dtype);
}

Operand bitcast(TracedGraph& t, const Operand& x, DType dtype) {
  if (is_complex(dtype_of(t, x)) || is_complex(dtype))
    user_error(ErrorKind::Unsupported, "bitcast: cannot trace ", numpy_name(dtype_of(t, x)), " as ",
               numpy_name(dtype));
  return t.bitcast(value_of(t, x), dtype);
}

Operand full(TracedGraph& t, const Shape& shape, const Operand& fill, std::optional<DType> dtype) {
  for (const Dim& size : shape)
    if (size.least() < 0)
      refuse_sizes({size}, concat("full: cannot make ", shape_text(shape), " (negative size)"));
  const Value value = dtype ? convert(t, fill, *dtype) : value_of(t, fill);
  broadcast_shapes("full", t.shape(value), shape);
  return broadcast(t, value, shape);
}

Operand iota(TracedGraph& t, const Shape& shape, DType dtype) {
  return t.add(Iota{dtype, shape}, {});
}

}  // namespace rune::graph::numpy
