// The error of decomposed functions against long double, in units in the last place of the true
// value.
#include "decompose_fixture.h"

namespace rune::lower {
namespace {

using Unary = long double (*)(long double);
using Binary = long double (*)(long double, long double);

struct Precision {
  int mantissa, lowest_exponent, highest_exponent;
};
Precision precision_of(DType dtype) {
  return dtype == DType::Float32 ? Precision{23, -126, 127} : Precision{52, -1022, 1023};
}

// The error of `result` in ulp of `exact`; infinity if one is NaN, infinite or a zero of another
// sign.
double error_in_ulp(const Scalar& result, long double exact) {
  const double y = result.as_double();
  const Precision p = precision_of(result.dtype());
  const double wrong = std::numeric_limits<double>::infinity();
  if (std::isnan(exact) || std::isnan(y)) return std::isnan(exact) && std::isnan(y) ? 0 : wrong;
  const double rounded = Scalar::of(result.dtype(), static_cast<double>(exact)).as_double();
  if (y == rounded) return std::signbit(y) == std::signbit(rounded) ? 0 : wrong;
  if (std::isinf(exact)) return wrong;
  // An infinity where the true value nearly overflows counts as the next power of two.
  const long double value =
      std::isinf(y) ? std::copysign(std::ldexp(1.0L, p.highest_exponent + 1), y) : y;
  const int exponent =
      exact == 0 ? p.lowest_exponent : std::max(std::ilogb(exact), p.lowest_exponent);
  return static_cast<double>(std::fabs(value - exact) / std::ldexp(1.0L, exponent - p.mantissa));
}

// Special values, and bit patterns over all signs and exponents, more of them around 1.
std::vector<Scalar> samples(DType dtype, int count) {
  std::vector<Scalar> values = special_values(dtype);
  std::mt19937_64 random(11);
  const Precision p = precision_of(dtype);
  const int width = bits_of(dtype);
  for (int i = 0; i < count; ++i) {
    uint64_t bits = random() >> (64 - width);
    if (i % 2) {
      const uint64_t exponent = p.highest_exponent - 20 + random() % 28;
      const uint64_t field = uint64_t(2 * p.highest_exponent + 1) << p.mantissa;
      bits = (bits & ~field) | (exponent << p.mantissa);
    }
    values.push_back(Scalar::from_bits(dtype, bits));
  }
  return values;
}

struct UnaryCase {
  AluOp op;
  Unary exact;
  double ulp32;  // 0: no decomposition
  double ulp64;
};

long double exact_exp2(long double x) {
  return std::exp2(x);
}

// The bounds are the worst case found over every 61st float32 and millions of random float64,
// rounded up.
const UnaryCase kUnary[] = {
    {AluOp::Exp, std::exp, 1, 1},         {AluOp::Exp2, exact_exp2, 1, 1},
    {AluOp::Expm1, std::expm1, 1.6, 2},   {AluOp::Log, std::log, 1, 1},
    {AluOp::Log2, std::log2, 1.2, 1.2},   {AluOp::Log10, std::log10, 1.2, 1.2},
    {AluOp::Log1p, std::log1p, 1.6, 1.6}, {AluOp::Sin, std::sin, 1.7, 1.7},
    {AluOp::Cos, std::cos, 1.7, 1.7},     {AluOp::Tan, std::tan, 2.1, 2},
    {AluOp::Asin, std::asin, 1.3, 0},     {AluOp::Acos, std::acos, 1.3, 0},
    {AluOp::Atan, std::atan, 1.4, 0},     {AluOp::Sinh, std::sinh, 1.7, 0},
    {AluOp::Cosh, std::cosh, 1.5, 0},     {AluOp::Tanh, std::tanh, 1.8, 2},
    {AluOp::Asinh, std::asinh, 1, 0},     {AluOp::Acosh, std::acosh, 1.6, 0},
    {AluOp::Atanh, std::atanh, 1, 0},     {AluOp::Erf, std::erf, 1.1, 0},
    {AluOp::Cbrt, std::cbrt, 0.6, 0},
};

class Accuracy : public testing::TestWithParam<UnaryCase> {};

TEST_P(Accuracy, OfUnaryFunctions) {
  const UnaryCase& c = GetParam();
  for (const DType dtype : {DType::Float32, DType::Float64}) {
    const double bound = dtype == DType::Float32 ? c.ulp32 : c.ulp64;
    if (bound == 0) continue;
    const std::vector<Scalar> x = samples(dtype, 1200);
    const std::vector<Scalar> y = decomposed(c.op, dtype, basic_target(), 8, {x});
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_LE(error_in_ulp(y[i], c.exact(x[i].as_double())), bound)
          << name_of(c.op) << ' ' << name_of(dtype) << " of " << x[i].text() << " gives "
          << y[i].text();
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, Accuracy, testing::ValuesIn(kUnary),
                         [](const auto& c) { return std::string(name_of(c.param.op)); });

void expect_accurate(AluOp op, DType dtype, Binary exact, double bound,
                     const std::vector<std::vector<Scalar>>& operands) {
  const std::vector<Scalar> results = decomposed(op, dtype, basic_target(), 8, operands);
  for (size_t i = 0; i < results.size(); ++i) {
    const Scalar &a = operands[0][i], &b = operands[1][i];
    ASSERT_LE(error_in_ulp(results[i], exact(a.as_double(), b.as_double())), bound)
        << name_of(op) << ' ' << name_of(dtype) << " of " << a.text() << ' ' << b.text()
        << " gives " << results[i].text();
  }
}

std::vector<std::vector<Scalar>> random_pairs(DType dtype, int count) {
  const std::vector<Scalar> values = samples(dtype, 2 * count);
  const auto middle = values.end() - count;
  return {{middle - count, middle}, {middle, values.end()}};
}

TEST(Accuracy, OfBinaryFunctions) {
  const DType f32 = DType::Float32;
  for (const auto& operands : {pairs_of(special_values(f32)), random_pairs(f32, 1000)}) {
    expect_accurate(AluOp::Pow, f32, std::pow, 1.2, operands);
    expect_accurate(AluOp::Atan2, f32, std::atan2, 1.8, operands);
    expect_accurate(AluOp::Hypot, f32, std::hypot, 1.2, operands);
  }
  expect_accurate(AluOp::Hypot, DType::Float64, std::hypot, 1.2,
                  random_pairs(DType::Float64, 1000));
}

// Everything from 0 to infinity, each result rounded once.
TEST(Accuracy, ScalingByPowersOfTwo) {
  for (const DType dtype : {DType::Float32, DType::Float64}) {
    std::vector<std::vector<Scalar>> operands(2);
    for (const Scalar& x : samples(dtype, 300))
      for (const int n :
           {0, 1, -1, 24, -24, 126, -127, 128, -149, 255, -280, 1023, -1074, 2100, -2100}) {
        operands[0].push_back(x);
        operands[1].push_back(Scalar::of(dtype, n));
      }
    const std::vector<Scalar> found = decomposed(AluOp::Ldexp, dtype, basic_target(), 8, operands);
    for (size_t i = 0; i < found.size(); ++i) {
      const Scalar &x = operands[0][i], &n = operands[1][i];
      const double exact = std::ldexp(x.as_double(), static_cast<int>(n.as_double()));
      const Scalar wanted = Scalar::of(dtype, exact);
      if (!std::isnan(exact))
        ASSERT_EQ(found[i], wanted) << x.text() << " times 2 to the power of " << n.text();
      else
        ASSERT_TRUE(std::isnan(found[i].as_double()));
    }
  }
}

// Powers of ordinary size: the exponent is the logarithm of the result over that of the base.
TEST(Accuracy, OfPowersInRange) {
  std::mt19937 random(5);
  std::vector<std::vector<Scalar>> operands(2);
  for (int i = 0; i < 2000; ++i) {
    const Scalar base = Scalar::from_bits(DType::Float32, random() & 0x7fffffff);
    const double target = std::ldexp(static_cast<int32_t>(random()), -31) * 152;
    operands[0].push_back(base);
    operands[1].push_back(f32(target / std::log2(base.as_double())));
  }
  expect_accurate(AluOp::Pow, DType::Float32, std::pow, 1.2, operands);
}

TEST(Accuracy, OfConstantPowers) {
  for (const double c : {0.0, 1.0, 2.0, 3.0, -1.0, 0.5, 1.5}) {
    const Scalar constant = f32(c);
    const std::vector<Scalar> x = samples(DType::Float32, 300);
    const std::vector<Scalar> y =
        decomposed(AluOp::Pow, DType::Float32, basic_target(), 4, {x}, &constant);
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_LE(error_in_ulp(y[i], std::pow(static_cast<long double>(x[i].as_double()), c)), 2)
          << x[i].text() << " to the power of " << c << " gives " << y[i].text();
  }
}

// Values that users compare for equality.
TEST(Accuracy, WholeNumbersAreExact) {
  const auto one = [](AluOp op, double x) {
    return decomposed(op, DType::Float32, basic_target(), 1, {{f32(x)}})[0].as_double();
  };
  EXPECT_EQ(one(AluOp::Cos, 0), 1);
  EXPECT_EQ(one(AluOp::Exp, 0), 1);
  EXPECT_EQ(one(AluOp::Log, 1), 0);
  EXPECT_EQ(one(AluOp::Tanh, 20), 1);
  EXPECT_EQ(one(AluOp::Cbrt, 27), 3);
  for (int n = -149; n < 128; ++n) {
    EXPECT_EQ(one(AluOp::Exp2, n), std::ldexp(1.0, n));
    EXPECT_EQ(one(AluOp::Log2, std::ldexp(1.0, n)), n);
  }
}

}  // namespace
}  // namespace rune::lower
