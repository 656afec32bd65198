// Describes a lowered program as data, for pages and profiles. driver::explain has the same facts
// as text.

#include "bindings/bindings.h"
#include "bindings/lowered.h"
#include "bindings/profile.h"
#include "bindings/value.h"
#include "driver/explain.h"
#include "driver/program_info.h"
#include "graph/text.h"

namespace rune::bindings {

namespace {

using namespace py::literals;
using driver::Lowered;

// The values by number, each with its dtype, shape and bytes, and whether it is an input or a
// constant.
py::dict values_of(const Lowered& lowered) {
  const schedule::Schedule& schedule = lowered.schedule;
  py::dict values;
  for (const schedule::Allocation& place : schedule.allocations) {
    const graph::Node& node = schedule.graph[place.value];
    const auto* input = node.as<graph::Placeholder>();
    values[py::int_(place.value.id)] =
        py::dict("dtype"_a = name_of(node.dtype()), "shape"_a = shape_text(node.shape()),
                 "bytes"_a = bytes_of(schedule.graph[place.value]),
                 "input"_a = input ? py::object(py::int_(input->index)) : py::object(py::none()),
                 "is_constant"_a = node.as<graph::Vconst>() != nullptr);
  }
  return values;
}

std::vector<graph::Value> ops_of(const schedule::ScheduleItem& item) {
  if (const auto* launch = item.launch()) return launch->ops;
  if (const auto* loops = item.loops()) return loops->outputs;
  if (const auto* callback = item.callback()) return callback->outputs;
  return {};
}

py::dict describe_item(const Lowered& lowered, size_t number) {
  const schedule::Schedule& schedule = lowered.schedule;
  const schedule::ScheduleItem& item = schedule.items[number];
  const schedule::ItemAnalysis& costs = schedule.analysis.at(number);
  py::list nodes;
  for (const graph::Value v : ops_of(item))
    nodes.append(
        py::make_tuple(v.id, graph::print_node(schedule.graph, v), schedule.graph[v].location));
  std::vector<graph::Value> reads, writes;
  if (const auto* transfer = item.transfer()) {
    reads = {transfer->src};
    writes = {transfer->dst};
  } else if (!item.synchronization()) {
    const auto accesses = schedule::accesses_of(item);
    reads.assign(accesses.reads.begin(), accesses.reads.end());
    writes.assign(accesses.writes.begin(), accesses.writes.end());
  }
  py::object program = py::none();
  if (const auto* launch = item.launch()) program = py::int_(launch->kernel);
  if (item.loops()) program = py::int_(lowered.loops_of(number).first_kernel);
  std::vector<int64_t> after;
  for (const schedule::Dependency& d : schedule.dependencies)
    if (d.to == static_cast<int64_t>(number)) after.push_back(d.from);
  return py::dict("program"_a = program, "occupancy"_a = costs.occupancy, "nodes"_a = nodes,
                  "reads"_a = ids_of(reads), "writes"_a = ids_of(writes), "after"_a = after,
                  "text"_a = driver::explain_item(lowered, number),
                  **fields_of(driver::step_info(schedule, lowered.capabilities, number)));
}

py::dict describe(const PyLowered& l) {
  const Lowered& lowered = l.lowered;
  const schedule::Schedule& schedule = lowered.schedule;
  py::list items, fusions;
  for (size_t i = 0; i < schedule.items.size(); ++i) items.append(describe_item(lowered, i));
  for (const schedule::FusionOpportunity& f : schedule.fusion_opportunities)
    fusions.append(py::dict("producer"_a = f.producer.id, "consumer"_a = f.consumer.id,
                            "kind"_a = name_of(f.fusion_type), "taken"_a = f.taken,
                            "ns"_a = f.benefit_score, "bytes"_a = f.memory_saved,
                            "reason"_a = f.reason));
  return py::dict(
      "name"_a = lowered.name, "target"_a = lowered.target->name, "device"_a = l.device,
      "items"_a = items, "values"_a = values_of(lowered), "outputs"_a = ids_of(schedule.outputs),
      "fusions"_a = fusions, "critical_path"_a = schedule.critical_path,
      "peak_bytes"_a = schedule.total_memory_usage, "arena_bytes"_a = schedule.arena_bytes,
      "estimated_ns"_a = schedule.estimated_runtime_ns);
}

}  // namespace

void bind_description(py::class_<PyLowered, std::shared_ptr<PyLowered>>& lowered) {
  lowered.def("describe", &describe,
              "The facts of `explain` as data: `items` in order, each with its nodes, costs and "
              "limits; `values` in memory, by number; and `fusions` that were considered, each "
              "with the reason why it was done or not.");
  lowered.def(
      "texts",
      [](const PyLowered& l, const std::string& target) {
        const py::gil_scoped_release release;
        return driver::kernel_texts(l.lowered, target);
      },
      py::arg("target"), "(name, source) of each program, lowered for a target.");
}

}  // namespace rune::bindings
