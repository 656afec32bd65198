// What the interpreter's tests share.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "base/error.h"
#include "lower/builder.h"
#include "lower/interpreter.h"
#include "lower/text.h"
#include "lower/verify.h"

namespace rune::lower {

inline Scalar i64(int64_t v) {
  return Scalar::of(DType::Int64, v);
}
inline Scalar f32(double v) {
  return Scalar::of(DType::Float32, v);
}

// An array of one dtype.
struct Array {
  DType dtype;
  std::vector<uint8_t> bytes;

  Array(DType d, int64_t size) : dtype(d), bytes(static_cast<size_t>(size) * size_of(d)) {}
  Array(DType d, const std::vector<double>& values)
      : Array(d, static_cast<int64_t>(values.size())) {
    for (size_t i = 0; i < values.size(); ++i) set(i, Scalar::of(d, values[i]));
  }
  int64_t size() const { return static_cast<int64_t>(bytes.size()) / size_of(dtype); }
  Scalar at(size_t i) const { return Scalar::load(dtype, bytes.data() + i * size_of(dtype)); }
  void set(size_t i, const Scalar& v) { v.store(bytes.data() + i * size_of(dtype)); }
  Memory memory() { return {bytes.data(), size()}; }
  std::vector<double> values() const {
    std::vector<double> result;
    for (int64_t i = 0; i < size(); ++i) result.push_back(at(i).as_double());
    return result;
  }
};

// Verifies, round-trips and runs a kernel.
inline void run(const Kernel& kernel, const std::vector<Array*>& arrays,
                const std::vector<int64_t>& vars = {}, const InterpreterOptions& options = {}) {
  ASSERT_EQ(verify(kernel), std::vector<std::string>{}) << print(kernel);
  ASSERT_EQ(parse(print(kernel)), kernel);
  std::vector<Memory> memories;
  for (Array* a : arrays) memories.push_back(a->memory());
  Interpreter(kernel).run(memories, vars, options);
}

// The error that a run gives; also of kernels that do not verify, if their structure is valid.
inline std::string error_of(const Kernel& kernel, const std::vector<Array*>& arrays,
                            const std::vector<int64_t>& vars = {},
                            const InterpreterOptions& options = {}) {
  std::vector<Memory> memories;
  for (Array* a : arrays) memories.push_back(a->memory());
  try {
    Interpreter(kernel).run(memories, vars, options);
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Runtime);
    return e.what();
  }
  return "no error";
}

inline void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "expected `" << part << "` in: " << text;
}

// NaNs are equal whatever their sign: no operation defines the sign of the NaN it gives.
inline bool same_value(const Scalar& a, const Scalar& b) {
  if (is_float(a.dtype()) && a.dtype() == b.dtype() && a.as_double() != a.as_double())
    return b.as_double() != b.as_double();
  return a == b;
}

}  // namespace rune::lower
