// NumPy's ufuncs: which dtype each computes in, and how those that are not one scalar operation are
// composed.
#include <cmath>
#include <numbers>
#include <unordered_map>

#include "graph/numpy_float_bits.h"

namespace rune::graph {

namespace {

// The row of alu.def whose NumPy name this is.
std::optional<AluOp> alu_by_numpy_name(std::string_view name) {
  for (const AluInfo& row : all_alu_ops())
    if (*row.numpy && name == row.numpy) return row.op;
  return std::nullopt;
}

[[noreturn]] void no_loop(std::string_view name, DType dtype) {
  user_error(ErrorKind::Type, name, ": cannot compute on ", numpy_name(dtype),
             " (NumPy has no loop for it)");
}

// bool computes as int8 where NumPy has no bool loop.
DType widen_bool(DType dtype) {
  return is_bool(dtype) ? DType::Int8 : dtype;
}

// Whether a value of `from` may be cast to `to` under NumPy's "same_kind" rule.
bool same_kind(DType from, DType to) {
  if (is_float(from)) return is_float(to);
  if (is_bool(to)) return is_bool(from);
  if (kind(from) == Kind::Int) return kind(to) != Kind::Uint;
  return true;
}

}  // namespace

// The compositions, by name.
struct UfuncTable {
  using Function = Operands (*)(NumpyBuilder&, const Operands&);
  struct Row {
    int arity;
    Function function;
  };

  // The operands in the float dtype that NumPy's float-only loops use.
  static std::vector<Value> floats(NumpyBuilder& n, const Operands& xs, const char* op) {
    const DType dtype = n.float_type(xs);
    std::vector<Value> values;
    for (const Operand& x : xs) values.push_back(n.as(x, dtype, op));
    return n.broadcast_all(op, std::move(values));
  }

  // radians and degrees, unlike deg2rad and rad2deg, have no bfloat16 loop in ml_dtypes.
  static Operands wider_than_bfloat16(NumpyBuilder& n, const Operands& xs) {
    if (n.dtype(xs[0]) != DType::Bfloat16) return xs;
    return {n.as(xs[0], DType::Float32, "cast")};
  }
  static Operands radians(NumpyBuilder& n, const Operands& xs) {
    return deg2rad(n, wider_than_bfloat16(n, xs));
  }
  static Operands degrees(NumpyBuilder& n, const Operands& xs) {
    return rad2deg(n, wider_than_bfloat16(n, xs));
  }

  static Operands scaled(NumpyBuilder& n, const Operands& xs, double factor) {
    const Value x = floats(n, xs, "multiply")[0];
    return {n.elementwise(AluOp::Mul, {x, n.scalar(n.b_.dtype(x), factor)})};
  }
  static Operands deg2rad(NumpyBuilder& n, const Operands& xs) {
    return scaled(n, xs, std::numbers::pi / 180.0);
  }
  static Operands rad2deg(NumpyBuilder& n, const Operands& xs) {
    return scaled(n, xs, 180.0 / std::numbers::pi);
  }

  static Operands square(NumpyBuilder& n, const Operands& xs) {
    const Value x = n.as(xs[0], widen_bool(n.dtype(xs[0])), "square");
    return {n.b_.alu(AluOp::Mul, {x, x})};
  }

  static Operands positive(NumpyBuilder& n, const Operands& xs) {
    if (is_bool(n.dtype(xs[0]))) no_loop("positive", DType::Bool);
    return {Operand(n.value_of(xs[0]))};
  }
  static Operands conjugate(NumpyBuilder& n, const Operands& xs) {
    return {n.as(xs[0], widen_bool(n.dtype(xs[0])), "conjugate")};
  }
  static Operands fabs(NumpyBuilder& n, const Operands& xs) {
    return {n.b_.alu(AluOp::Abs, floats(n, xs, "fabs"))};
  }
  static Operands absolute(NumpyBuilder& n, const Operands& xs) {
    const Value x = n.value_of(xs[0]);
    const Kind k = kind(n.b_.dtype(x));
    if (k == Kind::Bool || k == Kind::Uint) return {Operand(x)};
    return {n.b_.alu(AluOp::Abs, {x})};
  }

  // floor, ceil, trunc leave integers and bool as they are.
  template <AluOp op>
  static Operands round_to_integer(NumpyBuilder& n, const Operands& xs) {
    const Value x = n.value_of(xs[0]);
    if (!is_float(n.b_.dtype(x))) return {Operand(x)};
    return {n.b_.alu(op, {x})};
  }
  // isnan, isinf are false and isfinite true of integers and bool.
  template <AluOp op, bool of_integers>
  static Operands classify(NumpyBuilder& n, const Operands& xs) {
    const Value x = n.value_of(xs[0]);
    if (!is_float(n.b_.dtype(x)))
      return {n.b_.full(Scalar::of(DType::Bool, of_integers), Shape(n.b_.shape(x)))};
    return {n.b_.alu(op, {x})};
  }

  // Of integers, 1 / x truncated: that of 0 is what infinity becomes as an integer.
  static Operands reciprocal(NumpyBuilder& n, const Operands& xs) {
    const DType dtype = widen_bool(n.dtype(xs[0]));
    const Value x = n.as(xs[0], dtype, "reciprocal");
    if (is_float(dtype)) return {n.b_.alu(AluOp::Recip, {x})};
    const auto constant = [&](int value) { return n.b_.constant(Scalar::of(dtype, value)); };
    const Value of_zero = n.b_.constant(Scalar::of(DType::Float64, INFINITY).cast(dtype));
    const Value is_zero = n.elementwise(AluOp::Cmpeq, {x, constant(0)});
    const Value small = n.elementwise(AluOp::Where, {is_zero, of_zero, constant(0)});
    Value is_unit = n.elementwise(AluOp::Cmpeq, {x, constant(1)});
    if (is_signed(dtype))
      is_unit = n.b_.alu(AluOp::Or, {is_unit, n.elementwise(AluOp::Cmpeq, {x, constant(-1)})});
    return {n.elementwise(AluOp::Where, {is_unit, x, small})};
  }

  static Operands divide(NumpyBuilder& n, const Operands& xs) {
    DType dtype = n.result_type(xs);
    if (!is_float(dtype)) dtype = DType::Float64;
    return {n.arithmetic("divide", AluOp::Fdiv, xs, dtype)};
  }
  static Operands divmod(NumpyBuilder& n, const Operands& xs) {
    const DType dtype = widen_bool(n.result_type(xs));
    return {n.arithmetic("divmod", AluOp::Idiv, xs, dtype),
            n.arithmetic("divmod", AluOp::Mod, xs, dtype)};
  }
  static Operands power(NumpyBuilder& n, const Operands& xs) { return {n.power(xs, false)}; }
  static Operands float_power(NumpyBuilder& n, const Operands& xs) {
    return {n.arithmetic("float_power", AluOp::Pow, xs, DType::Float64)};
  }

  // add, multiply, maximum ... of bool are or, and, or; subtract has no bool loop.
  template <AluOp op, AluOp of_bool>
  static Operands with_bool(NumpyBuilder& n, const Operands& xs) {
    const DType dtype = n.result_type(xs);
    return {n.arithmetic(info(op).numpy, is_bool(dtype) ? of_bool : op, xs, dtype)};
  }
  static Operands subtract(NumpyBuilder& n, const Operands& xs) {
    const DType dtype = n.result_type(xs);
    if (is_bool(dtype))
      user_error(ErrorKind::Type, "subtract: cannot compute on bool (NumPy has no loop for it)\n",
                 "hint: use the bitwise_xor, the `^` operator, or logical_xor instead");
    return {n.arithmetic("subtract", AluOp::Sub, xs, dtype)};
  }
  // fmax, fmin of what has no NaN.
  template <AluOp op, AluOp of_integers>
  static Operands ignoring_nan(NumpyBuilder& n, const Operands& xs) {
    const DType dtype = n.result_type(xs);
    return {n.arithmetic(info(op).numpy, is_float(dtype) ? op : of_integers, xs, dtype)};
  }

  template <AluOp op>
  static Operands logical(NumpyBuilder& n, const Operands& xs) {
    return {n.elementwise(op, {n.to_bool(xs[0]), n.to_bool(xs[1])})};
  }
  static Operands logical_not(NumpyBuilder& n, const Operands& xs) {
    return {n.b_.alu(AluOp::Not, {n.to_bool(xs[0])})};
  }

  template <AluOp op>
  static Operands comparison(NumpyBuilder& n, const Operands& xs) {
    return {n.compare(op, info(op).numpy, xs[0], xs[1])};
  }
  template <AluOp mirrored>
  static Operands mirrored_comparison(NumpyBuilder& n, const Operands& xs) {
    return {n.compare(mirrored, info(mirrored).numpy, xs[1], xs[0])};
  }

  // log(exp(a) + exp(b)) without overflow; equal operands apart, so that infinities work.
  template <AluOp exp, AluOp log1p_scale>
  static Operands log_add(NumpyBuilder& n, const Operands& xs) {
    constexpr bool base2 = exp == AluOp::Exp2;
    const auto v = floats(n, xs, base2 ? "logaddexp2" : "logaddexp");
    const DType dtype = n.b_.dtype(v[0]);
    const Value distance = n.b_.alu(AluOp::Abs, {n.b_.alu(AluOp::Sub, {v[0], v[1]})});
    Value rest = n.b_.alu(exp, {n.b_.alu(AluOp::Neg, {distance})});
    rest = n.b_.alu(AluOp::Log1p, {rest});
    if (base2) rest = n.elementwise(AluOp::Mul, {rest, n.scalar(dtype, std::numbers::log2e)});
    const Value general = n.b_.alu(AluOp::Add, {n.b_.alu(AluOp::Max, {v[0], v[1]}), rest});
    const Value equal =
        n.elementwise(AluOp::Add, {v[0], n.scalar(dtype, base2 ? 1.0 : std::numbers::ln2)});
    return {n.b_.alu(AluOp::Where, {n.b_.alu(AluOp::Cmpeq, {v[0], v[1]}), equal, general})};
  }

  static Operands heaviside(NumpyBuilder& n, const Operands& xs) {
    const auto v = floats(n, xs, "heaviside");
    const DType dtype = n.b_.dtype(v[0]);
    const Value zero = n.scalar(dtype, 0);
    const Value positive = n.elementwise(AluOp::Cmplt, {zero, v[0]});
    Value r = n.elementwise(AluOp::Where, {positive, n.scalar(dtype, 1), zero});
    r = n.b_.alu(AluOp::Where, {n.elementwise(AluOp::Cmpeq, {v[0], zero}), v[1], r});
    return {n.b_.alu(AluOp::Where, {n.b_.alu(AluOp::Isnan, {v[0]}), v[0], r})};
  }

  // That of bfloat16, which is not NumPy's own, keeps -0.0.
  static Operands sign(NumpyBuilder& n, const Operands& xs) {
    const Operand result = n.alu_ufunc(AluOp::Sign, xs);
    if (n.dtype(result) != DType::Bfloat16) return {result};
    const Value x = n.value_of(xs[0]);
    const Value is_zero = n.elementwise(AluOp::Cmpeq, {x, n.scalar(DType::Bfloat16, 0)});
    return {n.b_.alu(AluOp::Where, {is_zero, x, result.value})};
  }

  // Fraction and integral part, both with the operand's sign.
  static Operands modf(NumpyBuilder& n, const Operands& xs) {
    const Value x = floats(n, xs, "modf")[0];
    const Value whole = n.b_.alu(AluOp::Trunc, {x});
    const Value rest = n.b_.alu(AluOp::Sub, {x, whole});
    const Value infinite = n.b_.alu(AluOp::Isinf, {x});
    const Value part = n.elementwise(AluOp::Where, {infinite, n.scalar(n.b_.dtype(x), 0), rest});
    return {n.b_.alu(AluOp::Copysign, {part, x}), whole};
  }

  static Operands clip(NumpyBuilder& n, const Operands& xs) {
    return {n.clip(xs[0], xs[1], xs[2])};
  }

  static const std::unordered_map<std::string_view, Row>& rows() {
    using enum AluOp;
    static const std::unordered_map<std::string_view, Row> table = {
        {"deg2rad", {1, deg2rad}},
        {"radians", {1, radians}},
        {"rad2deg", {1, rad2deg}},
        {"degrees", {1, degrees}},
        {"square", {1, square}},
        {"positive", {1, positive}},
        {"conjugate", {1, conjugate}},
        {"conj", {1, conjugate}},
        {"fabs", {1, fabs}},
        {"absolute", {1, absolute}},
        {"abs", {1, absolute}},
        {"floor", {1, round_to_integer<Floor>}},
        {"ceil", {1, round_to_integer<Ceil>}},
        {"trunc", {1, round_to_integer<Trunc>}},
        {"isnan", {1, classify<Isnan, false>}},
        {"isinf", {1, classify<Isinf, false>}},
        {"isfinite", {1, classify<Isfinite, true>}},
        {"sign", {1, sign}},
        {"reciprocal", {1, reciprocal}},
        {"divide", {2, divide}},
        {"true_divide", {2, divide}},
        {"divmod", {2, divmod}},
        {"power", {2, power}},
        {"pow", {2, power}},
        {"float_power", {2, float_power}},
        {"add", {2, with_bool<Add, Or>}},
        {"multiply", {2, with_bool<Mul, And>}},
        {"subtract", {2, subtract}},
        {"maximum", {2, with_bool<Max, Max>}},
        {"minimum", {2, with_bool<Min, Min>}},
        {"fmax", {2, ignoring_nan<Fmax, Max>}},
        {"fmin", {2, ignoring_nan<Fmin, Min>}},
        {"logical_and", {2, logical<And>}},
        {"logical_or", {2, logical<Or>}},
        {"logical_xor", {2, logical<Xor>}},
        {"logical_not", {1, logical_not}},
        {"less", {2, comparison<Cmplt>}},
        {"less_equal", {2, comparison<Cmple>}},
        {"equal", {2, comparison<Cmpeq>}},
        {"not_equal", {2, comparison<Cmpne>}},
        {"greater", {2, mirrored_comparison<Cmplt>}},
        {"greater_equal", {2, mirrored_comparison<Cmple>}},
        {"logaddexp", {2, log_add<Exp, Log1p>}},
        {"logaddexp2", {2, log_add<Exp2, Log1p>}},
        {"heaviside", {2, heaviside}},
        {"modf", {1, modf}},
        {"frexp", {1, FloatBits::frexp}},
        {"ldexp", {2, FloatBits::ldexp}},
        {"nextafter", {2, FloatBits::nextafter}},
        {"spacing", {1, FloatBits::spacing}},
        {"bitwise_count", {1, FloatBits::bitwise_count}},
        {"clip", {3, clip}},
    };
    return table;
  }
};

bool NumpyBuilder::has_ufunc(std::string_view name) {
  return UfuncTable::rows().contains(name) || name == "mod" || name == "bitwise_not" ||
         alu_by_numpy_name(name).has_value();
}

Operand NumpyBuilder::arithmetic(const char* name, AluOp op, const Operands& operands,
                                 DType dtype) {
  std::vector<Value> values;
  for (const Operand& x : operands) values.push_back(as(x, dtype, name));
  return b_.alu(op, broadcast_all(name, std::move(values)));
}

// The ufuncs that are one scalar operation, in the dtype that NumPy's list of loops gives.
Operand NumpyBuilder::alu_ufunc(AluOp op, const Operands& operands) {
  const AluInfo& row = info(op);
  DType dtype = result_type(operands);
  const std::string_view kinds = row.operands;
  if (kinds == "f") {
    dtype = float_type(operands);
  } else if (kinds == "bi" || kinds == "i") {
    if (is_float(dtype)) no_loop(row.numpy, dtype);
    if (kinds == "i") dtype = widen_bool(dtype);
  } else if (kinds == "if" && is_bool(dtype)) {
    if (op == AluOp::Neg || op == AluOp::Sign) no_loop(row.numpy, dtype);
    dtype = widen_bool(dtype);
  }
  return arithmetic(row.numpy, op, operands, dtype);
}

Operands NumpyBuilder::ufunc(std::string_view name, const Operands& operands,
                             std::optional<DType> dtype) {
  if (name == "mod") name = "remainder";
  if (name == "bitwise_not") name = "invert";
  const auto found = UfuncTable::rows().find(name);
  const std::optional<AluOp> op = alu_by_numpy_name(name);
  if (found == UfuncTable::rows().end() && !op)
    user_error(ErrorKind::Unsupported, name, ": cannot trace this function");
  const int arity = found != UfuncTable::rows().end() ? found->second.arity : info(*op).arity;
  if (static_cast<int>(operands.size()) != arity)
    user_error(ErrorKind::Type, name, ": cannot take ", operands.size(), " operands (it has ",
               arity, ")");
  Operands converted = operands;
  if (dtype) {
    for (Operand& x : converted) {
      if (!x.weak && !same_kind(this->dtype(x), *dtype))
        user_error(ErrorKind::Type, name, ": cannot cast ", numpy_name(this->dtype(x)), " to ",
                   numpy_name(*dtype), " (casting rule 'same_kind')");
      x = as(x, *dtype, "ufunc");
    }
  }
  if (found != UfuncTable::rows().end()) return found->second.function(*this, converted);
  return {alu_ufunc(*op, converted)};
}

// int64 with uint64: NumPy compares their values, which no common dtype holds.
Value NumpyBuilder::compare_signed_unsigned(AluOp op, Value a, Value b) {
  const bool a_signed = kind(b_.dtype(a)) == Kind::Int;
  const Value s = a_signed ? a : b;
  const Value below = elementwise(AluOp::Cmplt, {s, b_.constant(Scalar::zero(DType::Int64))});
  const Value as_unsigned = b_.cast(s, DType::Uint64);
  const Value equal_range =
      a_signed ? elementwise(op, {as_unsigned, b}) : elementwise(op, {a, as_unsigned});
  // A negative operand is the smaller one: on the left, `<`, `<=` and `!=` hold, on the right only
  // `!=`.
  const bool holds = op == AluOp::Cmpne || (a_signed && op != AluOp::Cmpeq);
  return holds ? elementwise(AluOp::Or, {below, equal_range})
               : elementwise(AluOp::And, {b_.alu(AluOp::Not, {below}), equal_range});
}

// Comparison with a Python int that the array's dtype cannot hold: the same for all elements.
Operand NumpyBuilder::compare_out_of_range(AluOp op, const Operand& x, bool literal_is_larger,
                                           bool reversed) {
  const bool left_is_smaller = literal_is_larger != reversed;
  const bool result = op == AluOp::Cmpne || (op != AluOp::Cmpeq && left_is_smaller);
  return b_.full(Scalar::of(DType::Bool, result), shape(x));
}

Operand NumpyBuilder::compare(AluOp op, const char* name, const Operand& a, const Operand& b) {
  const auto literal_out_of_range = [&](const Operand& x,
                                        const Operand& other) -> std::optional<bool> {
    if (!x.literal || x.literal->kind != Kind::Int || other.weak) return std::nullopt;
    if (!is_integer(dtype(other))) return std::nullopt;
    const DType d = dtype(other);
    const __int128 one = 1;
    const bool is_int = kind(d) == Kind::Int;
    const __int128 high = (one << (bits_of(d) - (is_int ? 1 : 0))) - 1;
    const __int128 low = is_int ? -high - 1 : 0;
    if (x.literal->integer > high) return true;
    if (x.literal->integer < low) return false;
    return std::nullopt;
  };
  if (const auto larger = literal_out_of_range(b, a))
    return compare_out_of_range(op, a, *larger, false);
  if (const auto larger = literal_out_of_range(a, b))
    return compare_out_of_range(op, b, *larger, true);

  // A Python int that is an argument may be out of range too: compare values, not wrapped bits.
  const auto plain = [](const Operand& x) {
    return x.weak == Kind::Int && !x.literal ? Operand(x.value) : x;
  };
  Operand x = plain(a), y = plain(b);
  const bool any_float = is_float(dtype(a)) || is_float(dtype(b));
  if (any_float) x = a, y = b;
  const auto is64 = [&](const Operand& v, DType d) { return !v.weak && dtype(v) == d; };
  if ((is64(x, DType::Int64) && is64(y, DType::Uint64)) ||
      (is64(x, DType::Uint64) && is64(y, DType::Int64)))
    return compare_signed_unsigned(op, x.value, y.value);
  const DType common = result_type({x, y});
  if (is_float(common) && !is_float(dtype(x)) && !is_float(dtype(y))) {
    // A narrower signed integer with uint64.
    const auto widen = [&](const Operand& v) {
      return kind(dtype(v)) == Kind::Int ? b_.cast(v.value, DType::Int64) : v.value;
    };
    return compare_signed_unsigned(op, widen(x), widen(y));
  }
  return arithmetic(name, op, {x, y}, common);
}

Operand NumpyBuilder::power(const Operands& operands, bool is_operator) {
  const Operand &base = operands[0], &exponent = operands[1];
  // NumPy's operator squares, and the square of bool is int8; its ufunc has int64.
  const bool is_square_of_bool = is_operator && this->dtype(base) == DType::Bool &&
                                 exponent.literal && exponent.literal->integer == 2 &&
                                 !is_float(result_type(operands));
  const DType dtype = is_square_of_bool ? DType::Int8 : widen_bool(result_type(operands));
  if (is_integer(dtype)) {
    if (exponent.literal && exponent.literal->integer < 0) {
      as(exponent, dtype, "power");  // raises if it does not fit
      user_error(ErrorKind::Value, "Integers to negative integer powers are not allowed.");
    }
    const bool may_be_negative =
        exponent.literal ? false : kind(this->dtype(exponent)) == Kind::Int;
    if (may_be_negative)
      user_error(ErrorKind::Unsupported, "power: cannot raise ", numpy_name(this->dtype(base)),
                 " to a traced ", numpy_name(this->dtype(exponent)),
                 " (NumPy raises ValueError if an exponent is negative)",
                 "\nhint: make the exponent a constant, unsigned, or a float");
  }
  const Value x = as(base, dtype, "power");
  if (exponent.literal) {
    if (is_integer(dtype)) as(exponent, dtype, "power");  // raises if it does not fit
    const double e = exponent.literal->real;
    if (e == 1) return x;
    if (e == 2) return b_.alu(AluOp::Mul, {x, x});
    if (e == 3 || e == 4) {
      // Of 16 bits in float32, so that it rounds once.
      const bool widens = is_float(dtype) && bits_of(dtype) == 16;
      const Value wide = widens ? b_.cast(x, DType::Float32) : x;
      const Value square = b_.alu(AluOp::Mul, {wide, wide});
      return b_.cast(b_.alu(AluOp::Mul, {square, e == 3 ? wide : square}), dtype);
    }
    if (is_float(dtype) && e == -1) return b_.alu(AluOp::Recip, {x});
    // NumPy takes the root, but for its ufunc on float16: pow differs at -0.0 and -inf.
    const bool is_wide = dtype == DType::Float32 || dtype == DType::Float64;
    if (e == 0.5 && (is_operator ? is_float(this->dtype(base)) : is_wide))
      return b_.alu(AluOp::Sqrt, {x});
  }
  return arithmetic("power", AluOp::Pow, {x, as(exponent, dtype, "power")}, dtype);
}

}  // namespace rune::graph
