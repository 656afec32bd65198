// NumPy's functions over graphs: dtypes, shapes, errors. Values are checked against NumPy in
// tests/python.
#include "graph/numpy_ops.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "graph/verify.h"

namespace rune::graph {
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
  NumpyBuilder n;
  const Operand f32 = n.input(DType::Float32, {3}), u8 = n.input(DType::Uint8, {3});
  EXPECT_EQ(n.dtype(n.ufunc("add", {f32, number(2.5)})[0]), DType::Float32);
  EXPECT_EQ(n.dtype(n.ufunc("add", {u8, number(int64_t{1})})[0]), DType::Uint8);
  EXPECT_EQ(n.dtype(n.ufunc("add", {u8, number(2.5)})[0]), DType::Float64);
  EXPECT_THROW(n.ufunc("add", {u8, number(int64_t{256})}), OverflowError);
  EXPECT_THROW(n.ufunc("add", {u8, number(int64_t{-1})}), OverflowError);
}

TEST(NumpyOps, FloatOnlyLoopsTakeTheSmallestThatHoldsEachOperand) {
  NumpyBuilder n;
  const Operand i8 = n.input(DType::Int8, {}), u8 = n.input(DType::Uint8, {}),
                i16 = n.input(DType::Int16, {});
  EXPECT_EQ(n.dtype(n.ufunc("hypot", {i8, u8})[0]), DType::Float16);
  EXPECT_EQ(n.dtype(n.ufunc("hypot", {i8, i16})[0]), DType::Float32);
  EXPECT_EQ(n.dtype(n.ufunc("divide", {i8, i8})[0]), DType::Float64);
}

TEST(NumpyOps, ArgumentsThatArePythonIntsAreGuarded) {
  NumpyBuilder n;
  const Operand x = n.input(DType::Int8, {3}), k = n.input(DType::Int64, {}, Kind::Int);
  EXPECT_EQ(n.dtype(n.ufunc("add", {x, k})[0]), DType::Int8);
  ASSERT_EQ(n.guards().size(), 1u);
  EXPECT_EQ(n.guards()[0], (ScalarGuard{ScalarGuard::Check::FitsDtype, 1, DType::Int8}));
  const Operand computed = n.python_operator("add", {k, number(int64_t{1})});
  EXPECT_EQ(computed.weak, Kind::Int);
  EXPECT_EQ(kind_of_error([&] { n.ufunc("add", {x, computed}); }), ErrorKind::Unsupported);
}

TEST(NumpyOps, ComparisonsWithNumbersOutOfRangeAreConstant) {
  NumpyBuilder n;
  const Operand x = n.input(DType::Uint8, {2});
  const Operand less = n.ufunc("less", {x, number(int64_t{300})})[0];
  n.builder().set_outputs({less.value});
  EXPECT_EQ(print(n.builder().graph()),
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
    NumpyBuilder n;
    const Operand x = n.input(DType::Float32, std::move(a)),
                  y = n.input(DType::Float32, std::move(b));
    const Shape result = n.shape(n.matmul(x, y));
    EXPECT_TRUE(verify(n.builder().graph()).empty());
    return result;
  };
  EXPECT_EQ(shape({5}, {5}), (Shape{}));
  EXPECT_EQ(shape({3, 5}, {5}), (Shape{3}));
  EXPECT_EQ(shape({2, 1, 3, 5}, {7, 5, 4}), (Shape{2, 7, 3, 4}));
  EXPECT_EQ(shape({1, 3, 5}, {2, 5, 4}), (Shape{2, 3, 4}));
  EXPECT_THROW(shape({3, 5}, {4, 5}), UserError);
}

TEST(NumpyOps, EinsumKeepsTheOrderOfTheOutput) {
  NumpyBuilder n;
  const Operand a = n.input(DType::Float32, {2, 3, 4}), b = n.input(DType::Float32, {2, 4, 5});
  EXPECT_EQ(n.shape(n.einsum("bij,bjk->kib", {a, b})), (Shape{5, 3, 2}));
  EXPECT_EQ(n.shape(n.einsum("bij,bjk", {a, b})), (Shape{3, 5}));
  EXPECT_EQ(kind_of_error([&] { n.einsum("bij->x", {a}); }), ErrorKind::Value);
  EXPECT_EQ(kind_of_error([&] { n.einsum("...j->...", {a}); }), ErrorKind::Unsupported);
}

TEST(NumpyOps, Slices) {
  NumpyBuilder n;
  const Operand x = n.input(DType::Float32, {10});
  const auto size = [&](std::optional<int64_t> start, std::optional<int64_t> stop,
                        std::optional<int64_t> step) {
    IndexItem item;
    item.kind = IndexItem::Kind::Slice;
    item.start = start, item.stop = stop, item.step = step;
    return n.shape(n.index(x, {item}));
  };
  EXPECT_EQ(size({}, {}, 3), (Shape{4}));
  EXPECT_EQ(size(8, 2, -2), (Shape{3}));
  EXPECT_EQ(size(5, 5, {}), (Shape{0}));
  EXPECT_EQ(size(-100, 100, -1), (Shape{0}));
  EXPECT_EQ(kind_of_error([&] { size({}, {}, 0); }), ErrorKind::Value);
}

TEST(NumpyOps, ErrorsHaveTheKindOfNumpys) {
  NumpyBuilder n;
  const Operand x = n.input(DType::Float32, {2, 3}), mask = n.input(DType::Bool, {2, 3});
  EXPECT_THROW(n.reduce("sum", x, Ints{2}, false), AxisError);
  EXPECT_EQ(kind_of_error([&] { n.reduce("sum", x, Ints{0, 0}, false); }), ErrorKind::Value);
  EXPECT_EQ(kind_of_error([&] { n.ufunc("subtract", {mask, mask}); }), ErrorKind::Type);
  EXPECT_EQ(kind_of_error([&] { n.ufunc("bitwise_and", {x, x}); }), ErrorKind::Type);
  EXPECT_EQ(kind_of_error([&] { n.ufunc("gcd", {x, x}); }), ErrorKind::Unsupported);
  EXPECT_EQ(kind_of_error([&] { n.reshape(x, {4, -1}); }), ErrorKind::Value);
  EXPECT_EQ(kind_of_error([&] { n.concatenate({x, n.reshape(x, {6})}, 0); }), ErrorKind::Value);
}

TEST(NumpyOps, HalfSumsAccumulateInSingle) {
  NumpyBuilder n;
  const Operand x = n.input(DType::Float16, {8});
  const Operand sum = n.reduce("sum", x, std::nullopt, false);
  EXPECT_EQ(n.dtype(sum), DType::Float16);
  bool reduces_single = false;
  for (const Node& node : n.builder().graph().nodes)
    reduces_single |= node.kind() == NodeKind::Reduce_Axis && node.dtype() == DType::Float32;
  EXPECT_TRUE(reduces_single);
}

}  // namespace
}  // namespace rune::graph
