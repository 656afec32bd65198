// The table of scalar operations: its rows are what the flags and columns say.
#include "alu/alu.h"

#include <gtest/gtest.h>

#include <set>

#include "alu/eval.h"
#include "base/error.h"

namespace rune {
namespace {

std::vector<DType> dtypes_of(const AluInfo& row) {
  std::vector<DType> dtypes;
  for (int d = 0; d < kNumDTypes; ++d)
    if (row.accepts(static_cast<DType>(d))) dtypes.push_back(static_cast<DType>(d));
  return dtypes;
}

std::vector<Scalar> samples(DType dtype) {
  std::vector<Scalar> values;
  for (const int v : {0, 1, -1, 2, 3, -5, 7, 100})
    if (v >= 0 || is_signed(dtype)) values.push_back(Scalar::of(dtype, v));
  values.push_back(Scalar::lowest(dtype));
  values.push_back(Scalar::highest(dtype));
  if (is_float(dtype)) values.push_back(Scalar::of(dtype, -0.0));
  return values;
}

TEST(AluTable, NamesAreDistinctAndReadBack) {
  std::set<std::string> names;
  for (const AluInfo& row : all_alu_ops()) {
    EXPECT_TRUE(names.insert(row.text).second) << row.text;
    EXPECT_EQ(&info(row.op), &row);
    EXPECT_FALSE(dtypes_of(row).empty()) << row.text;
    EXPECT_GT(row.cost, 0) << row.text;
    text::Lexer lexer(row.text);
    EXPECT_EQ(text::Codec<AluOp>::parse(lexer), row.op);
    for (int i = 0; i < row.arity; ++i)
      if (*row.c) {
        EXPECT_NE(std::string(row.c).find("$" + std::to_string(i)), std::string::npos) << row.text;
      }
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kNumAluOps));
}

// Every operation on every dtype that it takes gives a value of the dtype that the table says.
TEST(AluTable, EveryRowIsEvaluated) {
  for (const AluInfo& row : all_alu_ops())
    for (const DType dtype : dtypes_of(row)) {
      std::vector<DType> dtypes(row.arity, dtype);
      if (row.result == AluResult::Select) dtypes[0] = DType::Bool;
      for (const Scalar& x : samples(dtype)) {
        std::vector<Scalar> operands(row.arity, x);
        if (row.result == AluResult::Select) operands[0] = Scalar::of(DType::Bool, true);
        EXPECT_EQ(evaluate(row.op, operands).dtype(), result_dtype(row.op, dtypes)) << row.text;
      }
    }
}

TEST(AluTable, FlagsHold) {
  for (const AluInfo& row : all_alu_ops()) {
    if (row.arity != 2) {
      EXPECT_EQ(row.flags & ~alu_flags::Elementary, 0u) << row.text;
      continue;
    }
    for (const DType dtype : dtypes_of(row))
      for (const Scalar& a : samples(dtype)) {
        const auto apply = [&](const Scalar& x, const Scalar& y) {
          const Scalar operands[] = {x, y};
          return evaluate(row.op, operands);
        };
        if (row.has(alu_flags::Idempotent)) {
          EXPECT_EQ(apply(a, a), a) << row.text << ' ' << a.text();
        }
        for (const Scalar& b : samples(dtype)) {
          if (row.commutes(dtype)) {
            EXPECT_EQ(apply(a, b), apply(b, a)) << row.text << ' ' << a.text() << ' ' << b.text();
          }
          if (!row.has(alu_flags::Associative) || is_float(dtype)) continue;
          for (const Scalar& c : samples(dtype))
            EXPECT_EQ(apply(apply(a, b), c), apply(a, apply(b, c))) << row.text << name_of(dtype);
        }
      }
  }
}

TEST(AluTable, RefusesOtherOperands) {
  const auto refusal = [](AluOp op, std::vector<DType> dtypes) -> std::string {
    try {
      result_dtype(op, dtypes);
    } catch (const UserError& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Type);
      return e.what();
    }
    return "";
  };
  const DType f = DType::Float32, i = DType::Int32, b = DType::Bool;
  EXPECT_EQ(refusal(AluOp::Add, {f}), "add: cannot take 1 operands (it has 2)");
  EXPECT_EQ(refusal(AluOp::Add, {i, f}),
            "add: cannot take int32 with float32 (operand 0 must be float32)");
  EXPECT_EQ(refusal(AluOp::Sqrt, {i}), "sqrt: cannot take operands of dtype int32");
  EXPECT_EQ(refusal(AluOp::Where, {f, f, f}),
            "where: cannot take float32 with float32 (operand 0 must be bool)");
  EXPECT_EQ(refusal(AluOp::Where, {b, f, f}), "");
  EXPECT_EQ(refusal(AluOp::Add, {b, b}), "add: cannot take operands of dtype bool");
  EXPECT_EQ(result_dtype(AluOp::Cmplt, std::vector{f, f}), b);
}

TEST(AluTable, NativeOperationsFollowTheArithmetic) {
  Capabilities caps;
  caps.arithmetic.set(static_cast<int>(DType::Float32));
  set_all_native(caps);
  EXPECT_TRUE(is_native(caps, AluOp::Add, DType::Float32));
  EXPECT_FALSE(is_native(caps, AluOp::Add, DType::Float16));
  EXPECT_FALSE(is_native(caps, AluOp::And, DType::Float32));
  EXPECT_TRUE(is_native(caps, AluOp::And, DType::Bool));
  EXPECT_EQ(cost_of(caps, AluOp::Add, DType::Float32), info(AluOp::Add).cost);
  set_cost(caps, AluOp::Add, DType::Float32, 9);
  EXPECT_EQ(cost_of(caps, AluOp::Add, DType::Float32), 9);
  EXPECT_EQ(cost_of(caps, AluOp::Add, DType::Float64), info(AluOp::Add).cost);
}

}  // namespace
}  // namespace rune
