#include "schedule/analysis.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "schedule/cost.h"

namespace rune::schedule {

namespace {

// Points over which a set of variables ranges.
class PointCounter {
 public:
  explicit PointCounter(const IterSpace& iter, const std::map<uint32_t, int64_t>& inner)
      : iter_(iter), inner_(inner) {}

  double count(const std::set<uint32_t>& variables) const {
    double points = 1;
    for (const uint32_t v : variables)
      points *= static_cast<double>(v < iter_.axes.size() ? iter_.axes[v].extent() : inner_.at(v));
    return points;
  }

 private:
  const IterSpace& iter_;
  const std::map<uint32_t, int64_t>& inner_;
};

std::set<uint32_t> variables_of(const Index& index) {
  std::set<uint32_t> result;
  for (const sym::Expr& expr : index)
    for (const uint32_t v : expr.variables()) result.insert(v);
  return result;
}

struct Operations {
  double flops = 0;     // every scalar operation counts one
  double weighted = 0;  // by node_operations, in ns
};

class OperationCounter {
 public:
  OperationCounter(const Graph& graph, const Capabilities& caps, const Kernel& kernel)
      : graph_(graph), caps_(caps), kernel_(kernel) {
    for (const BufferInfo& buffer : kernel.inputs) stops_.insert(buffer.buf_var.id);
    for (const Stage& stage : kernel.stages)
      if (stage.kind == StageKind::Reduce)
        for (const StageValue& value : stage.values) stops_.insert(value.value.id);
  }

  Operations run() {
    const std::vector<sym::Expr> axes = axis_variables(kernel_.iter);
    for (const Stage& stage : kernel_.stages) {
      std::vector<Seed> seeds;
      for (Seed& seed : stage_seeds(graph_, stage, axes)) {
        if (stage.kind == StageKind::Map && stops_.count(seed.value.id)) continue;
        Index all = seed.index;
        all.insert(all.end(), seed.inner.begin(), seed.inner.end());
        add(seed.value, PointCounter(kernel_.iter, {}).count(variables_of(all)));
        seeds.push_back(std::move(seed));
      }
      const Walk walked = walk(graph_, seeds, [&](Value v, const std::vector<Demand>&) {
        return stops_.count(v.id) > 0;
      });
      const PointCounter counter(kernel_.iter, walked.inner_extents);
      for (const auto& [id, demands] : walked.demands) {
        if (stops_.count(id)) continue;
        for (const Demand& demand : demands) {
          double points = counter.count(variables_of(demand.index));
          if (evaluation_of(graph_.nodes[id]) == Evaluation::Reduction)
            points *= static_cast<double>(num_elements(reduced_shape(graph_, Value{id})));
          add(Value{id}, points);
        }
      }
    }
    return total_;
  }

 private:
  void add(Value v, double points) {
    const graph::Node& node = graph_[v];
    const double cost = node_operations(node);
    double flops = cost > 0 ? 1 : 0, weighted = cost;
    if (node.kind() == graph::NodeKind::Reduce_Axis) flops = weighted = 1;
    if (node.kind() == graph::NodeKind::Contract) flops = 2, weighted = 1;
    const auto* ternary = node.as<graph::Ternary>();
    if (ternary && ternary->op == AluOp::Mulacc) flops = 2;
    total_.flops += points * flops;
    total_.weighted += operations_ns(caps_, points * weighted, node.dtype());
  }

  const Graph& graph_;
  const Capabilities& caps_;
  const Kernel& kernel_;
  std::set<uint32_t> stops_;
  Operations total_;
};

// Distinct elements of each buffer that the kernel touches, in bytes.
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
    const double elements = std::min(points, static_cast<double>(num_elements(node.shape())));
    bytes += static_cast<int64_t>(elements) * size_of(node.dtype());
  }
  return bytes;
}

// By buffer that the kernel's phases touch in memory: the most that one of them touches, in bytes.
std::pair<int64_t, int64_t> bytes_of_phases(const Graph& graph, const Kernel& kernel) {
  std::pair<int64_t, int64_t> bytes;
  const auto add = [&](const std::vector<BufferInfo>& buffers, bool stores, int64_t& total) {
    for (const BufferInfo& buffer : buffers) {
      int64_t most = 0;
      for (const Kernel& phase : kernel.phases) {
        std::vector<MemoryAccess> accesses = memory_accesses(graph, phase);
        std::erase_if(accesses, [&](const auto& a) { return a.value != buffer.buf_var; });
        most = std::max(most, touched_bytes(graph, phase, accesses, stores));
      }
      total += most;
    }
  };
  add(kernel.inputs, false, bytes.first);
  add(kernel.outputs, true, bytes.second);
  return bytes;
}

}  // namespace

ItemAnalysis analyze(const Graph& graph, const Capabilities& caps, const Kernel& kernel) {
  ItemAnalysis result;
  Operations operations;
  if (kernel.phases.empty()) {
    operations = OperationCounter(graph, caps, kernel).run();
    const std::vector<MemoryAccess> accesses = memory_accesses(graph, kernel);
    result.bytes_read = touched_bytes(graph, kernel, accesses, false);
    result.bytes_written = touched_bytes(graph, kernel, accesses, true);
  } else {
    for (const Kernel& phase : kernel.phases) {
      const Operations own = OperationCounter(graph, caps, phase).run();
      operations.flops += own.flops;
      operations.weighted += own.weighted;
    }
    std::tie(result.bytes_read, result.bytes_written) = bytes_of_phases(graph, kernel);
  }
  result.flops = static_cast<int64_t>(operations.flops);
  const double bytes = static_cast<double>(result.bytes_read + result.bytes_written);
  result.est_ns =
      static_cast<int64_t>(caps.launch_ns + std::max(operations.weighted, memory_ns(caps, bytes)));
  result.regs_per_thread = registers_per_thread(kernel);
  return result;
}

int64_t registers_per_thread(const Kernel& kernel) {
  int64_t result = 0;
  for (const Stage& stage : kernel.stages) {
    if (stage.kind != StageKind::Reduce) continue;
    int64_t accumulators = kernel.context.upcasted;
    for (const int64_t axis : stage.axes)
      accumulators = std::max(accumulators, kernel.unroll(axis));
    result += accumulators * static_cast<int64_t>(stage.values.size());
  }
  for (const Kernel& phase : kernel.phases) result = std::max(result, registers_per_thread(phase));
  return result;
}

ItemAnalysis analyze(const Capabilities& caps, const Host_Callback& callback) {
  ItemAnalysis result;
  for (const BufferInfo& buffer : callback.inputs) result.bytes_read += buffer.alloc.size_bytes;
  for (const BufferInfo& buffer : callback.outputs) result.bytes_written += buffer.alloc.size_bytes;
  const double bytes = static_cast<double>(result.bytes_read + result.bytes_written);
  result.est_ns = static_cast<int64_t>(caps.launch_ns + memory_ns(caps, bytes));
  return result;
}

void find_critical_path(Schedule& schedule) {
  const size_t n = schedule.items.size();
  std::vector<int64_t> finish(n, 0), previous(n, -1);
  size_t last = 0;
  for (size_t i = 0; i < n; ++i) {  // items are in an order in which they can run
    for (const int64_t d : schedule.items[i].depends_on)
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

}  // namespace rune::schedule
