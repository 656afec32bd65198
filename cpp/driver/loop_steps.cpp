#include "driver/loop_steps.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "driver/loop_counter.h"
#include "driver/loop_exchanges.h"
#include "driver/loop_kernel.h"
#include "driver/parallel_iterations.h"
#include "graph/builder.h"
#include "lower/passes/lower_kernel.h"

namespace rune::driver {

namespace {

using schedule::Value;

// The kernel without unused variables, so that launches differ in fewer arguments.
lower::Kernel without_unused_variables(const lower::Kernel& kernel, size_t num_arguments) {
  std::vector<bool> used(kernel.body.size());
  size_t variables = 0;
  for (const lower::Instr& instr : kernel.body) {
    for (const lower::Var arg : instr.args) used[arg.id] = true;
    variables += instr.as<lower::Define_Var>() != nullptr;
  }
  lower::Kernel result{kernel.name, kernel.grid, kernel.local, {}};
  std::vector<lower::Var> position(kernel.body.size());
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    lower::Instr instr = kernel.body[i];
    if (instr.as<lower::Define_Var>() && variables-- > num_arguments && !used[i]) continue;
    for (lower::Var& arg : instr.args) arg = position[arg.id];
    position[i] = lower::Var{static_cast<uint32_t>(result.body.size())};
    result.body.push_back(std::move(instr));
  }
  return result;
}

class StepsLowerer {
 public:
  StepsLowerer(LoopPlan plan, const Capabilities& caps, const std::string& device,
               std::vector<SymVar> variables, std::string prefix)
      : plan_(std::move(plan)),
        caps_(caps),
        device_(device),
        prefix_(std::move(prefix)),
        variables_(std::move(variables)) {}

  LoopSteps run() {
    for (Statement& statement : plan_.statements) add(statement, steps_.steps);
    place_memory();
    return std::move(steps_);
  }

 private:
  void add(Statement& statement, std::vector<LoopStep>& steps) {
    std::visit([&](auto& action) { run(action, steps); }, statement.action);
  }

  void run(Repeat& repeat, std::vector<LoopStep>& steps) {
    const std::vector<int64_t> counts = side_by_side(plan_, repeat, depth_);
    if (counts.empty() || !run_threads(repeat, counts, steps)) run_on_host(repeat, steps);
  }

  // Makes a kernel in which each thread runs an iteration, if that is faster than steps of the
  // host.
  bool run_threads(const Repeat& repeat, const std::vector<int64_t>& counts,
                   std::vector<LoopStep>& steps) {
    LoopPlan plan{plan_.cells, {Statement{repeat}}, true, {}, {}};
    const std::vector<size_t> outside = make_arguments(plan);
    ThreadsKernel threads = lower_threads_kernel(plan, counts, caps_, device_, variables_);
    if (threads.threads < 2 || own_bytes(threads.kernel) > kMostOwnBytes ||
        outside.size() > static_cast<size_t>(caps_.max_buffers) ||
        threads.kernel.grid > caps_.max_grid)
      return false;
    const double at_once =
        static_cast<double>(caps_.num_cores) * static_cast<double>(caps_.max_threads_per_group);
    const double of_thread = threads.operations / static_cast<double>(threads.threads);
    const double ns = caps_.thread_operation_ns * of_thread *
                      std::max(1.0, static_cast<double>(threads.threads) / at_once);
    StepsLowerer other(plan_, caps_, device_, variables_, "");
    other.depth_ = depth_;
    Repeat copy = repeat;
    other.run_on_host(copy, other.steps_.steps);
    if (caps_.launch_ns + ns >= host_ns(other.steps_, caps_)) return false;

    LoopLaunch launch;
    launch.kernel = steps_.kernels.size();
    launch.operations = threads.operations;
    launch.ns = ns;
    for (const size_t cell : outside) launch.memory.push_back(memory_of(cell));
    lower::Kernel& kernel =
        steps_.kernels.emplace_back(without_unused_variables(threads.kernel, 0));
    kernel.name = concat(prefix_, "rows_", launch.kernel);
    for (const lower::Instr& instr : kernel.body)
      if (const auto* define = instr.as<lower::Define_Var>())
        launch.variables.push_back(define->var);
    steps.emplace_back().action = std::move(launch);
    return true;
  }

  // The most private bytes of a thread. The device reserves them for all threads that it runs at a
  // time.
  static constexpr int64_t kMostOwnBytes = 16 << 10;
  static int64_t own_bytes(const lower::Kernel& kernel) {
    int64_t bytes = 0;
    for (const lower::Instr& instr : kernel.body)
      if (const auto* own = instr.as<lower::Private>())
        bytes += own->size * size_of(instr.type.dtype);
    return bytes;
  }

  // Makes the cells outside of the loop that it uses inputs and outputs of the plan. Returns their
  // numbers in the order of the kernel's arguments.
  std::vector<size_t> make_arguments(LoopPlan& plan) const {
    const CellUse used = cells_of(plan.statements);
    std::vector<size_t> inputs, outputs;
    for (size_t c = 0; c < plan.cells.size(); ++c) {
      Cell& cell = plan.cells[c];
      cell.input = cell.output = std::nullopt;
      const bool is_stored = used.stored.contains(c);
      if (cell.depth > depth_ || !(is_stored || used.read.contains(c))) continue;
      std::vector<size_t>& kind = is_stored ? outputs : inputs;
      (is_stored ? cell.output : cell.input) = kind.size();
      kind.push_back(c);
    }
    inputs.insert(inputs.end(), outputs.begin(), outputs.end());
    return inputs;
  }

  void run_on_host(Repeat& repeat, std::vector<LoopStep>& steps) {
    LoopRepeat result{repeat, {}, {}};
    if (repeat.goes_on) result.goes_on = memory_of(*repeat.goes_on);
    const Exchanges exchanges = find_exchanges(plan_, repeat);
    const std::vector<SymVar> variables = variables_;
    variables_.push_back(repeat.counter);
    ++depth_;
    for (const size_t number : exchanges.statements) add(repeat.body[number], result.body);
    --depth_;
    variables_ = variables;
    if (repeat.goes_on && repeat.start.is_constant()) count_in_memory(repeat, result.body, steps);
    for (size_t turn = 1; turn < exchanges.num_turns; ++turn)
      result.turns.push_back(turn_of(exchanges.cells, turn, result.body));
    steps.emplace_back().action = std::move(result);
  }

  // Makes the body's kernels read the loop's counter from memory, if any of them uses it.
  void count_in_memory(const Repeat& repeat, std::vector<LoopStep>& body,
                       std::vector<LoopStep>& before) {
    const std::string& counter = repeat.counter.name;
    const auto uses = [&](const LoopLaunch& launch) {
      return std::any_of(launch.variables.begin(), launch.variables.end(),
                         [&](const SymVar& variable) { return variable.name == counter; });
    };
    std::set<size_t> kernels;
    bool has_room = true;
    for_each_launch(body, [&](const LoopLaunch& launch) {
      if (!uses(launch)) return;
      kernels.insert(launch.kernel);
      has_room &= launch.memory.size() < static_cast<size_t>(caps_.max_buffers);
    });
    if (kernels.empty() || !has_room) return;
    const Scalar start = Scalar::of(DType::Int64, repeat.start.constant());
    const size_t first = steps_.memory.size(), memory = first + 1;
    steps_.memory.push_back({std::nullopt, std::nullopt, {start}, 0, size_of(DType::Int64)});
    steps_.memory.push_back({std::nullopt, std::nullopt, {}, 0, size_of(DType::Int64)});
    counters_.push_back(memory);
    for (const size_t kernel : kernels)
      steps_.kernels[kernel] = with_counter_in_memory(steps_.kernels[kernel], repeat.counter);
    for_each_launch(body, [&](LoopLaunch& launch) {
      if (!uses(launch)) return;
      std::erase_if(launch.variables,
                    [&](const SymVar& variable) { return variable.name == counter; });
      launch.memory.push_back(memory);
    });
    LoopLaunch count;
    count.kernel = steps_.kernels.size();
    count.operations = 1;
    count.memory = {memory};
    steps_.kernels.push_back(counting_kernel(concat(prefix_, "count_", count.kernel), repeat.step));
    before.emplace_back().action = LoopCopy{memory, first};
    body.emplace_back().action = std::move(count);
  }

  template <class F>
  static void for_each_launch(std::vector<LoopStep>& steps, const F& f) {
    for (LoopStep& step : steps) {
      if (auto* launch = std::get_if<LoopLaunch>(&step.action)) f(*launch);
      if (auto* repeat = std::get_if<LoopRepeat>(&step.action)) {
        for_each_launch(repeat->body, f);
        for (LoopTurn& turn : repeat->turns) for_each_launch(turn.body, f);
      }
    }
  }

  LoopTurn turn_of(const std::vector<Exchange>& exchanges, size_t turn,
                   const std::vector<LoopStep>& body) {
    LoopTurn result{body, {}};
    std::map<size_t, size_t> exchanged;
    for (const Exchange& cells : exchanges) {
      const size_t count = cells.size();
      const auto memory = [&](size_t i) { return memory_of(cells[i % count]); };
      for (size_t i = 0; i < count; ++i) exchanged[memory(i)] = memory(i + turn);
      // Copies each value to the memory of its cell. The first copy overwrites the memory whose
      // value nobody needs.
      if (turn % count == 0) continue;
      for (size_t to = (count - 1 + turn) % count; to != count - 1; to = (to + turn) % count)
        result.end.emplace_back().action = LoopCopy{memory(to), memory(to + turn)};
    }
    exchange(result.body, exchanged);
    return result;
  }

  static void exchange(std::vector<LoopStep>& steps, const std::map<size_t, size_t>& memory) {
    const auto change = [&](size_t& number) {
      if (const auto other = memory.find(number); other != memory.end()) number = other->second;
    };
    for (LoopStep& step : steps) {
      if (auto* launch = std::get_if<LoopLaunch>(&step.action)) {
        for (size_t& number : launch->memory) change(number);
      } else if (auto* copy = std::get_if<LoopCopy>(&step.action)) {
        change(copy->to), change(copy->from);
      } else if (auto* read = std::get_if<LoopRead>(&step.action)) {
        change(read->memory);
      } else {
        auto& repeat = std::get<LoopRepeat>(step.action);
        if (repeat.goes_on) change(*repeat.goes_on);
        exchange(repeat.body, memory);
        for (LoopTurn& turn : repeat.turns)
          for (auto* inner : {&turn.body, &turn.end}) exchange(*inner, memory);
      }
    }
  }

  void run(const Bind& bind, std::vector<LoopStep>& steps) {
    variables_.push_back(bind.variable);
    steps.emplace_back().action = LoopRead{bind.variable, memory_of(bind.cell)};
  }

  void run(const Store& store, std::vector<LoopStep>& steps) {
    if (store.is_covered) return;
    const Cell &target = plan_.cells[store.target], &part = plan_.cells[store.part];
    const Shape shape = part.shape;
    if (max_elements(shape) == 0) return;
    // Memory of a symbolic size may be only as long as the size in this run.
    const bool is_whole = shape == target.shape && is_constant(shape) &&
                          store.offsets == std::vector<Dim>(shape.size(), 0);
    if (is_whole) {
      steps.emplace_back().action = LoopCopy{memory_of(store.target), memory_of(store.part)};
      return;
    }
    Compute copy;
    graph::Builder builder;
    for (const Dim* dims : {shape.data(), store.offsets.data()})
      for (size_t d = 0; d < shape.size(); ++d) declare(builder, dims[d]);
    builder.set_outputs({builder.placeholder(part.dtype, shape)});
    copy.graph = builder.take();
    copy.inputs = {store.part};
    copy.outputs = {store.target};
    copy.offsets = store.offsets;
    run(copy, steps);
  }

  static void declare(graph::Builder& builder, const Dim& dim) {
    if (dim.is_constant()) return;
    for (const Dim::Term& term : dim.terms()) builder.add(graph::Define_Var{term.var}, {});
  }

  void run(Compute& compute, std::vector<LoopStep>& steps) {
    const size_t number = steps_.computes.size();
    LoweredCompute code = lower_compute(compute, plan_, caps_, device_);
    const size_t first_kernel = code.first_kernel = steps_.kernels.size();
    std::vector<std::vector<SymVar>> variables;
    for (size_t k = 0; k < code.kernels.size(); ++k) {
      const size_t num_arguments = code.schedule.kernels[k].arguments.size();
      lower::Kernel& kernel =
          steps_.kernels.emplace_back(without_unused_variables(code.kernels[k], num_arguments));
      kernel.name = concat(prefix_, number, "_", kernel.name);
      std::vector<SymVar>& own = variables.emplace_back();
      for (const lower::Instr& instr : kernel.body)
        if (const auto* define = instr.as<lower::Define_Var>()) own.push_back(define->var);
      own.resize(own.size() - num_arguments);
    }
    code.kernels.clear();
    const std::map<Value, size_t> memory = place(compute, code.schedule);
    for (size_t i = 0; i < code.schedule.items.size(); ++i) {
      const schedule::Launch& launch = *code.schedule.items[i].launch();
      LoopLaunch step;
      step.kernel = first_kernel + launch.kernel;
      step.of = {number, i};
      step.variables = variables[launch.kernel];
      step.arguments = launch.arguments;
      step.operations = thread_operations(code.schedule.analysis.at(i));
      for (const Value v : lower::kernel_arguments(launch.inputs, launch.outputs))
        step.memory.push_back(memory.at(v));
      steps.emplace_back().action = std::move(step);
    }
    const std::optional<Store> store = code.store;
    steps_.computes.push_back(std::move(code));
    if (store) run(*store, steps);
  }

  std::map<Value, size_t> place(const Compute& compute, const schedule::Schedule& schedule) {
    std::map<Value, size_t> memory;
    for (size_t i = 0; i < compute.outputs.size(); ++i)
      memory[schedule.outputs[i]] = memory_of(compute.outputs[i]);
    for (const schedule::Allocation& allocation : schedule.allocations) {
      const Value v = allocation.value;
      if (memory.contains(v)) continue;
      const graph::Node& node = schedule.graph[v];
      if (const auto* placeholder = node.as<graph::Placeholder>()) {
        memory[v] = memory_of(compute.inputs[placeholder->index]);
        continue;
      }
      memory[v] = steps_.memory.size();
      LoopMemory& own = steps_.memory.emplace_back();
      own.bytes = bytes_of(schedule.graph[v]);
      if (const auto* constant = node.as<graph::Vconst>()) {
        own.constant = constant->values;
        continue;
      }
      RUNE_CHECK(allocation.offset, "a temporary of a loop has no place");
      own.offset = *allocation.offset;  // place_memory adds the bytes of the cells
      temporaries_.push_back(memory[v]);
    }
    temporary_bytes_ = std::max(temporary_bytes_, schedule.arena_bytes);
    return memory;
  }

  size_t memory_of(size_t cell) {
    const auto known = cells_.find(cell);
    if (known != cells_.end()) return known->second;
    const Cell& of = plan_.cells[cell];
    LoopMemory memory{of.input, of.output};
    memory.bytes = max_elements(of.shape) * size_of(of.dtype);
    steps_.memory.push_back(std::move(memory));
    return cells_[cell] = steps_.memory.size() - 1;
  }

  // Places memory. Cells keep their values, so they do not share memory. Temporaries of different
  // Computes do.
  void place_memory() {
    constexpr int64_t kAlignment = 256;
    int64_t end = 0;
    const auto align = [&] { end = (end + kAlignment - 1) / kAlignment * kAlignment; };
    const auto put = [&](LoopMemory& memory) {
      align();
      memory.offset = end;
      end += memory.bytes;
    };
    for (const auto& [cell, number] : cells_) {
      LoopMemory& memory = steps_.memory[number];
      if (!memory.input && !memory.output) put(memory);
    }
    for (const size_t number : counters_) put(steps_.memory[number]);
    align();
    for (const size_t number : temporaries_) steps_.memory[number].offset += end;
    steps_.arena_bytes = end + temporary_bytes_;
  }

  LoopPlan plan_;
  const Capabilities& caps_;
  const std::string device_, prefix_;
  std::vector<SymVar> variables_;  // of the program, of the loops around it and of Binds
  size_t depth_ = 0;               // number of loops around it
  LoopSteps steps_;
  std::map<size_t, size_t> cells_;   // by cell: its memory
  std::vector<size_t> counters_;     // numbers of the counters' memories
  std::vector<size_t> temporaries_;  // numbers of the temporaries' memories
  int64_t temporary_bytes_ = 0;      // of the Compute that needs most
};

// The sum of `cost` over all steps, each multiplied by the number of its runs.
template <class F>
double sum(const std::vector<LoopStep>& steps, const F& cost) {
  double result = 0;
  for (const LoopStep& step : steps) {
    const auto* repeat = std::get_if<LoopRepeat>(&step.action);
    result += repeat ? mean_trips(*repeat) * (sum(repeat->body, cost) + cost(step)) : cost(step);
  }
  return result;
}

}  // namespace

LoopSteps lower_steps(LoopPlan plan, const Capabilities& caps, const std::string& device,
                      std::vector<SymVar> variables, size_t number) {
  return StepsLowerer(std::move(plan), caps, device, std::move(variables),
                      concat("loops_", number, "_"))
      .run();
}

double host_ns(const LoopSteps& steps, const Capabilities& caps) {
  // The host waits for all launches so far and copies a value. That takes as long as this many
  // launches.
  constexpr double kWaitOfLaunches = 5;
  return caps.launch_ns * sum(steps.steps, [&](const LoopStep& step) {
           if (const auto* repeat = std::get_if<LoopRepeat>(&step.action))
             return repeat->goes_on ? kWaitOfLaunches : 0.0;
           if (const auto* launch = std::get_if<LoopLaunch>(&step.action))
             return 1 + launch->ns / caps.launch_ns;
           return std::holds_alternative<LoopRead>(step.action) ? kWaitOfLaunches : 1.0;
         });
}

double thread_ns(const LoopSteps& steps, const Capabilities& caps) {
  return caps.thread_operation_ns * sum(steps.steps, [&](const LoopStep& step) {
           const auto* launch = std::get_if<LoopLaunch>(&step.action);
           return launch ? launch->operations : 0.0;
         });
}

double count_launches(const std::vector<LoopStep>& steps) {
  return sum(steps, [](const LoopStep& step) {
    return std::holds_alternative<LoopLaunch>(step.action) ? 1.0 : 0.0;
  });
}

}  // namespace rune::driver
