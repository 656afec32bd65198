#include "lower/text.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "base/error.h"
#include "lower/builder.h"

namespace rune::lower {
namespace {

// A kernel with every kind of instruction.
Kernel every_kind() {
  Builder b;
  const Var g = b.define_global(DType::Float32, 0, 64, true);
  const Var local = b.local(DType::Float32, 8);
  b.private_memory(DType::Float32, 2);
  const Var zero = b.constant(Scalar::of(DType::Int64, 0));
  const Var v = b.vconst({Scalar::of(DType::Float32, -0.0), Scalar::of(DType::Float32, 0.1)});
  const Var group = b.special(SpecialKind::Global_task_idx, 4, DType::Int32);
  b.special(SpecialKind::Local_thread_idx, 4, DType::Int32);
  const Var n = b.define_var({"n", 1, 9}, DType::Int64);
  const Var acc = b.acc(v);
  const Var i = b.range(n);
  const Var u = b.add(Unroll{2}, {}, {DType::Int64});
  const Var sum = b.alu(AluOp::Add, {i, u});
  const Var condition = b.alu(AluOp::Cmplt, {sum, n});
  b.if_(condition);
  const Var x = b.load(local, sum, 2, condition);
  b.assign(acc, b.alu(AluOp::Mulacc, {x, x, acc}));
  b.end_if();
  b.end_range();
  b.break_if(b.alu(AluOp::Cmpeq, {i, zero}));
  b.end_range();
  b.barrier();
  const Var bits = b.bitcast(b.shuffle(acc, {0}), DType::Uint32);
  const Var scalar = b.cast(bits, DType::Float32);
  const Var tile = b.splat(scalar, 2);
  const Var product = b.wmma({2, 2, 2, {{1, 2}, {2, 1}, {1, 2}}}, tile, tile, tile);
  b.prefetch(g, zero);
  b.store(g, zero, product, {}, true);
  b.store(local, b.cast(group, DType::Int64), b.shuffle(product, {1}), condition);
  b.custom({"my op", "$0 \"+\" $1\n"}, {scalar, scalar}, {DType::Float32});
  b.simd_reduce(AluOp::Max, 8, scalar);
  b.simd_shuffle(8, scalar, b.constant(Scalar::of(DType::Int32, 7)));
  Kernel k = b.take();
  k.name = "every_kind";
  k.grid = 8;
  k.local = 16;
  return k;
}

TEST(LowerText, RoundTripsEveryKind) {
  const Kernel k = every_kind();
  std::set<InstrKind> kinds;
  for (const Instr& instr : k.body) kinds.insert(instr.kind());
  EXPECT_EQ(static_cast<int>(kinds.size()), kNumInstrKinds);
  const std::string text = print(k);
  EXPECT_EQ(parse(text), k) << text;
  EXPECT_EQ(print(parse(text)), text);
}

TEST(LowerText, RoundTripsEveryDTypeAndSpecialValues) {
  Builder b;
  for (int d = 0; d < kNumDTypes; ++d) {
    const DType dtype = static_cast<DType>(d);
    for (const double value : {0.0, -0.0, 1.0, 0.1, 65504.0, 1e300, -1e-300}) {
      b.constant(Scalar::of(dtype, value), 1);
      b.constant(Scalar::of(dtype, value), 5);
    }
    b.constant(Scalar::lowest(dtype));
    b.constant(Scalar::highest(dtype));
  }
  b.constant(Scalar::of(DType::Float64, std::numeric_limits<double>::quiet_NaN()));
  b.constant(Scalar::of(DType::Float32, -std::numeric_limits<double>::quiet_NaN()));
  const Kernel k = b.take();
  EXPECT_EQ(parse(print(k)), k) << print(k);
}

TEST(LowerText, PrintsTheDocumentedForm) {
  const char* text =
      "kernel @k0 grid=4 local=1 {\n"
      "  %0 = define_global index=0 size=64 writable=true : ptr f32\n"
      "  %1 = special Workgroup_idx bound=4 : i64\n"
      "  %2 = const i64(16) : i64\n"
      "  %3 = alu mul %1 %2 : i64\n"
      "  %4 = range %2 : i64\n"
      "    %5 = load %0 %3 : f32x16\n"
      "    store nontemporal=false %0 %3 %5\n"
      "  endrange\n"
      "  %8 = barrier_free_id\n"
      "}\n";
  std::string good(text);
  good.erase(good.find("  %8"), good.find("}\n") - good.find("  %8"));
  EXPECT_EQ(print(parse(good)), good);
  EXPECT_THROW(parse(text), UserError);
}

TEST(LowerText, RoundTripsNamesThatAreNoIdentifiers) {
  Kernel k;
  for (const char* name : {"", "a b", "7", "k\"\n", "reduce.1"}) {
    k.name = name;
    EXPECT_EQ(parse(print(k)), k) << print(k);
  }
}

TEST(LowerText, ReadsSeveralKernelsAndComments) {
  Kernel k = every_kind();
  const auto all = parse_all("; first\n" + print(k) + "; second\n" + print(k));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1], k);
  EXPECT_TRUE(parse_all("").empty());
}

std::string error_of(const std::string& body) {
  try {
    parse("kernel @k grid=1 local=1 {\n" + body + "\n}\n");
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Parse);
    return e.what();
  }
  return "no error";
}

void expect_error(const std::string& body, const std::string& part, const std::string& place) {
  const std::string error = error_of(body);
  EXPECT_NE(error.find(part), std::string::npos) << error;
  EXPECT_NE(error.find(place), std::string::npos) << error;
}

TEST(LowerText, ErrorsNameLineAndColumn) {
  expect_error("  %1 = const i64(1) : i64", "expected %0", "line 2, column 3,");
  expect_error("  barrier\n  %0 = const i64(1) : i64", "expected %1", "line 3, column 3,");
  expect_error("  %0 = frobnicate : i64", "unknown instruction `frobnicate`", "line 2, column 8,");
  expect_error("  %0 = barrier", "barrier has no value to name", "line 2, column 8,");
  expect_error("  const i64(1) : i64", "const has a value", "line 2, column 3,");
  expect_error("  %0 = const i64(1) : q64", "unknown type `q64`", "line 2, column 23,");
  expect_error("  %0 = const i64(1) : i64x0", "number of lanes", "line 2, column 23,");
  expect_error("  %0 = const i64(1) : i64xy", "number of lanes", "line 2, column 23,");
  expect_error("  %0 = const i64(1)", "expected `:`", "line 3, column 1,");
  expect_error("  %0 = define_global size=1 : ptr f32", "index=", "line 2, column 22,");
  expect_error("  %0 = alu frob %1 : f32", "AluOp", "line 2, column ");
  expect_error("  %0 = special Where bound=1 : i64", "Where", "line 2, column ");
  EXPECT_THROW(parse("kernel @k grid=[1,1,1] local=1 {}"), UserError);
  EXPECT_THROW(parse("kernel @k grid=1 local=1 {} x"), UserError);
  EXPECT_THROW(parse("kernel @k grid=1 local=1 {"), UserError);
}

}  // namespace
}  // namespace rune::lower
