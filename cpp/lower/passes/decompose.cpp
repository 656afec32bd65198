#include "lower/passes/decompose.h"

#include "base/error.h"
#include "lower/passes/decompose_emitter.h"

namespace rune::lower {

namespace {

using decomposition::Emitter;

// Copies a kernel, replacing each Alu instruction by what `rewrite(emitter, op, operands)` appends.
template <class Rewrite>
Kernel rewrite_alu(const Kernel& kernel, const Capabilities& caps, Rewrite rewrite) {
  Builder builder({kernel.name, kernel.grid, kernel.local, {}});
  Emitter emitter(builder, caps);
  std::vector<Var> moved;
  moved.reserve(kernel.body.size());
  for (const Instr& instr : kernel.body) {
    if (closes_scope(instr.kind())) emitter.leave_scope();
    std::vector<Var> args;
    for (const Var arg : instr.args) args.push_back(moved[arg.id]);
    if (const Alu* alu = instr.as<Alu>()) {
      std::vector<decomposition::Value> operands;
      for (const Var arg : args) operands.push_back(emitter.value(arg));
      moved.push_back(rewrite(emitter, alu->op, operands).var);
    } else {
      moved.push_back(builder.add(instr.payload, std::move(args), instr.type));
    }
    if (opens_scope(instr.kind())) emitter.enter_scope();
  }
  return builder.take();
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
  // Runs before decompose: here every operation is appended as it is.
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
