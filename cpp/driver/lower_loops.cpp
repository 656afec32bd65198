#include "driver/lower_loops.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/error.h"
#include "driver/loop_computes.h"
#include "driver/loop_steps.h"
#include "lower/builder.h"
#include "lower/passes/lower_kernel.h"
#include "schedule/analysis/cost.h"

namespace rune::driver {

namespace {

using lower::Instr;
using lower::Var;
using schedule::Value;

class LoopsLowerer {
 public:
  LoopsLowerer(const State& state, LoopPlan plan)
      : plan_(std::move(plan)),
        caps_(*state.capabilities),
        device_(state.device),
        variables_(state.schedule.graph.symbolic_vars()) {
    caps_.num_cores = 1;
    if (caps_.model == ExecutionModel::Cores) return;
    // One thread of a grid.
    caps_.model = ExecutionModel::Cores;
    caps_.vector_bits = 0;
    caps_.matrix_ops.clear();
  }

  lower::Kernel run(const std::string& name, size_t num_inputs, int64_t workgroups) {
    workgroups_ = plan_.is_parallel ? workgroups : 1;
    for (Statement& statement : plan_.statements) compile(statement);
    for (const SymVar& variable : variables_) counters_[variable.name] = b_.define_var(variable);
    define_memory(num_inputs);
    for (const Statement& statement : plan_.statements) emit(statement);
    lower::Kernel kernel = b_.take();
    kernel.name = name;
    kernel.grid = workgroups_;
    return kernel;
  }

 private:
  // The kernels of a Compute, and where its values are.
  struct Compiled {
    LoweredCompute code;
    std::map<Value, Var> memory;
    std::vector<std::vector<Var>> locals;  // by kernel: its Locals, in order
  };

  void compile(Statement& statement) {
    if (auto* repeat = std::get_if<Repeat>(&statement.action))
      for (Statement& inner : repeat->body) compile(inner);
    auto* compute = std::get_if<Compute>(&statement.action);
    if (!compute) return;
    compiled_[compute] = {lower_compute(*compute, plan_, caps_, device_), {}, {}};
    computes_.push_back(compute);
  }

  Var number(int64_t value) { return b_.constant(Scalar::of(DType::Int64, value)); }
  Var plus(Var a, Var b) { return b_.alu(AluOp::Add, {a, b}); }
  Var times(Var a, int64_t factor) {
    return factor == 1 ? a : b_.alu(AluOp::Mul, {a, number(factor)});
  }
  Var size(const Dim& dim) {
    Var sum = number(dim.offset());
    for (const Dim::Term& term : dim.terms())
      sum = plus(sum, times(counters_.at(term.var.name), term.coefficient));
    return sum;
  }

  // Memory, all of which is defined before the loops.

  void define_memory(size_t num_inputs) {
    cells_.resize(plan_.cells.size());
    const auto elements = [](const Cell& cell) {
      return std::max<int64_t>(1, max_elements(cell.shape));
    };
    std::map<int64_t, size_t> globals;  // by index
    for (size_t c = 0; c < plan_.cells.size(); ++c) {
      const Cell& cell = plan_.cells[c];
      if (cell.input) globals[static_cast<int64_t>(*cell.input)] = c;
      if (cell.output) globals[static_cast<int64_t>(num_inputs + *cell.output)] = c;
      if (!cell.input && !cell.output) cells_[c] = b_.local(cell.dtype, elements(cell));
    }
    for (const auto& [index, c] : globals)
      cells_[c] = b_.define_global(plan_.cells[c].dtype, index, elements(plan_.cells[c]),
                                   plan_.cells[c].output.has_value());
    for (const Compute* compute : computes_) place(*compute, compiled_.at(compute));
  }

  void place(const Compute& compute, Compiled& compiled) {
    const graph::Graph& graph = compiled.code.schedule.graph;
    for (const lower::Kernel& kernel : compiled.code.kernels) {
      std::vector<Var>& locals = compiled.locals.emplace_back();
      for (const Instr& instr : kernel.body)
        if (const auto* local = instr.as<lower::Local>())
          locals.push_back(b_.local(instr.type.dtype, local->size));
    }
    for (size_t i = 0; i < compute.outputs.size(); ++i)
      compiled.memory[compiled.code.schedule.outputs[i]] = cells_[compute.outputs[i]];
    for (const schedule::Allocation& allocation : compiled.code.schedule.allocations) {
      const Value v = allocation.value;
      if (compiled.memory.contains(v)) continue;
      const graph::Node& node = graph[v];
      if (const auto* placeholder = node.as<graph::Placeholder>()) {
        compiled.memory[v] = cells_[compute.inputs[placeholder->index]];
        continue;
      }
      const Var memory = b_.local(node.dtype(), std::max<int64_t>(1, max_elements(node.shape())));
      compiled.memory[v] = memory;
      if (const auto* constant = node.as<graph::Vconst>())
        for (size_t i = 0; i < constant->values.size(); ++i)
          b_.store(memory, number(static_cast<int64_t>(i)), b_.constant(constant->values[i]));
    }
  }

  // Statements.

  void emit(const Statement& statement) {
    std::visit([this](const auto& action) { run(action); }, statement.action);
  }

  // With several workgroups, each runs the iterations of its own share.
  void run(const Repeat& repeat) {
    const int64_t step = std::abs(repeat.step);
    const Dim span = repeat.step > 0 ? repeat.stop - repeat.start : repeat.start - repeat.stop;
    Var count = size(span + (step - 1));
    if (step != 1) count = b_.alu(AluOp::Idiv, {count, number(step)});
    const Var start = size(repeat.start);
    Var first;
    if (workgroups_ > 1 && counters_.size() == variables_.size()) {  // the outermost loop
      const auto share = [&](Var group) {
        return b_.alu(AluOp::Idiv, {b_.alu(AluOp::Mul, {group, count}), number(workgroups_)});
      };
      const Var group = b_.special(lower::SpecialKind::Workgroup_idx, workgroups_, DType::Int64);
      first = share(group);
      count = b_.alu(AluOp::Sub, {share(plus(group, number(1))), first});
    }
    Var i = b_.range(count);
    if (repeat.goes_on)
      b_.break_if(b_.alu(AluOp::Not, {b_.load(cells_[*repeat.goes_on], number(0))}));
    if (first.valid()) i = plus(i, first);
    counters_[repeat.counter.name] = plus(start, times(i, repeat.step));
    for (const Statement& statement : repeat.body) emit(statement);
    for (const Statement& statement : repeat.body)
      if (const auto* bind = std::get_if<Bind>(&statement.action))
        counters_.erase(bind->variable.name);
    counters_.erase(repeat.counter.name);
    b_.end_range();
  }

  void run(const Bind& bind) {
    counters_[bind.variable.name] = b_.load(cells_[bind.cell], number(0));
  }

  void run(const Store& store) {
    const Cell &target = plan_.cells[store.target], &part = plan_.cells[store.part];
    const Ints to = contiguous_strides(target.shape), from = contiguous_strides(part.shape);
    Var start = number(0);
    for (size_t d = 0; d < to.size(); ++d)
      start = plus(start, times(size(store.offsets[d]), to[d]));
    copy(store, to, from, 0, start, number(0));
  }

  // The part's elements from dimension `d` on.
  void copy(const Store& store, const Ints& to, const Ints& from, size_t d, Var target, Var part) {
    const Shape& shape = plan_.cells[store.part].shape;
    while (d < shape.size() && shape[d] == 1) ++d;
    if (d == shape.size()) return copy_elements(store, target, part, 1);
    const bool is_run = to[d] == 1 && from[d] == 1;
    const int lanes = caps_.lanes(plan_.cells[store.part].dtype);
    const Var count = size(shape[d]);
    if (!is_run || shape[d].bound() < lanes)
      return copy_along(store, to, from, d, target, part, number(0), count);
    const Var vectors = b_.alu(AluOp::Idiv, {count, number(lanes)});
    const Var i = b_.range(vectors);
    const Var at = times(i, lanes);
    copy_elements(store, plus(target, at), plus(part, at), lanes);
    b_.end_range();
    if (!shape[d].is_constant() || shape[d].constant() % lanes != 0)
      copy_along(store, to, from, d, target, part, times(vectors, lanes), count);
  }

  void copy_along(const Store& store, const Ints& to, const Ints& from, size_t d, Var target,
                  Var part, Var first, Var end) {
    const Var i = plus(b_.range(b_.alu(AluOp::Sub, {end, first})), first);
    copy(store, to, from, d + 1, plus(target, times(i, to[d])), plus(part, times(i, from[d])));
    b_.end_range();
  }

  void copy_elements(const Store& store, Var target, Var part, int lanes) {
    b_.store(cells_[store.target], target, b_.load(cells_[store.part], part, lanes));
  }

  void run(const Compute& compute) {
    const Compiled& compiled = compiled_.at(&compute);
    for (const schedule::ScheduleItem& item : compiled.code.schedule.items) {
      const schedule::Launch* launch = item.launch();
      std::vector<Var> memory;
      for (const Value v : lower::kernel_arguments(launch->inputs, launch->outputs))
        memory.push_back(compiled.memory.at(v));
      const lower::Kernel& kernel = compiled.code.kernels[launch->kernel];
      const schedule::Kernel& scheduled = compiled.code.schedule.kernels[launch->kernel];
      std::map<std::string, int64_t> arguments;
      for (size_t i = 0; i < launch->arguments.size(); ++i)
        arguments[scheduled.arguments[i].name] = launch->arguments[i];
      inline_kernel(kernel, memory, compiled.locals[launch->kernel], arguments);
    }
    if (compiled.code.store) run(*compiled.code.store);
  }

  // Runs a kernel here, its workgroups one after the other.
  void inline_kernel(const lower::Kernel& kernel, const std::vector<Var>& memory,
                     const std::vector<Var>& locals,
                     const std::map<std::string, int64_t>& arguments) {
    RUNE_CHECK(kernel.local == 1, "a kernel of one core has several threads");
    const Var group = kernel.grid > 1 ? b_.range(number(kernel.grid)) : number(0);
    std::vector<Var> map;
    size_t next_local = 0;
    for (const Instr& instr : kernel.body) {
      if (instr.as<lower::Local>()) {
        map.push_back(locals[next_local++]);
      } else if (const auto* global = instr.as<lower::Define_Global>()) {
        map.push_back(memory[global->index]);
      } else if (const auto* define = instr.as<lower::Define_Var>()) {
        const auto known = arguments.find(define->var.name);
        const Var value =
            known == arguments.end() ? counters_.at(define->var.name) : number(known->second);
        map.push_back(b_.cast(value, instr.type.dtype));
      } else if (const auto* special = instr.as<lower::Special>()) {
        const bool is_thread = special->kind == lower::SpecialKind::Local_thread_idx;
        map.push_back(b_.cast(is_thread ? number(0) : group, instr.type.dtype));
      } else {
        std::vector<Var> args;
        for (const Var arg : instr.args) args.push_back(map[arg.id]);
        map.push_back(b_.add(instr.payload, std::move(args), instr.type));
      }
    }
    if (kernel.grid > 1) b_.end_range();
  }

  LoopPlan plan_;
  Capabilities caps_;  // of one core
  const std::string device_;
  const std::vector<SymVar> variables_;  // of the program
  lower::Builder b_;
  int64_t workgroups_ = 1;
  std::vector<Var> cells_;
  std::map<const Compute*, Compiled> compiled_;
  std::vector<const Compute*> computes_;  // in order
  // By name: the variables of the program, the counters of the loops that are open, and what Binds
  // in them have bound.
  std::map<std::string, Var> counters_;
};

}  // namespace

namespace {

// Copies an input to the cell of a result that nobody uses.
Statement begin_as_input(const LoopPlan& plan, size_t cell, size_t input) {
  const auto is_input = [&](const Cell& other) { return other.input == input; };
  const auto from = std::find_if(plan.cells.begin(), plan.cells.end(), is_input);
  return {Store{cell, std::vector<Dim>(plan.cells[cell].shape.size(), 0),
                static_cast<size_t>(from - plan.cells.begin())}};
}

}  // namespace

void lower_loops(State& state, const schedule::Loop_Nest& item) {
  const auto& nest = *state.schedule.graph[item.outputs.front()].as<graph::Loop_Nest>();
  LoopPlan plan = plan_loops(*nest.graph.graph);
  // The kernel's outputs are those results that the item stores.
  std::map<size_t, size_t> stored;
  for (size_t i = 0; i < item.outputs.size(); ++i) {
    const auto& result = *state.schedule.graph[item.outputs[i]].as<graph::Loop_Nest>();
    stored[static_cast<size_t>(result.result)] = i;
  }
  for (size_t c = 0; c < plan.cells.size(); ++c)
    for (const auto& [result, operand] : plan.copies)
      if (plan.cells[c].output == result && !stored.contains(result))
        plan.statements.insert(plan.statements.begin(), begin_as_input(plan, c, operand));
  for (Cell& cell : plan.cells)
    if (cell.output)
      cell.output =
          stored.contains(*cell.output) ? std::optional(stored.at(*cell.output)) : std::nullopt;
  const size_t number = state.loops.size();
  LoweredLoops& loops = state.loops.emplace_back();
  loops.first_kernel = state.kernels.size();
  if (state.capabilities->model == ExecutionModel::Grid) {
    LoopSteps steps = lower_steps(plan, *state.capabilities, state.device, number);
    if (host_ns(steps, *state.capabilities) < thread_ns(steps, *state.capabilities)) {
      for (lower::Kernel& kernel : steps.kernels) state.kernels.push_back(std::move(kernel));
      loops.num_kernels = steps.kernels.size();
      loops.steps = std::make_shared<const LoopSteps>(std::move(steps));
      return;
    }
  }
  size_t position = 0;
  while (state.schedule.items[position].loops() != &item) ++position;
  // Shares of the iterations, so many that cores that are faster take more of them.
  constexpr int64_t kSharesOfACore = 4;
  const double ns = static_cast<double>(state.schedule.analysis[position].work_ns);
  const bool is_shared = state.capabilities->model == ExecutionModel::Cores &&
                         schedule::is_worth_sharing(*state.capabilities, ns);
  const int64_t workgroups = is_shared ? kSharesOfACore * state.capabilities->num_cores : 1;
  state.kernels.push_back(LoopsLowerer(state, std::move(plan))
                              .run(concat("loops_", number), item.inputs.size(), workgroups));
}

}  // namespace rune::driver
