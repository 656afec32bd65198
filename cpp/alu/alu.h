// The scalar operations that all IRs share. The table is alu.def.
#pragma once

#include <cstdint>
#include <span>

#include "types/capabilities.h"
#include "types/dtype.h"

namespace rune {

enum class AluOp : uint8_t {
#define RUNE_ALU(Name, ...) Name,
#include "alu/alu.def"
#undef RUNE_ALU
};

inline constexpr int kNumAluOps = 0
#define RUNE_ALU(...) +1
#include "alu/alu.def"
#undef RUNE_ALU
    ;

enum class AluResult : uint8_t { Same, Bool, Select };

namespace alu_flags {
inline constexpr unsigned CommutativeOnFloats = 1, CommutativeOnOthers = 2, Associative = 4,
                          Idempotent = 8, ElementaryOnFloats = 16, ElementaryOnOthers = 32;
inline constexpr unsigned Commutative = CommutativeOnFloats | CommutativeOnOthers;
inline constexpr unsigned Elementary = ElementaryOnFloats | ElementaryOnOthers;
}  // namespace alu_flags

// One row of alu.def.
struct AluInfo {
  AluOp op;
  const char* name;  // the C++ name
  const char* text;  // the name in IR text
  int arity;
  const char* operands;  // kinds allowed: letters of "bifc"
  AluResult result;
  unsigned flags;
  int cost;           // in additions
  const char* numpy;  // ufunc, or ""
  const char* c;      // C spelling with $0 $1 $2, or "" where C has none
  const char* meaning;

  bool has(unsigned flag) const { return flags & flag; }
  // Whether a op b is b op a for all operands of this dtype.
  bool commutes(DType dtype) const;
  // Whether operands of this dtype are allowed (for Where: as the last two operands).
  bool accepts(DType dtype) const;
};

const AluInfo& info(AluOp op);
std::span<const AluInfo> all_alu_ops();
const char* name_of(AluOp op);

// The result's dtype. `operands` holds the dtype of each operand. Throws UserError(Type), which
// names the operation, if the number of operands or a dtype is not allowed or if the dtypes differ.
DType result_dtype(AluOp op, std::span<const DType> operands);

// The reductions: an associative operation with its identity.
enum class ReduceOp : uint8_t { Add, Max, Min, Prod };
inline constexpr int kNumReduceOps = 4;
const char* name_of(ReduceOp op);
AluOp alu_of(ReduceOp op);

// Whether a target computes this operation itself; see Capabilities::native_ops.
inline bool is_native(const Capabilities& caps, AluOp op, DType dtype) {
  return caps.native_ops[static_cast<int>(dtype)][static_cast<int>(op)];
}
inline void set_native(Capabilities& caps, AluOp op, DType dtype) {
  caps.native_ops[static_cast<int>(dtype)].set(static_cast<int>(op));
}
void set_native(Capabilities& caps, std::span<const AluOp> ops, DType dtype);
// Marks the elementary operations of alu.def as native on bool and every dtype of
// `caps.arithmetic`. A target adds the others that it has.
void set_elementary_native(Capabilities& caps);
// Marks every operation as native on bool and every dtype of `caps.arithmetic`; sets all costs.
void set_all_native(Capabilities& caps);

// See Capabilities::costs.
inline double cost_of(const Capabilities& caps, AluOp op, DType dtype) {
  return caps.costs[static_cast<int>(dtype)][static_cast<int>(op)];
}
inline void set_cost(Capabilities& caps, AluOp op, DType dtype, int additions) {
  caps.costs[static_cast<int>(dtype)][static_cast<int>(op)] = static_cast<uint16_t>(additions);
}
// Sets the costs of alu.def for all dtypes.
void set_table_costs(Capabilities& caps);

}  // namespace rune

RUNE_ENUM_CODEC(rune::AluOp, rune::kNumAluOps, rune::name_of);
RUNE_ENUM_CODEC(rune::ReduceOp, rune::kNumReduceOps, rune::name_of);
