#include "driver/lower_loops.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "driver/loop_kernel.h"
#include "driver/loop_steps.h"
#include "schedule/analysis/cost.h"

namespace rune::driver {

namespace {

// Copies an input to the cell of an unused result.
Statement begin_as_input(const LoopPlan& plan, size_t cell, size_t input) {
  const auto is_input = [&](const Cell& other) { return other.input == input; };
  const auto from = std::find_if(plan.cells.begin(), plan.cells.end(), is_input);
  return {Store{cell, std::vector<Dim>(plan.cells[cell].shape.size(), 0),
                static_cast<size_t>(from - plan.cells.begin())}};
}

}  // namespace

void lower_loops(State& state, const schedule::Loop_Nest& item) {
  const auto& nest = *state.schedule.graph[item.outputs.front()].as<graph::Loop_Nest>();
  LoopPlan plan = plan_loops(*nest.graph.graph);
  // The kernel's outputs are the results that the item stores.
  std::map<size_t, size_t> stored;
  for (size_t i = 0; i < item.outputs.size(); ++i) {
    const auto& result = *state.schedule.graph[item.outputs[i]].as<graph::Loop_Nest>();
    stored[static_cast<size_t>(result.result)] = i;
  }
  for (size_t c = 0; c < plan.cells.size(); ++c)
    for (const auto& [result, operand] : plan.copies)
      if (plan.cells[c].output == result && !stored.contains(result))
        plan.statements.insert(plan.statements.begin(), begin_as_input(plan, c, operand));
  for (Cell& cell : plan.cells)
    if (cell.output)
      cell.output =
          stored.contains(*cell.output) ? std::optional(stored.at(*cell.output)) : std::nullopt;
  const size_t number = state.loops.size();
  LoweredLoops& loops = state.loops.emplace_back();
  loops.first_kernel = state.kernels.size();
  if (state.capabilities->model == ExecutionModel::Grid) {
    LoopSteps steps = lower_steps(plan, *state.capabilities, state.device,
                                  state.schedule.graph.symbolic_vars(), number);
    if (host_ns(steps, *state.capabilities) < thread_ns(steps, *state.capabilities)) {
      for (lower::Kernel& kernel : steps.kernels) state.kernels.push_back(std::move(kernel));
      loops.num_kernels = steps.kernels.size();
      loops.steps = std::make_shared<const LoopSteps>(std::move(steps));
      return;
    }
  }
  size_t position = 0;
  while (state.schedule.items[position].loops() != &item) ++position;
  // The number of shares of the iterations for each core, so that faster cores can take more of
  // them.
  constexpr int64_t kSharesOfACore = 4;
  const double ns = static_cast<double>(state.schedule.analysis[position].work_ns);
  const bool is_shared = state.capabilities->model == ExecutionModel::Cores &&
                         schedule::is_worth_sharing(*state.capabilities, ns);
  const int64_t workgroups = is_shared ? kSharesOfACore * state.capabilities->num_cores : 1;
  state.kernels.push_back(lower_loop_kernel(std::move(plan), *state.capabilities, state.device,
                                            state.schedule.graph.symbolic_vars(), workgroups));
  state.kernels.back().name = concat("loops_", number);
}

}  // namespace rune::driver
