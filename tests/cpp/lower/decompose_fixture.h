// What the tests of decomposition share: kernels of one operation, and operands worth trying.
#pragma once

#include <cmath>
#include <limits>

#include "alu/eval.h"
#include "interpreter_fixture.h"
#include "lower/passes/decompose.h"

namespace rune::lower {

// A target with arithmetic on all dtypes but float16 and bfloat16, and the elementary operations
// alone: what every decomposition may end in.
inline Capabilities basic_target() {
  Capabilities caps;
  caps.name = "basic";
  caps.dtypes.set();
  caps.arithmetic.set();
  caps.arithmetic.reset(static_cast<int>(DType::Float16));
  caps.arithmetic.reset(static_cast<int>(DType::Bfloat16));
  set_elementary_native(caps);
  return caps;
}

// A kernel that applies `op` to whole arrays of `size` elements, `lanes` at a time; the last
// operand is the constant, if given.
inline Kernel kernel_of(AluOp op, DType dtype, int64_t size, int lanes,
                        const Scalar* constant = nullptr) {
  Builder b;
  const int arity = info(op).arity;
  const int arrays = arity - (constant ? 1 : 0);
  std::vector<Var> memories;
  for (int i = 0; i < arrays; ++i) memories.push_back(b.define_global(dtype, i, size, false));
  const std::vector<DType> dtypes(arity, dtype);
  const Var out = b.define_global(result_dtype(op, dtypes), arrays, size, true);
  const Var step = b.constant(i64(lanes));
  const Var at = b.alu(AluOp::Mul, {b.range(b.constant(i64(size / lanes))), step});
  std::vector<Var> args;
  for (const Var memory : memories) args.push_back(b.load(memory, at, lanes));
  if (constant) args.push_back(b.constant(*constant, lanes));
  b.store(out, at, b.alu(op, args));
  b.end_range();
  Kernel kernel = b.take();
  kernel.name = info(op).text;
  return kernel;
}

// Runs the decomposed operation on each tuple of operands.
inline std::vector<Scalar> decomposed(AluOp op, DType dtype, const Capabilities& caps, int lanes,
                                      const std::vector<std::vector<Scalar>>& operands,
                                      const Scalar* constant = nullptr) {
  const auto count = static_cast<int64_t>(operands[0].size());
  const int64_t size = (count + lanes - 1) / lanes * lanes;
  std::vector<Array> arrays;
  for (const auto& values : operands) {
    arrays.emplace_back(dtype, size);
    for (int64_t i = 0; i < size; ++i) arrays.back().set(i, values[i % count]);
  }
  arrays.emplace_back(result_dtype(op, std::vector<DType>(info(op).arity, dtype)), size);
  std::vector<Array*> pointers;
  for (Array& a : arrays) pointers.push_back(&a);
  const Kernel kernel =
      decompose(widen_narrow_floats(kernel_of(op, dtype, size, lanes, constant), caps), caps);
  run(kernel, pointers);
  std::vector<Scalar> results;
  for (int64_t i = 0; i < count; ++i) results.push_back(arrays.back().at(i));
  return results;
}

// Numbers at which functions tend to go wrong, rounded to the dtype.
inline std::vector<Scalar> special_values(DType dtype) {
  if (is_float(dtype)) {
    const double infinity = std::numeric_limits<double>::infinity();
    const double tiny = dtype == DType::Float64 ? 5e-324 : 1.401298464324817e-45;
    const double normal =
        dtype == DType::Float64 ? 2.2250738585072014e-308 : 1.1754943508222875e-38;
    const double highest = dtype == DType::Float64 ? 1.7976931348623157e308 : 3.4028234663852886e38;
    std::vector<Scalar> values{Scalar::of(dtype, std::numeric_limits<double>::quiet_NaN())};
    for (const double v :
         {0.0,  tiny,    3 * tiny,   normal, normal * 0.9999999, 1e-10,     0.25,     0.49999997,
          0.5,  0.55,    0.99999994, 1.0,    1.0000001,          1.5,       2.0,      2.5,
          3.0,  7.0,     88.5,       104.0,  8388607.5,          8388609.0, 131072.0, 1e10,
          1e22, highest, infinity})
      for (const double s : {v, -v}) values.push_back(Scalar::of(dtype, s));
    return values;
  }
  if (is_bool(dtype)) return {Scalar::of(dtype, false), Scalar::of(dtype, true)};
  std::vector<Scalar> values{Scalar::lowest(dtype), Scalar::highest(dtype)};
  for (const int v : {0, 1, 2, 3, 5, 7, 8, 31, 32, 63, 64, 100, 120})
    for (const int s : {v, -v}) values.push_back(Scalar::of(dtype, s));
  values.push_back(Scalar::of(dtype, Scalar::highest(dtype).as_int64() - 1));
  values.push_back(Scalar::of(dtype, Scalar::lowest(dtype).as_int64() + 1));
  return values;
}

// Every pair of two values.
inline std::vector<std::vector<Scalar>> pairs_of(const std::vector<Scalar>& values) {
  std::vector<std::vector<Scalar>> pairs(2);
  for (const Scalar& a : values)
    for (const Scalar& b : values) {
      pairs[0].push_back(a);
      pairs[1].push_back(b);
    }
  return pairs;
}

}  // namespace rune::lower
