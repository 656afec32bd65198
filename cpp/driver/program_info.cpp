#include "driver/program_info.h"

#include "base/error.h"
#include "schedule/analysis/cost.h"
#include "schedule/analysis/library_product.h"

namespace rune::driver {

namespace {

using runtime::StepInfo;

DType computed_dtype(const schedule::Schedule& schedule, const std::vector<graph::Value>& outputs) {
  return outputs.empty() ? DType::Float32 : real_of(schedule.graph[outputs[0]].dtype());
}

void add_costs(const schedule::ItemAnalysis& costs, const Capabilities& caps, DType dtype,
               StepInfo& info) {
  info.flops = static_cast<double>(costs.flops);
  info.bytes_read = static_cast<double>(costs.bytes_read);
  info.bytes_written = static_cast<double>(costs.bytes_written);
  info.estimated_ns = static_cast<double>(costs.est_ns);
  const double bytes = info.bytes_read + info.bytes_written;
  info.peak_bytes_per_ns =
      bytes > 0 ? bytes / schedule::memory_ns(caps, bytes, bytes) : caps.bandwidth_bytes_per_ns;
  // A multiply-add is one operation and two flops.
  info.peak_flops_per_ns = 2 / schedule::operations_ns(caps, 1, dtype);
}

// The user's line for a kernel's most expensive operation: a contraction, else a reduction, else
// the last operation.
std::string main_line(const schedule::Schedule& schedule, const schedule::Kernel& kernel) {
  const std::string* found = nullptr;
  for (const graph::Value v : kernel.ops) {
    const graph::Node& node = schedule.graph[v];
    if (node.location.empty()) continue;
    if (node.kind() == graph::NodeKind::Contract) return node.location;
    const bool reduces = node.kind() == graph::NodeKind::Reduce_Axis;
    if (reduces && !found) found = &node.location;
  }
  return found ? *found : location_of(schedule, kernel);
}

void describe_kernel(const schedule::Schedule& schedule, const schedule::Kernel& kernel,
                     const Capabilities& caps, StepInfo& info) {
  info.kind = "kernel";
  info.name = kernel.name;
  info.location = main_line(schedule, kernel);
  const auto product = schedule::library_product(schedule.graph, kernel, caps);
  if (!product) return;
  info.kind = "library";
  for (const LibraryRate& rate : caps.library_rates)
    if (rate.operands == product->operands) info.peak_flops_per_ns = 2 * rate.of_library;
}

}  // namespace

std::string location_of(const schedule::Schedule& schedule, const schedule::Kernel& kernel) {
  for (auto v = kernel.ops.rbegin(); v != kernel.ops.rend(); ++v)
    if (const std::string& line = schedule.graph[*v].location; !line.empty()) return line;
  return "";
}

StepInfo step_info(const schedule::Schedule& schedule, const Capabilities& caps, size_t number) {
  const schedule::ScheduleItem& item = schedule.items[number];
  StepInfo info;
  info.device = caps.name;
  if (const schedule::Launch* launch = item.launch()) {
    add_costs(schedule.analysis.at(number), caps, computed_dtype(schedule, launch->outputs), info);
    describe_kernel(schedule, schedule.kernels[launch->kernel], caps, info);
    if (const std::string& device = schedule.kernels[launch->kernel].device; !device.empty())
      info.device = device;
  } else if (const schedule::Loop_Nest* loops = item.loops()) {
    add_costs(schedule.analysis.at(number), caps, computed_dtype(schedule, loops->outputs), info);
    info.kind = info.name = "loops";
    info.location = schedule.graph[loops->outputs[0]].location;
  } else if (const schedule::Host_Callback* callback = item.callback()) {
    info.kind = "callback";
    info.name = callback->name;
    info.device = "host";
    info.bytes_read = static_cast<double>(schedule.analysis.at(number).bytes_read);
    info.bytes_written = static_cast<double>(schedule.analysis.at(number).bytes_written);
    if (!callback->outputs.empty()) info.location = schedule.graph[callback->outputs[0]].location;
  } else if (const schedule::Memory_Transfer* transfer = item.transfer()) {
    info.kind = "transfer";
    info.name = concat(transfer->src_device, " to ", transfer->dst_device);
    info.bytes_read = info.bytes_written =
        static_cast<double>(bytes_of(schedule.graph[transfer->src]));
  } else {
    info.kind = info.name = "wait";
  }
  return info;
}

}  // namespace rune::driver
