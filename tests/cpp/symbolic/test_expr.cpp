#include <gtest/gtest.h>

#include "base/error.h"
#include "expr_testing.h"

namespace rune::sym {
namespace {

constexpr int64_t kMin = INT64_MIN, kMax = INT64_MAX;

// Variables by name; v<id> in texts. i: [0,5], j: [0,3], k: [0,2], x and y: [0,999], z: any
// integer.
const Expr i = Expr::variable(0, {0, 5});
const Expr j = Expr::variable(1, {0, 3});
const Expr k = Expr::variable(2, {0, 2});
const Expr x = Expr::variable(3, {0, 999});
const Expr y = Expr::variable(4, {0, 999});
const Expr z = Expr::variable(5, {kMin, kMax});

#define CHECK_TEXT(expr, expected) EXPECT_EQ(text_of(expr), expected)

TEST(Expr, SumsOfProductsAreCanonical) {
  CHECK_TEXT(Expr(), "0");
  CHECK_TEXT(Expr(-3), "-3");
  CHECK_TEXT(x * 2 + i + 3, "v0 + 2*v3 + 3");
  CHECK_TEXT(i - x, "v0 - v3");
  CHECK_TEXT(x * -1 - 3, "-v3 - 3");
  CHECK_TEXT(x * -2 + i - i, "-2*v3");
  CHECK_TEXT((x + i) * 2 - x - x, "2*v0");
  CHECK_TEXT(x - x, "0");
  CHECK_TEXT(x * 0, "0");
  EXPECT_EQ(x + i + j, j + (i + x));
  EXPECT_EQ((x + i + j).hash(), (j + (i + x)).hash());
  EXPECT_FALSE(x + i == x + j);
  CHECK_TEXT(Expr::variable(7, {4, 4}), "4");
  CHECK_TEXT(Expr::variable(7, {0, -1}), "0");
}

TEST(Expr, TextIsUnambiguous) {
  CHECK_TEXT(floordiv(x, 4), "v3//4");
  CHECK_TEXT(floordiv(x, 4) * 3, "3*(v3//4)");
  CHECK_TEXT(mod(x, 4) * -1, "-(v3%4)");
  CHECK_TEXT(i - floordiv(x, 4), "v0 - v3//4");
  CHECK_TEXT(mod(floordiv(x, 4), 3), "(v3//4)%3");
  CHECK_TEXT(floordiv(x + 1, 4), "(v3 + 1)//4");
}

TEST(Expr, DivisionByBoundsAndDivisibility) {
  CHECK_TEXT(floordiv(i * 4 + j, 4), "v0");
  CHECK_TEXT(mod(i * 4 + j, 4), "v1");
  CHECK_TEXT(mod(j, 4), "v1");
  CHECK_TEXT(mod(j, 9), "v1");
  CHECK_TEXT(floordiv(j, 4), "0");
  CHECK_TEXT(floordiv(j + 8, 4), "2");
  CHECK_TEXT(mod(j + 8, 4), "v1");
  CHECK_TEXT(floordiv(j - 4, 4), "-1");
  CHECK_TEXT(mod(j - 4, 4), "v1");
  CHECK_TEXT(mod(Expr(3) - j, 4), "-v1 + 3");
  CHECK_TEXT(floordiv(x * 8 + 7 - j, 4), "2*v3 + 1");
  CHECK_TEXT(floordiv(x * 12, 4), "3*v3");
  CHECK_TEXT(mod(z * 12 + 5, 4), "1");
  CHECK_TEXT(floordiv(z * 4 + j, 4), "v5");
  CHECK_TEXT(floordiv(z * -4 + j, 4), "-v5");
  CHECK_TEXT(floordiv(x * 5 + y, 4), "v3 + (v3 + v4)//4");
  CHECK_TEXT(mod(x * 5 + y, 4), "(v3 + v4)%4");
  CHECK_TEXT(floordiv(x, 1), "v3");
  CHECK_TEXT(mod(x, 1), "0");
  CHECK_TEXT(floordiv(Expr(-7), 4), "-2");
  CHECK_TEXT(mod(Expr(-7), 4), "1");
}

TEST(Expr, CommonFactorsLeaveDivisions) {
  EXPECT_EQ(floordiv(x * 4 + 2, 4), x);
  CHECK_TEXT(floordiv(x * 2 + 1, 4), "v3//2");
  CHECK_TEXT(mod(x * 2 + 1, 4), "2*(v3%2) + 1");
  CHECK_TEXT(floordiv(x * 6 + y * 2 + 1, 4), "v3 + (v3 + v4)//2");
  CHECK_TEXT(floordiv(x * 4 + j, 8), "v3//2");
  CHECK_TEXT(mod(x * 4 + j, 8), "v1 + 4*(v3%2)");
  CHECK_TEXT(floordiv(x * 12 + i * 2 + mod(y, 2), 36), "v3//3");
  CHECK_TEXT(mod(x * 12 + i * 2 + mod(y, 2), 36), "2*v0 + 12*(v3%3) + v4%2");
}

TEST(Expr, NestedDivisionsMerge) {
  CHECK_TEXT(floordiv(floordiv(x, 3), 4), "v3//12");
  CHECK_TEXT(floordiv(floordiv(x, 3) + 1, 4), "(v3 + 3)//12");
  CHECK_TEXT(floordiv(floordiv(x, 3) + y, 4), "(v3 + 3*v4)//12");
  CHECK_TEXT(floordiv(mod(x, 12), 4), "(v3//4)%3");
  CHECK_TEXT(floordiv(mod(x, 12), 12), "0");
  CHECK_TEXT(mod(mod(x, 12), 4), "v3%4");
  CHECK_TEXT(mod(mod(x, 12) + y, 4), "(v3 + v4)%4");
  CHECK_TEXT(mod(mod(x, 12) * 2, 8), "2*(v3%4)");
  CHECK_TEXT(mod(mod(x, 4), 12), "v3%4");
}

TEST(Expr, QuotientAndRemainderJoin) {
  EXPECT_EQ(floordiv(z, 4) * 4 + mod(z, 4), z);
  EXPECT_EQ(floordiv(x, 4) * 12 + mod(x, 4) * 3 + i, x * 3 + i);
  EXPECT_EQ(floordiv(x, 4) * -4 - mod(x, 4), x * -1);
  EXPECT_EQ(floordiv(x * 5 + y, 4) * 4 + mod(x * 5 + y, 4), x * 5 + y);
  EXPECT_EQ(floordiv(x * 6 + y * 2 + 1, 4) * 4 + mod(x * 6 + y * 2 + 1, 4), x * 6 + y * 2 + 1);
  CHECK_TEXT(mod(floordiv(x, 4), 3) * 4 + mod(x, 4), "v3%12");
  CHECK_TEXT(mod(floordiv(x * 5 + y, 4), 3) * 4 + mod(x * 5 + y, 4), "(5*v3 + v4)%12");
  CHECK_TEXT(floordiv(x, 12) * 3 + mod(floordiv(x, 4), 3), "v3//4");
  EXPECT_EQ(floordiv(x, 12) * 12 + mod(floordiv(x, 4), 3) * 4 + mod(x, 4), x);
  EXPECT_EQ(floordiv(mod(x, 2) * 4 + y, 8) * 8 + mod(mod(x, 2) * 4 + y, 8), mod(x, 2) * 4 + y);
  EXPECT_EQ(x - floordiv(x, 4) * 4, mod(x, 4));
  EXPECT_EQ(x - mod(x, 4), floordiv(x, 4) * 4);
  CHECK_TEXT(floordiv(x, 4) * 5 + mod(x, 4), "5*(v3//4) + v3%4");
}

TEST(Expr, BoundsSaturate) {
  EXPECT_EQ((i * 2 - j + 1).bounds(), (Bounds{-2, 11}));
  EXPECT_EQ(floordiv(x - 10, 7).bounds(), (Bounds{-2, 141}));
  EXPECT_EQ(z.bounds(), (Bounds{kMin, kMax}));
  EXPECT_EQ((z * -1).bounds(), (Bounds{kMin, kMax}));
  EXPECT_EQ(mod(z, 5).bounds(), (Bounds{0, 4}));
  const Expr n = Expr::variable(9, {0, kMax});
  EXPECT_EQ((n * -2 + 3).bounds(), (Bounds{kMin, 3}));
  EXPECT_EQ(floordiv(n, 2).bounds(), (Bounds{0, kMax}));
  const Expr huge = Expr::variable(10, {kMax - 3, kMax - 1});
  EXPECT_EQ((huge + huge).bounds(), (Bounds{kMin, kMax}));
  EXPECT_EQ((huge - huge * 2).bounds(), (Bounds{-kMax + 1, -kMax + 3}));
  CHECK_TEXT(floordiv(n + n, 1 << 20), "v9//524288");
  EXPECT_THROW((void)(Expr(kMax) + 1), InternalError);
  EXPECT_THROW((void)(x * kMax * 2), InternalError);
  EXPECT_THROW((void)floordiv(x, 0), InternalError);
  EXPECT_THROW((void)mod(x, -2), InternalError);
}

TEST(Expr, Queries) {
  const Expr e = x * 3 + floordiv(y, 4) + 2;
  EXPECT_EQ(e.coefficient_of(3), 3);
  EXPECT_EQ(e.coefficient_of(0), 0);
  EXPECT_EQ(e.coefficient_of(4), std::nullopt);
  EXPECT_EQ((floordiv(x, 4) + x).coefficient_of(3), std::nullopt);
  EXPECT_TRUE(e.depends_on(4));
  EXPECT_FALSE(e.depends_on(0));
  EXPECT_EQ((mod(y + x, 7) + x + i).variables(), (std::vector<uint32_t>{0, 3, 4}));
  EXPECT_EQ(x.as_variable(), 3u);
  EXPECT_EQ((x + 1).as_variable(), std::nullopt);
  EXPECT_EQ((x * 2).as_variable(), std::nullopt);
  EXPECT_EQ(mod(x, 2).as_variable(), std::nullopt);
  EXPECT_TRUE(has_division(e));
  EXPECT_FALSE(has_division(x + y));
  EXPECT_EQ((x * 12 + y * 8 - 4).known_divisor(), 4);
  EXPECT_EQ((mod(x, 4) * 6).known_divisor(), 6);
  EXPECT_EQ(Expr().known_divisor(), 0);
  EXPECT_EQ(Expr(-6).known_divisor(), 6);
  EXPECT_EQ(x.known_divisor(), 1);
}

TEST(Expr, SubstituteRebuildsCanonically) {
  const auto replace_x = [](const Expr& by) {
    return [by](uint32_t id) { return id == 3 ? std::optional<Expr>(by) : std::nullopt; };
  };
  const Expr e = floordiv(x, 4) * 3 + mod(x, 4) + y;
  CHECK_TEXT(e.substitute(replace_x(i * 4 + j)), "3*v0 + v1 + v4");
  CHECK_TEXT(e.substitute(replace_x(9)), "v4 + 7");
  CHECK_TEXT(mod(x, 12).substitute(replace_x(mod(y, 4))), "v4%4");
  EXPECT_EQ(e.substitute([](uint32_t) { return std::nullopt; }), e);
  // An unchanged part stays the same object.
  const Expr f = floordiv(y, 7) + x;
  EXPECT_EQ(f.substitute(replace_x(1)).terms()[0].atom, f.terms()[1].atom);
}

TEST(Index, FlattenAndUnflatten) {
  CHECK_TEXT(flatten_index({i, j, k}, {6, 4, 3}), "12*v0 + 3*v1 + v2");
  CHECK_TEXT(flatten_index({}, {}), "0");
  CHECK_TEXT(flatten_index({i, 0, j}, {6, 1, 4}), "4*v0 + v1");
  CHECK_TEXT(flatten_index({i, j}, {6, 0}), "0");
  EXPECT_EQ(unflatten_index(i * 4 + j, {6, 4}), (std::vector<Expr>{i, j}));
  EXPECT_EQ(unflatten_index(i * 4 + j, {1, 6, 1, 4, 1}), (std::vector<Expr>{0, i, 0, j, 0}));
  EXPECT_EQ(unflatten_index(x, {0, 4}), (std::vector<Expr>{0, 0}));
  EXPECT_EQ(unflatten_index(0, {}), std::vector<Expr>{});
  const auto index = unflatten_index(x, {10, 25, 4});
  CHECK_TEXT(index[0], "v3//100");
  CHECK_TEXT(index[1], "(v3//4)%25");
  CHECK_TEXT(index[2], "v3%4");
  EXPECT_THROW((void)flatten_index({i}, {6, 4}), InternalError);
}

TEST(Mask, DropsWhatBoundsProve) {
  Mask mask;
  EXPECT_TRUE(mask.is_true());
  mask.require_between(i, 0, 6);
  mask.require_nonnegative(x + 3);
  EXPECT_TRUE(mask.is_true());
  CHECK_TEXT(mask, "true");
  mask.require_between(i, 1, 6);
  CHECK_TEXT(mask, "v0 - 1 >= 0");
  mask.require_between(i, 0, 4);
  CHECK_TEXT(mask, "-v0 + 3 >= 0 and v0 - 1 >= 0");
  mask.require_nonnegative(i * -1 - 1);
  EXPECT_TRUE(mask.is_false());
  EXPECT_EQ(mask, Mask::never());
  CHECK_TEXT(mask, "false");
}

TEST(Mask, NormalisesAndDropsDominated) {
  Mask mask;
  mask.require_nonnegative(x * 4 - 9);
  CHECK_TEXT(mask, "v3 - 3 >= 0");
  mask.require_nonnegative(x - 2);
  CHECK_TEXT(mask, "v3 - 3 >= 0");
  mask.require_nonnegative(x - 8);
  CHECK_TEXT(mask, "v3 - 8 >= 0");
  Mask other;
  other.require_nonnegative(x - 8);
  EXPECT_EQ(mask, other);
  EXPECT_EQ(mask.hash(), other.hash());
  mask.require(other);
  EXPECT_EQ(mask, other);
  mask.require_between(x, 0, 8);
  EXPECT_TRUE(mask.is_false());
}

TEST(Mask, ConditionsBecomeAffine) {
  Mask blocks;
  blocks.require_between(x * 4 + j, 8, 21);  // x >= 2, and 4x + j <= 20 stays a sum.
  CHECK_TEXT(blocks, "-v1 - 4*v3 + 20 >= 0 and v3 - 2 >= 0");
  Mask quotient;
  quotient.require_between(floordiv(x, 4), 2, 5);
  CHECK_TEXT(quotient, "-v3 + 19 >= 0 and v3 - 8 >= 0");
  Mask empty;
  empty.require_between(x, 5, 5);
  EXPECT_TRUE(empty.is_false());
}

TEST(Mask, SubstituteAndQueries) {
  Mask mask;
  mask.require_between(x + y, 2, 50);
  const auto by = [](uint32_t id) -> std::optional<Expr> {
    if (id == 3) return i + 2;
    if (id == 4) return j;
    return std::nullopt;
  };
  EXPECT_TRUE(mask.substitute(by).is_true());
  EXPECT_TRUE(Mask::never().substitute(by).is_false());
  EXPECT_TRUE(evaluate(mask, [](uint32_t) { return 1; }));
  EXPECT_FALSE(evaluate(mask, [](uint32_t) { return 25; }));
  EXPECT_FALSE(evaluate(Mask::never(), [](uint32_t) { return 0; }));
  Mask narrow = mask;
  narrow.require(Mask::never());
  EXPECT_TRUE(narrow.is_false());
}

}  // namespace
}  // namespace rune::sym
