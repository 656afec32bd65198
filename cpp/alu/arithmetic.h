// The functions that the rows of alu.def name: they compute the scalar operations.
//
// Operands are doubles, or integers of 64 bits with the dtype's signedness (bool: unsigned). The
// caller rounds or wraps the result to the dtype. Some functions take T, the C++ type of the dtype
// (float for floats narrower than float32).
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace rune::arithmetic {

template <class W>
concept Integer = std::integral<W>;

// Integers wrap, because they are computed as unsigned ones.
template <class W>
W sum(W a, W b) {
  if constexpr (Integer<W>)
    return static_cast<W>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  return a + b;
}
template <class W>
W difference(W a, W b) {
  if constexpr (Integer<W>)
    return static_cast<W>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  return a - b;
}
template <class W>
W product(W a, W b) {
  if constexpr (Integer<W>)
    return static_cast<W>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  return a * b;
}
template <class W>
W negation(W a) {
  if constexpr (Integer<W>) return difference(W{0}, a);
  return -a;
}
template <class W>
W magnitude(W a) {
  if constexpr (Integer<W>)
    return a < 0 ? negation(a) : a;
  else
    return std::fabs(a);
}
template <class W>
W sign(W a) {
  return a != a ? a : static_cast<W>((a > 0) - (a < 0));
}
template <class T, Integer W>
W complement(W a) {
  return std::is_same_v<T, bool> ? !a : ~a;
}

// With one rounding.
template <class T, class W>
W multiply_add(W a, W b, W c) {
  if constexpr (Integer<W>)
    return sum(product(a, b), c);
  else
    return std::fma(static_cast<T>(a), static_cast<T>(b), static_cast<T>(c));
}

template <Integer W>
W truncated_quotient(W a, W b) {
  if (b == 0) return 0;
  // The lowest number divided by -1 wraps.
  return std::is_signed_v<W> && b == static_cast<W>(-1) ? negation(a) : a / b;
}
template <class W>
W truncated_remainder(W a, W b) {
  if constexpr (Integer<W>)
    return b == 0 || (std::is_signed_v<W> && b == static_cast<W>(-1)) ? 0 : a % b;
  else
    return std::fmod(a, b);
}

template <class T>
struct FloorDivision {
  T quotient, remainder;
};

// NumPy's npy_divmod. Each step rounds to the dtype.
template <std::floating_point T>
FloorDivision<T> floor_division(T a, T b) {
  T remainder = std::fmod(a, b);
  if (b == 0) return {a / b, remainder};
  T quotient = (a - remainder) / b;
  if (remainder == 0) {
    remainder = std::copysign(T{0}, b);
  } else if ((b < 0) != (remainder < 0)) {
    remainder += b;
    quotient -= 1;
  }
  if (quotient == 0) return {std::copysign(T{0}, a / b), remainder};
  const T floored = std::floor(quotient);
  return {quotient - floored > T{0.5} ? floored + 1 : floored, remainder};
}
template <Integer W>
FloorDivision<W> floor_division(W a, W b) {
  const W quotient = truncated_quotient(a, b), remainder = truncated_remainder(a, b);
  if (remainder == 0 || (remainder < 0) == (b < 0)) return {quotient, remainder};
  return {quotient - 1, remainder + b};
}
template <class T, class W>
auto floor_quotient(W a, W b) {
  using U = std::conditional_t<Integer<W>, W, T>;
  return floor_division<U>(static_cast<U>(a), static_cast<U>(b)).quotient;
}
template <class T, class W>
auto floor_remainder(W a, W b) {
  using U = std::conditional_t<Integer<W>, W, T>;
  return floor_division<U>(static_cast<U>(a), static_cast<U>(b)).remainder;
}

// Powers of float32 and narrower floats are computed in long double. A double has too few bits more
// than a float32: its power, rounded again, would not always be the correctly rounded float32.
template <class T, class W>
W power(W a, W b) {
  if constexpr (std::is_same_v<T, double>) {
    return std::pow(a, b);
  } else if constexpr (!Integer<W>) {
    return static_cast<double>(std::pow(static_cast<long double>(a), static_cast<long double>(b)));
  } else {
    if (b < 0)
      return a == 1 || (a == static_cast<W>(-1) && !(b & 1)) ? 1 : a == static_cast<W>(-1) ? a : 0;
    W result = 1;
    for (uint64_t e = static_cast<uint64_t>(b); e; e >>= 1, a = product(a, a))
      if (e & 1) result = product(result, a);
    return result;
  }
}

template <class T, Integer W>
W shift_left(W a, W b) {
  return b < 0 || static_cast<uint64_t>(b) >= 8 * sizeof(T)
             ? 0
             : static_cast<W>(static_cast<uint64_t>(a) << b);
}
template <class T, Integer W>
W shift_right(W a, W b) {
  if (b < 0 || static_cast<uint64_t>(b) >= 8 * sizeof(T)) return a < 0 ? static_cast<W>(-1) : 0;
  return a >> b;
}

// Of two zeros, these give the second.
template <class W>
W larger(W a, W b) {
  if constexpr (Integer<W>)
    return a > b ? a : b;
  else
    return std::isnan(a) || a > b ? a : b;
}
template <class W>
W smaller(W a, W b) {
  if constexpr (Integer<W>)
    return a < b ? a : b;
  else
    return std::isnan(a) || a < b ? a : b;
}
inline double larger_number(double a, double b) {
  return std::isnan(b) || a > b ? a : b;
}
inline double smaller_number(double a, double b) {
  return std::isnan(b) || a < b ? a : b;
}

inline double scaled(double a, double exponent) {
  if (std::isnan(a) || std::isnan(exponent)) return a + exponent;
  return std::ldexp(a, static_cast<int>(std::clamp(exponent, -1e5, 1e5)));
}

}  // namespace rune::arithmetic
