#include "driver/host_call.h"

#include <utility>

#include "base/error.h"

namespace rune::driver {

namespace {

// Calls `function` on arrays. A run gives their addresses, operands before results. If the host
// cannot address the device's memory, the arrays are copied to the host and back.
class HostCall {
 public:
  HostCall(HostFunction function, std::vector<HostArray> operands, std::vector<HostArray> results,
           runtime::Device& device)
      : function_(std::move(function)),
        operands_(std::move(operands)),
        results_(std::move(results)),
        device_(device) {}

  void operator()(std::span<void* const> addresses) const {
    std::vector<HostArray> operands = operands_, results = results_;
    const auto at_operands = addresses.first(operands.size());
    const auto at_results = addresses.last(results.size());
    const bool copies = !device_.addresses_host_memory();
    std::vector<std::vector<uint8_t>> copied;
    const auto place = [&](std::vector<HostArray>& arrays, std::span<void* const> at) {
      for (size_t i = 0; i < arrays.size(); ++i)
        arrays[i].memory = copies ? copied.emplace_back(bytes_of(arrays[i])).data() : at[i];
    };
    place(operands, at_operands);
    place(results, at_results);
    if (copies)
      for (size_t i = 0; i < operands.size(); ++i)
        device_.copy_out(operands[i].memory, at_operands[i], bytes_of(operands[i]));
    function_(operands, results);
    if (copies)
      for (size_t i = 0; i < results.size(); ++i)
        device_.copy_in(at_results[i], results[i].memory, bytes_of(results[i]));
  }

 private:
  static size_t bytes_of(const HostArray& array) {
    return static_cast<size_t>(num_elements(array.shape)) * size_of(array.dtype);
  }

  const HostFunction function_;
  const std::vector<HostArray> operands_, results_;
  runtime::Device& device_;
};

// Sets the dtypes and shapes of a call's arrays to those of the traced graph. They differ from the
// schedule's for complex arrays, of which the schedule has the parts.
void set_traced_types(const graph::Graph& traced, int64_t call, std::vector<HostArray>& operands,
                      std::vector<HostArray>& results) {
  const auto set = [&](HostArray& array, graph::Value v) {
    array.dtype = traced[v].dtype();
    array.shape = constants_of(traced[v].shape());
  };
  for (uint32_t id = 0; id < traced.size(); ++id) {
    const auto* node = traced.nodes[id].as<graph::Host_Callback>();
    if (!node || node->call != call) continue;
    for (size_t i = 0; i < operands.size(); ++i) set(operands[i], traced.nodes[id].inputs[i]);
    for (HostArray& result : results)
      if (result.number == node->result) set(result, {id});
  }
}

}  // namespace

runtime::Host_Callback host_call(const schedule::Host_Callback& callback, const graph::Graph& graph,
                                 const graph::Graph& traced, std::vector<runtime::Slot> slots,
                                 const std::vector<HostFunction>& functions,
                                 runtime::Device& device) {
  const auto call = static_cast<size_t>(callback.call);
  if (call >= functions.size() || !functions[call])
    user_error(ErrorKind::Value, "host_callback: cannot run ", callback.name, " (call ",
               callback.call, " has no function)\nhint: compile with the functions, by call");
  runtime::Host_Callback step;
  step.name = callback.name;
  step.arguments = std::move(slots);
  std::vector<HostArray> operands, results;
  for (const schedule::Value v : callback.inputs)
    operands.push_back({nullptr, graph[v].dtype(), constants_of(graph[v].shape()),
                        static_cast<int64_t>(operands.size())});
  for (const schedule::Value v : callback.outputs) {
    const auto* node = graph[v].as<graph::Host_Callback>();
    results.push_back({nullptr, graph[v].dtype(), constants_of(graph[v].shape()), node->result});
  }
  set_traced_types(traced, callback.call, operands, results);
  step.function = HostCall(functions[call], std::move(operands), std::move(results), device);
  return step;
}

}  // namespace rune::driver
