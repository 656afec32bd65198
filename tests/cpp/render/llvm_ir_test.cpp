#include "render/llvm_ir.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "lower/builder.h"

namespace rune::render {
namespace {

using lower::Builder;
using lower::Kernel;
using lower::Var;

Builder named(const std::string& name, int64_t grid = 1) {
  Kernel kernel;
  kernel.name = name;
  kernel.grid = grid;
  return Builder(std::move(kernel));
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no `" << part << "` in\n" << text;
}

void expect_lacks(const std::string& text, const std::string& part) {
  EXPECT_EQ(text.find(part), std::string::npos) << "`" << part << "` in\n" << text;
}

Var i64(Builder& b, int64_t value) {
  return b.constant(Scalar::of(DType::Int64, value));
}

TEST(LlvmIr, TextIsDeterministic) {
  const auto build = [] {
    Builder b = named("k");
    const Var memory = b.define_global(DType::Float64, 0, 8, true);
    b.store(memory, i64(b, 0), b.alu(AluOp::Exp, {b.load(memory, i64(b, 1), 4)}));
    return render_llvm(b.take());
  };
  EXPECT_EQ(build(), build());
}

TEST(LlvmIr, AccsAreNotMemory) {
  Builder b = named("sum");
  const Var out = b.define_global(DType::Float32, 0, 1, true);
  const Var in = b.define_global(DType::Float32, 1, 64, false);
  const Var acc = b.acc(b.constant(Scalar::of(DType::Float32, 0.0)));
  const Var i = b.range(i64(b, 64));
  b.assign(acc, b.alu(AluOp::Add, {acc, b.load(in, i)}));
  b.end_range();
  b.store(out, i64(b, 0), acc);
  const std::string text = render_llvm(b.take());
  expect_lacks(text, "alloca");
  expect_contains(text, "= phi float [ 0x0000000000000000, %task.loop ]");
  expect_lacks(text, "icmp sgt");  // a bound known to be positive needs no guard
}

TEST(LlvmIr, ReadOnlyMemoryLoadsAreInvariant) {
  Builder b = named("copy");
  const Var out = b.define_global(DType::Int32, 0, 4, true);
  const Var in = b.define_global(DType::Int32, 1, 4, false);
  const Var sum = b.alu(AluOp::Add, {b.load(in, i64(b, 0)), b.load(out, i64(b, 1))});
  b.store(out, i64(b, 0), sum);
  const std::string text = render_llvm(b.take());
  const size_t first = text.find("= load i32");
  ASSERT_NE(first, std::string::npos);
  const size_t second = text.find("= load i32", first + 1);
  ASSERT_NE(second, std::string::npos);
  expect_contains(text.substr(first, text.find('\n', first) - first), "!invariant.load");
  expect_lacks(text.substr(second, text.find('\n', second) - second), "!invariant.load");
}

TEST(LlvmIr, NeighboursAreDisplacementsFromOneAddress) {
  Builder b = named("k");
  const Var in = b.define_global(DType::Float32, 0, 64, false);
  const Var out = b.define_global(DType::Int64, 1, 64, true);
  const Var i = b.range(i64(b, 8));
  const auto plus = [&](Var index, int64_t n) { return b.alu(AluOp::Add, {index, i64(b, n)}); };
  b.load(in, plus(i, 2));
  b.load(in, plus(i, 5));
  b.load(in, i);
  // A sum that is also a value and one of a masked element are sums.
  const Var value = plus(i, 7);
  b.store(out, value, value);
  b.load(in, plus(i, 11), 1, b.alu(AluOp::Cmplt, {i, i64(b, 3)}));
  b.end_range();
  const std::string text = render_llvm(b.take());
  const size_t at = text.find(" = getelementptr float, ptr %m0, i64 %i");
  ASSERT_NE(at, std::string::npos) << text;
  const std::string address =
      text.substr(text.rfind(' ', at - 1) + 1, at - text.rfind(' ', at - 1) - 1);
  for (const char* n : {"2", "5"})
    expect_contains(text, "getelementptr float, ptr " + address + ", i64 " + n + "\n");
  expect_contains(text, "load float, ptr " + address + ",");
  for (const char* n : {"2", "5"}) expect_lacks(text, concat("add i64 %i3, ", n));
  for (const char* n : {"7", "11"}) expect_contains(text, concat(", ", n, "\n"));
}

// The address of an element that is not valid may lie outside of any memory.
TEST(LlvmIr, MaskedElementsAreReadAtTheStart) {
  Builder b = named("k");
  const Var in = b.define_global(DType::Float32, 0, 64, false);
  const Var i = b.range(i64(b, 80));
  b.load(in, i, 1, b.alu(AluOp::Cmplt, {i, i64(b, 64)}));
  b.end_range();
  const std::string text = render_llvm(b.take());
  const size_t load = text.find("= load float");
  ASSERT_NE(load, std::string::npos) << text;
  const size_t choice = text.rfind(", i64 %i2, i64 0\n", load);
  ASSERT_NE(choice, std::string::npos) << text;
  const size_t line = text.rfind('\n', choice) + 1;
  const std::string index = text.substr(line, text.find(" = ", line) - line);
  expect_contains(text, "getelementptr float, ptr %m0, i64 " + index.substr(index.find('%')));
}

TEST(LlvmIr, OnlyUnmaskedVectorsStream) {
  for (const bool masked : {false, true}) {
    Builder b = named("stream");
    const Var out = b.define_global(DType::Float32, 0, 64, true);
    const Var value = b.constant(Scalar::of(DType::Float32, 1.0), 16);
    const Var valid =
        masked ? b.alu(AluOp::Cmplt,
                       {i64(b, 0), b.load(b.define_global(DType::Int64, 1, 1, false), i64(b, 0))})
               : Var{};
    b.store(out, i64(b, 16), value, valid, true);
    const std::string text = render_llvm(b.take());
    if (masked)
      expect_lacks(text, "!nontemporal");
    else
      expect_contains(text, "align 64, !nontemporal !1");
  }
}

TEST(LlvmIr, MasksOfSeveralRegistersAreOpaque) {
  Builder b = named("masked");
  const Var out = b.define_global(DType::Float32, 0, 64, true);
  std::vector<Scalar> lanes(16, Scalar::of(DType::Bool, false));
  lanes[3] = lanes[5] = Scalar::of(DType::Bool, true);
  b.store(out, i64(b, 16), b.constant(Scalar::of(DType::Float32, 1.0), 16), b.vconst(lanes));
  const std::vector<lower::Kernel> kernels{b.take()};
  expect_contains(render_llvm_module(kernels, 32), "or <16 x i1>");
  expect_lacks(render_llvm_module(kernels, 64), "or <16 x i1>");
}

TEST(LlvmIr, FloatsCarryNoFastMathFlags) {
  Builder b = named("k");
  const Var memory = b.define_global(DType::Float32, 0, 64, true);
  const Var x = b.load(memory, i64(b, 0), 16);
  Var y = b.alu(AluOp::Mulacc, {x, x, x});
  for (const AluOp op : {AluOp::Add, AluOp::Mul, AluOp::Fdiv, AluOp::Max, AluOp::Cmplt})
    y = op == AluOp::Cmplt ? b.alu(AluOp::Where, {b.alu(op, {x, y}), x, y}) : b.alu(op, {x, y});
  b.store(memory, i64(b, 0), y);
  const std::string text = render_llvm(b.take());
  for (const char* flag : {" fast ", " nnan", " ninf", " nsz", " arcp", " reassoc", " contract"})
    expect_lacks(text, flag);
  expect_contains(text, "@llvm.fma.v16f32");
}

TEST(LlvmIr, WorkgroupMemoryIsTheCallers) {
  Builder b = named("scratch");
  b.define_global(DType::Float32, 0, 4, true);
  b.local(DType::Int8, 257);
  b.local(DType::Float32, 1024);
  b.local(DType::Float32, 64);
  const std::string text = render_llvm(b.take());
  expect_contains(text, "getelementptr ptr, ptr %buffers, i64 1");
  expect_contains(text, "%m1 = getelementptr i8, ptr %t1, i64 0");
  expect_contains(text, "%m2 = getelementptr i8, ptr %t1, i64 320");
  expect_contains(text, "%m3 = alloca [256 x i8], align 64");
}

TEST(LlvmIr, ModulesKeepWhatLlvmImprovesApart) {
  const auto copies = [](const char* name, bool reads_own_writes) {
    Builder b = named(name);
    const Var from = b.define_global(DType::Float32, 0, 4, false);
    const Var to = b.define_global(DType::Float32, 1, 4, true);
    b.store(to, i64(b, 0), b.load(reads_own_writes ? to : from, i64(b, 1)));
    return b.take();
  };
  const std::vector<Kernel> kernels{copies("a", false), copies("b", false), copies("c", true)};
  const std::vector<std::string> texts = render_llvm_modules(kernels);
  ASSERT_EQ(texts.size(), 3u);
  expect_contains(texts[0], "@a(");
  expect_contains(texts[0], "@b(");
  EXPECT_EQ(texts[0].find("rune-optimize"), std::string::npos);
  EXPECT_EQ(texts[1], "");
  expect_contains(texts[2], "@c(");
  expect_contains(texts[2], "\"rune-optimize\"");
}

TEST(LlvmIr, LongKernelsAreCompiledAsTheyAre) {
  Builder b = named("long");
  const Var memory = b.define_global(DType::Float32, 0, 10000, true);
  for (int64_t i = 0; i < 3000; ++i) b.store(memory, i64(b, i + 1), b.load(memory, i64(b, i)));
  EXPECT_EQ(render_llvm(b.take()).find("rune-optimize"), std::string::npos);
}

TEST(LlvmIr, RefusesWhatTheCpuCannotRun) {
  Builder threads = named("threads");
  Kernel kernel = threads.take();
  kernel.local = 32;
  EXPECT_THROW(render_llvm(kernel), InternalError);

  Builder custom = named("custom");
  custom.add(lower::Custom{"my_op", "add $T $0, $1"}, {i64(custom, 1)}, {DType::Int64});
  try {
    render_llvm(custom.kernel());
    FAIL() << "a Custom was rendered";
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Unsupported);
    expect_contains(e.what(), "my_op");
    expect_contains(e.what(), "kernel custom");
  }

  Builder division = named("division");
  const Var x = division.load(division.define_global(DType::Int32, 0, 4, true), i64(division, 0));
  division.alu(AluOp::Idiv, {x, x});
  EXPECT_THROW(render_llvm(division.kernel()), InternalError);
}

TEST(LlvmIr, ModulesHoldKernelsOfDifferentNames) {
  std::vector<Kernel> kernels{named("a").take(), named("b").take()};
  const std::string text = render_llvm_module(kernels);
  expect_contains(text, "define void @a(");
  expect_contains(text, "define void @b(");
  kernels[1].name = "a";
  EXPECT_THROW(render_llvm_module(kernels), InternalError);
}

TEST(LlvmIr, SymbolicVariablesAreNumberedByFirstDefinition) {
  Builder b = named("k");
  const Var memory = b.define_global(DType::Int64, 0, 64, true);
  const Var n = b.define_var({"n", 0, 8}), m = b.define_var({"m", 0, 8}),
            again = b.define_var({"n", 0, 8});
  b.store(memory, n, b.alu(AluOp::Add, {m, again}));
  const std::string text = render_llvm(b.take());
  expect_contains(text, "ptr %vars, i64 0");
  expect_contains(text, "ptr %vars, i64 1");
  expect_lacks(text, "ptr %vars, i64 2");
}

TEST(LlvmIr, OneElementForAllLanesIsLoadedOnce) {
  for (const bool has_mask : {false, true})
    for (const DType dtype : {DType::Uint8, DType::Bool, DType::Float64}) {
      Builder b = named("k");
      const Var in = b.define_global(dtype, 0, 8, false);
      const Var masks = b.define_global(DType::Bool, 1, 64, false);
      const Var out = b.define_global(dtype, 2, 64, true);
      const Var valid = has_mask ? b.load(masks, i64(b, 0), 64) : Var{};
      b.store(out, i64(b, 0), b.load(in, b.splat(i64(b, 5), 64), 64, valid));
      const std::string text = render_llvm(b.take());
      expect_lacks(text, "extractelement");
      expect_lacks(text, "gather");
      if (!has_mask) continue;
      // If no lane is valid, the element need not exist.
      expect_contains(text, "= call i1 @llvm.vector.reduce.or.v64i1(<64 x i1> ");
      expect_contains(text, ", i64 5, i64 0");
    }
}

std::string masked_bytes(bool writable, int register_bytes) {
  Builder b = named("k");
  const Var in = b.define_global(DType::Uint8, 0, 64, writable);
  const Var places = b.define_global(DType::Int64, 1, 8, false);
  const Var masks = b.define_global(DType::Bool, 2, 8, false);
  const Var out = b.define_global(DType::Uint8, 3, 8, true);
  const Var valid = b.load(masks, i64(b, 0), 8), index = b.load(places, i64(b, 0), 8);
  b.store(out, i64(b, 0), b.load(in, index, 8, valid));
  return render_llvm_module(std::vector{b.take()}, register_bytes);
}

TEST(LlvmIr, MaskedBytesAreGatheredInWords) {
  const std::string text = masked_bytes(false, 64);
  expect_contains(text, "@llvm.masked.gather.v8i32.v8p0(");
  expect_lacks(text, "extractelement");
  expect_lacks(masked_bytes(true, 64), "gather");
  expect_lacks(masked_bytes(false, 32), "gather");
}

TEST(LlvmIr, BoolsOfLanesAreComparedTogether) {
  Builder b = named("k");
  const Var in = b.define_global(DType::Bool, 0, 64, false);
  const Var places = b.define_global(DType::Int64, 1, 8, false);
  const Var out = b.define_global(DType::Bool, 2, 8, true);
  b.store(out, i64(b, 0), b.load(in, b.load(places, i64(b, 0), 8), 8));
  const std::string text = render_llvm(b.take());
  expect_contains(text, "icmp ne <8 x i8>");
  expect_lacks(text, "icmp ne i8");
}

}  // namespace
}  // namespace rune::render
