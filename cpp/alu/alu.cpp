#include "alu/alu.h"

#include "base/error.h"

namespace rune {

namespace {

using namespace alu_flags;

constexpr AluInfo kTable[] = {
#define RUNE_ALU(Name, text, arity, operands, result, flags, cost, numpy, c, evaluate, rules, \
                 meaning)                                                                     \
  {AluOp::Name, #Name, text, arity, operands, AluResult::result, flags, cost, numpy, c, meaning},
#include "alu/alu.def"
#undef RUNE_ALU
};
static_assert(std::size(kTable) == kNumAluOps);
static_assert(kNumAluOps <= 128, "Capabilities::native_ops holds 128");

}  // namespace

bool AluInfo::accepts(DType dtype) const {
  return is_of_kinds(dtype, operands);
}

bool AluInfo::commutes(DType dtype) const {
  return has(is_float(dtype) ? alu_flags::CommutativeOnFloats : alu_flags::CommutativeOnOthers);
}

const AluInfo& info(AluOp op) {
  return kTable[static_cast<int>(op)];
}
std::span<const AluInfo> all_alu_ops() {
  return kTable;
}
const char* name_of(AluOp op) {
  return info(op).text;
}

DType result_dtype(AluOp op, std::span<const DType> operands) {
  const AluInfo& row = info(op);
  if (static_cast<int>(operands.size()) != row.arity)
    user_error(ErrorKind::Type, row.text, ": cannot take ", operands.size(), " operands (it has ",
               row.arity, ")");
  const DType dtype = operands.back();
  for (size_t i = 0; i < operands.size(); ++i) {
    const DType wanted = row.result == AluResult::Select && i == 0 ? DType::Bool : dtype;
    if (operands[i] != wanted)
      user_error(ErrorKind::Type, row.text, ": cannot take ", numpy_name(operands[i]), " with ",
                 numpy_name(dtype), " (operand ", i, " must be ", numpy_name(wanted), ")");
  }
  if (!row.accepts(dtype))
    user_error(ErrorKind::Type, row.text, ": cannot take operands of dtype ", numpy_name(dtype));
  return row.result == AluResult::Bool ? DType::Bool : dtype;
}

const char* name_of(ReduceOp op) {
  static constexpr const char* kNames[] = {"add", "max", "min", "prod"};
  return kNames[static_cast<int>(op)];
}

AluOp alu_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::Add: return AluOp::Add;
    case ReduceOp::Max: return AluOp::Max;
    case ReduceOp::Min: return AluOp::Min;
    case ReduceOp::Prod: return AluOp::Mul;
  }
  RUNE_UNREACHABLE();
}

namespace {

template <class F>
void for_each_computed_dtype(const Capabilities& caps, F f) {
  for (int d = 0; d < kNumDTypes; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (caps.has_arithmetic(dtype) || is_bool(dtype)) f(dtype);
  }
}

}  // namespace

void set_native(Capabilities& caps, std::span<const AluOp> ops, DType dtype) {
  for (const AluOp op : ops) set_native(caps, op, dtype);
}

void set_elementary_native(Capabilities& caps) {
  for_each_computed_dtype(caps, [&](DType dtype) {
    const unsigned flag = is_float(dtype) ? ElementaryOnFloats : ElementaryOnOthers;
    for (const AluInfo& row : kTable)
      if (row.has(flag) && row.accepts(dtype)) set_native(caps, row.op, dtype);
  });
}

void set_all_native(Capabilities& caps) {
  set_table_costs(caps);
  for_each_computed_dtype(caps, [&](DType dtype) {
    for (const AluInfo& row : kTable)
      if (row.accepts(dtype)) set_native(caps, row.op, dtype);
  });
}

void set_table_costs(Capabilities& caps) {
  for (int d = 0; d < kNumDTypes; ++d)
    for (const AluInfo& row : kTable) set_cost(caps, row.op, static_cast<DType>(d), row.cost);
}

}  // namespace rune
