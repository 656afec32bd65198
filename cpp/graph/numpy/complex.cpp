#include "graph/numpy/complex.h"

#include <cmath>
#include <limits>
#include <unordered_map>

namespace rune::graph::numpy {

namespace {

// A real value in a formula.
struct Real {
  TracedGraph* t = nullptr;
  Value v;
};

Real apply(AluOp op, Real x) {
  return {x.t, x.t->alu(op, {x.v})};
}
Real apply(AluOp op, Real x, Real y) {
  return {x.t, x.t->alu(op, {x.v, y.v})};
}
Real number(Real like, double value) {
  TracedGraph& t = *like.t;
  return {&t, t.full(Scalar::of(t.dtype(like.v), value), t.shape(like.v))};
}

Real operator+(Real x, Real y) {
  return apply(AluOp::Add, x, y);
}
Real operator-(Real x, Real y) {
  return apply(AluOp::Sub, x, y);
}
Real operator*(Real x, Real y) {
  return apply(AluOp::Mul, x, y);
}
Real operator/(Real x, Real y) {
  return apply(AluOp::Fdiv, x, y);
}
Real operator-(Real x) {
  return apply(AluOp::Neg, x);
}
Real operator*(Real x, double y) {
  return x * number(x, y);
}
Real operator+(Real x, double y) {
  return x + number(x, y);
}
Real operator-(Real x, double y) {
  return x - number(x, y);
}
// Comparisons and logic give bools.
Real operator<(Real x, Real y) {
  return apply(AluOp::Cmplt, x, y);
}
Real operator<=(Real x, Real y) {
  return apply(AluOp::Cmple, x, y);
}
Real operator>(Real x, Real y) {
  return y < x;
}
Real operator==(Real x, Real y) {
  return apply(AluOp::Cmpeq, x, y);
}
Real operator!=(Real x, Real y) {
  return apply(AluOp::Cmpne, x, y);
}
Real operator<(Real x, double y) {
  return x < number(x, y);
}
Real operator>(Real x, double y) {
  return x > number(x, y);
}
Real operator==(Real x, double y) {
  return x == number(x, y);
}
Real operator&(Real x, Real y) {
  return apply(AluOp::And, x, y);
}
Real operator|(Real x, Real y) {
  return apply(AluOp::Or, x, y);
}
Real operator!(Real x) {
  return apply(AluOp::Not, x);
}
Real abs(Real x) {
  return apply(AluOp::Abs, x);
}
Real isnan(Real x) {
  return apply(AluOp::Isnan, x);
}
Real isinf(Real x) {
  return apply(AluOp::Isinf, x);
}
Real isfinite(Real x) {
  return apply(AluOp::Isfinite, x);
}
Real copysign(Real x, Real sign) {
  return apply(AluOp::Copysign, x, sign);
}
Real hypot(Real x, Real y) {
  return apply(AluOp::Hypot, x, y);
}
Real where(Real condition, Real x, Real y) {
  return {x.t, x.t->alu(AluOp::Where, {condition.v, x.v, y.v})};
}
Real where(Real condition, double x, Real y) {
  return where(condition, number(y, x), y);
}
Real where(Real condition, Real x, double y) {
  return where(condition, x, number(x, y));
}

// A complex value in a formula.
struct Complex {
  Real re, im;
};

Complex where(Real condition, Complex x, Complex y) {
  return {where(condition, x.re, y.re), where(condition, x.im, y.im)};
}
Complex scaled(Complex x, double factor) {
  return {x.re * factor, x.im * factor};
}
Complex number(Complex like, double re, double im) {
  return {number(like.re, re), number(like.im, im)};
}

Complex in(TracedGraph& t, Value x) {
  return {{&t, t.real(x)}, {&t, t.imag(x)}};
}

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

bool is_wide(Real x) {
  return x.t->dtype(x.v) == DType::Float64;
}

// Arithmetic. Operations have the same order as in NumPy's loops.

Complex add(Complex x, Complex y) {
  return {x.re + y.re, x.im + y.im};
}

Complex subtract(Complex x, Complex y) {
  return {x.re - y.re, x.im - y.im};
}

Complex multiply(Complex x, Complex y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

// Smith's algorithm: divides by the larger part first.
Complex divide(Complex x, Complex y) {
  const Real a = abs(y.re), b = abs(y.im);
  const Real real_is_larger = b <= a;
  const Real large = where(real_is_larger, y.re, y.im);
  const Real small = where(real_is_larger, y.im, y.re);
  const Real ratio = small / large;
  const Real scale = number(large, 1) / (large + small * ratio);
  const Complex quotient{where(real_is_larger, x.re + x.im * ratio, x.re * ratio + x.im) * scale,
                         where(real_is_larger, x.im - x.re * ratio, x.im * ratio - x.re) * scale};
  return where((a == 0) & (b == 0), {x.re / a, x.im / a}, quotient);
}

Complex reciprocal(Complex x) {
  const Real real_is_larger = abs(x.im) <= abs(x.re);
  const Real large = where(real_is_larger, x.re, x.im);
  const Real small = where(real_is_larger, x.im, x.re);
  const Real ratio = small / large;
  const Real divisor = large + small * ratio;
  const Real one = number(large, 1);
  return {where(real_is_larger, one, ratio) / divisor,
          -where(real_is_larger, ratio, one) / divisor};
}

Complex square(Complex x) {
  return {x.re * x.re - x.im * x.im, x.re * x.im + x.im * x.re};
}

Complex rint(Complex x) {
  return {apply(AluOp::Rint, x.re), apply(AluOp::Rint, x.im)};
}

Complex negative(Complex x) {
  return {-x.re, -x.im};
}

Complex positive(Complex x) {
  return x;
}

Complex conjugate(Complex x) {
  return {x.re, -x.im};
}

Real absolute(Complex x) {
  return hypot(x.re, x.im);
}

// x / |x|. If x is infinite, it is the sign of the real part if that is infinite, otherwise the
// sign of the imaginary part.
Complex sign(Complex x) {
  const Real size = absolute(x);
  const Real one = number(x.re, 1), zero = number(x.re, 0);
  const Complex infinite =
      where(isinf(x.re), Complex{copysign(one, x.re), zero}, Complex{zero, copysign(one, x.im)});
  Complex result = where(isinf(size), infinite, {x.re / size, x.im / size});
  result = where(size == 0, number(x, 0, 0), result);
  return where(isnan(size) | (isinf(x.re) & isinf(x.im)), number(x, kNan, kNan), result);
}

// Functions. C99's Annex G defines the results for special values.

Complex exp(Complex x) {
  // e^x.re may overflow although its product with a small sine does not.
  const double most = is_wide(x.re) ? 709 : 88;
  const Real is_large = x.re > most;
  const Real factor = apply(AluOp::Exp, where(is_large, x.re - most, x.re));
  const auto grown = [&](Real y) { return where(is_large, y * std::exp(most), y); };
  const Complex general{grown(factor * apply(AluOp::Cos, x.im)),
                        grown(factor * apply(AluOp::Sin, x.im))};
  const Real vague = isinf(x.re) & !isfinite(x.im);  // infinite, without a direction
  const Complex infinite{where(x.re > 0, kInf, number(x.re, 0)),
                         where(x.re > 0, kNan, copysign(number(x.im, 0), x.im))};
  return where(x.im == 0, {grown(factor), x.im}, where(vague, infinite, general));
}

// x scaled by a power of two such that the squares of its parts neither overflow nor underflow, and
// that power.
std::pair<Complex, Real> within_range(Complex x) {
  const double large = is_wide(x.re) ? 0x1p1000 : 0x1p120, down = is_wide(x.re) ? 0x1p-4 : 0x1p-10;
  const double small = is_wide(x.re) ? 0x1p-900 : 0x1p-90, up = is_wide(x.re) ? 0x1p200 : 0x1p60;
  const Real size = apply(AluOp::Fmax, abs(x.re), abs(x.im));
  const Real factor = where(size > large, down, where(size < small, up, number(size, 1)));
  return {{x.re * factor, x.im * factor}, factor};
}

Complex log(Complex x) {
  const auto [scaled, factor] = within_range(x);
  const Real far = apply(AluOp::Log, absolute(scaled)) - apply(AluOp::Log, factor);
  // Near the unit circle, where log |x| is small, |x|^2 - 1 is more accurate than |x|.
  const Real a = abs(x.re), b = abs(x.im);
  const Real large = apply(AluOp::Fmax, a, b), small = apply(AluOp::Fmin, a, b);
  const Real above_one = (large - 1) * (large + 1) + small * small;
  const Real is_near = (large > 0.5) & (large < 2.0) & !(isnan(a) | isnan(b));
  const Real near = apply(AluOp::Log1p, where(is_near, above_one, 0)) * 0.5;
  return {where(is_near, near, far), apply(AluOp::Atan2, x.im, x.re)};
}

Complex sqrt(Complex x) {
  const auto [y, factor] = within_range(x);
  const Real a = abs(y.re), b = abs(y.im);
  const Real larger = apply(AluOp::Sqrt, (a + hypot(a, b)) * 0.5);
  const Real smaller = where(larger == 0, b, b / (larger + larger));
  const Real unscaled = number(x.re, 1) / apply(AluOp::Sqrt, factor);
  const Real right = !(y.re < 0.0);
  const Complex root{where(right, larger, smaller) * unscaled,
                     copysign(where(right, smaller, larger) * unscaled, x.im)};
  return {where(isinf(x.im), kInf, root.re), where(isinf(x.im), x.im, root.im)};
}

Complex log2(Complex x) {
  return scaled(log(x), 1.442695040888963407359924681001892137);
}

Complex log10(Complex x) {
  return scaled(log(x), 0.434294481903251827651128918916605082);
}

Complex exp2(Complex x) {
  return exp(scaled(x, 0.693147180559945309417232121458176568));
}

Complex expm1(Complex x) {
  const Real half = apply(AluOp::Sin, x.im * 0.5);
  return {apply(AluOp::Expm1, x.re) * apply(AluOp::Cos, x.im) - (half * half + half * half),
          apply(AluOp::Exp, x.re) * apply(AluOp::Sin, x.im)};
}

Complex log1p(Complex x) {
  const Real moved = x.re + 1;
  return {apply(AluOp::Log, hypot(moved, x.im)), apply(AluOp::Atan2, x.im, moved)};
}

// Comparisons are lexicographic.

template <bool or_equal>
Real before(Complex x, Complex y) {
  const Real tied = (x.re == y.re) & (or_equal ? x.im <= y.im : x.im < y.im);
  return ((x.re < y.re) & !(isnan(x.im) | isnan(y.im))) | tied;
}

template <bool or_equal>
Real after(Complex x, Complex y) {
  return before<or_equal>(y, x);
}

Real equal(Complex x, Complex y) {
  return (x.re == y.re) & (x.im == y.im);
}

Real not_equal(Complex x, Complex y) {
  return (x.re != y.re) | (x.im != y.im);
}

Real has_nan(Complex x) {
  return isnan(x.re) | isnan(x.im);
}

Complex maximum(Complex x, Complex y) {
  return where(has_nan(x) | after<true>(x, y), x, y);
}

Complex minimum(Complex x, Complex y) {
  return where(has_nan(x) | before<true>(x, y), x, y);
}

Complex fmax(Complex x, Complex y) {
  return where(has_nan(y) | after<true>(x, y), x, y);
}

Complex fmin(Complex x, Complex y) {
  return where(has_nan(y) | before<true>(x, y), x, y);
}

Real has_inf(Complex x) {
  return isinf(x.re) | isinf(x.im);
}

Real is_finite(Complex x) {
  return isfinite(x.re) & isfinite(x.im);
}

Real is_true(Complex x) {
  return (x.re != number(x.re, 0)) | (x.im != number(x.im, 0));
}

// A function of one or two complex numbers, of which one is null.
struct Row {
  Complex (*unary)(Complex) = nullptr;
  Complex (*binary)(Complex, Complex) = nullptr;
  Real (*unary_real)(Complex) = nullptr;
  Real (*binary_real)(Complex, Complex) = nullptr;

  Row(Complex (*f)(Complex)) : unary(f) {}              // NOLINT
  Row(Complex (*f)(Complex, Complex)) : binary(f) {}    // NOLINT
  Row(Real (*f)(Complex)) : unary_real(f) {}            // NOLINT
  Row(Real (*f)(Complex, Complex)) : binary_real(f) {}  // NOLINT
  size_t arity() const { return unary || unary_real ? 1 : 2; }
};

const std::unordered_map<std::string_view, Row>& rows() {
  static const std::unordered_map<std::string_view, Row> table = {
      {"add", add},
      {"subtract", subtract},
      {"multiply", multiply},
      {"divide", divide},
      {"reciprocal", reciprocal},
      {"square", square},
      {"negative", negative},
      {"positive", positive},
      {"conjugate", conjugate},
      {"absolute", absolute},
      {"sign", sign},
      {"rint", static_cast<Complex (*)(Complex)>(rint)},
      {"exp", static_cast<Complex (*)(Complex)>(exp)},
      {"exp2", static_cast<Complex (*)(Complex)>(exp2)},
      {"expm1", static_cast<Complex (*)(Complex)>(expm1)},
      {"log", static_cast<Complex (*)(Complex)>(log)},
      {"log2", static_cast<Complex (*)(Complex)>(log2)},
      {"log10", static_cast<Complex (*)(Complex)>(log10)},
      {"log1p", static_cast<Complex (*)(Complex)>(log1p)},
      {"sqrt", static_cast<Complex (*)(Complex)>(sqrt)},
      {"less", before<false>},
      {"less_equal", before<true>},
      {"greater", after<false>},
      {"greater_equal", after<true>},
      {"equal", equal},
      {"not_equal", not_equal},
      {"maximum", maximum},
      {"minimum", minimum},
      {"fmax", static_cast<Complex (*)(Complex, Complex)>(fmax)},
      {"fmin", static_cast<Complex (*)(Complex, Complex)>(fmin)},
      {"isnan", has_nan},
      {"isinf", has_inf},
      {"isfinite", is_finite},
  };
  return table;
}

// Functions for which NumPy calls C's, whose results for special values no short formula gives.
constexpr std::string_view kOnHost[] = {
    "power", "float_power", "sin",    "cos",    "tan",     "sinh",    "cosh",
    "tanh",  "arcsin",      "arccos", "arctan", "arcsinh", "arccosh", "arctanh",
};

}  // namespace

Value complex_constant(TracedGraph& t, DType dtype, double real, double imag) {
  const auto part = [&](double x) { return t.constant(Scalar::of(real_of(dtype), x)); };
  return t.complex(part(real), part(imag));
}

Value complex_product(TracedGraph& t, Value x, Value y) {
  const std::vector<Value> both = broadcast_all(t, "multiply", {x, y});
  const Complex product = multiply(in(t, both[0]), in(t, both[1]));
  return t.complex(product.re.v, product.im.v);
}

Value complex_is_nonzero(TracedGraph& t, Value x) {
  return is_true(in(t, x)).v;
}

Operands complex_ufunc(TracedGraph& t, std::string_view name, const Operands& operands) {
  const auto found = rows().find(name);
  const DType dtype = result_type(t, operands);
  if (found == rows().end()) {
    if (contains(kOnHost, name))
      user_error(ErrorKind::Unsupported, name, ": cannot trace it on ", numpy_name(dtype));
    user_error(ErrorKind::Type, name, ": cannot compute on ", numpy_name(dtype),
               " (NumPy has no loop for it)");
  }
  const Row& row = found->second;
  if (operands.size() != row.arity())
    user_error(ErrorKind::Type, name, ": cannot take ", operands.size(), " operands (it has ",
               row.arity(), ")");
  std::vector<Value> values;
  const std::string op(name);
  for (const Operand& x : operands) values.push_back(convert(t, x, dtype));
  values = broadcast_all(t, op.c_str(), std::move(values));
  const Complex x = in(t, values[0]);
  if (row.unary_real) return {row.unary_real(x).v};
  if (row.binary_real) return {row.binary_real(x, in(t, values[1])).v};
  const Complex result = row.unary ? row.unary(x) : row.binary(x, in(t, values[1]));
  return {t.complex(result.re.v, result.im.v)};
}

std::optional<Value> complex_power(TracedGraph& t, Value base, const Literal& exponent,
                                   bool is_operator) {
  const Complex x = in(t, base);
  const auto value = [&](Complex y) { return t.complex(y.re.v, y.im.v); };
  if (exponent.imag != 0) return std::nullopt;
  const double e = exponent.real;
  // The operator calls other ufuncs.
  if (is_operator && e == 0.5 && exponent.kind == Kind::Float) return value(sqrt(x));
  if (is_operator && e == -1 && exponent.kind == Kind::Int) return value(reciprocal(x));
  if (e != std::floor(e) || std::fabs(e) >= 100) return std::nullopt;
  if (e == 0) return value(number(x, 1, 0));
  if (e == 1) return base;
  Complex result = number(x, 1, 0);
  if (e == 2 || e == 3) {
    result = multiply(x, x);
    if (e == 3) result = multiply(x, result);
  } else {
    // Multiplies as NumPy does: the powers of two that add up to the exponent.
    Complex power = x;
    const int n = static_cast<int>(std::fabs(e));
    for (int bit = 1;;) {
      if (n & bit) result = multiply(result, power);
      bit <<= 1;
      if (n < bit) break;
      power = multiply(power, power);
    }
    if (e < 0) result = divide(number(x, 1, 0), result);
  }
  const Real is_zero = !is_true(x);
  return value(where(is_zero, e > 0 ? number(x, 0, 0) : number(x, kNan, kNan), result));
}

namespace {

// The operand for a part of x. If x is a Python number, the part is one too.
Operand part(const Operand& x, Value value) {
  return x.weak ? Operand(value, Kind::Float) : Operand(value);
}

}  // namespace

Operand real(TracedGraph& t, const Operand& x) {
  const Value value = value_of(t, x);
  return is_complex(t.dtype(value)) ? part(x, t.real(value)) : x;
}

Operand imag(TracedGraph& t, const Operand& x) {
  const Value value = value_of(t, x);
  if (is_complex(t.dtype(value))) return part(x, t.imag(value));
  return t.full(Scalar::zero(t.dtype(value)), Shape(t.shape(value)));
}

Operand make_complex(TracedGraph& t, const Operand& real, const Operand& imag) {
  return t.complex(value_of(t, real), value_of(t, imag));
}

}  // namespace rune::graph::numpy
