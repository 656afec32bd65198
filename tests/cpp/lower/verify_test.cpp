#include "lower/verify.h"

#include <gtest/gtest.h>

#include "lower/builder.h"
#include "lower/text.h"

namespace rune::lower {
namespace {

std::vector<std::string> violations(const std::string& body,
                                    const std::string& launch = "grid=4 local=8") {
  return verify(parse("kernel @k " + launch + " {\n" + body + "\n}\n"));
}

// The body violates exactly one rule, and the message has both parts.
void expect_one(const std::string& body, const std::string& instr, const std::string& rule) {
  const std::vector<std::string> found = violations(body);
  ASSERT_EQ(found.size(), 1u) << body << "\n" << testing::PrintToString(found);
  EXPECT_NE(found[0].find("`" + instr), std::string::npos) << found[0];
  EXPECT_NE(found[0].find(rule), std::string::npos) << found[0];
}

const char* const kPrefix =
    "%0 = define_global index=0 size=64 writable=true : ptr f32\n"
    "%1 = const i64(3) : i64\n"
    "%2 = const f32(1.0) : f32x4\n"
    "%3 = const bool(true) : bool\n";

void expect_after_prefix(const std::string& rest, const std::string& instr,
                         const std::string& rule) {
  expect_one(kPrefix + rest, instr, rule);
}

TEST(Verify, AcceptsAValidKernel) {
  EXPECT_EQ(
      violations(std::string(kPrefix) + "%4 = load %0 %1 : f32x4\n%5 = alu add %4 %2 : f32x4\n"
                                        "store nontemporal=false %0 %1 %5 %3"),
      std::vector<std::string>{});
}

TEST(Verify, Dominance) {
  expect_one("%0 = alu neg %1 : f32\n%1 = const f32(1.0) : f32", "%0 = alu neg",
             "not defined before");
  expect_one("%0 = alu neg %7 : f32", "%0 = alu neg", "%7 is not defined before");
  expect_one("%0 = alu neg %0 : f32", "%0 = alu neg", "%0 is not defined before");
  expect_after_prefix("%4 = range %1 : i64\n%5 = alu neg %4 : i64\nendrange\n%7 = alu neg %5 : i64",
                      "%7 = alu neg", "%5 is defined inside a Range or If that has ended");
  expect_after_prefix("%4 = range %1 : i64\nendrange\n%6 = alu neg %4 : i64", "%6 = alu neg",
                      "%4 is defined inside");
  expect_after_prefix("if %3\n%5 = alu neg %1 : i64\nendif\nif %3\n%8 = alu neg %5 : i64\nendif",
                      "%8 = alu neg", "%5 is defined inside");
  expect_after_prefix("barrier\n%5 = alu neg %4 : i64", "%5 = alu neg", "%4 has no value");
}

TEST(Verify, Nesting) {
  expect_after_prefix("%4 = range %1 : i64", "%4 = range", "is not closed");
  expect_after_prefix("if %3", "if %3", "is not closed");
  expect_after_prefix("endrange", "endrange", "closes nothing");
  expect_after_prefix("endif", "endif", "closes nothing");
  expect_after_prefix("if %3\nendrange", "endrange", "not a Range");
  expect_after_prefix("%4 = unroll iterations=2 : i64\nendif", "endif", "not an If");
  const auto crossed =
      violations(std::string(kPrefix) + "if %3\n%5 = range %1 : i64\nendif\nendrange");
  EXPECT_EQ(crossed.size(), 2u) << testing::PrintToString(crossed);
}

TEST(Verify, Breaks) {
  expect_after_prefix("break %3", "break %3", "does not stand in a Range");
  expect_after_prefix("%4 = range %1 : i64\nif %3\nbreak %3\nendif\nendrange", "break %3",
                      "does not stand in a Range");
  expect_after_prefix("%4 = range %1 : i64\nbreak %4\nendrange", "break %4",
                      "the condition is i64, not bool");
  // Threads that leave a loop do not reach what the others do together.
  expect_one(
      "%0 = special Local_thread_idx bound=8 : i64\n%1 = const i64(3) : i64\n"
      "%2 = range %1 : i64\nbarrier\n%4 = alu cmpeq %0 %2 : bool\nbreak %4\nendrange",
      "barrier", "depends on the thread");
}

TEST(Verify, NumberOfOperands) {
  expect_after_prefix("%4 = alu add %1 : i64", "%4 = alu add", "has 1 operands, not 2");
  expect_after_prefix("%4 = load %0 : f32", "%4 = load", "has 1 operands, not 2 to 3");
  expect_after_prefix("%4 = shuffle indices=[0] : f32", "%4 = shuffle",
                      "has 0 operands, not 1 to more");
  expect_after_prefix("barrier %1", "barrier", "has 1 operands, not 0");
  expect_after_prefix("if %3\nendif %1", "endif", "has 1 operands, not 0");
}

TEST(Verify, TypesOfMemory) {
  expect_one("%0 = define_global index=0 size=64 writable=true : f32", "%0", "is a pointer");
  expect_one("%0 = local size=-1 : ptr f32", "%0", "has size -1");
  expect_one("%0 = local size=1 : ptr f32x2", "%0", "has 2 lanes");
  expect_after_prefix("if %3\n%5 = local size=4 : ptr f32\nendif", "%5 = local",
                      "defined inside a Range or If");
}

TEST(Verify, Prefetches) {
  expect_after_prefix("prefetch %2 %1", "prefetch %2", "needs memory first");
  expect_after_prefix("prefetch %0 %3", "prefetch %0", "needs an integer index");
}

TEST(Verify, TypesOfLeaves) {
  expect_one("%0 = const i64(1) : f32", "%0 = const", "has type f32, not i64");
  expect_one("%0 = vconst [i64(1),i64(2)] : i64", "%0", "has type i64, not i64x2");
  expect_one("%0 = vconst [i64(1),i32(2)] : i64x2", "%0", "several dtypes");
  expect_one("%0 = vconst [] : i64", "%0", "has no values");
  expect_one("%0 = special Workgroup_idx bound=4 : f32", "%0", "no scalar integer");
  expect_one("%0 = special Workgroup_idx bound=3 : i32", "%0", "bound 3, but the launch has 4");
  expect_one("%0 = special Local_thread_idx bound=7 : i32", "%0", "the launch has 8");
  expect_one("%0 = special Global_task_idx bound=31 : i32", "%0", "the launch has 32");
  expect_one("%0 = define_var {name=\"n\" min=1 max=4} : i64x2", "%0", "no scalar integer");
  expect_one("%0 = define_var {name=\"n\" min=5 max=4} : i64", "%0", "bounds 5 to 4");
  expect_one(
      "%0 = define_var {name=\"n\" min=1 max=4} : i64\n"
      "%1 = define_var {name=\"n\" min=1 max=5} : i64",
      "%1", "other bounds");
}

TEST(Verify, TypesOfControl) {
  expect_after_prefix("%4 = range %3 : bool\nendrange", "%4 = range", "no scalar integer");
  expect_after_prefix("%4 = range %1 : i32\nendrange", "%4 = range", "has type i32, not i64");
  expect_after_prefix("if %1\nendif", "if %1", "is i64, not bool");
  expect_after_prefix("%4 = unroll iterations=-1 : i64\nendrange", "%4", "has -1 iterations");
}

TEST(Verify, TypesOfAccesses) {
  expect_after_prefix("%4 = load %2 %1 : f32", "%4 = load", "%2 is not memory");
  expect_after_prefix("%4 = load %0 %1 : f64", "%4 = load", "moves f64 but the memory holds f32");
  expect_after_prefix("%4 = load %0 %2 : f32x4", "%4 = load", "no integer");
  expect_after_prefix("%4 = splat %1 : i64x2\n%5 = load %0 %4 : f32x4", "%5 = load",
                      "2 indices for 4 lanes");
  expect_after_prefix("%4 = load %0 %1 %1 : f32", "%4 = load", "the mask is i64");
  expect_after_prefix("%4 = splat %3 : boolx2\n%5 = load %0 %1 %4 : f32x4", "%5 = load",
                      "2 masks for 4 lanes");
  expect_after_prefix("store nontemporal=false %0 %1 %1", "store", "moves i64");
  expect_one(
      "%0 = define_global index=0 size=4 writable=false : ptr i64\n%1 = const i64(0) : i64\n"
      "store nontemporal=false %0 %1 %1",
      "store", "%0 is read-only");
}

TEST(Verify, TypesOfValues) {
  expect_after_prefix("%4 = alu add %1 %1 : i32", "%4", "has type i32, not i64");
  expect_after_prefix("%4 = alu add %1 %2 : i64", "%4", "operands of 1 and 4 lanes");
  expect_after_prefix("%4 = alu exp %1 : i64", "%4", "int64");
  expect_after_prefix("%4 = alu neg %0 : f32", "%4", "%0 is memory");
  expect_after_prefix("%4 = alu neg %1 %1 : i64", "%4", "has 2 operands, not 1");
  expect_after_prefix("%4 = shuffle indices=[4] %2 : f32", "%4", "lane 4 of 4");
  expect_after_prefix("%4 = shuffle indices=[1,2] %2 : f32", "%4", "has type f32, not f32x2");
  expect_after_prefix("%4 = shuffle indices=[3,8] %2 %2 : f32x2", "%4", "takes lane 8 of 8");
  expect_after_prefix("%4 = shuffle indices=[0] %2 %1 : f32", "%4", "takes lanes of f32x4 and i64");
  expect_after_prefix("%4 = splat %1 : i32x3", "%4", "has type i32x3, not i64x3");
  expect_after_prefix("%4 = splat %2 : f32x8", "%4", "%2 is f32x4, not a scalar");
  expect_after_prefix("%4 = cast %1 : i32x2", "%4", "has type i32x2, not i32");
  expect_after_prefix("%4 = bitcast %1 : f32", "%4", "cannot give the bits of i64 as f32");
  expect_after_prefix("%4 = acc %1 : i32", "%4", "has type i32, not i64");
  expect_after_prefix("assign %1 %1", "assign", "%1 is no Acc");
  expect_after_prefix("%4 = acc %1 : i64\nassign %4 %2", "assign", "gives f32x4 to an Acc of i64");
}

TEST(Verify, GlobalsAreNumbered) {
  expect_one("%0 = define_global index=1 size=4 writable=false : ptr i64", "%0", "global number 0");
  expect_one(
      "%0 = define_global index=0 size=4 writable=false : ptr i64\n"
      "%1 = define_global index=0 size=4 writable=false : ptr i64",
      "%1", "global number 1");
}

TEST(Verify, ConstantIndices) {
  const std::string at64 = "%4 = const i64(64) : i64\n";
  expect_after_prefix(at64 + "%5 = load %0 %4 : f32", "%5 = load", "element 64 of 64");
  expect_after_prefix("%4 = const i64(61) : i64\nstore nontemporal=false %0 %4 %2", "store",
                      "element 64 of 64");
  expect_after_prefix("%4 = const i32(-1) : i32\n%5 = load %0 %4 : f32", "%5", "element -1 of 64");
  expect_after_prefix("%4 = vconst [i64(0),i64(64)] : i64x2\n%5 = load %0 %4 : f32x2", "%5",
                      "element 64 of 64");
  EXPECT_TRUE(violations(kPrefix + at64 + "%5 = load %0 %4 %3 : f32").empty()) << "masked";
  EXPECT_TRUE(violations(kPrefix + at64 + "if %3\n%6 = load %0 %4 : f32\nendif").empty());
}

const char* const kThread =
    "%0 = special Local_thread_idx bound=8 : i64\n"
    "%1 = special Workgroup_idx bound=4 : i64\n"
    "%2 = const i64(3) : i64\n"
    "%3 = define_global index=0 size=64 writable=false : ptr i64\n";

TEST(Verify, SimdReduce) {
  const auto expect_bad = [](const std::string& rest, const char* message) {
    expect_one(kThread + rest,
               rest.starts_with("%4 = alu") ? "%6 = simd_reduce" : "%4 = simd_reduce", message);
  };
  EXPECT_EQ(
      violations(std::string(kThread) + "%4 = simd_reduce add width=4 %0 : i64", "grid=4 local=8"),
      std::vector<std::string>{});
  expect_bad("%4 = simd_reduce add width=3 %0 : i64", "groups of 3 threads in a workgroup of 8");
  expect_bad("%4 = simd_reduce neg width=4 %0 : i64", "cannot combine i64 by neg");
  expect_bad("%4 = simd_reduce cmplt width=4 %0 : i64", "cannot combine i64 by cmplt");
  expect_bad("%4 = alu cmplt %0 %2 : bool\nif %4\n%6 = simd_reduce add width=4 %2 : i64\nendif",
             "depends on the thread");
}

TEST(Verify, SimdShuffle) {
  const auto expect_bad = [](const std::string& rest, const char* number, const char* message) {
    expect_one(kThread + rest, std::string(number) + " = simd_shuffle", message);
  };
  EXPECT_EQ(
      violations(std::string(kThread) + "%4 = simd_shuffle width=4 %0 %2 : i64", "grid=4 local=8"),
      std::vector<std::string>{});
  expect_bad("%4 = simd_shuffle width=3 %0 %2 : i64", "%4",
             "groups of 3 threads in a workgroup of 8");
  expect_bad("%4 = const f32(1.0) : f32\n%5 = simd_shuffle width=4 %0 %4 : i64", "%5",
             "the lane is no scalar integer");
  expect_bad("%4 = alu cmplt %0 %2 : bool\nif %4\n%6 = simd_shuffle width=4 %2 %2 : i64\nendif",
             "%6", "depends on the thread");
}

TEST(Verify, AtomicStores) {
  const std::string memory = "%4 = define_global index=1 size=64 writable=true : ptr i64\n";
  const auto bad = [&](const std::string& store, const char* message) {
    expect_one(kThread + memory + store, "store", message);
  };
  EXPECT_TRUE(
      violations(kThread + memory + "store nontemporal=false atomic=max %4 %0 %2", "grid=4 local=8")
          .empty());
  bad("store nontemporal=false atomic=cmplt %4 %0 %2", "cannot combine i64 by cmplt");
  bad("store nontemporal=true atomic=add %4 %0 %2", "is atomic and past the caches");
  bad("store nontemporal=false atomic=add %3 %0 %2", "%3 is read-only");
}

TEST(Verify, WmmaOfSpreadTiles) {
  const auto wmma = [](const char* spread) {
    return std::string(kThread) +
           "%4 = shuffle indices=[0,1] %0 %2 : i64x2\n%5 = wmma m=4 n=4 k=4 spread=" + spread +
           " %4 %4 %4 : i64x2";
  };
  const char* const kGood = "[[1,2,4,8],[8,1,2,4],[4,8,1,2]]";
  EXPECT_EQ(violations(wmma(kGood), "grid=4 local=8"), std::vector<std::string>{});
  expect_one(std::string(kThread) + "%4 = wmma m=4 n=4 k=4 spread=" + kGood + " %0 %0 %0 : i64",
             "%4", "groups of 16 threads in a workgroup of 8");
  expect_one(wmma("[[1,2,4,8],[8,1,2,4]]"), "%5", "spreads 2 tiles, not 3");
  expect_one(wmma("[[1,2,4,8],[8,1,2],[4,8,1,2]]"), "%5", "tile 1 of 16 elements by 3 strides");
  expect_one(wmma("[[1,2,4,8],[8,1,2,4],[4,8,1,1]]"), "%5", "all elements of tile 2");
}

TEST(Verify, BarrierUnderThreadDependentControl) {
  const auto expect_bad = [](const std::string& rest) {
    expect_one(kThread + rest, "barrier", "depends on the thread");
  };
  const auto expect_good = [](const std::string& rest, const char* launch) {
    EXPECT_EQ(violations(kThread + rest, launch), std::vector<std::string>{}) << rest;
  };
  const char* const launch = "grid=4 local=8";
  const std::string by_thread = "%4 = alu cmplt %0 %2 : bool\nif %4\nbarrier\nendif";
  const std::string by_group = "%4 = alu cmplt %1 %2 : bool\nif %4\nbarrier\nendif";
  expect_bad(by_thread);
  expect_good(by_group, launch);
  expect_good(by_thread, "grid=4 local=1");
  expect_bad("%4 = range %0 : i64\nbarrier\nendrange");
  expect_good("%4 = range %1 : i64\nbarrier\nendrange", launch);
  expect_bad("%4 = load %3 %0 : i64\n%5 = range %4 : i64\nbarrier\nendrange");
  expect_good("%4 = load %3 %1 : i64\n%5 = range %4 : i64\nbarrier\nendrange", launch);
  expect_bad("%4 = alu cmplt %0 %2 : bool\nif %4\n%6 = range %2 : i64\nbarrier\nendrange\nendif");
  // Through an Acc that a later iteration makes thread-dependent.
  expect_bad(
      "%4 = acc %2 : i64\n%5 = range %2 : i64\n%6 = range %4 : i64\nbarrier\nendrange\n"
      "assign %4 %0\nendrange");
  // Through an Acc that only some threads assign.
  expect_bad(
      "%4 = acc %2 : i64\n%5 = alu cmplt %0 %2 : bool\nif %5\nassign %4 %1\nendif\n"
      "%9 = range %4 : i64\nbarrier\nendrange");
  expect_good(
      "%4 = acc %2 : i64\n%5 = range %2 : i64\nassign %4 %5\nbarrier\nendrange\n"
      "%9 = range %4 : i64\nbarrier\nendrange",
      launch);
}

TEST(Verify, Launch) {
  EXPECT_EQ(violations("barrier", "grid=0 local=1").size(), 1u);
  EXPECT_EQ(violations("barrier", "grid=1 local=-1").size(), 1u);
}

TEST(Verify, ReportsAllAtOnce) {
  const auto found = violations(std::string(kThread) +
                                "%4 = alu exp %0 : i64\n"  // dtype
                                "%5 = const i64(64) : i64\n"
                                "%6 = load %3 %5 : i64\n"  // bounds
                                "%7 = alu cmplt %0 %2 : bool\n"
                                "if %7\nbarrier\nendif\n"             // divergence
                                "store nontemporal=false %3 %0 %0");  // read-only
  EXPECT_EQ(found.size(), 4u) << testing::PrintToString(found);
}

}  // namespace
}  // namespace rune::lower
