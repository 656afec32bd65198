// Errors, split by who is at fault: the user (bad input) or this library (a broken invariant).
#pragma once

#include <charconv>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace rune {

// What kind of Python exception a UserError becomes.
enum class ErrorKind {
  Value,
  Type,
  Index,
  DType,
  Unsupported,
  Undecided,  // whether the call fails depends on values that a program computes
  Parse,
  Runtime,
  Memory,
  Leak
};

// The caller asked for something that cannot be done. The message reads
// `op: cannot <do> <from> to <to> (<which dim, both values>)`, with an optional `hint: ...` line.
class UserError : public std::runtime_error {
 public:
  UserError(ErrorKind kind, const std::string& message)
      : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

// An invariant of this library does not hold. Never the user's fault.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {
// Collects a message and throws it; built only after a check has failed.
[[noreturn]] void throw_internal(const char* file, int line, const char* condition,
                                 const std::string& message);

void append_text(std::string& out, std::string_view text);

// Streams are slow to make, and most text is made of characters, strings and integers.
template <class T>
void append(std::string& out, const T& value) {
  if constexpr (std::is_same_v<T, char>) {
    out += value;
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    append_text(out, value);
  } else if constexpr (std::is_integral_v<T> && sizeof(T) > 1) {
    char digits[24];
    append_text(out, {digits, std::to_chars(digits, digits + sizeof digits, value).ptr});
  } else {
    std::ostringstream stream;
    stream << value;
    append_text(out, stream.str());
  }
}
}  // namespace detail

// Concatenates its arguments, each printed as operator<< prints it.
template <class... Args>
std::string concat(const Args&... args) {
  std::string out;
  (detail::append(out, args), ...);
  return out;
}

template <class... Args>
[[noreturn]] void user_error(ErrorKind kind, const Args&... args) {
  throw UserError(kind, concat(args...));
}

}  // namespace rune

// Checks an invariant of this library. The message arguments are evaluated only on failure.
#define RUNE_CHECK(condition, ...)                                                                 \
  do {                                                                                             \
    if (!(condition)) [[unlikely]]                                                                 \
      ::rune::detail::throw_internal(__FILE__, __LINE__, #condition, ::rune::concat(__VA_ARGS__)); \
  } while (0)

#define RUNE_UNREACHABLE(...) \
  ::rune::detail::throw_internal(__FILE__, __LINE__, "unreachable", ::rune::concat(__VA_ARGS__))
