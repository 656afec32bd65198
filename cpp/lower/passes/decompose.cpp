#include "lower/passes/decompose.h"

#include "base/error.h"
#include "lower/passes/decompose_emitter.h"

namespace rune::lower {

namespace {

using decomposition::Emitter;

// Copies a kernel. Each Alu instruction becomes the result of `rewrite(emitter, op, operands)`.
template <class Rewrite>
Kernel rewrite_alu(const Kernel& kernel, const Capabilities& caps, Rewrite rewrite) {
  decomposition::KernelCopy copy(kernel, caps);
  for (uint32_t id = 0; id < kernel.body.size(); ++id) {
    const Instr& instr = kernel.body[id];
    const Alu* alu = instr.as<Alu>();
    if (!alu) {
      copy.copy({id});
      continue;
    }
    std::vector<decomposition::Value> operands;
    for (const Var arg : instr.args) operands.push_back(copy.value(arg));
    copy.replace({id}, rewrite(copy.emitter(), alu->op, operands));
  }
  return copy.take();
}

bool is_narrow_float(DType dtype) {
  return is_float(dtype) && size_of(dtype) == 2;
}

}  // namespace

Kernel decompose(const Kernel& kernel, const Capabilities& caps) {
  return rewrite_alu(
      kernel, caps,
      [](Emitter& emitter, AluOp op, const std::vector<decomposition::Value>& operands) {
        return emitter.alu(op, operands);
      });
}

Kernel widen_narrow_floats(const Kernel& kernel, const Capabilities& caps) {
  // This pass runs before decompose, so it does not apply rules.
  return rewrite_alu(
      kernel, caps, [&](Emitter& emitter, AluOp op, std::vector<decomposition::Value> operands) {
        const DType dtype = operands.back().dtype();
        const bool narrow = caps.has_arithmetic(dtype) && is_native(caps, op, dtype);
        const bool widen = is_narrow_float(dtype) && !narrow && op != AluOp::Where;
        if (widen)
          for (decomposition::Value& v : operands) v = emitter.cast(v, DType::Float32);
        const decomposition::Value result = emitter.raw(op, operands);
        return widen && !is_bool(result.dtype()) ? emitter.cast(result, dtype) : result;
      });
}

}  // namespace rune::lower
