#include "types/shape.h"

#include <algorithm>

#include "base/error.h"

namespace rune {

int64_t num_elements(const Shape& shape) {
  int64_t product = 1;
  bool overflow = false;
  for (const int64_t size : shape) {
    if (size == 0) return 0;
    overflow |= __builtin_mul_overflow(product, size, &product);
  }
  if (overflow)
    user_error(ErrorKind::Value, "shape: cannot hold ", shape_text(shape),
               " (more than 2^63 elements)");
  return product;
}

Ints contiguous_strides(const Shape& shape) {
  Ints strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

std::string shape_text(const Shape& shape) {
  return text::to_text(shape);
}

Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.size(), b.size());
  Shape out(rank);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = i + a.size() < rank ? 1 : a[i + a.size() - rank];
    const int64_t y = i + b.size() < rank ? 1 : b[i + b.size() - rank];
    if (x != y && x != 1 && y != 1)
      user_error(ErrorKind::Value, op, ": cannot broadcast ", shape_text(a), " with ",
                 shape_text(b), " (dimension ",
                 static_cast<int64_t>(i) - static_cast<int64_t>(rank), ": ", x, " and ", y,
                 ")\nhint: sizes must be equal or 1, counted from the last dimension");
    out[i] = x == 1 ? y : x;
  }
  return out;
}

int64_t normalize_axis(const char* op, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    user_error(ErrorKind::Index, op, ": cannot use axis ", axis, " of an array with ", rank,
               " dimensions");
  return axis < 0 ? axis + rank : axis;
}

}  // namespace rune
