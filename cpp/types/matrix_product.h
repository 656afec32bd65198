// Describes a product of matrices to a device's library.
#pragma once

#include <array>
#include <cstdint>

#include "types/dtype.h"

namespace rune {

// c[g, i, j] = sum over k of a[g, i, k] * b[g, k, j], for all g < batch, i < rows, k < terms and
// j < columns. Each matrix is an argument of the kernel, named by its number. Its first element is
// `offset` elements after the argument's address; `strides`, in elements, has one stride per index.
struct MatrixProduct {
  struct Matrix {
    size_t argument = 0;
    int64_t offset = 0;
    std::array<int64_t, 3> strides{};
    bool operator==(const Matrix&) const = default;
  };
  DType operands = DType::Float32;  // of a and b; sums of float16 and bfloat16 are in float32
  DType result = DType::Float32;
  int64_t batch = 1, rows = 1, columns = 1, terms = 1;
  Matrix a, b, c;
  bool operator==(const MatrixProduct&) const = default;
};

}  // namespace rune
