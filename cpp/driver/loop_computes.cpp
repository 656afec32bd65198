#include "driver/loop_computes.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "schedule/analysis/library_product.h"

namespace rune::driver {

namespace {

using schedule::Value;

State lowered(const graph::Graph& graph, std::map<size_t, lower::Placement> placements,
              const Capabilities& caps, const std::string& device) {
  State state;
  state.capabilities = &caps;
  state.device = device;
  state.graph = graph;
  state.placements = std::move(placements);
  run_pipeline(state, "lower");
  return state;
}

// Whether several threads compute a result together.
bool shares_results(const schedule::Kernel& kernel) {
  const auto is_shared = [&](int64_t axis) { return contains(kernel.iter.mapping.thread, axis); };
  const auto shares = [&](const schedule::Stage& stage) {
    return stage.kind != schedule::StageKind::Map &&
           std::any_of(stage.axes.begin(), stage.axes.end(), is_shared);
  };
  return std::any_of(kernel.stages().begin(), kernel.stages().end(), shares);
}

// Whether a single kernel, with a single launch, stores the only output at each point, and none
// reads it. If the kernel reads the memory of the output, each thread may read only elements that
// no other thread stores.
bool is_placed(const schedule::Schedule& schedule, const Capabilities& caps, bool reads_place) {
  const Value output = schedule.outputs[0];
  const auto has = [&](const std::vector<Value>& values) { return contains(values, output); };
  Ints launches(schedule.kernels.size(), 0);
  for (const schedule::ScheduleItem& item : schedule.items)
    if (item.launch()) ++launches[item.launch()->kernel];
  int64_t stored = 0;
  for (const schedule::ScheduleItem& item : schedule.items) {
    const auto [reads, writes] = schedule::accesses_of(item);
    if (has(reads)) return false;
    if (!has(writes)) continue;
    const schedule::Kernel* kernel = schedule.kernel_of(item);
    if (!kernel || launches[item.launch()->kernel] != 1 || !has(kernel->outputs) ||
        !std::holds_alternative<schedule::Staged>(kernel->body) || sequential_stage(*kernel) ||
        schedule::library_product(schedule.graph, *kernel, caps) ||
        (reads_place && shares_results(*kernel)))
      return false;
    ++stored;
  }
  return stored == 1;
}

}  // namespace

LoweredCompute lower_compute(Compute& compute, LoopPlan& plan, const Capabilities& caps,
                             const std::string& device) {
  std::map<size_t, lower::Placement> placements;
  if (compute.offsets)
    placements[0] = {compute.graph[compute.graph.outputs[0]].shape(),
                     plan.cells[compute.outputs[0]].shape, *compute.offsets};
  State state = lowered(compute.graph, placements, caps, device);
  std::optional<Store> store;
  const bool reads_place = contains(compute.inputs, compute.outputs[0]);
  if (compute.offsets && !is_placed(state.schedule, caps, reads_place)) {
    state = lowered(compute.graph, {}, caps, device);
    const graph::Node& part = compute.graph[compute.graph.outputs[0]];
    plan.cells.push_back({part.dtype(), part.shape(), std::nullopt, std::nullopt,
                          plan.cells[compute.outputs[0]].depth});
    store = {compute.outputs[0], *compute.offsets, plan.cells.size() - 1};
    compute.outputs[0] = store->part;
  }
  for (const schedule::ScheduleItem& item : state.schedule.items)
    RUNE_CHECK(item.launch(), "an iteration of a loop needs more than kernels");
  return {std::move(state.schedule), std::move(state.kernels), std::move(store)};
}

}  // namespace rune::driver
