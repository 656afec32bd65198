// The textual form that all IRs share: a lexer, and one codec per kind of attribute value.
//
// A line of IR reads `%3 = reduce_axis add axes=[1] %2 : f32[8,1]`. Attribute structs list their
// fields once, in a `fields` member, and printing, parsing, comparison and hashing follow from it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace rune::text {

// Splits IR text into tokens. `;` starts a comment that ends with the line. Errors are
// UserError(Parse) with line and column.
class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) { skip_space(); }

  bool at_end() const { return pos_ >= source_.size(); }
  bool peek(std::string_view punctuation) const;
  bool accept(std::string_view punctuation);
  void expect(std::string_view punctuation);

  bool peek_ident() const;
  // The next identifier, [A-Za-z_][A-Za-z0-9_.]*, without consuming it.
  std::string_view lookahead_ident() const;
  std::string ident();
  void expect_ident(std::string_view word);
  bool peek_number() const;
  // A number token as written: decimal, hexadecimal bits (0x..), inf, nan, with sign.
  std::string number();
  int64_t integer();
  // A double-quoted string with \" \\ \n \t escapes.
  std::string string_literal();
  // The id of a `%id` operand.
  uint32_t value_id();
  // True if the next token is followed, without space, by `=` (an attribute `key=value`).
  bool peek_attribute() const;

  // Declares the name of a size for the text that follows, with the size's least and greatest
  // value. Copies of a lexer share these names.
  void declare(const std::string& name, int64_t least, int64_t greatest);
  std::optional<std::pair<int64_t, int64_t>> bounds_of(const std::string& name) const;

  int line() const;
  [[noreturn]] void fail(const std::string& message) const;

 private:
  void skip_space();
  void advance(size_t count);

  std::string_view source_;
  size_t pos_ = 0;
  using Names = std::map<std::string, std::pair<int64_t, int64_t>>;
  std::shared_ptr<Names> names_ = std::make_shared<Names>();
};

std::string quote(std::string_view raw);
// The shortest decimal that reads back to the same double, or nan, -nan, inf or -inf.
std::string print_double(double value);
double parse_double(const std::string& token, const Lexer& lexer);

// Printing and parsing of one value. Specialise for the enums and structs of an IR.
template <class T, class Enable = void>
struct Codec;

template <>
struct Codec<bool> {
  static void print(std::string& out, bool v) { out += v ? "true" : "false"; }
  static bool parse(Lexer& lexer) {
    const std::string word = lexer.ident();
    if (word != "true" && word != "false") lexer.fail("expected true or false, found " + word);
    return word == "true";
  }
};

template <class T>
struct Codec<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  static void print(std::string& out, T v) { out += std::to_string(v); }
  static T parse(Lexer& lexer) { return static_cast<T>(lexer.integer()); }
};

template <>
struct Codec<double> {
  static void print(std::string& out, double v) { out += print_double(v); }
  static double parse(Lexer& lexer) {
    const std::string token = lexer.number();
    return parse_double(token, lexer);
  }
};

template <>
struct Codec<std::string> {
  static void print(std::string& out, const std::string& v) { out += quote(v); }
  static std::string parse(Lexer& lexer) { return lexer.string_literal(); }
};

template <class T>
struct Codec<std::vector<T>> {
  static void print(std::string& out, const std::vector<T>& v) {
    out += '[';
    for (size_t i = 0; i < v.size(); ++i) {
      if (i) out += ',';
      Codec<T>::print(out, v[i]);
    }
    out += ']';
  }
  static std::vector<T> parse(Lexer& lexer) {
    std::vector<T> result;
    lexer.expect("[");
    if (lexer.accept("]")) return result;
    do result.push_back(Codec<T>::parse(lexer));
    while (lexer.accept(","));
    lexer.expect("]");
    return result;
  }
};

template <class A, class B>
struct Codec<std::pair<A, B>> {
  static void print(std::string& out, const std::pair<A, B>& v) {
    out += '(';
    Codec<A>::print(out, v.first);
    out += ',';
    Codec<B>::print(out, v.second);
    out += ')';
  }
  static std::pair<A, B> parse(Lexer& lexer) {
    lexer.expect("(");
    A first = Codec<A>::parse(lexer);
    lexer.expect(",");
    B second = Codec<B>::parse(lexer);
    lexer.expect(")");
    return {std::move(first), std::move(second)};
  }
};

// Members of a struct: equality, and `fields`, which calls f(key, member) for each of its fields.
// An empty key means that the value is printed bare.
#define RUNE_FIELDS(Name, ...)                  \
  bool operator==(const Name&) const = default; \
  template <class F>                            \
  void fields([[maybe_unused]] F&& f) {         \
    __VA_ARGS__;                                \
  }

// The base of structs without fields.
struct NoFields {
  RUNE_FIELDS(NoFields, )
};

// A struct that lists its fields.
template <class T>
concept Reflected = requires(T& t) { t.fields([](const char*, auto&) {}); };

namespace detail {
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
}  // namespace detail

// Prints ` value` for bare fields and ` key=value` for the others; absent optionals are left out.
template <Reflected T>
void print_fields(std::string& out, const T& payload) {
  const_cast<T&>(payload).fields([&](const char* key, auto& member) {
    using M = std::remove_cvref_t<decltype(member)>;
    if constexpr (detail::IsOptional<M>::value) {
      if (!member) return;
    }
    out += ' ';
    if (*key) {
      out += key;
      out += '=';
    }
    if constexpr (detail::IsOptional<M>::value) {
      Codec<typename M::value_type>::print(out, *member);
    } else {
      Codec<M>::print(out, member);
    }
  });
}

// Reads fields in the order that print_fields writes them.
template <Reflected T>
void parse_fields(Lexer& lexer, T& payload) {
  payload.fields([&](const char* key, auto& member) {
    using M = std::remove_cvref_t<decltype(member)>;
    if (*key) {
      const bool present = lexer.peek_attribute() && lexer.lookahead_ident() == key;
      if constexpr (detail::IsOptional<M>::value) {
        if (!present) return;
      } else if (!present) {
        lexer.fail(std::string("expected the attribute ") + key + "=");
      }
      lexer.ident();
      lexer.expect("=");
    }
    if constexpr (detail::IsOptional<M>::value) {
      member = Codec<typename M::value_type>::parse(lexer);
    } else {
      member = Codec<M>::parse(lexer);
    }
  });
}

// A nested struct prints as `{key=value key=value}`.
template <Reflected T>
struct Codec<T> {
  static void print(std::string& out, const T& v) {
    out += '{';
    std::string body;
    print_fields(body, v);
    out += body.empty() ? body : body.substr(1);
    out += '}';
  }
  static T parse(Lexer& lexer) {
    T result{};
    lexer.expect("{");
    parse_fields(lexer, result);
    lexer.expect("}");
    return result;
  }
};

template <class T>
std::string to_text(const T& value) {
  std::string out;
  Codec<T>::print(out, value);
  return out;
}

}  // namespace rune::text

// Codec of an enum whose names are given by `const char* name_of(E)` and whose values run from 0 to
// `kCount - 1`. Use at namespace scope outside any namespace.
#define RUNE_ENUM_CODEC(Type, kCount, name_of)                                  \
  template <>                                                                   \
  struct rune::text::Codec<Type> {                                              \
    static void print(std::string& out, Type v) {                               \
      out += name_of(v);                                                        \
    }                                                                           \
    static Type parse(Lexer& lexer) {                                           \
      const std::string word = lexer.ident();                                   \
      for (int i = 0; i < static_cast<int>(kCount); ++i)                        \
        if (word == name_of(static_cast<Type>(i))) return static_cast<Type>(i); \
      lexer.fail("unknown " #Type " `" + word + "`");                           \
    }                                                                           \
  }
