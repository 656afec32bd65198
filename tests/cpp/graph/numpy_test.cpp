// NumPy's functions over graphs: dtypes, shapes, errors. Values are checked against NumPy in
// tests/python.
#include "graph/numpy/ufuncs.h"

#include <gtest/gtest.h>

#include "graph/numpy/indexing.h"
#include "graph/numpy/movement.h"
#include "graph/numpy/reductions.h"
#include "graph/text.h"
#include "graph/verify.h"

namespace rune::graph::numpy {
namespace {

Operand number(int64_t v) {
  return Literal::of(v);
}
Operand number(double v) {
  return Literal::of(v);
}

ErrorKind kind_of_error(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::Runtime;
}

TEST(NumpyOps, PythonScalarsAreWeak) {
  TracedGraph t;
  const Operand f32 = input(t, DType::Float32, {3}), u8 = input(t, DType::Uint8, {3});
  EXPECT_EQ(dtype_of(t, ufunc(t, "add", {f32, number(2.5)})[0]), DType::Float32);
  EXPECT_EQ(dtype_of(t, ufunc(t, "add", {u8, number(int64_t{1})})[0]), DType::Uint8);
  EXPECT_EQ(dtype_of(t, ufunc(t, "add", {u8, number(2.5)})[0]), DType::Float64);
  EXPECT_THROW(ufunc(t, "add", {u8, number(int64_t{256})}), OverflowError);
  EXPECT_THROW(ufunc(t, "add", {u8, number(int64_t{-1})}), OverflowError);
}

TEST(NumpyOps, FloatOnlyLoopsTakeTheSmallestThatHoldsEachOperand) {
  TracedGraph t;
  const Operand i8 = input(t, DType::Int8, {}), u8 = input(t, DType::Uint8, {}),
                i16 = input(t, DType::Int16, {});
  EXPECT_EQ(dtype_of(t, ufunc(t, "hypot", {i8, u8})[0]), DType::Float16);
  EXPECT_EQ(dtype_of(t, ufunc(t, "hypot", {i8, i16})[0]), DType::Float32);
  EXPECT_EQ(dtype_of(t, ufunc(t, "divide", {i8, i8})[0]), DType::Float64);
}

TEST(NumpyOps, ArgumentsThatArePythonIntsAreGuarded) {
  TracedGraph t;
  const Operand x = input(t, DType::Int8, {3}), k = input(t, DType::Int64, {}, Kind::Int);
  EXPECT_EQ(dtype_of(t, ufunc(t, "add", {x, k})[0]), DType::Int8);
  ASSERT_EQ(t.guards.size(), 1u);
  EXPECT_EQ(t.guards[0], (ScalarGuard{ScalarGuard::Check::FitsDtype, 1, DType::Int8}));
  const Operand computed = python_operator(t, "add", {k, number(int64_t{1})});
  EXPECT_EQ(computed.weak, Kind::Int);
  // The program checks numbers that it computes.
  ASSERT_TRUE(t.checks.empty());
  const size_t num_guards = t.guards.size();
  EXPECT_EQ(dtype_of(t, ufunc(t, "add", {x, computed})[0]), DType::Int8);
  EXPECT_EQ(t.guards.size(), num_guards);
  ASSERT_EQ(t.checks.size(), 1u);
  EXPECT_EQ(dtype_of(t, {t.checks[0].value}), DType::Uint64);
}

TEST(NumpyOps, ComparisonsWithNumbersOutOfRangeAreConstant) {
  TracedGraph t;
  const Operand x = input(t, DType::Uint8, {2});
  const Operand less = ufunc(t, "less", {x, number(int64_t{300})})[0];
  t.set_outputs({less.value});
  EXPECT_EQ(print(t.graph()),
            "graph {\n"
            "  %0 = placeholder index=0 : u8[2]\n"
            "  %1 = const_scalar bool(true) : bool[]\n"
            "  %2 = reshape shape=[1] %1 : bool[1]\n"
            "  %3 = expand shape=[2] %2 : bool[2]\n"
            "  return %3\n"
            "}\n");
}

TEST(NumpyOps, MatmulShapes) {
  const auto shape = [](Shape a, Shape b) {
    TracedGraph t;
    const Operand x = input(t, DType::Float32, std::move(a)),
                  y = input(t, DType::Float32, std::move(b));
    const Shape result = shape_of(t, matmul(t, x, y));
    EXPECT_TRUE(verify(t.graph()).empty());
    return result;
  };
  EXPECT_EQ(shape({5}, {5}), (Shape{}));
  EXPECT_EQ(shape({3, 5}, {5}), (Shape{3}));
  EXPECT_EQ(shape({2, 1, 3, 5}, {7, 5, 4}), (Shape{2, 7, 3, 4}));
  EXPECT_EQ(shape({1, 3, 5}, {2, 5, 4}), (Shape{2, 3, 4}));
  EXPECT_THROW(shape({3, 5}, {4, 5}), UserError);
}

TEST(NumpyOps, ContractionsKeepTheOrderOfTheOutput) {
  TracedGraph t;
  const Operand a = input(t, DType::Float32, {2, 3, 4}), b = input(t, DType::Float32, {2, 4, 5}),
                ones = input(t, DType::Float32, {1, 4, 5}), c = input(t, DType::Float32, {2, 3, 5});
  EXPECT_EQ(shape_of(t, contract(t, "einsum", a, "bij", b, "bjk", "kib")), (Shape{5, 3, 2}));
  EXPECT_EQ(shape_of(t, contract(t, "einsum", a, "bij", ones, "bjk", "bk")), (Shape{2, 5}));
  EXPECT_EQ(kind_of_error([&] { contract(t, "einsum", a, "bij", c, "bjk", "ik"); }),
            ErrorKind::Value);
}

TEST(NumpyOps, Slices) {
  TracedGraph t;
  const Operand x = input(t, DType::Float32, {10});
  const auto size = [&](std::optional<int64_t> start, std::optional<int64_t> stop,
                        std::optional<int64_t> step) {
    IndexItem item;
    item.kind = IndexItem::Kind::Slice;
    item.start = start, item.stop = stop, item.step = step;
    return shape_of(t, index(t, x, {item}));
  };
  EXPECT_EQ(size({}, {}, 3), (Shape{4}));
  EXPECT_EQ(size(8, 2, -2), (Shape{3}));
  EXPECT_EQ(size(5, 5, {}), (Shape{0}));
  EXPECT_EQ(size(-100, 100, -1), (Shape{0}));
  EXPECT_EQ(kind_of_error([&] { size({}, {}, 0); }), ErrorKind::Value);
}

TEST(NumpyOps, ErrorsHaveTheKindOfNumpys) {
  TracedGraph t;
  const Operand x = input(t, DType::Float32, {2, 3}), mask = input(t, DType::Bool, {2, 3});
  EXPECT_THROW(reduce(t, "sum", x, Ints{2}, false), AxisError);
  EXPECT_EQ(kind_of_error([&] { reduce(t, "sum", x, Ints{0, 0}, false); }), ErrorKind::Value);
  EXPECT_EQ(kind_of_error([&] { ufunc(t, "subtract", {mask, mask}); }), ErrorKind::Type);
  EXPECT_EQ(kind_of_error([&] { ufunc(t, "bitwise_and", {x, x}); }), ErrorKind::Type);
  EXPECT_EQ(kind_of_error([&] { ufunc(t, "gcd", {x, x}); }), ErrorKind::Unsupported);
  EXPECT_EQ(kind_of_error([&] { reshape(t, x, {4, -1}); }), ErrorKind::Value);
  EXPECT_EQ(kind_of_error([&] { concatenate(t, {x, reshape(t, x, {6})}, 0); }), ErrorKind::Value);
}

TEST(NumpyOps, HalfSumsAccumulateInSingle) {
  TracedGraph t;
  const Operand x = input(t, DType::Float16, {8});
  const Operand sum = reduce(t, "sum", x, std::nullopt, false);
  EXPECT_EQ(dtype_of(t, sum), DType::Float16);
  bool reduces_single = false;
  for (const Node& node : t.graph().nodes)
    reduces_single |= node.kind() == NodeKind::Reduce_Axis && node.dtype() == DType::Float32;
  EXPECT_TRUE(reduces_single);
}

}  // namespace
}  // namespace rune::graph::numpy
