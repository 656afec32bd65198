#include "alu/eval.h"

#include <array>
#include <utility>

#include "alu/arithmetic.h"
#include "base/error.h"
#include "types/word.h"

namespace rune {

namespace {

// An operation's row of alu.def, with the expression as a function.
template <AluOp kOp>
struct Definition;
#define RUNE_ALU(Name, text, arity, operands, result, flags, cost, numpy, spelling, evaluate, ...) \
  template <>                                                                                      \
  struct Definition<AluOp::Name> {                                                                 \
    static constexpr int kArity = arity;                                                           \
    static constexpr std::string_view kOperands = operands;                                        \
    static constexpr AluResult kResult = AluResult::result;                                        \
    template <class T, class W>                                                                    \
    static auto of([[maybe_unused]] W a, [[maybe_unused]] W b, [[maybe_unused]] W c) {             \
      using namespace arithmetic;                                                                  \
      return evaluate;                                                                             \
    }                                                                                              \
  };
#include "alu/alu.def"
#undef RUNE_ALU

template <DType kDType>
constexpr char kKindLetter = std::is_floating_point_v<Wide<kDType>> ? 'f'
                             : kDType == DType::Bool                ? 'b'
                                                                    : 'i';

template <AluOp kOp, DType kDType>
void compute(uint64_t* dst, const uint64_t* a, [[maybe_unused]] const uint64_t* b,
             [[maybe_unused]] const uint64_t* c, uint32_t count) {
  using Row = Definition<kOp>;
  if constexpr (Row::kResult == AluResult::Select) {
    for (uint32_t i = 0; i < count; ++i) dst[i] = Row::template of<uint64_t>(a[i], b[i], c[i]);
  } else {
    for (uint32_t i = 0; i < count; ++i) {
      Wide<kDType> y{}, z{};
      if constexpr (Row::kArity > 1) y = read<kDType>(b[i]);
      if constexpr (Row::kArity > 2) z = read<kDType>(c[i]);
      const auto value =
          Row::template of<typename Represented<kDType>::T>(read<kDType>(a[i]), y, z);
      if constexpr (Row::kResult == AluResult::Bool)
        dst[i] = value;
      else
        dst[i] = word_of<kDType>(value);
    }
  }
}

template <DType kFrom, DType kTo>
void convert(uint64_t* dst, const uint64_t* a, const uint64_t*, const uint64_t*, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) dst[i] = word_of<kTo>(read<kFrom>(a[i]));
}

template <DType kTo>
void take_bits(uint64_t* dst, const uint64_t* a, const uint64_t*, const uint64_t*, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) dst[i] = word_from_bits<kTo>(a[i]);
}

// A constant table of the results of `f` for all dtypes.
template <class F, size_t... kDTypes>
constexpr auto by_dtype(F f, std::index_sequence<kDTypes...>) {
  return std::array{f(std::integral_constant<DType, static_cast<DType>(kDTypes)>())...};
}
template <class F>
constexpr auto by_dtype(F f) {
  return by_dtype(f, std::make_index_sequence<kNumDTypes>());
}

template <AluOp kOp>
constexpr auto functions_of() {
  return by_dtype([](auto dtype) -> WordFunction {
    if constexpr (Definition<kOp>::kOperands.find(kKindLetter<dtype()>) != std::string_view::npos)
      return compute<kOp, dtype()>;
    else
      return nullptr;
  });
}

}  // namespace

WordFunction alu_function(AluOp op, DType dtype) {
  static constexpr std::array kFunctions = {
#define RUNE_ALU(Name, ...) functions_of<AluOp::Name>(),
#include "alu/alu.def"
#undef RUNE_ALU
  };
  const WordFunction function = kFunctions[static_cast<size_t>(op)][static_cast<size_t>(dtype)];
  RUNE_CHECK(function, name_of(op), " of ", name_of(dtype));
  return function;
}

WordFunction cast_function(DType from, DType to) {
  static constexpr auto kFunctions = by_dtype([](auto source) {
    return by_dtype(
        [](auto target) -> WordFunction { return convert<decltype(source)::value, target()>; });
  });
  return kFunctions[static_cast<size_t>(from)][static_cast<size_t>(to)];
}

WordFunction bitcast_function(DType to) {
  static constexpr auto kFunctions =
      by_dtype([](auto target) -> WordFunction { return take_bits<target()>; });
  return kFunctions[static_cast<size_t>(to)];
}

Scalar evaluate(AluOp op, std::span<const Scalar> operands) {
  const AluInfo& row = info(op);
  RUNE_CHECK(static_cast<int>(operands.size()) == row.arity, row.text);
  const DType dtype = operands.back().dtype();
  uint64_t words[3] = {}, result = 0;
  for (size_t i = 0; i < operands.size(); ++i) words[i] = operands[i].word();
  alu_function(op, dtype)(&result, &words[0], &words[1], &words[2], 1);
  return Scalar::from_bits(row.result == AluResult::Bool ? DType::Bool : dtype, result);
}

Scalar identity(ReduceOp op, DType dtype) {
  switch (op) {
    case ReduceOp::Add: return Scalar::zero(dtype);
    case ReduceOp::Prod: return Scalar::one(dtype);
    case ReduceOp::Max: return Scalar::lowest(dtype);
    case ReduceOp::Min: return Scalar::highest(dtype);
  }
  RUNE_UNREACHABLE();
}

Scalar neutral(ReduceOp op, DType dtype) {
  const bool sums_floats = op == ReduceOp::Add && is_float(dtype);
  return sums_floats ? Scalar::of(dtype, -0.0) : identity(op, dtype);
}

}  // namespace rune
