// The lexer, and what is printed reads back.
#include "base/text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"

namespace rune::text {
namespace {

enum class Colour { Red, Green };
const char* name_of(Colour colour) {
  return colour == Colour::Red ? "red" : "green";
}

struct Inner {
  int64_t bare = 0;
  std::optional<bool> flag;
  bool operator==(const Inner&) const = default;
  template <class F>
  void fields(F&& f) {
    f("", bare);
    f("flag", flag);
  }
};

struct Outer {
  std::string name;
  std::vector<std::pair<int64_t, int64_t>> boxes;
  Inner inner;
  bool operator==(const Outer&) const = default;
  template <class F>
  void fields(F&& f) {
    f("name", name);
    f("boxes", boxes);
    f("inner", inner);
  }
};

template <class F>
std::string failure(F&& f) {
  try {
    f();
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Parse);
    return e.what();
  }
  return "no error";
}

template <class T>
T read(const std::string& text) {
  Lexer lexer(text);
  T value = Codec<T>::parse(lexer);
  EXPECT_TRUE(lexer.at_end()) << text;
  return value;
}

TEST(Lexer, SplitsTokens) {
  Lexer lexer("; a comment\n  name=[-12, 0x1.8p3] %7 \"a\\\"b\\\\\\n\\t\" ; the end\n f.x inf");
  EXPECT_TRUE(lexer.peek_attribute());
  EXPECT_EQ(lexer.ident(), "name");
  EXPECT_FALSE(lexer.peek_attribute());
  lexer.expect("=");
  EXPECT_TRUE(lexer.accept("["));
  EXPECT_FALSE(lexer.accept("]"));
  EXPECT_TRUE(lexer.peek_number());
  EXPECT_EQ(lexer.integer(), -12);
  lexer.expect(",");
  EXPECT_EQ(lexer.number(), "0x1.8p3");
  lexer.expect("]");
  EXPECT_EQ(lexer.value_id(), 7u);
  EXPECT_EQ(lexer.string_literal(), "a\"b\\\n\t");
  EXPECT_EQ(lexer.line(), 3);
  EXPECT_EQ(lexer.lookahead_ident(), "f.x");
  lexer.expect_ident("f.x");
  EXPECT_TRUE(lexer.peek_number());
  EXPECT_FALSE(lexer.at_end());
  EXPECT_EQ(lexer.number(), "inf");
  EXPECT_TRUE(lexer.at_end());
}

TEST(Lexer, ErrorsNameLineAndColumn) {
  Lexer lexer("one\n  two three");
  lexer.ident();
  EXPECT_EQ(failure([&] { lexer.expect("="); }),
            "parse: expected `=` (line 2, column 3, at `two three`)");
  lexer.ident();
  lexer.ident();
  EXPECT_EQ(failure([&] { lexer.ident(); }),
            "parse: expected an identifier (line 2, column 12, at the end)");
  for (const char* bad : {"9223372036854775808", "1.5", "x", ""})
    EXPECT_NE(failure([&] { Lexer(bad).integer(); }), "no error") << bad;
  EXPECT_EQ(Lexer("-9223372036854775808").integer(), std::numeric_limits<int64_t>::min());
  for (const char* bad : {"\"open", "\"open\\", "none", "\"\\\""})
    EXPECT_NE(failure([&] { Lexer(bad).string_literal(); }), "no error") << bad;
  for (const char* bad : {"%-1", "%4294967295", "%", "7"})
    EXPECT_NE(failure([&] { Lexer(bad).value_id(); }), "no error") << bad;
}

TEST(Codecs, ReadBackWhatTheyPrint) {
  const Outer outer{"a \"quoted\"\nname", {{-1, 2}, {3, 4}}, {5, true}};
  const std::string printed = to_text(outer);
  EXPECT_EQ(printed, R"({name="a \"quoted\"\nname" boxes=[(-1,2),(3,4)] inner={5 flag=true}})");
  EXPECT_EQ(read<Outer>(printed), outer);
  const Outer least{"", {}, {}};
  EXPECT_EQ(to_text(least), R"({name="" boxes=[] inner={0}})");
  EXPECT_EQ(read<Outer>(to_text(least)), least);
  EXPECT_NE(failure([] { read<Outer>(R"({name="" inner={0}})"); }).find("attribute boxes="),
            std::string::npos);
  EXPECT_NE(failure([] { read<bool>("yes"); }), "no error");
  std::string all;
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(read<std::string>(to_text(all)), all);
}

// Any double but the payload of a NaN.
TEST(Codecs, DoublesReadBackWithTheirBits) {
  std::mt19937_64 random(1);
  std::vector<double> values = {0.0, -0.0, 1, 0.1, 5e-324, 1e308, -1e-310, 1e22, 1e23, 123456789};
  for (int i = 0; i < 20000; ++i) values.push_back(std::bit_cast<double>(random()));
  for (const double value : values) {
    if (std::isnan(value)) continue;
    const std::string printed = print_double(value);
    EXPECT_EQ(std::bit_cast<uint64_t>(read<double>(printed)), std::bit_cast<uint64_t>(value))
        << printed;
    EXPECT_NE(printed.find_first_of(".en"), std::string::npos) << printed;  // not an integer's text
  }
  for (const char* name : {"inf", "-inf", "nan", "-nan"})
    EXPECT_EQ(print_double(read<double>(name)), name);
  EXPECT_NE(failure([] { read<double>("1.5x"); }), "no error");
}

}  // namespace
}  // namespace rune::text

RUNE_ENUM_CODEC(rune::text::Colour, 2, name_of);

namespace rune::text {
namespace {

TEST(Codecs, EnumsByName) {
  EXPECT_EQ(to_text(Colour::Green), "green");
  EXPECT_EQ(read<Colour>("red"), Colour::Red);
  EXPECT_NE(failure([] { read<Colour>("blue"); }).find("`blue`"), std::string::npos);
}

}  // namespace
}  // namespace rune::text
