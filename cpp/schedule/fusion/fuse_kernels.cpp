#include "schedule/fusion/fuse_kernels.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "schedule/fusion/form_kernels.h"
#include "schedule/fusion/tile_fusion.h"
#include "schedule/structure.h"

namespace rune::schedule {

namespace {

// The kernel's name, which says what it does.
const char* kind_of(const Graph& graph, const Kernel& kernel) {
  const auto has_stage = [&](StageKind kind) {
    return std::any_of(kernel.stages().begin(), kernel.stages().end(),
                       [kind](const Stage& stage) { return stage.kind == kind; });
  };
  const bool begins = !has_stage(StageKind::Reduce) && kernel.phases().empty();
  const bool reduces = !begins && std::any_of(kernel.ops.begin(), kernel.ops.end(), [&](Value v) {
    return graph[v].kind() == graph::NodeKind::Reduce_Axis;
  });
  return has_stage(StageKind::Scan)      ? "scan"
         : has_stage(StageKind::Scatter) ? "scatter"
         : contracts(graph, kernel)      ? "contract"
         : reduces                       ? "reduce"
                                         : "map";
}

bool is_empty(const Graph& graph, const Cluster& cluster) {
  return std::all_of(cluster.values.begin(), cluster.values.end(),
                     [&](Value v) { return max_elements(graph[v].shape()) == 0; });
}

void check_supported(const Graph& graph, const Kernel& kernel, const Capabilities& caps) {
  for (const Value v : kernel.ops)
    if (!caps.has_dtype(graph[v].dtype()))
      user_error(ErrorKind::DType, graph::name_of(graph[v].kind()), ": cannot compute ",
                 numpy_name(graph[v].dtype()), " on ", caps.name, " (",
                 shape_text(graph[v].shape()),
                 graph[v].location.empty() ? "" : ", at " + graph[v].location,
                 ")\nhint: cast to a dtype that the device has, or use device=\"cpu\"");
  for (const Value v : kernel.inputs) {
    const graph::Node& node = graph[v];
    if (caps.has_dtype(node.dtype())) continue;
    const auto* placeholder = node.as<graph::Placeholder>();
    user_error(ErrorKind::DType, "jit: cannot hold ",
               placeholder ? concat("argument ", placeholder->index) : std::string("a constant"),
               " of dtype ", numpy_name(node.dtype()), " and shape ", shape_text(node.shape()),
               " on ", caps.name,
               "\nhint: pass it as a dtype that the device has, or use device=\"cpu\"");
  }
  const auto buffers = static_cast<int64_t>(kernel.inputs.size() + kernel.outputs.size());
  if (buffers > caps.max_buffers)
    user_error(ErrorKind::Unsupported, kernel.name, ": cannot pass ", buffers,
               " buffers to one kernel (", caps.name, " allows ", caps.max_buffers, ")");
}

// Adds a transfer. Its source is complete when the source's device has run all earlier items.
void add_transfer(Schedule& schedule, Value v, const Capabilities& caps) {
  const graph::Node& node = schedule.graph[v];
  const Value from = node.inputs[0];
  const std::string source = schedule.graph[from].meta.device.value_or(caps.name);
  schedule.items.emplace_back().operation = Synchronization{{source}};
  schedule.items.emplace_back().operation = Memory_Transfer{from, v, source, *node.meta.device};
}

// Adds a host call or a loop. It runs where the program's own device has its operands.
void add_call(Schedule& schedule, const Cluster& cluster) {
  const Graph& graph = schedule.graph;
  const graph::Node& node = graph[cluster.values.front()];
  std::vector<Value> outputs;
  for (const Value v : cluster.values)
    if (max_elements(graph[v].shape()) > 0) outputs.push_back(v);
  ScheduleItem& item = schedule.items.emplace_back();
  if (const auto* called = node.as<graph::Host_Callback>())
    item.operation = Host_Callback{called->name, called->call, node.inputs, std::move(outputs)};
  else
    item.operation = Loop_Nest{node.inputs, std::move(outputs)};
}

}  // namespace

Schedule fuse_kernels(Graph whole, const Capabilities& caps) {
  Schedule schedule;
  schedule.graph = std::move(whole);
  const Graph& graph = schedule.graph;
  schedule.outputs = graph.outputs;
  std::vector<Value> outputs = graph.outputs;
  // Values that a Sink keeps alive are computed like outputs, but in the program's own memory.
  for (const graph::Node& node : graph.nodes)
    if (node.kind() == graph::NodeKind::Sink)
      for (const Value v : node.inputs)
        if (is_computed(graph[v])) outputs.push_back(v);
  std::erase_if(outputs, [&](Value v) { return max_elements(graph[v].shape()) == 0; });
  Fusion fusion = fuse(graph, outputs, caps);
  std::vector<Kernel> formed;
  std::map<size_t, Kernel> grouped;  // by the group's last cluster
  std::set<size_t> in_groups;
  for (TileGroup& group : group_by_tiles(graph, outputs, caps, fusion)) {
    in_groups.insert(group.clusters.begin(), group.clusters.end());
    grouped[group.clusters.back()] = std::move(group.kernel);
  }
  for (size_t c = 0; c < fusion.clusters.size(); ++c) {
    const Cluster& cluster = fusion.clusters[c];
    if (is_empty(graph, cluster) || (in_groups.count(c) && !grouped.count(c))) continue;
    if (evaluation_of(graph[cluster.values.front()]) == Evaluation::Moved) {
      add_transfer(schedule, cluster.values.front(), caps);
      continue;
    }
    if (evaluation_of(graph[cluster.values.front()]) == Evaluation::Called) {
      add_call(schedule, cluster);
      continue;
    }
    std::vector<Kernel> kernels;
    if (in_groups.count(c)) {
      kernels.push_back(std::move(grouped.at(c)));
    } else {
      kernels = form_kernels(graph, cluster, fusion);
    }
    for (Kernel& kernel : kernels) {
      kernel.name = kind_of(graph, kernel);
      check_supported(graph, kernel, caps);
      kernel.device = graph[cluster.values.front()].meta.device.value_or(caps.name);
      schedule.items.emplace_back().operation = Launch{};
      formed.push_back(std::move(kernel));
    }
  }
  SharedKernels shared = share_kernels(graph, formed);
  schedule.kernels = std::move(shared.kernels);
  for (size_t k = 0; k < schedule.kernels.size(); ++k) schedule.kernels[k].name += concat("_", k);
  size_t next = 0;
  for (ScheduleItem& item : schedule.items)
    if (item.launch()) item.operation = std::move(shared.launches[next++]);
  schedule.fusion_opportunities = std::move(fusion.opportunities);
  return schedule;
}

}  // namespace rune::schedule
