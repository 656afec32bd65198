// The evaluator, which other tests take as the truth, of floats against what it is not made of:
// narrow floats against a search for the nearest number, float32 and float64 against bit patterns
// and the C standard's tables.
#include "alu/eval.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "alu_testing.h"
#include "special_values.h"

namespace rune {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<double> special_floats(DType dtype) {
  std::vector<double> values;
  for (const Scalar& value : special_values(dtype)) values.push_back(value.as_double());
  return values;
}

// The number of a 16-bit dtype that is nearest to a finite one, of two the even one: by search.
Scalar nearest(DType dtype, double exact) {
  const uint64_t infinity = Scalar::of(DType::Float64, kInf).cast(dtype).bits();
  const uint64_t sign = std::signbit(exact) ? 0x8000 : 0;
  uint64_t low = 0, high = infinity;
  while (high - low > 1) {
    const uint64_t middle = (low + high) / 2;
    (Scalar::from_bits(dtype, middle).as_double() <= std::fabs(exact) ? low : high) = middle;
  }
  const double below = Scalar::from_bits(dtype, low).as_double();
  // Infinity stands where the next number would.
  const double above = high == infinity ? 2 * below - Scalar::from_bits(dtype, low - 1).as_double()
                                        : Scalar::from_bits(dtype, high).as_double();
  const double down = std::fabs(exact) - below, up = above - std::fabs(exact);
  const uint64_t bits = down < up || (down == up && low % 2 == 0) ? low : high;
  return Scalar::from_bits(dtype, bits | sign);
}

// Sums and products of 16-bit floats are exact in double (of float16), quotients and roots are
// never halfway.
TEST(EvaluateFloats, HalvesAreRoundedOnce) {
  std::mt19937 random(3);
  std::vector<Scalar> values = special_values(DType::Float16);
  for (int i = 0; i < 300; ++i)
    values.push_back(Scalar::from_bits(DType::Float16, random() & 0xffff));
  for (const Scalar& a : values) {
    const double x = a.as_double();
    for (const Scalar& b : values) {
      const double y = b.as_double();
      const auto check = [&](AluOp op, double exact) {
        if (!std::isfinite(exact)) return;
        ASSERT_EQ(apply(op, {a, b}), nearest(DType::Float16, exact))
            << name_of(op) << ' ' << a.text() << ' ' << b.text();
      };
      check(AluOp::Add, x + y);
      check(AluOp::Sub, x - y);
      check(AluOp::Mul, x * y);
      check(AluOp::Fdiv, x / y);
    }
    if (std::isfinite(std::sqrt(x))) {
      ASSERT_EQ(apply(AluOp::Sqrt, {a}), nearest(DType::Float16, std::sqrt(x))) << a.text();
    }
  }
}

// The processor's own arithmetic, which rounds once; the evaluator computes in double.
TEST(EvaluateFloats, Float32HasTheProcessorsBits) {
  std::mt19937 random(4);
  std::vector<float> values;
  for (const double v : special_floats(DType::Float32)) values.push_back(static_cast<float>(v));
  for (int i = 0; i < 200; ++i)
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  const auto scalar = [](float v) { return Scalar::of(DType::Float32, double{v}); };
  const auto same = [&](const Scalar& found, float want) {
    return std::isnan(want) ? std::isnan(found.as_double())
                            : found.bits() == std::bit_cast<uint32_t>(want);
  };
  for (const float a : values) {
    for (const float b : values) {
      EXPECT_TRUE(same(apply(AluOp::Add, {scalar(a), scalar(b)}), a + b)) << a << " + " << b;
      EXPECT_TRUE(same(apply(AluOp::Sub, {scalar(a), scalar(b)}), a - b)) << a << " - " << b;
      EXPECT_TRUE(same(apply(AluOp::Mul, {scalar(a), scalar(b)}), a * b)) << a << " * " << b;
      EXPECT_TRUE(same(apply(AluOp::Fdiv, {scalar(a), scalar(b)}), a / b)) << a << " / " << b;
      EXPECT_TRUE(same(apply(AluOp::Fmod, {scalar(a), scalar(b)}), std::fmod(a, b))) << a << b;
      EXPECT_EQ(apply(AluOp::Cmplt, {scalar(a), scalar(b)}).as_bool(), a < b);
      EXPECT_EQ(apply(AluOp::Cmple, {scalar(a), scalar(b)}).as_bool(), a <= b);
      EXPECT_EQ(apply(AluOp::Cmpeq, {scalar(a), scalar(b)}).as_bool(), a == b);
      EXPECT_EQ(apply(AluOp::Cmpne, {scalar(a), scalar(b)}).as_bool(), a != b);
      for (const float c : {-a * b, 1.0f, 0x1p-149f})
        EXPECT_TRUE(
            same(apply(AluOp::Mulacc, {scalar(a), scalar(b), scalar(c)}), std::fma(a, b, c)))
            << a << " * " << b << " + " << c;
    }
    EXPECT_TRUE(same(apply(AluOp::Sqrt, {scalar(a)}), std::sqrt(a))) << a;
    EXPECT_TRUE(same(apply(AluOp::Recip, {scalar(a)}), 1 / a)) << a;
  }
}

TEST(EvaluateFloats, MaximaKnowNaNAndGiveTheSecondOfTwoZeros) {
  for (const DType dtype : {DType::Float16, DType::Bfloat16, DType::Float32, DType::Float64}) {
    for (const double x : special_floats(dtype))
      for (const double y : special_floats(dtype)) {
        const Scalar a = Scalar::of(dtype, x), b = Scalar::of(dtype, y);
        const Scalar max = apply(AluOp::Max, {a, b}), min = apply(AluOp::Min, {a, b});
        const Scalar fmax = apply(AluOp::Fmax, {a, b}), fmin = apply(AluOp::Fmin, {a, b});
        if (std::isnan(x) || std::isnan(y)) {
          EXPECT_TRUE(std::isnan(max.as_double()) && std::isnan(min.as_double()));
          EXPECT_EQ(fmax, std::isnan(x) ? b : a);
          EXPECT_EQ(fmin, std::isnan(x) ? b : a);
          continue;
        }
        EXPECT_EQ(max, x > y ? a : b) << a.text() << ' ' << b.text();
        EXPECT_EQ(min, x < y ? a : b) << a.text() << ' ' << b.text();
        EXPECT_EQ(fmax, max);
        EXPECT_EQ(fmin, min);
      }
  }
}

TEST(EvaluateFloats, SignsAndClasses) {
  for (const DType dtype : {DType::Float16, DType::Bfloat16, DType::Float32, DType::Float64})
    for (const double x : special_floats(dtype)) {
      const Scalar a = Scalar::of(dtype, x);
      const uint64_t sign = uint64_t{1} << (bits_of(dtype) - 1);
      EXPECT_EQ(apply(AluOp::Neg, {a}).bits(), a.bits() ^ sign) << a.text();
      EXPECT_EQ(apply(AluOp::Abs, {a}).bits(), a.bits() & ~sign) << a.text();
      EXPECT_EQ(apply(AluOp::Signbit, {a}).as_bool(), (a.bits() & sign) != 0) << a.text();
      EXPECT_EQ(apply(AluOp::Isnan, {a}).as_bool(), x != x);
      EXPECT_EQ(apply(AluOp::Isinf, {a}).as_bool(), x == kInf || x == -kInf);
      EXPECT_EQ(apply(AluOp::Isfinite, {a}).as_bool(), x - x == 0);
      for (const double y : {1.0, -1.0, 0.0, -0.0})
        EXPECT_EQ(apply(AluOp::Copysign, {a, Scalar::of(dtype, y)}).bits(),
                  (a.bits() & ~sign) | (std::signbit(y) ? sign : 0));
      const Scalar direction = apply(AluOp::Sign, {a});
      if (x == x) {
        EXPECT_EQ(direction.as_double(), x > 0 ? 1 : x < 0 ? -1 : 0);
      } else {
        EXPECT_TRUE(std::isnan(direction.as_double()));
      }
    }
}

TEST(EvaluateFloats, Rounding) {
  struct Row {
    double x, floor, ceil, trunc, rint;
  };
  const Row rows[] = {{-0.0, -0.0, -0.0, -0.0, -0.0},
                      {0.5, 0, 1, 0, 0},
                      {-0.5, -1, -0.0, -0.0, -0.0},
                      {1.5, 1, 2, 1, 2},
                      {2.5, 2, 3, 2, 2},
                      {-1.5, -2, -1, -1, -2},
                      {-2.75, -3, -2, -2, -3},
                      {1e30, 1e30, 1e30, 1e30, 1e30},
                      {0x1p-149, 0, 1, 0, 0},
                      {-kInf, -kInf, -kInf, -kInf, -kInf}};
  for (const DType dtype : {DType::Float32, DType::Float64})
    for (const Row& row : rows) {
      const Scalar x = Scalar::of(dtype, row.x);
      EXPECT_EQ(apply(AluOp::Floor, {x}), Scalar::of(dtype, row.floor)) << row.x;
      EXPECT_EQ(apply(AluOp::Ceil, {x}), Scalar::of(dtype, row.ceil)) << row.x;
      EXPECT_EQ(apply(AluOp::Trunc, {x}), Scalar::of(dtype, row.trunc)) << row.x;
      EXPECT_EQ(apply(AluOp::Rint, {x}), Scalar::of(dtype, row.rint)) << row.x;
    }
}

// What NumPy prints for floor_divide and remainder.
TEST(EvaluateFloats, FloorDivisionAsNumPy) {
  struct Row {
    double a, b, quotient, remainder;
  };
  const Row rows[] = {{7, 2, 3, 1},          {-7, 2, -4, 1},         {7, -2, -4, -1},
                      {-7, -2, 3, -1},       {6, 3, 2, 0.0},         {-6, 3, -2, 0.0},
                      {6, -3, -2, -0.0},     {0.0, 3, 0.0, 0.0},     {-0.0, 3, -0.0, 0.0},
                      {0.0, -3, -0.0, -0.0}, {1, kInf, 0.0, 1},      {-1, kInf, -1, kInf},
                      {1, 0.0, kInf, kNaN},  {-1, 0.0, -kInf, kNaN}, {0.0, 0.0, kNaN, kNaN},
                      {kInf, 2, kNaN, kNaN}, {2.5, 0.5, 5, 0.0},     {kNaN, 2, kNaN, kNaN}};
  for (const DType dtype : {DType::Float16, DType::Float32, DType::Float64})
    for (const Row& row : rows) {
      const Scalar a = Scalar::of(dtype, row.a), b = Scalar::of(dtype, row.b);
      const auto same = [&](const Scalar& found, double want) {
        return std::isnan(want) ? std::isnan(found.as_double()) : found == Scalar::of(dtype, want);
      };
      EXPECT_TRUE(same(apply(AluOp::Idiv, {a, b}), row.quotient)) << row.a << " // " << row.b;
      EXPECT_TRUE(same(apply(AluOp::Mod, {a, b}), row.remainder)) << row.a << " % " << row.b;
    }
}

// The C standard's annex F: what functions give at zeros, infinities and the ends of their domains.
TEST(EvaluateFloats, FunctionsAtSpecialValues) {
  struct Row {
    AluOp op;
    double x, y;
  };
  const Row rows[] = {{AluOp::Sqrt, -0.0, -0.0},  {AluOp::Sqrt, -1, kNaN},
                      {AluOp::Sqrt, kInf, kInf},  {AluOp::Cbrt, -8, -2},
                      {AluOp::Cbrt, -0.0, -0.0},  {AluOp::Exp, -0.0, 1},
                      {AluOp::Exp, -kInf, 0.0},   {AluOp::Exp, 1000, kInf},
                      {AluOp::Exp2, 10, 1024},    {AluOp::Exp2, -3, 0.125},
                      {AluOp::Exp2, -kInf, 0.0},  {AluOp::Expm1, -0.0, -0.0},
                      {AluOp::Expm1, -kInf, -1},  {AluOp::Log, 1, 0.0},
                      {AluOp::Log, 0.0, -kInf},   {AluOp::Log, -0.0, -kInf},
                      {AluOp::Log, -1, kNaN},     {AluOp::Log2, 1024, 10},
                      {AluOp::Log2, 0.125, -3},   {AluOp::Log10, 1000, 3},
                      {AluOp::Log10, 1, 0.0},     {AluOp::Log1p, -0.0, -0.0},
                      {AluOp::Log1p, -1, -kInf},  {AluOp::Log1p, -2, kNaN},
                      {AluOp::Sin, -0.0, -0.0},   {AluOp::Sin, kInf, kNaN},
                      {AluOp::Cos, -0.0, 1},      {AluOp::Cos, -kInf, kNaN},
                      {AluOp::Tan, -0.0, -0.0},   {AluOp::Asin, -0.0, -0.0},
                      {AluOp::Asin, 2, kNaN},     {AluOp::Acos, 1, 0.0},
                      {AluOp::Acos, -2, kNaN},    {AluOp::Atan, -0.0, -0.0},
                      {AluOp::Sinh, -0.0, -0.0},  {AluOp::Sinh, -kInf, -kInf},
                      {AluOp::Cosh, 0.0, 1},      {AluOp::Cosh, -kInf, kInf},
                      {AluOp::Tanh, -0.0, -0.0},  {AluOp::Tanh, -kInf, -1},
                      {AluOp::Asinh, -0.0, -0.0}, {AluOp::Asinh, -kInf, -kInf},
                      {AluOp::Acosh, 1, 0.0},     {AluOp::Acosh, 0.5, kNaN},
                      {AluOp::Atanh, -0.0, -0.0}, {AluOp::Atanh, 1, kInf},
                      {AluOp::Atanh, 2, kNaN},    {AluOp::Erf, -0.0, -0.0},
                      {AluOp::Erf, -kInf, -1},    {AluOp::Recip, -0.0, -kInf},
                      {AluOp::Recip, kInf, 0.0},  {AluOp::Recip, 0x1p-126, 0x1p126}};
  for (const DType dtype : {DType::Float32, DType::Float64})
    for (const Row& row : rows) {
      const Scalar found = apply(row.op, {Scalar::of(dtype, row.x)});
      EXPECT_TRUE(std::isnan(row.y) ? std::isnan(found.as_double())
                                    : found == Scalar::of(dtype, row.y))
          << name_of(row.op) << ' ' << row.x << " : " << name_of(dtype) << " is " << found.text();
    }
  for (const AluInfo& row : all_alu_ops())
    if (row.arity == 1 && row.accepts(DType::Float32) && row.result == AluResult::Same) {
      EXPECT_TRUE(std::isnan(apply(row.op, {Scalar::of(DType::Float32, kNaN)}).as_double()))
          << row.text;
    }
}

TEST(EvaluateFloats, FunctionsOfTwoAtSpecialValues) {
  struct Row {
    AluOp op;
    double x, y, z;
  };
  const double pi = 3.141592653589793;
  const Row rows[] = {{AluOp::Atan2, 0.0, 1, 0.0},
                      {AluOp::Atan2, -0.0, 1, -0.0},
                      {AluOp::Atan2, 0.0, -1, pi},
                      {AluOp::Atan2, -0.0, -1, -pi},
                      {AluOp::Atan2, 0.0, -0.0, pi},
                      {AluOp::Atan2, 1, 0.0, pi / 2},
                      {AluOp::Atan2, kInf, kInf, pi / 4},
                      {AluOp::Atan2, 1, 1, pi / 4},
                      {AluOp::Hypot, 3, 4, 5},
                      {AluOp::Hypot, kInf, kNaN, kInf},
                      {AluOp::Pow, 2, 10, 1024},
                      {AluOp::Pow, 2, -3, 0.125},
                      {AluOp::Pow, -2, 3, -8},
                      {AluOp::Pow, -2, 0.5, kNaN},
                      {AluOp::Pow, kNaN, 0.0, 1},
                      {AluOp::Pow, 1, kNaN, 1},
                      {AluOp::Pow, -1, kInf, 1},
                      {AluOp::Pow, 0.0, -1, kInf},
                      {AluOp::Pow, -0.0, -1, -kInf},
                      {AluOp::Pow, -0.0, 2, 0.0},
                      {AluOp::Pow, 0.5, kInf, 0.0},
                      {AluOp::Pow, -kInf, 3, -kInf},
                      {AluOp::Fmod, -7, 3, -1},
                      {AluOp::Fmod, -6, 3, -0.0},
                      {AluOp::Fmod, 1, kInf, 1},
                      {AluOp::Fmod, kInf, 1, kNaN},
                      {AluOp::Ldexp, 1, 10, 1024},
                      {AluOp::Ldexp, -0.0, 10, -0.0},
                      {AluOp::Ldexp, 3, -1, 1.5},
                      {AluOp::Ldexp, 1, 2000, kInf},
                      {AluOp::Ldexp, 1, -2000, 0.0},
                      {AluOp::Ldexp, kInf, -2000, kInf},
                      {AluOp::Ldexp, kNaN, 1, kNaN}};
  for (const DType dtype : {DType::Float32, DType::Float64})
    for (const Row& row : rows) {
      const Scalar found = apply(row.op, {Scalar::of(dtype, row.x), Scalar::of(dtype, row.y)});
      EXPECT_TRUE(std::isnan(row.z) ? std::isnan(found.as_double())
                                    : found == Scalar::of(dtype, row.z))
          << name_of(row.op) << ' ' << row.x << ' ' << row.y << " : " << name_of(dtype) << " is "
          << found.text();
    }
  // Large squares do not overflow between; scaling into the subnormal numbers rounds once.
  EXPECT_EQ(apply(AluOp::Hypot,
                  {Scalar::of(DType::Float64, 0x3p600), Scalar::of(DType::Float64, 0x4p600)}),
            Scalar::of(DType::Float64, 0x5p600));
  EXPECT_EQ(apply(AluOp::Ldexp, {Scalar::of(DType::Float64, 0x1.8000000000001p0),
                                 Scalar::of(DType::Float64, -1074)}),
            Scalar::of(DType::Float64, 0x1p-1073));
  EXPECT_EQ(apply(AluOp::Ldexp,
                  {Scalar::of(DType::Float32, 0x1.000002p0), Scalar::of(DType::Float32, -150)}),
            Scalar::of(DType::Float32, 0x1p-149));
}

// Functions of float32 are those of long double, rounded once, but where that is close to halfway
// between two numbers.
TEST(EvaluateFloats, Float32FunctionsAreThoseOfLongDouble) {
  struct Row {
    AluOp op;
    long double (*function)(long double);
    double low, high;
  };
  const Row rows[] = {{AluOp::Exp, expl, -100, 88},      {AluOp::Exp2, exp2l, -140, 127},
                      {AluOp::Expm1, expm1l, -10, 80},   {AluOp::Log, logl, 0, 1e30},
                      {AluOp::Log2, log2l, 0, 1e30},     {AluOp::Log10, log10l, 0, 1e30},
                      {AluOp::Log1p, log1pl, -1, 1e9},   {AluOp::Sin, sinl, -1e4, 1e4},
                      {AluOp::Cos, cosl, -1e4, 1e4},     {AluOp::Tan, tanl, -1e4, 1e4},
                      {AluOp::Asin, asinl, -1, 1},       {AluOp::Acos, acosl, -1, 1},
                      {AluOp::Atan, atanl, -1e4, 1e4},   {AluOp::Sinh, sinhl, -80, 80},
                      {AluOp::Cosh, coshl, -80, 80},     {AluOp::Tanh, tanhl, -10, 10},
                      {AluOp::Asinh, asinhl, -1e6, 1e6}, {AluOp::Acosh, acoshl, 1, 1e6},
                      {AluOp::Atanh, atanhl, -1, 1},     {AluOp::Erf, erfl, -4, 4},
                      {AluOp::Cbrt, cbrtl, -1e9, 1e9}};
  std::mt19937 random(5);
  for (const Row& row : rows) {
    std::uniform_real_distribution<float> draw(static_cast<float>(row.low),
                                               static_cast<float>(row.high));
    for (int i = 0; i < 2000; ++i) {
      const float x = draw(random);
      const float want = static_cast<float>(row.function(x));
      const float found =
          static_cast<float>(apply(row.op, {Scalar::of(DType::Float32, double{x})}).as_double());
      if (std::isnan(want)) continue;
      EXPECT_TRUE(found == want || found == std::nextafterf(want, found)) << name_of(row.op) << x;
      const long double exact = row.function(x);
      const long double step =
          std::fabs(static_cast<long double>(std::nextafterf(want, kInf)) - want);
      if (std::fabs(std::fabs(exact - want) / step - 0.5L) > 1e-6L) {
        EXPECT_EQ(found, want) << name_of(row.op) << ' ' << x;
      }
    }
  }
}

}  // namespace
}  // namespace rune
