// Hashing for cache keys: FNV-1a over bytes, stable across processes and machines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rune {

inline uint64_t hash_bytes(std::string_view bytes, uint64_t seed = 0xcbf29ce484222325ULL) {
  uint64_t h = seed;
  for (const unsigned char c : bytes) {
    h ^= c;
    h *= 0x100000001b3ULL;
  }
  return h;
}

inline uint64_t hash_combine(uint64_t a, uint64_t b) {
  return a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2));
}

std::string hex(uint64_t value);

}  // namespace rune
