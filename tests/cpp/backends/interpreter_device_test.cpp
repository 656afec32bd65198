#include "backends/interpreter/interpreter_device.h"

#include <gtest/gtest.h>

#include "alu/alu.h"
#include "base/error.h"

namespace rune::runtime {
namespace {

// out[i] = in[i] * n, by 2 groups of 4 threads.
KernelSource scale() {
  KernelSource source;
  source.name = "scale";
  source.text = R"(kernel @scale grid=2 local=4 {
    %0 = define_global index=0 size=8 writable=false : ptr f32
    %1 = define_global index=1 size=8 writable=true : ptr f32
    %2 = special Global_task_idx bound=8 : i64
    %3 = define_var {name="n" min=0 max=10} : i64
    %4 = load %0 %2 : f32
    %5 = cast %3 : f32
    %6 = alu mul %4 %5 : f32
    store nontemporal=false %1 %2 %6
  })";
  source.grid = 2;
  source.local = 4;
  source.buffer_dtypes = {DType::Float32, DType::Float32};
  source.buffer_sizes = {8, 8};
  return source;
}

std::string compile_error(const KernelSource& source) {
  try {
    make_interpreter_device(interpreter_capabilities())->compiler().compile(std::span(&source, 1));
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Runtime);
    return e.what();
  }
  return "no error";
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "expected `" << part << "` in: " << text;
}

TEST(InterpreterDevice, CompilesAndRuns) {
  const std::shared_ptr<Device> device = make_interpreter_device(interpreter_capabilities());
  EXPECT_EQ(device->name(), "interpreter");
  const KernelSource source = scale();
  const auto programs = device->compiler().compile(std::span(&source, 1));
  ASSERT_EQ(programs.size(), 1u);
  const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  void* const in = device->allocator().allocate(sizeof values);
  void* const out = device->allocator().allocate(sizeof values);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(in) % 64, 0u);
  device->copy_in(in, values, sizeof values);
  void* const buffers[] = {in, out};
  const int64_t vars[] = {3};
  programs[0]->launch({buffers, vars});
  device->synchronize();
  float result[8];
  device->copy_out(result, out, sizeof result);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(result[i], 3 * values[i]);
  EXPECT_THROW(programs[0]->launch({std::span(buffers, 1), vars}), UserError);
  EXPECT_THROW(programs[0]->launch({buffers, {}}), UserError);
  device->allocator().deallocate(in, sizeof values);
  device->allocator().deallocate(out, sizeof values);
}

TEST(InterpreterDevice, LaunchesReportAccessesOutOfBounds) {
  KernelSource source = scale();
  source.text.replace(source.text.find("index=1 size=8"), 14, "index=1 size=6");
  const std::shared_ptr<Device> device = make_interpreter_device(interpreter_capabilities());
  const auto programs = device->compiler().compile(std::span(&source, 1));
  std::vector<float> in(8), out(8);
  void* const buffers[] = {in.data(), out.data()};
  const int64_t vars[] = {3};
  try {
    programs[0]->launch({buffers, vars});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Runtime);
    expect_part(e.what(), "store: cannot write element 6 of %1 (it has 6 elements)");
  }
}

TEST(InterpreterDevice, CompileErrorsNameTheKernel) {
  KernelSource source = scale();
  source.text = "kernel @scale grid=1 local=1 { frobnicate }";
  expect_part(compile_error(source), "cannot compile kernel scale: ");
  expect_part(compile_error(source), "unknown instruction `frobnicate` (line 1");
  source.text = "kernel @scale grid=1 local=1 { endif endrange }";
  expect_part(compile_error(source), "\n  `endif`: closes nothing\n  `endrange`: closes nothing");
}

TEST(InterpreterDevice, ComputesEverythingItself) {
  const Capabilities caps = interpreter_capabilities();
  EXPECT_EQ(caps.model, ExecutionModel::Grid);
  EXPECT_EQ(caps.max_threads_per_group, 256);
  EXPECT_EQ(caps.simd_width, 32);
  EXPECT_EQ(caps.shared_memory_bytes, 32 << 10);
  for (int d = 0; d < kNumDTypes; ++d) {
    const DType dtype = static_cast<DType>(d);
    EXPECT_TRUE(caps.has_dtype(dtype) && caps.has_arithmetic(dtype));
    for (const AluInfo& row : all_alu_ops())
      EXPECT_EQ(is_native(caps, row.op, dtype), row.accepts(dtype)) << row.text << name_of(dtype);
  }
}

}  // namespace
}  // namespace rune::runtime
