// Decompositions that must agree with alu/eval.h to the bit, and the passes' form.
#include "decompose_fixture.h"

namespace rune::lower {
namespace {

void expect_exact(AluOp op, DType dtype, int lanes,
                  const std::vector<std::vector<Scalar>>& operands,
                  const Scalar* constant = nullptr) {
  const std::vector<Scalar> results =
      decomposed(op, dtype, basic_target(), lanes, operands, constant);
  ASSERT_EQ(results.size(), operands[0].size());
  int failures = 0;
  for (size_t i = 0; i < results.size() && failures < 5; ++i) {
    std::vector<Scalar> tuple;
    for (const auto& values : operands) tuple.push_back(values[i]);
    if (constant) tuple.push_back(*constant);
    const Scalar expected = evaluate(op, tuple);
    if (same_value(results[i], expected)) continue;
    ++failures;
    std::string text;
    for (const Scalar& s : tuple) text += ' ' + s.text();
    ADD_FAILURE() << name_of(op) << ' ' << name_of(dtype) << " x" << lanes << ':' << text
                  << " gives " << results[i].text() << ", not " << expected.text();
  }
}

std::vector<DType> integer_dtypes() {
  return {DType::Int8,  DType::Int16,  DType::Int32,  DType::Int64,
          DType::Uint8, DType::Uint16, DType::Uint32, DType::Uint64};
}

constexpr AluOp kIntegerBinary[] = {AluOp::Div, AluOp::Idiv, AluOp::Mod, AluOp::Fmod,
                                    AluOp::Shl, AluOp::Shr,  AluOp::Pow};

TEST(DecomposeInteger, BinaryOperationsMatchTheEvaluator) {
  for (const DType dtype : integer_dtypes())
    for (const AluOp op : kIntegerBinary)
      for (const int lanes : {1, 8})
        expect_exact(op, dtype, lanes, pairs_of(special_values(dtype)));
}

TEST(DecomposeInteger, ConstantsMatchTheEvaluator) {
  for (const DType dtype : integer_dtypes())
    for (const AluOp op :
         {AluOp::Div, AluOp::Idiv, AluOp::Mod, AluOp::Fmod, AluOp::Shl, AluOp::Shr, AluOp::Pow})
      for (const int c : {0, 1, -1, 2, 3, 8, -4, 13, 64})
        for (const int lanes : {1, 4}) {
          const Scalar constant = Scalar::of(dtype, c);
          expect_exact(op, dtype, lanes, {special_values(dtype)}, &constant);
        }
}

TEST(DecomposeInteger, QuotientsByFloatDivisionAreExact) {
  std::mt19937_64 random(7);
  for (const DType dtype : {DType::Int16, DType::Uint16, DType::Int32, DType::Uint32}) {
    std::vector<std::vector<Scalar>> operands(2);
    // Dividends next to multiples of the divisor, where a quotient off by an ulp would show.
    for (int i = 0; i < 600; ++i) {
      const Scalar b = Scalar::of(dtype, static_cast<int64_t>(random() >> (33 + random() % 31)));
      const Scalar q = Scalar::of(dtype, static_cast<int64_t>(random() >> (33 + random() % 31)));
      for (const int offset : {-1, 0, 1}) {
        operands[0].push_back(Scalar::of(dtype, b.as_int64() * q.as_int64() + offset));
        operands[1].push_back(b);
      }
    }
    for (const AluOp op : {AluOp::Div, AluOp::Idiv, AluOp::Mod, AluOp::Fmod})
      expect_exact(op, dtype, 8, operands);
  }
}

TEST(DecomposeFloat, RemaindersMatchTheEvaluator) {
  for (const DType dtype : {DType::Float32, DType::Float64})
    for (const AluOp op : {AluOp::Mod, AluOp::Idiv})
      expect_exact(op, dtype, 8, pairs_of(special_values(dtype)));
}

TEST(DecomposeFloat, RemaindersOfRandomNumbersMatchTheEvaluator) {
  std::mt19937 random(3);
  std::vector<std::vector<Scalar>> operands(2);
  for (int i = 0; i < 1000; ++i)
    for (auto& values : operands) values.push_back(Scalar::from_bits(DType::Float32, random()));
  for (const AluOp op : {AluOp::Mod, AluOp::Idiv}) expect_exact(op, DType::Float32, 4, operands);
}

TEST(Widen, NarrowFloatsAreComputedInFloat32) {
  for (const DType dtype : {DType::Float16, DType::Bfloat16}) {
    for (const AluOp op :
         {AluOp::Add, AluOp::Mul, AluOp::Fdiv, AluOp::Max, AluOp::Cmplt, AluOp::Mod})
      expect_exact(op, dtype, 4, pairs_of(special_values(dtype)));
    for (const AluOp op : {AluOp::Neg, AluOp::Isnan, AluOp::Sqrt, AluOp::Floor})
      expect_exact(op, dtype, 4, {special_values(dtype)});
  }
}

TEST(Widen, KeepsLoadsStoresAndWhere) {
  Kernel kernel = parse(R"(kernel @k grid=1 local=1 {
  %0 = define_global index=0 size=4 writable=true : ptr f16
  %1 = const i64(0) : i64
  %2 = load %0 %1 : f16x4
  %3 = alu add %2 %2 : f16x4
  %4 = alu cmplt %2 %3 : boolx4
  %5 = alu where %4 %3 %2 : f16x4
  store nontemporal=false %0 %1 %5
})");
  EXPECT_EQ(print(decompose(widen_narrow_floats(kernel, basic_target()), basic_target())),
            print(parse(R"(kernel @k grid=1 local=1 {
  %0 = define_global index=0 size=4 writable=true : ptr f16
  %1 = const i64(0) : i64
  %2 = load %0 %1 : f16x4
  %3 = cast %2 : f32x4
  %4 = cast %2 : f32x4
  %5 = alu add %3 %4 : f32x4
  %6 = cast %5 : f16x4
  %7 = cast %2 : f32x4
  %8 = cast %6 : f32x4
  %9 = alu cmplt %7 %8 : boolx4
  %10 = alu where %9 %6 %2 : f16x4
  store nontemporal=false %0 %1 %10
})")));
}

TEST(Decompose, LeavesNativeOperationsAlone) {
  Capabilities caps = basic_target();
  set_all_native(caps);
  const Kernel kernel = kernel_of(AluOp::Exp, DType::Float32, 8, 4);
  EXPECT_EQ(decompose(kernel, caps), kernel);
  const Kernel less = decompose(kernel, basic_target());
  EXPECT_EQ(print(less).find("alu exp"), std::string::npos);
}

// Raw divisions and shifts have operands with which no machine traps.
TEST(Decompose, RawDivisorsAreSafe) {
  for (const AluOp op : {AluOp::Div, AluOp::Idiv, AluOp::Mod, AluOp::Fmod}) {
    const Kernel kernel = decompose(kernel_of(op, DType::Int64, 8, 1), basic_target());
    int raw = 0;
    for (const Instr& instr : kernel.body) {
      const Alu* alu = instr.as<Alu>();
      if (!alu || (alu->op != AluOp::Div && alu->op != AluOp::Fmod)) continue;
      ++raw;
      const Instr& divisor = kernel[instr.args[1]];
      ASSERT_TRUE(divisor.as<Alu>() && divisor.as<Alu>()->op == AluOp::Where) << print(kernel);
      EXPECT_EQ(kernel[divisor.args[1]].as<Const>()->value, i64(1));
    }
    EXPECT_EQ(raw, 1) << print(kernel);
  }
}

TEST(Decompose, ConstantPowersOfTwoNeedNoDivision) {
  const Scalar eight = i64(8);
  for (const AluOp op : {AluOp::Idiv, AluOp::Mod}) {
    const Kernel kernel = kernel_of(op, DType::Int64, 8, 1, &eight);
    EXPECT_LE(decompose(kernel, basic_target()).body.size(), kernel.body.size() + 1);
  }
}

TEST(Decompose, NamesWhatItCannotDo) {
  const auto message = [](AluOp op, DType dtype, const Capabilities& caps) -> std::string {
    try {
      decompose(kernel_of(op, dtype, 8, 1), caps);
    } catch (const UserError& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Unsupported);
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(
      message(AluOp::Erf, DType::Float64, basic_target()),
      "erf: cannot lower float64 to basic (the operation is not native and has no decomposition)");
}

}  // namespace
}  // namespace rune::lower
