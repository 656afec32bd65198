// The evaluator, which other tests take as the truth, of integers against their mathematical
// definition. (eval_float_test.cpp: of floats.)
#include "alu/eval.h"

#include <gtest/gtest.h>

#include <cmath>

#include "alu_testing.h"
#include "special_values.h"

namespace rune {
namespace {

using Wide = __int128;

// Integers.

Wide value_of(const Scalar& s) {
  return kind(s.dtype()) == Kind::Uint ? Wide{s.as_uint64()} : Wide{s.as_int64()};
}

// The one number of the dtype that is congruent to `value`.
Scalar wrapped(DType dtype, Wide value) {
  const int bits = bits_of(dtype);
  const Wide modulus = Wide{1} << bits;
  value = ((value % modulus) + modulus) % modulus;
  return Scalar::from_bits(dtype, static_cast<uint64_t>(value));
}

// Congruent to a * b, of the numbers next to 0 that are congruent to a and b: those have 63 bits.
Wide product_of(Wide a, Wide b, Wide modulus) {
  const auto centred = [&](Wide v) {
    v %= modulus;
    return v >= modulus / 2 ? v - modulus : v < -modulus / 2 ? v + modulus : v;
  };
  return centred(a) * centred(b);
}

Wide floor_of(Wide a, Wide b) {
  Wide q = 0;  // by definition: the largest q with q * |b| <= a * sign(b)
  if (b < 0) a = -a, b = -b;
  q = a / b;
  while (q * b > a) --q;
  while ((q + 1) * b <= a) ++q;
  return q;
}

// What alu.def says that the operation is.
Wide expected(AluOp op, DType dtype, Wide a, Wide b) {
  const int width = bits_of(dtype);
  const Wide modulus = Wide{1} << width;
  switch (op) {
    case AluOp::Add: return a + b;
    case AluOp::Sub: return a - b;
    case AluOp::Mul: return product_of(a, b, modulus);
    case AluOp::Div: return b == 0 ? 0 : (a < 0) == (b < 0) ? floor_of(a, b) : -floor_of(-a, b);
    case AluOp::Idiv: return b == 0 ? 0 : floor_of(a, b);
    case AluOp::Mod: return b == 0 ? 0 : a - b * floor_of(a, b);
    case AluOp::Fmod: {
      if (b == 0) return 0;
      const Wide size =
          (a < 0 ? -a : a) - (b < 0 ? -b : b) * floor_of(a < 0 ? -a : a, b < 0 ? -b : b);
      return a < 0 ? -size : size;
    }
    case AluOp::Pow: {
      if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
      Wide result = 1;
      for (Wide i = 0; i < b; ++i) result = product_of(result, a, modulus);
      return result;
    }
    case AluOp::Max: return a > b ? a : b;
    case AluOp::Min: return a < b ? a : b;
    case AluOp::Shl: {
      if (b < 0 || b >= width) return 0;
      for (Wide i = 0; i < b; ++i) a *= 2;
      return a;
    }
    case AluOp::Shr: {
      if (b < 0 || b >= width) return a < 0 ? -1 : 0;
      for (Wide i = 0; i < b; ++i) a = floor_of(a, 2);
      return a;
    }
    case AluOp::Xor:
    case AluOp::Or:
    case AluOp::And: {
      Wide result = 0;
      for (int i = 0; i < width; ++i) {
        const Wide place = Wide{1} << i;
        const int x = floor_of(a, place) % 2 != 0, y = floor_of(b, place) % 2 != 0;
        if (op == AluOp::Xor ? x + y == 1 : op == AluOp::Or ? x + y > 0 : x + y == 2)
          result += place;
      }
      return result;
    }
    case AluOp::Cmplt: return a < b;
    case AluOp::Cmple: return a <= b;
    case AluOp::Cmpeq: return a == b;
    case AluOp::Cmpne: return a != b;
    default: ADD_FAILURE() << name_of(op) << " of integers has no definition here"; return 0;
  }
}

std::vector<Scalar> all_of(DType dtype) {
  std::vector<Scalar> all;
  const int bits = is_bool(dtype) ? 1 : bits_of(dtype);
  for (uint64_t b = 0; b < uint64_t{1} << bits; ++b) all.push_back(Scalar::from_bits(dtype, b));
  return all;
}

void check_integers(DType dtype, const std::vector<Scalar>& values, bool with_power) {
  for (const AluInfo& row : all_alu_ops()) {
    if (row.arity != 2 || !row.accepts(dtype) || (row.op == AluOp::Pow && !with_power)) continue;
    const DType type = row.result == AluResult::Bool ? DType::Bool : dtype;
    for (const Scalar& a : values)
      for (const Scalar& b : values) {
        const Scalar found = apply(row.op, {a, b});
        const Scalar want = wrapped(type, expected(row.op, dtype, value_of(a), value_of(b)));
        ASSERT_EQ(found, want) << row.text << ' ' << a.text() << ' ' << b.text() << " : "
                               << name_of(dtype) << " is " << found.text() << ", not "
                               << want.text();
      }
  }
  for (const Scalar& a : values) {
    const Wide v = value_of(a);
    const auto check = [&](AluOp op, Wide want) {
      if (info(op).accepts(dtype)) {
        ASSERT_EQ(apply(op, {a}), wrapped(dtype, want)) << name_of(op) << ' ' << a.text();
      }
    };
    check(AluOp::Neg, -v);
    check(AluOp::Abs, v < 0 ? -v : v);
    check(AluOp::Sign, v < 0 ? -1 : v > 0);
    check(AluOp::Not, is_bool(dtype) ? 1 - v : -1 - v);
  }
}

TEST(EvaluateIntegers, EveryPairOf8Bits) {
  for (const DType dtype : {DType::Bool, DType::Int8, DType::Uint8})
    check_integers(dtype, all_of(dtype), true);
}

TEST(EvaluateIntegers, ExtremesOfWiderOnes) {
  for (const DType dtype :
       {DType::Int16, DType::Uint16, DType::Int32, DType::Uint32, DType::Int64, DType::Uint64})
    check_integers(dtype, special_values(dtype), false);
}

TEST(EvaluateIntegers, PowersOfWiderOnes) {
  for (const DType dtype : {DType::Int16, DType::Uint32, DType::Int64, DType::Uint64})
    for (const Scalar& base : special_values(dtype))
      for (int exponent = 0; exponent < 80; ++exponent)
        ASSERT_EQ(apply(AluOp::Pow, {base, Scalar::of(dtype, exponent)}),
                  wrapped(dtype, expected(AluOp::Pow, dtype, value_of(base), exponent)))
            << base.text() << " to the power of " << exponent << " of " << name_of(dtype);
}

TEST(EvaluateIntegers, MultiplyAddAndWhere) {
  for (const Scalar& a : special_values(DType::Int64))
    for (const Scalar& b : special_values(DType::Int64)) {
      const Scalar c = Scalar::of(DType::Int64, 12345);
      const Scalar product = apply(AluOp::Mul, {a, b});
      EXPECT_EQ(apply(AluOp::Mulacc, {a, b, c}),
                wrapped(DType::Int64, value_of(product) + value_of(c)));
    }
  const Scalar a = Scalar::of(DType::Int8, 1), b = Scalar::of(DType::Int8, 2);
  EXPECT_EQ(apply(AluOp::Where, {Scalar::of(DType::Bool, true), a, b}), a);
  EXPECT_EQ(apply(AluOp::Where, {Scalar::of(DType::Bool, false), a, b}), b);
}

// Reductions.

TEST(Reductions, NeutralElementsLeaveEveryOperand) {
  for (int d = 0; d < kNumDTypes; ++d) {
    const auto dtype = static_cast<DType>(d);
    const std::vector<Scalar> values = special_values(dtype);
    for (int o = 0; o < kNumReduceOps; ++o) {
      const auto op = static_cast<ReduceOp>(o);
      if (!info(alu_of(op)).accepts(dtype)) continue;
      EXPECT_TRUE(info(alu_of(op)).has(alu_flags::Associative));
      for (const Scalar& x : values) {
        EXPECT_EQ(apply(alu_of(op), {neutral(op, dtype), x}), x) << name_of(op) << ' ' << x.text();
        EXPECT_EQ(apply(alu_of(op), {x, neutral(op, dtype)}), x) << name_of(op) << ' ' << x.text();
        const Scalar with_identity = apply(alu_of(op), {identity(op, dtype), x});
        EXPECT_TRUE(std::isnan(x.as_double()) || apply(AluOp::Cmpeq, {with_identity, x}).as_bool());
      }
    }
  }
}

}  // namespace
}  // namespace rune
