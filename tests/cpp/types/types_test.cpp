// dtypes against NumPy's promotion table, shapes, scalars and their bits.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "base/error.h"
#include "types/capabilities.h"
#include "types/scalar.h"
#include "types/shape.h"
#include "types/word.h"

namespace rune {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<DType> all_dtypes() {
  std::vector<DType> all;
  for (int d = 0; d < kNumGraphDTypes; ++d) all.push_back(static_cast<DType>(d));
  return all;
}

template <class F>
std::string refusal(ErrorKind kind, F&& f) {
  try {
    f();
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), kind);
    return e.what();
  }
  return "";
}

TEST(DTypes, ComplexOnesArePairs) {
  EXPECT_EQ(real_of(DType::Complex64), DType::Float32);
  EXPECT_EQ(real_of(DType::Int8), DType::Int8);
  for (const DType d : all_dtypes()) {
    EXPECT_EQ(is_complex(d), static_cast<int>(d) >= kNumDTypes);
    EXPECT_EQ(size_of(d), (is_complex(d) ? 2 : 1) * size_of(real_of(d)));
    EXPECT_TRUE(!is_complex(d) || complex_of(real_of(d)) == d);
  }
  EXPECT_EQ(complex_of(DType::Float16), DType::Complex64);
}

// numpy.result_type, as NumPy 2 prints it. Columns: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64
// c64 c128.
constexpr const char* kPromotion[14] = {
    "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 c64 c128",
    "i8 i8 i16 i32 i64 i16 i32 i64 f64 f16 f32 f64 c64 c128",
    "i16 i16 i16 i32 i64 i16 i32 i64 f64 f32 f32 f64 c64 c128",
    "i32 i32 i32 i32 i64 i32 i32 i64 f64 f64 f64 f64 c128 c128",
    "i64 i64 i64 i64 i64 i64 i64 i64 f64 f64 f64 f64 c128 c128",
    "u8 i16 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 c64 c128",
    "u16 i32 i32 i32 i64 u16 u16 u32 u64 f32 f32 f64 c64 c128",
    "u32 i64 i64 i64 i64 u32 u32 u32 u64 f64 f64 f64 c128 c128",
    "u64 f64 f64 f64 f64 u64 u64 u64 u64 f64 f64 f64 c128 c128",
    "f16 f16 f32 f64 f64 f16 f32 f64 f64 f16 f32 f64 c64 c128",
    "f32 f32 f32 f64 f64 f32 f32 f64 f64 f32 f32 f64 c64 c128",
    "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 c128 c128",
    "c64 c64 c64 c128 c128 c64 c64 c128 c128 c64 c64 c128 c64 c128",
    "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128",
};

TEST(DTypes, PromoteAsNumPy) {
  std::vector<DType> order;
  for (const DType dtype : all_dtypes())
    if (dtype != DType::Bfloat16) order.push_back(dtype);
  ASSERT_EQ(order.size(), 14u);
  for (size_t i = 0; i < order.size(); ++i) {
    std::istringstream row(kPromotion[i]);
    for (const DType other : order) {
      std::string wanted;
      row >> wanted;
      EXPECT_EQ(name_of(promote(order[i], other)), wanted)
          << name_of(order[i]) << " with " << name_of(other);
    }
  }
}

TEST(DTypes, PromotionOfAllIsSymmetricAndReaches) {
  for (const DType a : all_dtypes())
    for (const DType b : all_dtypes()) {
      const DType both = promote(a, b);
      EXPECT_EQ(both, promote(b, a));
      EXPECT_EQ(promote(both, both), both);
      EXPECT_GE(size_of(both), std::max(size_of(a), size_of(b)));
      EXPECT_EQ(is_inexact(both), is_inexact(a) || is_inexact(b) || both == DType::Float64);
      EXPECT_EQ(is_complex(both), is_complex(a) || is_complex(b));
    }
  EXPECT_EQ(promote(DType::Bfloat16, DType::Uint8), DType::Bfloat16);
  EXPECT_EQ(promote(DType::Bfloat16, DType::Float16), DType::Float32);
  EXPECT_EQ(promote(DType::Bfloat16, DType::Int16), DType::Float32);
  EXPECT_EQ(promote(DType::Bfloat16, DType::Int32), DType::Float64);
}

TEST(DTypes, PythonNumbersAreWeak) {
  EXPECT_EQ(promote_weak(DType::Bool, Kind::Int), DType::Int64);
  EXPECT_EQ(promote_weak(DType::Uint8, Kind::Int), DType::Uint8);
  EXPECT_EQ(promote_weak(DType::Uint8, Kind::Float), DType::Float64);
  EXPECT_EQ(promote_weak(DType::Float16, Kind::Float), DType::Float16);
  EXPECT_EQ(promote_weak(DType::Bfloat16, Kind::Float), DType::Bfloat16);
  EXPECT_EQ(promote_weak(DType::Bool, Kind::Complex), DType::Complex128);
  EXPECT_EQ(promote_weak(DType::Int8, Kind::Complex), DType::Complex128);
  EXPECT_EQ(promote_weak(DType::Float16, Kind::Complex), DType::Complex64);
  EXPECT_EQ(promote_weak(DType::Float32, Kind::Complex), DType::Complex64);
  EXPECT_EQ(promote_weak(DType::Float64, Kind::Complex), DType::Complex128);
  EXPECT_EQ(promote_weak(DType::Complex64, Kind::Float), DType::Complex64);
  for (const DType d : all_dtypes()) EXPECT_EQ(promote_weak(d, Kind::Bool), d);
}

TEST(DTypes, FloatsAndSums) {
  const char* floats[] = {"f16", "f16", "f32",  "f64", "f64", "f16", "f32", "f64",
                          "f64", "f16", "bf16", "f32", "f64", "c64", "c128"};
  const char* sums[] = {"i64", "i64", "i64",  "i64", "i64", "u64", "u64", "u64",
                        "u64", "f16", "bf16", "f32", "f64", "c64", "c128"};
  for (const DType d : all_dtypes()) {
    EXPECT_STREQ(name_of(float_of(d)), floats[static_cast<int>(d)]);
    EXPECT_STREQ(name_of(sum_of(d)), sums[static_cast<int>(d)]);
    EXPECT_EQ(is_inexact(d) + is_integer(d) + is_bool(d), 1);
  }
}

TEST(Shapes, Sizes) {
  EXPECT_EQ(num_elements({}), 1);
  EXPECT_EQ(num_elements({2, 3, 5}), 30);
  const int64_t large = int64_t{1} << 40;
  EXPECT_EQ(num_elements({large, large, 0}), 0);
  EXPECT_EQ(num_elements({int64_t{1} << 62}), int64_t{1} << 62);
  EXPECT_EQ(refusal(ErrorKind::Value, [&] { num_elements({large, large}); }),
            "shape: cannot hold [1099511627776,1099511627776] (more than 2^63 elements)");
  EXPECT_EQ(contiguous_strides({2, 3, 5}), (Ints{15, 5, 1}));
  EXPECT_EQ(contiguous_strides({2, 0, 5}), (Ints{5, 5, 1}));
  EXPECT_EQ(contiguous_strides({}), Ints{});
  EXPECT_EQ(shape_text(Shape{}), "[]");
}

TEST(Shapes, Broadcast) {
  EXPECT_EQ(broadcast_shapes("add", {2, 1, 5}, {3, 1}), (Shape{2, 3, 5}));
  EXPECT_EQ(broadcast_shapes("add", {}, {0}), (Shape{0}));
  EXPECT_EQ(broadcast_shapes("add", {1}, {0}), (Shape{0}));
  const std::string text =
      refusal(ErrorKind::Value, [] { broadcast_shapes("add", {2, 3}, {2, 4}); });
  EXPECT_EQ(text,
            "add: cannot broadcast [2,3] with [2,4] (dimension -1: 3 and 4)\n"
            "hint: sizes must be equal or 1, counted from the last dimension");
  EXPECT_NE(refusal(ErrorKind::Value, [] { broadcast_shapes("add", {0}, {2}); }), "");
}

// Narrow floats: every encoding reads back, and numbers between two neighbours round to the nearer
// one, from halfway to the one with an even encoding.
struct NarrowFloat {
  uint16_t (*from)(double);
  double (*to)(uint16_t);
  uint16_t infinity;
};

class NarrowFloats : public testing::TestWithParam<NarrowFloat> {};
INSTANTIATE_TEST_SUITE_P(All, NarrowFloats,
                         testing::Values(NarrowFloat{half_from_float, half_to_float, 0x7c00},
                                         NarrowFloat{bfloat16_from_float, bfloat16_to_float,
                                                     0x7f80}));

TEST_P(NarrowFloats, RoundToNearestEven) {
  const auto [from, to, infinity] = GetParam();
  double before = -1;
  for (uint32_t bits = 0; bits < infinity; ++bits) {
    const double value = to(static_cast<uint16_t>(bits));
    ASSERT_GT(value, before);  // encodings of positive numbers are in their order
    before = value;
    ASSERT_EQ(from(value), bits);
    ASSERT_EQ(from(-value), bits | 0x8000);
    if (bits + 1 == infinity) break;
    const double next = to(static_cast<uint16_t>(bits + 1));
    const double middle = value + (next - value) / 2;  // exact
    ASSERT_EQ(from(middle), bits + (bits & 1));
    ASSERT_EQ(from(std::nextafter(middle, 0)), bits);
    ASSERT_EQ(from(std::nextafter(middle, kInf)), bits + 1);
  }
  // Beyond the largest number by half a step: infinity, whose encoding is even.
  const double step = before - to(static_cast<uint16_t>(infinity - 2));
  EXPECT_EQ(from(before + step / 2), infinity);
  EXPECT_EQ(from(std::nextafter(before + step / 2, 0)), infinity - 1);
  EXPECT_EQ(from(kInf), infinity);
  EXPECT_EQ(to(infinity), kInf);
  EXPECT_EQ(to(infinity | 0x8000), -kInf);
  EXPECT_TRUE(std::isnan(to(from(kNaN))));
  EXPECT_TRUE(std::isnan(to(static_cast<uint16_t>(infinity + 1))));
}

TEST(Scalars, KeepTheirBits) {
  std::mt19937_64 random(2);
  for (const DType dtype : all_dtypes())
    for (int i = 0; i < 2000 && !is_complex(dtype); ++i) {
      uint64_t bits = random();
      if (bits_of(dtype) < 64) bits &= (uint64_t{1} << bits_of(dtype)) - 1;
      if (is_bool(dtype)) bits &= 1;
      const Scalar value = Scalar::from_bits(dtype, bits);
      if (std::isnan(value.as_double())) continue;  // payloads are not kept
      EXPECT_EQ(value.bits(), bits) << name_of(dtype);
      unsigned char memory[8] = {};
      value.store(memory);
      uint64_t stored = 0;
      std::memcpy(&stored, memory, sizeof stored);
      EXPECT_EQ(stored, bits) << name_of(dtype);
      EXPECT_EQ(Scalar::load(dtype, memory), value);
      const std::string printed = value.text();
      text::Lexer lexer(printed);
      EXPECT_EQ(Scalar::parse(dtype, lexer), value) << printed;
    }
}

TEST(Scalars, EqualityIsOfBits) {
  const DType f = DType::Float32;
  EXPECT_FALSE(Scalar::of(f, 0.0) == Scalar::of(f, -0.0));
  EXPECT_TRUE(Scalar::of(f, kNaN) == Scalar::of(f, kNaN));
  EXPECT_FALSE(Scalar::of(f, 1.0) == Scalar::of(DType::Float64, 1.0));
}

TEST(Scalars, Extremes) {
  EXPECT_EQ(Scalar::lowest(DType::Int8).as_int64(), -128);
  EXPECT_EQ(Scalar::highest(DType::Int8).as_int64(), 127);
  EXPECT_EQ(Scalar::lowest(DType::Int64).as_int64(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Scalar::highest(DType::Int64).as_int64(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Scalar::lowest(DType::Uint16).as_int64(), 0);
  EXPECT_EQ(Scalar::highest(DType::Uint16).as_int64(), 65535);
  EXPECT_EQ(Scalar::highest(DType::Uint64).as_uint64(), ~uint64_t{0});
  EXPECT_EQ(Scalar::lowest(DType::Float16).as_double(), -kInf);
  EXPECT_TRUE(Scalar::highest(DType::Bool).as_bool());
}

TEST(Scalars, IntegersWrap) {
  EXPECT_EQ(Scalar::of(DType::Int8, 300).as_int64(), 44);
  EXPECT_EQ(Scalar::of(DType::Int8, 128).as_int64(), -128);
  EXPECT_EQ(Scalar::of(DType::Uint8, -1).as_int64(), 255);
  EXPECT_EQ(Scalar::of(DType::Uint64, -1).as_double(), 18446744073709551616.0);
  EXPECT_EQ(Scalar::of(DType::Int64, -1).cast(DType::Uint32).as_int64(), 0xffffffff);
  EXPECT_EQ(Scalar::of(DType::Uint64, ~uint64_t{0}).cast(DType::Int8).as_int64(), -1);
  EXPECT_TRUE(Scalar::of(DType::Int64, int64_t{1} << 40).cast(DType::Bool).as_bool());
  EXPECT_TRUE(Scalar::of(DType::Float64, 5e-324).cast(DType::Bool).as_bool());
  EXPECT_TRUE(Scalar::of(DType::Float64, kNaN).cast(DType::Bool).as_bool());
  EXPECT_FALSE(Scalar::of(DType::Float64, -0.0).cast(DType::Bool).as_bool());
}

TEST(Scalars, IntegersBecomeFloatsInOneRounding) {
  // 2^60 + 2^36 + 1 is just above the middle of two float32; by way of float64 it would be on it.
  const int64_t above = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  EXPECT_EQ(Scalar::of(DType::Int64, above).cast(DType::Float32).as_double(),
            std::ldexp(1, 60) + std::ldexp(1, 37));
  EXPECT_EQ(Scalar::of(DType::Uint64, ~uint64_t{0}).cast(DType::Float64).as_double(),
            std::ldexp(1, 64));
  EXPECT_EQ(Scalar::of(DType::Int64, 65520).cast(DType::Float16).as_double(), kInf);
  EXPECT_EQ(Scalar::of(DType::Int64, 65519).cast(DType::Float16).as_double(), 65504);
}

TEST(Scalars, FloatsBecomeIntegersAsOnX86) {
  const auto as = [](DType dtype, double value) {
    return Scalar::of(DType::Float64, value).cast(dtype).as_int64();
  };
  constexpr int64_t kLeast64 = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(as(DType::Int32, -1.9), -1);
  EXPECT_EQ(as(DType::Int32, 2147483647.9), 2147483647);
  EXPECT_EQ(as(DType::Int32, 2147483648.0), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(as(DType::Int32, kNaN), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(as(DType::Int8, 300.0), 44);
  EXPECT_EQ(as(DType::Int8, 1e10), 0);
  EXPECT_EQ(as(DType::Uint8, -1.0), 255);
  EXPECT_EQ(as(DType::Uint32, 4294967295.0), 0xffffffff);
  EXPECT_EQ(as(DType::Uint32, -1.0), 0xffffffff);
  EXPECT_EQ(as(DType::Int64, 9.3e18), kLeast64);
  EXPECT_EQ(as(DType::Int64, kInf), kLeast64);
  EXPECT_EQ(static_cast<uint64_t>(as(DType::Uint64, 9223372036854775808.0)), uint64_t{1} << 63);
  EXPECT_EQ(as(DType::Uint64, 1.8446744073709552e19), 0);
  EXPECT_EQ(as(DType::Uint64, -1.0), -1);
}

TEST(Capabilities, Lanes) {
  Capabilities caps;
  caps.vector_bits = 256;
  EXPECT_EQ(caps.lanes(DType::Float32), 8);
  EXPECT_EQ(caps.lanes(DType::Bool), 32);
  caps.vector_bits = 32;
  EXPECT_EQ(caps.lanes(DType::Float64), 1);
  const auto rates = rates_by_size(8);
  EXPECT_EQ(rates[static_cast<int>(DType::Float16)], 8);
  EXPECT_EQ(rates[static_cast<int>(DType::Int64)], 4);
}

}  // namespace
}  // namespace rune
