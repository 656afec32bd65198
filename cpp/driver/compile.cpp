#include "driver/compile.h"

#include "base/error.h"
#include "driver/begun_outputs.h"
#include "driver/loop_assembler.h"
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

// The program's devices by number. 0 is its own, which has the values without a device.
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

// The slot of each value of a schedule while the program runs.
class SlotTable {
 public:
  // Adds the schedule's constants to the executable's.
  SlotTable(const schedule::Schedule& schedule, runtime::Executable& executable)
      : schedule_(schedule), executable_(executable) {
    for (size_t i = 0; i < schedule.outputs.size(); ++i)
      slots_[schedule.outputs[i].id] = {Slot::Kind::Output, static_cast<int64_t>(i), 0};
    for (const auto& [begin, output] : begun_outputs(schedule))
      slots_[begin.id] = slots_.at(output.id);
    for (const schedule::Allocation& allocation : schedule.allocations)
      add(allocation.value, allocation.offset);
  }

  // The slot of a value on device number `device`.
  Slot at(schedule::Value v, int device) const {
    Slot slot = slots_.at(v.id);
    slot.device = device;
    return slot;
  }
  std::vector<Slot> at(const std::vector<schedule::Value>& values, int device = 0) const {
    std::vector<Slot> slots;
    for (const schedule::Value v : values) slots.push_back(at(v, device));
    return slots;
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
      executable_.constants.push_back(stored(constant->values));
    } else {
      RUNE_CHECK(offset, "a temporary has no place in the arena");
      slot = {Slot::Kind::Temporary, 0, *offset};
    }
    slots_[v.id] = slot;
  }

  const schedule::Schedule& schedule_;
  runtime::Executable& executable_;
  std::map<uint32_t, Slot> slots_;
};

// The source of a kernel, without its text.
KernelSource source_of(const Target& target, const lower::Kernel& code) {
  KernelSource source;
  source.name = target.symbol ? target.symbol(code.name) : code.name;
  source.grid = code.grid;
  source.local = code.local;
  source.independent_threads = code.has_independent_threads();
  source.needs_early_loads = code.needs_early_loads();
  source.scratch_bytes = code.local_offsets().back();
  for (const lower::Var v : code.globals()) {
    source.buffer_dtypes.push_back(code[v].type.dtype);
    source.buffer_sizes.push_back(code[v].as<lower::Define_Global>()->size);
    source.buffer_written.push_back(code[v].as<lower::Define_Global>()->writable);
  }
  return source;
}

// The facts about a kernel that the compiler gets in addition to its text.
struct KernelFacts {
  const schedule::Schedule* schedule = nullptr;  // null for a kernel of loops, without facts
  const schedule::Kernel* kernel = nullptr;
  double work_ns = 0;
};

// KernelSource::estimated_ns for an item.
double work_of(const schedule::ItemAnalysis& item, double threads, const Capabilities& caps) {
  if (caps.model == ExecutionModel::Grid) {
    const double of_thread = caps.thread_operation_ns * static_cast<double>(item.flops) / threads;
    return std::max({1.0, static_cast<double>(item.est_ns) - caps.launch_ns, of_thread});
  }
  const auto ns = static_cast<double>(item.work_ns);
  return schedule::is_worth_sharing(caps, ns) ? ns : 0;
}

void add_facts(const schedule::Schedule& schedule, const Capabilities& caps,
               std::span<KernelFacts> facts) {
  const auto threads_of = [&](size_t kernel) {
    const schedule::Kernel& k = schedule.kernels[kernel];
    return std::max(1.0, static_cast<double>(k.workgroups() * k.iter.mapping.threads));
  };
  for (size_t k = 0; k < schedule.kernels.size(); ++k)
    facts[k] = {&schedule, &schedule.kernels[k], 0};
  for (size_t i = 0; i < schedule.items.size(); ++i)
    if (const schedule::Launch* launch = schedule.items[i].launch())
      facts[launch->kernel].work_ns =
          work_of(schedule.analysis[i], threads_of(launch->kernel), caps);
}

// The facts about each kernel.
std::vector<KernelFacts> facts_of(const Lowered& lowered) {
  std::vector<KernelFacts> facts(lowered.kernels.size());
  const std::span<KernelFacts> all(facts);
  const Capabilities& caps = lowered.capabilities;
  add_facts(lowered.schedule, caps, all);
  for (size_t i = 0; i < lowered.schedule.items.size(); ++i) {
    if (!lowered.schedule.items[i].loops()) continue;
    const LoweredLoops& loops = lowered.loops_of(i);
    const size_t first = loops.first_kernel;
    if (!loops.steps)
      facts[first].work_ns = work_of(lowered.schedule.analysis[i], 1, caps);
    else
      for (const LoweredCompute& compute : loops.steps->computes)
        add_facts(compute.schedule, caps, all.subspan(first + compute.first_kernel));
  }
  return facts;
}

// The programs of the kernels, in order. Kernels of the same device are compiled together.
std::vector<std::shared_ptr<runtime::Program>> compile_kernels(const Lowered& lowered,
                                                               const Devices& devices) {
  const schedule::Schedule& schedule = lowered.schedule;
  const std::vector<KernelFacts> facts = facts_of(lowered);
  std::vector<std::shared_ptr<runtime::Program>> programs(lowered.kernels.size());
  for (int d = 0; d < devices.count(); ++d) {
    std::vector<size_t> numbers;
    std::vector<lower::Kernel> kernels;
    for (size_t k = 0; k < lowered.kernels.size(); ++k) {
      // Kernels of loops come last. They run on the program's own device.
      const bool loops = k >= schedule.kernels.size();
      if ((loops ? 0 : devices.number_of(schedule.kernels[k].device)) != d) continue;
      numbers.push_back(k);
      kernels.push_back(lowered.kernels[k]);
    }
    std::vector<std::string> texts = lowered.target->render(kernels);
    std::vector<KernelSource> sources;
    for (size_t i = 0; i < kernels.size(); ++i) {
      KernelSource& source = sources.emplace_back(source_of(*lowered.target, kernels[i]));
      const KernelFacts& known = facts[numbers[i]];
      source.estimated_ns = known.work_ns;
      source.text = std::move(texts[i]);
      if (!known.schedule) continue;
      source.location = location_of(*known.schedule, *known.kernel);
      source.product =
          schedule::library_product(known.schedule->graph, *known.kernel, lowered.capabilities);
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
                                  static_cast<size_t>(bytes_of(graph[transfer.src])), from, to};
}

runtime::Step synchronization_step(const schedule::Synchronization& wait, const Devices& devices) {
  runtime::Synchronization step;
  for (const std::string& name : wait.devices) step.devices.push_back(devices.number_of(name));
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
  lowered.loops = std::move(state.loops);
  return lowered;
}

class Assembler {
 public:
  Assembler(const Lowered& lowered, const std::string& device,
            const std::vector<HostFunction>& functions)
      : lowered_(lowered),
        schedule_(lowered.schedule),
        functions_(functions),
        devices_(lowered, device, *executable_),
        programs_(compile_kernels(lowered, devices_)),
        slots_(schedule_, *executable_) {}

  std::shared_ptr<const runtime::Executable> run() {
    executable_->num_inputs = lowered_.graph.inputs().size();
    executable_->num_outputs = lowered_.graph.outputs.size();
    executable_->arena_bytes = static_cast<size_t>(schedule_.arena_bytes);
    executable_->estimated_ns = static_cast<double>(schedule_.estimated_runtime_ns);
    executable_->streamed.resize(executable_->num_outputs);
    info_->name = lowered_.name;
    info_->is_dynamic = !schedule_.graph.symbolic_vars().empty();
    for (size_t number = 0; number < schedule_.items.size(); ++number) add_item(number);
    executable_->info = std::move(info_);
    executable_->prepare();
    return executable_;
  }

 private:
  void add(runtime::Step step, runtime::StepInfo info) {
    executable_->steps.push_back(std::move(step));
    info_->steps.push_back(std::move(info));
  }

  // Notes which of these arguments `count` kernels, from number `kernel` on, may write past the
  // caches.
  void note_streams(size_t kernel, size_t count, const std::vector<Slot>& arguments) {
    const auto streams = [](const lower::Instr& instr) {
      const auto* store = instr.as<lower::Store>();
      return store && store->nontemporal;
    };
    for (size_t k = kernel; k < kernel + count; ++k) {
      const std::vector<lower::Instr>& body = lowered_.kernels[k].body;
      if (std::none_of(body.begin(), body.end(), streams)) continue;
      for (const Slot& slot : arguments)
        if (slot.kind == Slot::Kind::Output) executable_->streamed[slot.index] = true;
    }
  }

  void add_item(size_t number) {
    const schedule::ScheduleItem& item = schedule_.items[number];
    runtime::StepInfo about = step_info(schedule_, lowered_.capabilities, number);
    if (const schedule::Host_Callback* callback = item.callback()) {
      std::vector<Slot> slots = slots_.at(callback->inputs);
      for (const Slot& slot : slots_.at(callback->outputs)) slots.push_back(slot);
      add(host_call(*callback, schedule_.graph, lowered_.graph, std::move(slots), functions_,
                    *executable_->device),
          std::move(about));
    } else if (const schedule::Memory_Transfer* transfer = item.transfer()) {
      add(transfer_step(*transfer, schedule_.graph, slots_, devices_), std::move(about));
    } else if (const schedule::Synchronization* wait = item.synchronization()) {
      add(synchronization_step(*wait, devices_), std::move(about));
    } else if (const schedule::Loop_Nest* loops = item.loops()) {
      add_loops(number, *loops, about);
    } else {
      const schedule::Launch& launched = *item.launch();
      runtime::Launch launch;
      launch.vars = launched.arguments;
      launch.program = programs_[launched.kernel];
      launch.device = devices_.number_of(schedule_.kernel_of(item)->device);
      launch.arguments =
          slots_.at(lower::kernel_arguments(launched.inputs, launched.outputs), launch.device);
      note_streams(launched.kernel, 1, launch.arguments);
      add(std::move(launch), std::move(about));
    }
  }

  void add_loops(size_t number, const schedule::Loop_Nest& item, const runtime::StepInfo& about) {
    const auto& nest = *schedule_.graph[item.outputs[0]].as<graph::Loop_Nest>();
    for (const auto& [result, operand] : plan_loops(*nest.graph.graph).copies)
      for (const schedule::Value v : item.outputs)
        if (schedule_.graph[v].as<graph::Loop_Nest>()->result == static_cast<int64_t>(result)) {
          const int64_t bytes = bytes_of(schedule_.graph[v]);
          const Slot to = slots_.at(v, 0), from = slots_.at(item.inputs[operand], 0);
          if (to == from) continue;  // the value is already there
          add(runtime::Memory_Transfer{to, from, static_cast<size_t>(bytes)},
              copy_info(bytes, about));
        }
    const LoweredLoops& loops = lowered_.loops_of(number);
    const std::vector<Slot> inputs = slots_.at(item.inputs), outputs = slots_.at(item.outputs);
    note_streams(loops.first_kernel, loops.num_kernels, outputs);
    if (loops.steps) {
      LoopAssembler assembler(*loops.steps, std::span(programs_).subspan(loops.first_kernel),
                              inputs, outputs, lowered_.capabilities, about,
                              static_cast<size_t>(schedule_.arena_bytes), *executable_, *info_);
      assembler.run(schedule_.graph.symbolic_vars());
      return;
    }
    runtime::Launch launch;
    launch.program = programs_[loops.first_kernel];
    launch.arguments = inputs;
    launch.arguments.insert(launch.arguments.end(), outputs.begin(), outputs.end());
    add(std::move(launch), about);
  }

  const Lowered& lowered_;
  const schedule::Schedule& schedule_;
  const std::vector<HostFunction>& functions_;
  const std::shared_ptr<runtime::Executable> executable_ = std::make_shared<runtime::Executable>();
  const Devices devices_;
  const std::vector<std::shared_ptr<runtime::Program>> programs_;
  const SlotTable slots_;
  std::shared_ptr<runtime::ProgramInfo> info_ = std::make_shared<runtime::ProgramInfo>();
};

}  // namespace

const LoweredLoops& Lowered::loops_of(size_t item) const {
  size_t number = 0;
  for (size_t i = 0; i < item; ++i) number += schedule.items[i].loops() != nullptr;
  return loops.at(number);
}

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
  for (size_t i = 0; i < lowered.schedule.items.size(); ++i) {
    const schedule::ScheduleItem& item = lowered.schedule.items[i];
    if (item.loops()) {
      const LoweredLoops& loops = lowered.loops_of(i);
      const auto first = lowered.kernels.begin() + static_cast<int64_t>(loops.first_kernel);
      kernels.insert(kernels.end(), first, first + static_cast<int64_t>(loops.num_kernels));
    } else if (const schedule::Launch* launch = item.launch()) {
      kernels.push_back(lowered.kernels[launch->kernel]);
      kernels.back().arguments = launch->arguments;
    }
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
  for (const LoweredLoops& loops : lowered.loops)
    costs["kernels"] += loops.steps ? count_launches(loops.steps->steps) : 1;
  for (const schedule::ScheduleItem& item : lowered.schedule.items) {
    costs["transfers"] += item.transfer() != nullptr;
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
      return Assembler(*current, device, functions).run();
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
