#include "driver/loop_assembler.h"

#include <algorithm>
#include <utility>

#include "driver/program_info.h"

namespace rune::driver {

using runtime::Slot;

runtime::StepInfo copy_info(int64_t bytes, const runtime::StepInfo& loops) {
  runtime::StepInfo copy{"transfer", "copy for loops", loops.location, loops.device};
  copy.bytes_read = copy.bytes_written = static_cast<double>(bytes);
  return copy;
}

LoopAssembler::LoopAssembler(const LoopSteps& loops,
                             std::span<const std::shared_ptr<runtime::Program>> programs,
                             const std::vector<Slot>& inputs, const std::vector<Slot>& outputs,
                             const Capabilities& caps, const runtime::StepInfo& about,
                             size_t arena_bytes, runtime::Executable& executable,
                             runtime::ProgramInfo& info)
    : loops_(loops),
      programs_(programs),
      caps_(caps),
      about_(about),
      executable_(executable),
      info_(info) {
  constexpr size_t kAlignment = 256;
  const size_t first = (arena_bytes + kAlignment - 1) / kAlignment * kAlignment;
  for (const LoopMemory& memory : loops.memory) {
    Slot& slot = slots_.emplace_back();
    if (memory.input) {
      slot = inputs[*memory.input];
    } else if (memory.output) {
      slot = outputs[*memory.output];
    } else if (!memory.constant.empty()) {
      slot = {Slot::Kind::Constant, static_cast<int64_t>(executable.constants.size())};
      executable.constants.push_back(stored(memory.constant));
    } else {
      slot = {Slot::Kind::Temporary, 0, static_cast<int64_t>(first) + memory.offset};
    }
  }
  if (loops.arena_bytes)
    executable.arena_bytes =
        std::max(executable.arena_bytes, first + static_cast<size_t>(loops.arena_bytes));
}

void LoopAssembler::run(const std::vector<SymVar>& variables) {
  for (const SymVar& variable : variables) variables_.push_back(variable.name);
  for (runtime::Step& step : assemble(loops_.steps)) executable_.steps.push_back(std::move(step));
  executable_.num_loop_variables =
      std::max(executable_.num_loop_variables, variables_.size() - variables.size());
}

std::vector<runtime::Step> LoopAssembler::assemble(const std::vector<LoopStep>& steps) {
  std::vector<runtime::Step> result;
  for (const LoopStep& step : steps)
    result.push_back(
        std::visit([this](const auto& action) { return assemble(action); }, step.action));
  return result;
}

runtime::Step LoopAssembler::assemble(const LoopLaunch& launch) {
  info_.steps.push_back(
      launch.of ? step_info(loops_.computes[launch.of->compute].schedule, caps_, launch.of->item)
                : about_);
  runtime::Launch step;
  step.program = programs_[launch.kernel];
  for (const size_t memory : launch.memory) step.arguments.push_back(slots_[memory]);
  step.vars = launch.arguments;
  step.variables.emplace();
  for (const SymVar& variable : launch.variables)
    step.variables->push_back(number_of(variable.name));
  return step;
}

runtime::Step LoopAssembler::assemble(const LoopCopy& copy) {
  const int64_t bytes = loops_.memory[copy.from].bytes;
  info_.steps.push_back(copy_info(bytes, about_));
  return runtime::Memory_Transfer{slots_[copy.to], slots_[copy.from], static_cast<size_t>(bytes)};
}

runtime::Step LoopAssembler::assemble(const LoopRead& read) {
  info_.steps.push_back({"wait", "size that data decide", about_.location, about_.device});
  return runtime::Read{number_of(read.variable.name), slots_[read.memory]};
}

runtime::Step LoopAssembler::assemble(const LoopRepeat& repeat) {
  const auto body_of = [&](const std::vector<LoopStep>& steps) {
    return std::make_shared<runtime::Body>(runtime::Body{assemble(steps)});
  };
  runtime::Repeat step{number_of(repeat.counter.name),
                       affine(repeat.start),
                       affine(repeat.stop),
                       repeat.step,
                       {},
                       body_of(repeat.body)};
  if (repeat.goes_on) step.goes_on = slots_[*repeat.goes_on];
  for (const LoopTurn& turn : repeat.turns) {
    // In profiles, the steps of all turns have the numbers of the first turn's steps.
    const size_t known = info_.steps.size();
    auto body = body_of(turn.body);
    info_.steps.resize(known);
    step.turns.push_back({std::move(body), body_of(turn.end)});
  }
  return step;
}

size_t LoopAssembler::number_of(const std::string& variable) {
  const auto known = std::find(variables_.begin(), variables_.end(), variable);
  if (known != variables_.end()) return static_cast<size_t>(known - variables_.begin());
  variables_.push_back(variable);
  return variables_.size() - 1;
}

runtime::Affine LoopAssembler::affine(const Dim& dim) {
  runtime::Affine sum{dim.offset()};
  if (!dim.is_constant())
    for (const Dim::Term& term : dim.terms())
      sum.terms.emplace_back(number_of(term.var.name), term.coefficient);
  return sum;
}

}  // namespace rune::driver
