// Makes the executable's steps that run loops on a grid.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "driver/loop_steps.h"
#include "runtime/executable.h"

namespace rune::driver {

// The entry in profiles for a copy within the memory of a device.
runtime::StepInfo copy_info(int64_t bytes, const runtime::StepInfo& loops);

// Adds the steps, and their entries in profiles, to an executable.
class LoopAssembler {
 public:
  // `programs` are those of the steps' kernels. The steps' own memory begins after `arena_bytes`
  // bytes of the arena; all loops of an executable share it. `about` is the entry that profiles
  // would have for the loops as one step.
  LoopAssembler(const LoopSteps& loops, std::span<const std::shared_ptr<runtime::Program>> programs,
                const std::vector<runtime::Slot>& inputs, const std::vector<runtime::Slot>& outputs,
                const Capabilities& caps, const runtime::StepInfo& about, size_t arena_bytes,
                runtime::Executable& executable, runtime::ProgramInfo& info);

  // `variables` are the variables that a run is given, in order.
  void run(const std::vector<SymVar>& variables);

 private:
  std::vector<runtime::Step> assemble(const std::vector<LoopStep>& steps);
  runtime::Step assemble(const LoopLaunch& launch);
  runtime::Step assemble(const LoopCopy& copy);
  runtime::Step assemble(const LoopRead& read);
  runtime::Step assemble(const LoopRepeat& repeat);
  size_t number_of(const std::string& variable);
  runtime::Affine affine(const Dim& dim);

  const LoopSteps& loops_;
  const std::span<const std::shared_ptr<runtime::Program>> programs_;
  const Capabilities& caps_;
  const runtime::StepInfo& about_;
  runtime::Executable& executable_;
  runtime::ProgramInfo& info_;
  std::vector<runtime::Slot> slots_;    // by LoopMemory
  std::vector<std::string> variables_;  // by number
};

}  // namespace rune::driver
