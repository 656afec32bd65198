// Integer arithmetic that every folder may need.
#pragma once

#include <cstdint>

namespace rune {

// a / b rounded up, for a >= 0 and b > 0.
constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// The smallest multiple of b that is at least a, for a >= 0 and b > 0.
constexpr int64_t round_up(int64_t a, int64_t b) {
  return ceil_div(a, b) * b;
}

}  // namespace rune
