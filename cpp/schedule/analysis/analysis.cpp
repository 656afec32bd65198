#include "schedule/analysis/analysis.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "schedule/analysis/cost.h"
#include "schedule/analysis/loop_cost.h"

namespace rune::schedule {

namespace {

using Variables = std::set<uint32_t>;

// The loops in which a stage runs.
class LoopNest {
 public:
  LoopNest(const Capabilities& caps, const Kernel& kernel, const Stage& stage, const Walk& walked)
      : caps_(caps), kernel_(kernel), walked_(walked), copies_tile_(stage.depth) {
    axes_ = outer_axes(kernel);
    axes_.insert(axes_.end(), stage.axes.begin(), stage.axes.end());
    const Ints& serial = kernel.iter.mapping.serial;
    const auto place = [&](int64_t axis) {  // -1: the launch itself
      const auto last = std::find(serial.rbegin(), serial.rend(), axis);
      return serial.rend() - last - 1;
    };
    std::stable_sort(axes_.begin(), axes_.end(),
                     [&](int64_t a, int64_t b) { return place(a) < place(b); });
  }

  // The number of points over which the variables range.
  double points(const Variables& variables) const {
    double points = 1;
    for (const uint32_t v : variables)
      points *= static_cast<double>(v < kernel_.iter.axes.size() ? kernel_.iter.axes[v].extent()
                                                                 : walked_.inner_extents.at(v));
    return points;
  }

  bool in_lanes(const Variables& variables) const {
    return std::any_of(kernel_.iter.mapping.vec.begin(), kernel_.iter.mapping.vec.end(),
                       [&](int64_t axis) { return variables.count(static_cast<uint32_t>(axis)); });
  }

  // The number of elements, in full vectors, of a value computed from these variables. It is
  // computed inside of the innermost loop over one of them, once for all copies of that loop's body
  // that differ only in other variables.
  double elements(const Variables& variables, DType dtype) const {
    if (!is_mapped() || copies_tile_) return points(variables);
    double count = 1;
    size_t inside = axes_.size();
    while (inside > 0 && !variables.count(static_cast<uint32_t>(axes_[inside - 1]))) --inside;
    for (size_t i = 0; i < inside; ++i) {
      const int64_t axis = axes_[i], extent = kernel_.iter.axes[axis].extent();
      const int64_t lanes = kernel_.iter.lanes(axis);
      const int64_t steps = (extent + lanes - 1) / lanes;
      const bool varies = variables.count(static_cast<uint32_t>(axis)) > 0;
      const double shared =
          varies ? 1 : static_cast<double>(std::min(kernel_.iter.unroll(axis), steps));
      count *= static_cast<double>(varies ? steps * lanes : steps) / shared;
    }
    for (const uint32_t v : variables)
      if (v >= kernel_.iter.axes.size()) count *= static_cast<double>(walked_.inner_extents.at(v));
    return in_lanes(variables) ? count : count * caps_.lanes(dtype);
  }

 private:
  bool is_mapped() const {
    return caps_.model == ExecutionModel::Cores && !kernel_.iter.tiles.empty();
  }

  const Capabilities& caps_;
  const Kernel& kernel_;
  const Walk& walked_;
  const bool copies_tile_;
  Ints axes_;  // outermost first
};

struct Operations {
  double flops = 0;  // each scalar operation counts as one
  double ns = 0;     // total time of all cores
};

// The time of a stage on all cores, in ns. Arithmetic and accesses use separate units of a core.
struct StageTime {
  double arithmetic = 0, accesses = 0;
  double ns() const { return std::max(arithmetic, accesses); }
};

class OperationCounter {
 public:
  // `around` is the kernel of which this one is a phase, or null.
  OperationCounter(const Graph& graph, const Capabilities& caps, const Kernel& kernel,
                   const Kernel* around = nullptr)
      : graph_(graph), caps_(caps), kernel_(kernel), around_(around) {
    for (const Value v : kernel.inputs) stops_.insert(v.id);
    for (const Stage& stage : kernel.stages())
      if (stage.kind == StageKind::Reduce)
        for (const StageValue& value : stage.values) stops_.insert(value.value.id);
  }

  Operations run() {
    const std::vector<sym::Expr> axes = axis_variables(kernel_.iter);
    for (const Stage& stage : kernel_.stages()) {
      time_ = {};
      add_stage(stage, axes);
      total_.ns += time_.ns();
    }
    return total_;
  }

 private:
  void add_stage(const Stage& stage, const std::vector<sym::Expr>& axes) {
    std::set<uint32_t> stops = stops_;
    if (stage.takes)
      for (const Value v : *stage.takes) stops.insert(v.id);
    std::vector<Seed> seeds;
    for (Seed& seed : stage_seeds(graph_, stage, axes)) {
      const bool known = stage.kind == StageKind::Map &&
                         (stops.count(seed.value.id) ||
                          evaluation_of(graph_[seed.value]) == Evaluation::Reduction);
      if (stage.kind != StageKind::Reduce) add_store(stage, seed);
      if (!known) seeds.push_back(std::move(seed));
    }
    const Walk walked = walk(
        graph_, seeds, [&](Value v, const std::vector<Demand>&) { return stops.count(v.id) > 0; });
    const LoopNest nest(caps_, kernel_, stage, walked);
    for (const Seed& seed : seeds) {
      Index all = seed.index;
      all.insert(all.end(), seed.inner.begin(), seed.inner.end());
      add(nest, seed.value, walked.variables_of(all), 1);
    }
    for (const auto& [id, demands] : walked.demands)
      for (const Demand& demand : demands) {
        const Variables variables = walked.variables_of(demand.index);
        add_mask(nest, walked, demand);
        if (stops.count(id)) {
          add_load(nest, walked, Value{id}, demand, is_scratch(stage, Value{id}));
        } else {
          const bool folded = evaluation_of(graph_.nodes[id]) == Evaluation::Reduction;
          const double repeats =
              folded ? static_cast<double>(max_elements(reduced_shape(graph_, Value{id}))) : 1;
          add(nest, Value{id}, variables, repeats);
        }
      }
  }

  void add(const LoopNest& nest, Value v, const Variables& variables, double repeats) {
    const graph::Node& node = graph_[v];
    double operations = node_operations(caps_, graph_, node);
    double flops = operations > 0 ? 1 : 0;
    if (node.kind() == graph::NodeKind::Reduce_Axis) flops = operations = 1;
    if (node.kind() == graph::NodeKind::Contract) flops = 2, operations = 1;
    const auto* ternary = node.as<graph::Ternary>();
    if (ternary && ternary->op == AluOp::Mulacc) flops = 2;
    total_.flops += nest.points(variables) * repeats * flops;
    if (operations > 0)
      time_.arithmetic += operations_ns(
          caps_, nest.elements(variables, node.dtype()) * repeats * operations, node.dtype());
  }

  void add_mask(const LoopNest& nest, const Walk& walked, const Demand& demand) {
    for (const sym::Expr& condition : demand.mask.conditions()) {
      const double elements = nest.elements(walked.variables_of({condition}), DType::Int32);
      time_.arithmetic +=
          operations_ns(caps_, elements * mask_operations(caps_, condition), DType::Int32);
    }
  }

  // Whether the value is in scratch memory, which has the order of the loops.
  bool is_scratch(const Stage& stage, Value v) const {
    const bool takes = stage.takes && contains(*stage.takes, v);
    return takes || (around_ && around_->scratch_of(v));
  }

  void add_load(const LoopNest& nest, const Walk& walked, Value v, const Demand& demand,
                bool scratch) {
    const DType dtype = graph_[v].dtype();
    const sym::Expr position = flatten_index(demand.index, graph_[v].shape());
    const double each = scratch ? 1 : access_operations(caps_, kernel_, position, dtype, walked);
    add_accesses(dtype, nest.elements(walked.variables_of({position}), dtype) * each);
  }

  void add_store(const Stage& stage, const Seed& seed) {
    const DType dtype = graph_[seed.value].dtype();
    const Walk nothing;
    const LoopNest nest(caps_, kernel_, stage, nothing);
    const sym::Expr position = flatten_index(seed.index, graph_[seed.value].shape());
    Variables variables = nothing.variables_of({position});
    for (const int64_t axis : stage.axes) variables.insert(static_cast<uint32_t>(axis));
    const double each = is_scratch(stage, seed.value)
                            ? 1
                            : access_operations(caps_, kernel_, position, dtype, nothing);
    add_accesses(dtype, nest.elements(variables, dtype) * each);
  }

  // Cores load vectors at the rate at which they add vectors of floats.
  void add_accesses(DType dtype, double accesses) {
    const DType as_wide = size_of(dtype) > 4 ? DType::Float64 : DType::Float32;
    time_.accesses += operations_ns(caps_, accesses, as_wide);
  }

  const Graph& graph_;
  const Capabilities& caps_;
  const Kernel& kernel_;
  const Kernel* const around_;
  std::set<uint32_t> stops_;  // inputs and reductions
  StageTime time_;            // of the present stage
  Operations total_;
};

// The bytes of the distinct elements that the kernel accesses in each buffer.
int64_t touched_bytes(const Graph& graph, const Kernel& kernel,
                      const std::vector<MemoryAccess>& accesses, bool stores) {
  std::map<uint32_t, double> touched;
  for (const MemoryAccess& access : accesses) {
    if (access.is_store != stores) continue;
    double points = 1;
    for (const uint32_t v : access.position.variables())
      if (v < kernel.iter.axes.size()) points *= static_cast<double>(kernel.iter.axes[v].extent());
    touched[access.value.id] += points * static_cast<double>(access.repeats);
  }
  int64_t bytes = 0;
  for (const auto& [id, points] : touched) {
    const graph::Node& node = graph.nodes[id];
    const double elements = std::min(points, static_cast<double>(max_elements(node.shape())));
    bytes += static_cast<int64_t>(elements) * size_of(node.dtype());
  }
  return bytes;
}

// For each buffer that the kernel's phases access: the most bytes that one of them accesses.
std::pair<int64_t, int64_t> bytes_of_phases(const Graph& graph, const Kernel& kernel) {
  std::pair<int64_t, int64_t> bytes;
  const auto add = [&](const std::vector<Value>& buffers, bool stores, int64_t& total) {
    for (const Value v : buffers) {
      int64_t most = 0;
      for (const Kernel& phase : kernel.phases()) {
        std::vector<MemoryAccess> accesses = memory_accesses(graph, phase);
        std::erase_if(accesses, [&](const auto& a) { return a.value != v; });
        most = std::max(most, touched_bytes(graph, phase, accesses, stores));
      }
      total += most;
    }
  };
  add(kernel.inputs, false, bytes.first);
  add(kernel.outputs, true, bytes.second);
  return bytes;
}

// The number of cores that have work. Before the mapping, all do.
double busy_cores(const Capabilities& caps, const Kernel& kernel) {
  if (kernel.iter.tiles.empty()) return caps.num_cores;
  const double threads =
      static_cast<double>(kernel.workgroups()) * static_cast<double>(kernel.iter.mapping.threads);
  return std::min<double>(caps.num_cores, threads / caps.simd_width);
}

// The number of accumulators of a thread. There are more once the kernel is mapped.
int64_t count_accumulators(const Kernel& kernel) {
  int64_t result = 0;
  for (const Stage& stage : kernel.stages()) {
    if (stage.kind != StageKind::Reduce) continue;
    int64_t accumulators = kernel.points_at_once();
    for (const int64_t axis : stage.axes)
      accumulators = std::max(accumulators, kernel.iter.unroll(axis));
    result += accumulators * static_cast<int64_t>(stage.values.size());
  }
  for (const Kernel& phase : kernel.phases()) result = std::max(result, count_accumulators(phase));
  return result;
}

// The bytes moved between cores and memory. Stored bytes that the cache first reads from memory
// count twice.
double moved_bytes(const Capabilities& caps, const Kernel& kernel, const ItemAnalysis& analysis) {
  const double read = static_cast<double>(analysis.bytes_read);
  double written = static_cast<double>(analysis.bytes_written);
  if (caps.model == ExecutionModel::Cores && kernel.nontemporal.empty())
    written *= 2 - share_held(caps.last_level_bytes, read + written);
  return read + written;
}

}  // namespace

int64_t estimate(double figure) {
  return static_cast<int64_t>(std::min(figure, 1e18));
}

ItemAnalysis analyze(const Graph& graph, const Capabilities& caps, const Kernel& kernel) {
  ItemAnalysis result;
  Operations operations;
  if (kernel.phases().empty()) {
    operations = OperationCounter(graph, caps, kernel).run();
    const std::vector<MemoryAccess> accesses = memory_accesses(graph, kernel);
    result.bytes_read = touched_bytes(graph, kernel, accesses, false);
    result.bytes_written = touched_bytes(graph, kernel, accesses, true);
  } else {
    for (const Kernel& phase : kernel.phases()) {
      const Operations own = OperationCounter(graph, caps, phase, &kernel).run();
      operations.flops += own.flops;
      operations.ns += own.ns;
    }
    std::tie(result.bytes_read, result.bytes_written) = bytes_of_phases(graph, kernel);
  }
  result.flops = estimate(operations.flops);
  const double footprint = static_cast<double>(result.bytes_read + result.bytes_written);
  const double bytes = moved_bytes(caps, kernel, result);
  const double one_core_ns =
      std::max(operations.ns * caps.num_cores, memory_ns(caps, bytes, footprint, 1));
  result.work_ns = estimate(one_core_ns);
  const double cores = busy_cores(caps, kernel);
  const bool alone = caps.model == ExecutionModel::Cores && !is_worth_sharing(caps, one_core_ns);
  const double share = alone ? 1 : cores;
  const double shared_ns =
      std::max(operations.ns * caps.num_cores / share, memory_ns(caps, bytes, footprint, share));
  const bool hands_over = caps.model == ExecutionModel::Cores && share > 1;
  result.est_ns = estimate(caps.launch_ns + shared_ns + (hands_over ? caps.parallel_ns : 0));
  result.occupancy = std::min(1.0, cores / caps.num_cores);
  result.accumulators = count_accumulators(kernel);
  return result;
}

namespace {

// Analyzes an item that moves bytes and computes nothing: a transfer, or a host call with its
// operands and results.
ItemAnalysis analyze_moves(const Graph& graph, const Capabilities& caps, const ScheduleItem& item) {
  ItemAnalysis result;
  const auto [reads, writes] = accesses_of(item);
  for (const Value v : reads) result.bytes_read += bytes_of(graph[v]);
  for (const Value v : writes) result.bytes_written += bytes_of(graph[v]);
  const double bytes = static_cast<double>(result.bytes_read + result.bytes_written);
  result.work_ns = estimate(memory_ns(caps, bytes, bytes, 1));
  result.est_ns = estimate(caps.launch_ns) + result.work_ns;
  return result;
}

// Finds the longest chain of dependent items by est_ns.
void find_critical_path(Schedule& schedule) {
  const size_t n = schedule.items.size();
  std::vector<Ints> depends_on(n);
  for (const Dependency& d : schedule.dependencies) depends_on[d.to].push_back(d.from);
  std::vector<int64_t> finish(n, 0), previous(n, -1);
  size_t last = 0;
  for (size_t i = 0; i < n; ++i) {  // an item comes after those on which it depends
    for (const int64_t d : depends_on[i])
      if (finish[d] > finish[i]) finish[i] = finish[d], previous[i] = d;
    finish[i] += schedule.analysis[i].est_ns;
    if (finish[i] > finish[last]) last = i;
  }
  schedule.critical_path.clear();
  schedule.estimated_runtime_ns = n ? finish[last] : 0;
  for (int64_t i = n ? static_cast<int64_t>(last) : -1; i >= 0; i = previous[i])
    schedule.critical_path.push_back(i);
  std::reverse(schedule.critical_path.begin(), schedule.critical_path.end());
}

}  // namespace

Schedule analyze_items(Schedule schedule, const Capabilities& caps) {
  schedule.analysis.clear();
  std::vector<ItemAnalysis> of_kernels;
  for (const Kernel& kernel : schedule.kernels)
    of_kernels.push_back(analyze(schedule.graph, caps, kernel));
  for (const ScheduleItem& item : schedule.items) {
    if (const Launch* launch = item.launch()) {
      schedule.analysis.push_back(of_kernels[launch->kernel]);
    } else if (item.synchronization()) {
      schedule.analysis.emplace_back();
    } else if (const Loop_Nest* loops = item.loops()) {
      schedule.analysis.push_back(analyze_loops(schedule.graph, caps, *loops));
    } else {
      schedule.analysis.push_back(analyze_moves(schedule.graph, caps, item));
    }
  }
  find_critical_path(schedule);
  return schedule;
}

}  // namespace rune::schedule
