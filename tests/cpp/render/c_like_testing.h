// Small kernels for the tests of C-like rendering.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "lower/builder.h"

namespace rune::render {

inline lower::Builder kernel_named(const std::string& name, int64_t groups = 1,
                                   int64_t threads = 1) {
  lower::Kernel kernel;
  kernel.name = name;
  kernel.grid = groups;
  kernel.local = threads;
  return lower::Builder(std::move(kernel));
}

inline lower::Var index_constant(lower::Builder& b, int64_t value) {
  return b.constant(Scalar::of(DType::Int64, value));
}

// out[i] = in[i] * 2 for four elements a thread, masked by i < 1000 if so wished.
inline lower::Kernel doubling(DType dtype, bool masked) {
  lower::Builder b = kernel_named("doubling", 4, 64);
  const lower::Var out = b.define_global(dtype, 0, 1000, true);
  const lower::Var in = b.define_global(dtype, 1, 1000, false);
  const lower::Var task = b.special(lower::SpecialKind::Global_task_idx, 256, DType::Int64);
  const lower::Var i = b.alu(AluOp::Mul, {task, index_constant(b, 4)});
  lower::Var valid;
  if (masked) valid = b.alu(AluOp::Cmplt, {i, index_constant(b, 1000)});
  const lower::Var x = b.load(in, i, 4, valid);
  b.store(out, i, b.alu(AluOp::Add, {x, x}), valid);
  return b.take();
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no `" << part << "` in\n" << text;
}
inline void expect_lacks(const std::string& text, const std::string& part) {
  EXPECT_EQ(text.find(part), std::string::npos) << "`" << part << "` in\n" << text;
}

// The message of the E that f throws.
template <class E, class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace rune::render
