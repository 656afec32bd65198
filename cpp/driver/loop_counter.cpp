#include "driver/loop_counter.h"

#include <utility>

#include "lower/builder.h"

namespace rune::driver {

lower::Kernel with_counter_in_memory(const lower::Kernel& kernel, const SymVar& counter) {
  lower::Builder builder(lower::Kernel{kernel.name, kernel.grid, kernel.local, {}});
  const auto argument = static_cast<int64_t>(kernel.globals().size());
  std::vector<lower::Var> values;
  for (const lower::Instr& instr : kernel.body) {
    const auto* define = instr.as<lower::Define_Var>();
    if (define && define->var.name == counter.name) {
      const lower::Var memory = builder.define_global(DType::Int64, argument, 1, false);
      const lower::Var first = builder.constant(Scalar::of(DType::Int64, int64_t{0}));
      values.push_back(builder.cast(builder.load(memory, first), instr.type.dtype));
      continue;
    }
    std::vector<lower::Var> args;
    for (const lower::Var arg : instr.args) args.push_back(values[arg.id]);
    values.push_back(builder.add(instr.payload, std::move(args), instr.type));
  }
  return builder.take();
}

lower::Kernel counting_kernel(std::string name, int64_t step) {
  lower::Builder builder(lower::Kernel{std::move(name), 1, 1, {}});
  const lower::Var memory = builder.define_global(DType::Int64, 0, 1, true);
  const lower::Var first = builder.constant(Scalar::of(DType::Int64, int64_t{0}));
  const lower::Var sum = builder.alu(
      AluOp::Add, {builder.load(memory, first), builder.constant(Scalar::of(DType::Int64, step))});
  builder.store(memory, first, sum);
  return builder.take();
}

}  // namespace rune::driver
