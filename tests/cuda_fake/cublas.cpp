// cuBLAS, whose products are computed one by one.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "fake.h"

using namespace rune::cuda_fake;

namespace {

constexpr int kFloat32 = 0, kFloat64 = 1, kFloat16 = 2, kBfloat16 = 14;

size_t size_of(int type) {
  return type == kFloat64 ? 8 : type == kFloat32 ? 4 : 2;
}

template <class T>
T read(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Of float16, normal numbers and 0 only.
double load(const void* at, int type) {
  if (type == kFloat32) return read<float>(at);
  if (type == kFloat64) return read<double>(at);
  const auto bits = read<uint16_t>(at);
  if (type == kFloat16) {
    const double size =
        bits & 0x7fff ? std::ldexp(1024 + (bits & 0x3ff), (bits >> 10 & 0x1f) - 25) : 0;
    return bits & 0x8000 ? -size : size;
  }
  const uint32_t wide = uint32_t{bits} << 16;
  return read<float>(&wide);
}

// Stores NaN if a number is none of the narrow type.
void store(void* at, int type, double value) {
  if (type == kFloat32) {
    const auto narrow = static_cast<float>(value);
    std::memcpy(at, &narrow, sizeof narrow);
  } else if (type == kFloat64) {
    std::memcpy(at, &value, sizeof value);
  } else {
    // A number of the type has 11 or 8 bits.
    int exponent = 0;
    const double part = std::frexp(std::abs(value), &exponent);
    const int digits = type == kFloat16 ? 11 : 8, bias = type == kFloat16 ? 14 : 126;
    const double scaled = std::ldexp(part, digits);
    const auto whole = static_cast<uint32_t>(scaled);
    uint32_t bits = value == 0 ? 0
                               : (static_cast<uint32_t>(exponent + bias) << (digits - 1)) + whole -
                                     (1u << (digits - 1));
    if (value < 0) bits |= 0x8000;
    if (whole != scaled || (value != 0 && exponent + bias < 1)) bits = 0x7fff;
    const auto narrow = static_cast<uint16_t>(bits);
    std::memcpy(at, &narrow, sizeof narrow);
  }
}

struct Operand {
  const void* memory;
  int type, step;
  bool is_transposed;
  double at(int row, int column) const {
    const int64_t i = is_transposed ? column + int64_t{row} * step : row + int64_t{column} * step;
    return load(static_cast<const char*>(memory) + i * static_cast<int64_t>(size_of(type)), type);
  }
};

int multiply(const Operand& a, const Operand& b, int m, int n, int k, void* c, int type_c,
             int step_c, int compute) {
  if (a.step < (a.is_transposed ? k : m) || b.step < (b.is_transposed ? n : k) || step_c < m)
    return state().refuse(7, "a matrix's columns overlap");
  if (a.type != b.type || (compute == 70) != (a.type == kFloat64) ||
      (type_c != a.type && type_c != kFloat32))
    return state().refuse(7, "the types of a product do not match");
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l) sum += a.at(i, l) * b.at(l, j);
      char* const at =
          static_cast<char*>(c) + (i + int64_t{j} * step_c) * static_cast<int64_t>(size_of(type_c));
      store(at, type_c, sum);
    }
  return 0;
}

}  // namespace

EXPORTED int cublasCreate_v2(int** handle) {
  const Call call("cublasCreate");
  static int only = 0;
  *handle = &only;
  return call.result ? 1 : 0;
}
EXPORTED int cublasSetStream_v2(int*, void*) {
  return 0;
}
EXPORTED int cublasSetMathMode(int*, int) {
  return 0;
}
EXPORTED const char* cublasGetStatusString(int) {
  return "CUBLAS_STATUS_FAKE";
}
EXPORTED int cublasGemmStridedBatchedEx(int*, int form_a, int form_b, int m, int n, int k,
                                        const void*, const void* a, int type_a, int step_a,
                                        long long next_a, const void* b, int type_b, int step_b,
                                        long long next_b, const void*, void* c, int type_c,
                                        int step_c, long long next_c, int batch, int compute, int) {
  const Call call("cublasGemm");
  const auto move = [](const void* memory, long long elements, int type) {
    return static_cast<const char*>(memory) + elements * static_cast<long long>(size_of(type));
  };
  for (int g = 0; g < batch; ++g)
    if (const int failed =
            multiply({move(a, g * next_a, type_a), type_a, step_a, form_a == 1},
                     {move(b, g * next_b, type_b), type_b, step_b, form_b == 1}, m, n, k,
                     const_cast<char*>(move(c, g * next_c, type_c)), type_c, step_c, compute))
      return failed;
  return call.result;
}
EXPORTED int cublasGemmEx(int* handle, int form_a, int form_b, int m, int n, int k,
                          const void* alpha, const void* a, int type_a, int step_a, const void* b,
                          int type_b, int step_b, const void* beta, void* c, int type_c, int step_c,
                          int compute, int algorithm) {
  return cublasGemmStridedBatchedEx(handle, form_a, form_b, m, n, k, alpha, a, type_a, step_a, 0, b,
                                    type_b, step_b, 0, beta, c, type_c, step_c, 0, 1, compute,
                                    algorithm);
}
