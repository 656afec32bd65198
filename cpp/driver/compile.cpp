#include "driver/compile.h"

#include <algorithm>

#include "base/error.h"
#include "driver/loop_plan.h"
#include "driver/pipeline.h"
#include "driver/program_info.h"
#include "lower/passes/lower_kernel.h"
#include "schedule/analysis/cost.h"
#include "schedule/analysis/library_product.h"

namespace rune::driver {

using runtime::KernelSource;
using runtime::Slot;

namespace {

void check_argument_dtypes(const graph::Graph& graph, const Target& target) {
  for (const graph::Value v : graph.inputs()) {
    const graph::Node& node = graph[v];
    if (!target.capabilities().has_dtype(node.dtype()))
      user_error(ErrorKind::DType, "jit: cannot hold argument ",
                 node.as<graph::Placeholder>()->index, " of dtype ", numpy_name(node.dtype()),
                 " and shape ", shape_text(node.shape()), " on ", target.name,
                 "\nhint: pass it as a dtype that the device has, or use device=\"cpu\"");
  }
}

// The program's devices by number: 0 is its own, which values without a device are on.
class Devices {
 public:
  Devices(const Lowered& lowered, const std::string& device, runtime::Executable& executable)
      : own_(lowered.target->capabilities().name), executable_(executable) {
    executable.device = open_device(device);
    numbers_[own_] = numbers_[with_ordinal(device)] = 0;
    for (const graph::Node& node : lowered.schedule.graph.nodes)
      if (node.meta.device && !numbers_.count(*node.meta.device)) {
        executable.peers.push_back(open_device(*node.meta.device));
        numbers_[*node.meta.device] = static_cast<int>(executable.peers.size());
      }
  }
  int number_of(const std::string& name) const { return numbers_.at(name); }
  runtime::Device& operator[](int number) const {
    return number == 0 ? *executable_.device : *executable_.peers[number - 1];
  }
  int count() const { return static_cast<int>(executable_.peers.size()) + 1; }

 private:
  static std::string with_ordinal(const std::string& name) {
    return name.find(':') == std::string::npos ? name + ":0" : name;
  }

  const std::string own_;
  runtime::Executable& executable_;
  std::map<std::string, int> numbers_;
};

// Where each value of a schedule lives while the program runs.
class SlotTable {
 public:
  SlotTable(const schedule::Schedule& schedule, runtime::Executable& executable)
      : schedule_(schedule), executable_(executable) {
    for (size_t i = 0; i < schedule.outputs.size(); ++i)
      slots_[schedule.outputs[i].id] = {Slot::Kind::Output, static_cast<int64_t>(i), 0};
    for (const schedule::Allocation& allocation : schedule.allocations)
      add(allocation.value, allocation.offset);
  }

  // As device number `device` sees it.
  Slot at(schedule::Value v, int device) const {
    Slot slot = slots_.at(v.id);
    slot.device = device;
    return slot;
  }

 private:
  void add(schedule::Value v, std::optional<int64_t> offset) {
    if (slots_.count(v.id)) return;
    const graph::Node& node = schedule_.graph[v];
    Slot slot;
    if (const auto* placeholder = node.as<graph::Placeholder>()) {
      slot = {Slot::Kind::Input, placeholder->index, 0};
    } else if (const auto* constant = node.as<graph::Vconst>()) {
      slot = {Slot::Kind::Constant, static_cast<int64_t>(executable_.constants.size()), 0};
      executable_.constants.push_back(bytes_of(*constant));
    } else {
      RUNE_CHECK(offset, "a temporary has no place in the arena");
      slot = {Slot::Kind::Temporary, 0, *offset};
    }
    slots_[v.id] = slot;
  }

  static std::vector<uint8_t> bytes_of(const graph::Vconst& constant) {
    std::vector<uint8_t> bytes;
    for (const Scalar& value : constant.values) {
      const size_t size = size_of(value.dtype());
      bytes.resize(bytes.size() + size);
      value.store(bytes.data() + bytes.size() - size);
    }
    return bytes;
  }

  const schedule::Schedule& schedule_;
  runtime::Executable& executable_;
  std::map<uint32_t, Slot> slots_;
};

// All but the text.
KernelSource source_of(const Target& target, const lower::Kernel& code) {
  KernelSource source;
  source.name = target.symbol ? target.symbol(code.name) : code.name;
  source.grid = code.grid;
  source.local = code.local;
  source.independent_threads = code.has_independent_threads();
  source.scratch_bytes = code.local_offsets().back();
  for (const lower::Var v : code.globals()) {
    source.buffer_dtypes.push_back(code[v].type.dtype);
    source.buffer_sizes.push_back(code[v].as<lower::Define_Global>()->size);
    source.buffer_written.push_back(code[v].as<lower::Define_Global>()->writable);
  }
  return source;
}

// The programs of the kernels, in order. Those of one device are compiled together.
std::vector<std::shared_ptr<runtime::Program>> compile_kernels(const Lowered& lowered,
                                                               const Devices& devices) {
  const schedule::Schedule& schedule = lowered.schedule;
  std::vector<double> work_ns(lowered.kernels.size());
  for (size_t i = 0; i < schedule.items.size(); ++i)
    if (const schedule::Launch* launch = schedule.items[i].launch())
      work_ns[launch->kernel] = static_cast<double>(schedule.analysis[i].work_ns);
  size_t next_loops = schedule.kernels.size();
  for (size_t i = 0; i < schedule.items.size(); ++i)
    if (schedule.items[i].loops())
      work_ns[next_loops++] = static_cast<double>(schedule.analysis[i].work_ns);
  std::vector<std::shared_ptr<runtime::Program>> programs(lowered.kernels.size());
  for (int d = 0; d < devices.count(); ++d) {
    std::vector<size_t> numbers;
    std::vector<lower::Kernel> kernels;
    for (size_t k = 0; k < lowered.kernels.size(); ++k) {
      // Those of loops, which come last, run on the program's own device.
      const bool loops = k >= schedule.kernels.size();
      if ((loops ? 0 : devices.number_of(schedule.kernels[k].device)) != d) continue;
      numbers.push_back(k);
      kernels.push_back(lowered.kernels[k]);
    }
    std::vector<std::string> texts = lowered.target->render(kernels);
    std::vector<KernelSource> sources;
    for (size_t i = 0; i < kernels.size(); ++i) {
      KernelSource& source = sources.emplace_back(source_of(*lowered.target, kernels[i]));
      const double ns = work_ns[numbers[i]];
      if (schedule::is_worth_sharing(lowered.capabilities, ns)) source.estimated_ns = ns;
      source.text = std::move(texts[i]);
      if (numbers[i] >= schedule.kernels.size()) continue;
      const schedule::Kernel& kernel = schedule.kernels[numbers[i]];
      source.location = location_of(schedule, kernel);
      source.product = schedule::library_product(schedule.graph, kernel, lowered.capabilities);
    }
    const auto compiled = devices[d].compiler().compile(sources);
    for (size_t i = 0; i < compiled.size(); ++i) programs[numbers[i]] = compiled[i];
  }
  return programs;
}

runtime::Step transfer_step(const schedule::Memory_Transfer& transfer, const graph::Graph& graph,
                            const SlotTable& slots, const Devices& devices) {
  const int from = devices.number_of(transfer.src_device);
  const int to = devices.number_of(transfer.dst_device);
  return runtime::Memory_Transfer{slots.at(transfer.dst, to), slots.at(transfer.src, from),
                                  static_cast<size_t>(schedule::bytes_of(graph, transfer.src)),
                                  from, to};
}

runtime::Step synchronization_step(const schedule::Synchronization& wait, const Devices& devices) {
  runtime::Synchronization step;
  for (const std::string& name : wait.devices) step.devices.push_back(devices.number_of(name));
  return step;
}

// Calls `function` on arrays whose addresses a run gives, operands before results. Where the host
// cannot address the device's memory they are copied there and back.
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

// The dtype and shape that the traced graph has for an array of a call: of a complex one the
// schedule has the parts.
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

runtime::Host_Callback make_callback(const schedule::Host_Callback& callback,
                                     const Lowered& lowered, const SlotTable& slots,
                                     const std::vector<HostFunction>& functions,
                                     runtime::Device& device) {
  const graph::Graph& graph = lowered.schedule.graph;
  const auto call = static_cast<size_t>(callback.call);
  if (call >= functions.size() || !functions[call])
    user_error(ErrorKind::Value, "host_callback: cannot run ", callback.name, " (call ",
               callback.call, " has no function)\nhint: compile with the functions, by call");
  runtime::Host_Callback step;
  step.name = callback.name;
  std::vector<HostArray> operands, results;
  for (const schedule::Value v : callback.inputs) {
    operands.push_back({nullptr, graph[v].dtype(), constants_of(graph[v].shape()),
                        static_cast<int64_t>(operands.size())});
    step.arguments.push_back(slots.at(v, 0));
  }
  for (const schedule::Value v : callback.outputs) {
    const auto* node = graph[v].as<graph::Host_Callback>();
    results.push_back({nullptr, graph[v].dtype(), constants_of(graph[v].shape()), node->result});
    step.arguments.push_back(slots.at(v, 0));
  }
  set_traced_types(lowered.graph, callback.call, operands, results);
  step.function = HostCall(functions[call], std::move(operands), std::move(results), device);
  return step;
}

Lowered lower_for(const Capabilities& capabilities, const graph::Graph& graph,
                  const std::string& device) {
  Lowered lowered;
  lowered.target = &find_target(device);
  lowered.capabilities = capabilities;
  lowered.graph = graph;
  check_argument_dtypes(graph, *lowered.target);
  State state;
  state.capabilities = &lowered.capabilities;
  state.device = device;
  state.graph = graph;
  run_pipeline(state);
  lowered.schedule = std::move(state.schedule);
  lowered.kernels = std::move(state.kernels);
  return lowered;
}

std::shared_ptr<const runtime::Executable> assemble(const Lowered& lowered,
                                                    const std::string& device,
                                                    const std::vector<HostFunction>& functions) {
  auto executable = std::make_shared<runtime::Executable>();
  const Devices devices(lowered, device, *executable);
  executable->num_inputs = lowered.graph.inputs().size();
  executable->num_outputs = lowered.graph.outputs.size();
  executable->arena_bytes = static_cast<size_t>(lowered.schedule.arena_bytes);
  executable->estimated_ns = static_cast<double>(lowered.schedule.estimated_runtime_ns);
  const auto programs = compile_kernels(lowered, devices);
  const SlotTable slots(lowered.schedule, *executable);
  auto info = std::make_shared<runtime::ProgramInfo>();
  info->name = lowered.name;
  info->is_dynamic = !lowered.schedule.graph.symbolic_vars().empty();
  const auto add = [&](runtime::Step step, runtime::StepInfo step_info) {
    executable->steps.push_back(std::move(step));
    info->steps.push_back(std::move(step_info));
  };
  size_t next_loops = lowered.schedule.kernels.size();
  for (size_t number = 0; number < lowered.schedule.items.size(); ++number) {
    const schedule::ScheduleItem& item = lowered.schedule.items[number];
    runtime::StepInfo about = step_info(lowered, number);
    if (const schedule::Host_Callback* callback = item.callback()) {
      add(make_callback(*callback, lowered, slots, functions, *executable->device), about);
      continue;
    }
    if (const schedule::Memory_Transfer* transfer = item.transfer()) {
      add(transfer_step(*transfer, lowered.schedule.graph, slots, devices), about);
      continue;
    }
    if (const schedule::Synchronization* wait = item.synchronization()) {
      add(synchronization_step(*wait, devices), about);
      continue;
    }
    if (const schedule::Loop_Nest* loops = item.loops()) {
      const auto& nest = *lowered.schedule.graph[loops->outputs[0]].as<graph::Loop_Nest>();
      for (const auto& [result, operand] : plan_loops(*nest.graph.graph).copies)
        for (const schedule::Value v : loops->outputs)
          if (lowered.schedule.graph[v].as<graph::Loop_Nest>()->result ==
              static_cast<int64_t>(result)) {
            const int64_t bytes = schedule::bytes_of(lowered.schedule.graph, v);
            runtime::StepInfo copy{"transfer", "copy for loops", about.location, about.device};
            copy.bytes_read = copy.bytes_written = static_cast<double>(bytes);
            add(runtime::Memory_Transfer{slots.at(v, 0), slots.at(loops->inputs[operand], 0),
                                         static_cast<size_t>(bytes)},
                copy);
          }
      runtime::Launch launch;
      launch.program = programs[next_loops++];
      for (const auto* values : {&loops->inputs, &loops->outputs})
        for (const schedule::Value v : *values) launch.arguments.push_back(slots.at(v, 0));
      add(std::move(launch), std::move(about));
      continue;
    }
    const schedule::Launch& launched = *item.launch();
    runtime::Launch launch;
    launch.vars = launched.arguments;
    launch.program = programs[launched.kernel];
    launch.device = devices.number_of(lowered.schedule.kernel_of(item)->device);
    for (const schedule::Value v : lower::kernel_arguments(launched.inputs, launched.outputs))
      launch.arguments.push_back(slots.at(v, launch.device));
    add(std::move(launch), std::move(about));
  }
  executable->info = std::move(info);
  executable->prepare();
  return executable;
}

}  // namespace

Lowered lower(const graph::Graph& graph, const std::string& device) {
  return lower_for(known_capabilities(device), graph, device);
}

std::string source(const Lowered& lowered, const std::string& target) {
  const Target& wanted = find_target(target);
  if (&wanted != lowered.target) return source(lower(lowered.graph, target), target);
  std::string all;
  for (const std::string& text : wanted.render(lowered.kernels)) all += text;
  return all;
}

std::vector<std::pair<std::string, std::string>> kernel_texts(const Lowered& lowered,
                                                              const std::string& target) {
  const Target& wanted = find_target(target);
  if (&wanted != lowered.target) return kernel_texts(lower(lowered.graph, target), target);
  std::vector<std::pair<std::string, std::string>> texts;
  for (const lower::Kernel& kernel : lowered.kernels)
    texts.emplace_back(kernel.name, wanted.render({&kernel, 1})[0]);
  return texts;
}

std::vector<lower::Kernel> launched_kernels(const Lowered& lowered) {
  std::vector<lower::Kernel> kernels;
  size_t next_loops = lowered.schedule.kernels.size();
  for (const schedule::ScheduleItem& item : lowered.schedule.items)
    if (item.loops()) {
      kernels.push_back(lowered.kernels[next_loops++]);
    } else if (const schedule::Launch* launch = item.launch()) {
      kernels.push_back(lowered.kernels[launch->kernel]);
      kernels.back().arguments = launch->arguments;
    }
  return kernels;
}

std::map<std::string, double> cost_analysis(const Lowered& lowered) {
  std::map<std::string, double> costs{
      {"kernels", 0},
      {"programs", static_cast<double>(lowered.kernels.size())},
      {"peak_bytes", static_cast<double>(lowered.schedule.total_memory_usage)},
      {"estimated_ns",
       static_cast<double>(lowered.schedule.estimated_runtime_ns) +
           schedule::call_ns(lowered.graph.inputs().size() + lowered.graph.outputs.size())},
      {"flops", 0},
      {"bytes_read", 0},
      {"bytes_written", 0},
      {"transfers", 0},
      {"barriers", 0}};
  for (const schedule::ItemAnalysis& item : lowered.schedule.analysis) {
    costs["flops"] += static_cast<double>(item.flops);
    costs["bytes_read"] += static_cast<double>(item.bytes_read);
    costs["bytes_written"] += static_cast<double>(item.bytes_written);
  }
  for (const schedule::ScheduleItem& item : lowered.schedule.items) {
    costs["transfers"] += item.transfer() != nullptr;
    costs["kernels"] += item.loops() != nullptr;
    if (const schedule::Launch* launch = item.launch()) {
      costs["kernels"] += 1;
      for (const lower::Instr& instr : lowered.kernels[launch->kernel].body)
        costs["barriers"] += instr.kind() == lower::InstrKind::Barrier;
    }
  }
  return costs;
}

std::shared_ptr<const runtime::Executable> compile(const Lowered& lowered,
                                                   const std::string& device,
                                                   const std::vector<HostFunction>& functions) {
  const Capabilities& actual = open_device(device)->capabilities();
  const bool fits = &find_target(device) == lowered.target && actual == lowered.capabilities;
  Lowered again;
  if (!fits) again = lower_for(actual, lowered.graph, device);
  again.name = lowered.name;
  for (const Lowered* current = fits ? &lowered : &again;; current = &again) {
    try {
      return assemble(*current, device, functions);
    } catch (const runtime::ThreadLimitError& limit) {
      Capabilities fewer = current->capabilities;
      if (limit.allowed() < 1 || limit.allowed() >= fewer.max_threads_per_group) throw;
      fewer.max_threads_per_group = limit.allowed();
      again = lower_for(fewer, lowered.graph, device);
      again.name = lowered.name;
    }
  }
}

std::shared_ptr<const runtime::Executable> compile_kernel(const lower::Kernel& kernel,
                                                          const std::string& device) {
  const Target& target = find_target(device);
  State state;
  state.stage = Stage::Lowered;
  state.capabilities = &target.capabilities();
  state.device = device;
  state.kernels = {kernel};
  run_pipeline(state);
  KernelSource source = source_of(target, state.kernels[0]);
  source.text = target.render(state.kernels)[0];
  auto executable = std::make_shared<runtime::Executable>();
  executable->device = open_device(device);
  runtime::Launch launch;
  launch.program = executable->device->compiler().compile({&source, 1})[0];
  launch.vars = state.kernels[0].arguments;
  for (const lower::Var v : state.kernels[0].globals()) {
    const auto& global = *state.kernels[0][v].as<lower::Define_Global>();
    Slot slot{Slot::Kind::Input, static_cast<int64_t>(executable->num_inputs++), 0};
    if (global.writable) {
      const Slot output{Slot::Kind::Output, static_cast<int64_t>(executable->num_outputs++), 0};
      const int64_t bytes = global.size * size_of(state.kernels[0][v].type.dtype);
      executable->steps.emplace_back(
          runtime::Memory_Transfer{output, slot, static_cast<size_t>(bytes)});
      slot = output;
    }
    launch.arguments.push_back(slot);
  }
  executable->steps.emplace_back(std::move(launch));
  executable->prepare();
  return executable;
}

}  // namespace rune::driver
