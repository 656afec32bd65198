// Sizes as affine expressions of variables.
#include <gtest/gtest.h>

#include "base/error.h"
#include "types/shape.h"

namespace rune {
namespace {

const SymVar kN{"n", 2, 100}, kM{"m", 1, 100};

TEST(Dim, IsAConstantOrAnExpression) {
  const Dim n(kN), m(kM);
  EXPECT_TRUE(Dim(5).is_constant());
  EXPECT_EQ(Dim(5).constant(), 5);
  EXPECT_FALSE(n.is_constant());
  EXPECT_THROW(n.constant(), InternalError);
  EXPECT_TRUE((n - n).is_constant());
  EXPECT_EQ((n * 3 + m - 1 - n * 2).text(), "m+n-1");
  EXPECT_EQ((Dim(7) - n * 2).text(), "-2*n+7");
  EXPECT_TRUE(Dim(SymVar{"k", 4, 4}).is_constant());
}

TEST(Dim, EqualityIsOfExpressionsAndNotOfExtents) {
  const Dim n(kN), m(kM);
  EXPECT_EQ(n.bound(), 100);
  EXPECT_NE(n, Dim(100));
  EXPECT_NE(n, m);
  EXPECT_EQ(n + m, m + n);
  EXPECT_NE(n, n + 1);
  EXPECT_EQ((n + 1) * 2, n + n + 2);
}

TEST(Dim, BoundsFollowFromTheVariables) {
  const Dim n(kN), m(kM);
  const Dim x = n * 2 - m + 3;
  EXPECT_EQ(x.bound(), 202);
  EXPECT_EQ(x.least(), -93);
  EXPECT_TRUE(always_at_most(n - 2, n));
  EXPECT_TRUE(always_at_most(2, n));
  EXPECT_FALSE(always_at_most(3, n));
  EXPECT_FALSE(always_at_most(m, n));
  EXPECT_EQ(x.evaluate([](const SymVar& v) { return v.name == "n" ? 10 : 4; }), 19);
  EXPECT_THROW((n * INT64_MAX).bound(), UserError);
}

TEST(Dim, TextIsReadBack) {
  const Dim n(kN), m(kM);
  const Shape shape{5, n, m * 2 + n - 1, Dim(100) - n, 0};
  EXPECT_EQ(shape_text(shape), "[5,n,2*m+n-1,-n+100,0]");
  for (const char* text : {"[5,n,2*m+n-1,-n+100,0]", "[5, n, n - 1 + 2*m, 100-n, 0]"}) {
    text::Lexer lexer(text);
    lexer.declare("n", kN.min_val, kN.max_val);
    lexer.declare("m", kM.min_val, kM.max_val);
    EXPECT_EQ(text::Codec<Shape>::parse(lexer), shape) << text;
  }
  text::Lexer lexer("[k]");
  EXPECT_THROW(text::Codec<Shape>::parse(lexer), UserError);
}

TEST(Dim, WhatDoesNotFitIsRefusedByName) {
  const Dim n(kN);
  const auto error_of = [](auto&& f) {
    try {
      f();
    } catch (const UserError& error) {
      return std::pair{error.kind(), std::string(error.what())};
    }
    return std::pair{ErrorKind::Parse, std::string("nothing")};
  };
  const auto [unknown, text] = error_of([&] { broadcast_shapes("add", {n}, {5}); });
  EXPECT_EQ(unknown, ErrorKind::Unsupported);
  EXPECT_NE(text.find("add: cannot broadcast [n] with [5]"), std::string::npos) << text;
  EXPECT_EQ(error_of([] { broadcast_shapes("add", {4}, {5}); }).first, ErrorKind::Value);
  EXPECT_EQ(broadcast_shapes("add", {n, 1}, {n + 1}), (Shape{n, n + 1}));
  const auto [kind, merged] = error_of([&] { product("reshape", n, Dim(kM)); });
  EXPECT_EQ(kind, ErrorKind::Unsupported);
  EXPECT_NE(merged.find("cannot merge the sizes n and m"), std::string::npos) << merged;
  EXPECT_EQ(product("reshape", 3, n), n * 3);
}

}  // namespace
}  // namespace rune
