#include "driver/loop_kernel.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "driver/loop_computes.h"
#include "driver/loop_exchanges.h"
#include "driver/parallel_iterations.h"
#include "lower/builder.h"
#include "lower/passes/lower_kernel.h"
#include "schedule/analysis/loop_cost.h"

namespace rune::driver {

namespace {

using lower::Instr;
using lower::Var;
using schedule::Value;

class LoopsLowerer {
 public:
  LoopsLowerer(LoopPlan plan, const Capabilities& caps, const std::string& device,
               std::vector<SymVar> variables)
      : plan_(std::move(plan)),
        caps_(caps),
        device_(device),
        variables_(std::move(variables)),
        num_inputs_(count_inputs(plan_)) {
    caps_.num_cores = 1;
    if (caps_.model == ExecutionModel::Cores) return;
    // The code is for one thread of a grid.
    caps_.model = ExecutionModel::Cores;
    caps_.vector_bits = 0;
    caps_.matrix_ops.clear();
  }

  lower::Kernel run(int64_t workgroups) {
    workgroups_ = plan_.is_parallel ? workgroups : 1;
    if (workgroups_ > 1)
      read_from(std::get<Repeat>(plan_.statements.back().action).body, plan_.as_before);
    begin();
    for (const Statement& statement : plan_.statements) emit(statement);
    lower::Kernel kernel = b_.take();
    kernel.grid = workgroups_;
    return kernel;
  }

  ThreadsKernel run_threads(const std::vector<int64_t>& counts, const Capabilities& caps) {
    is_of_threads_ = true;
    begin();
    ThreadsKernel result;
    for (const int64_t count : counts) result.threads *= count;
    result.operations = operations_of(plan_.statements);
    const int64_t local = threads_of_group(result.threads, caps);
    const int64_t grid = (result.threads + local - 1) / local;
    run_threads(counts, b_.special(lower::SpecialKind::Global_task_idx, grid * local, DType::Int64),
                grid * local != result.threads);
    result.kernel = b_.take();
    result.kernel.grid = grid;
    result.kernel.local = local;
    return result;
  }

 private:
  // The kernels of a Compute, and the memory of its values.
  struct Compiled {
    LoweredCompute code;
    std::map<Value, Var> memory;
    std::vector<std::vector<Var>> locals;  // by kernel: its Locals, in order
  };

  static size_t count_inputs(const LoopPlan& plan) {
    size_t count = 0;
    for (const Cell& cell : plan.cells)
      if (cell.input) count = std::max(count, *cell.input + 1);
    return count;
  }

  void begin() {
    for (Statement& statement : plan_.statements) compile(statement);
    for (const SymVar& variable : variables_) counters_[variable.name] = b_.define_var(variable);
    define_memory();
  }

  // The threads of a workgroup: so many that a core has others to run when some wait for memory,
  // and so few that all cores have some.
  static int64_t threads_of_group(int64_t threads, const Capabilities& caps) {
    constexpr int64_t kMostGroups = 4;
    const int64_t of_core = (threads + caps.num_cores - 1) / caps.num_cores;
    const int64_t groups = (of_core + caps.simd_width - 1) / caps.simd_width;
    return std::min<int64_t>(caps.simd_width * std::clamp<int64_t>(groups, 1, kMostGroups),
                             caps.max_threads_per_group);
  }

  // The operations of all iterations in one thread.
  double operations_of(const std::vector<Statement>& statements) const {
    double sum = 0;
    for (const Statement& statement : statements) {
      if (const auto* repeat = std::get_if<Repeat>(&statement.action))
        sum += mean_trips(*repeat) * operations_of(repeat->body);
      if (const auto* compute = std::get_if<Compute>(&statement.action))
        for (const schedule::ItemAnalysis& item : compiled_.at(compute).code.schedule.analysis)
          sum += thread_operations(item);
    }
    return sum;
  }

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

  // Memory. All of it is defined before the loops.

  // Defines memory of the kernel. If threads run iterations, each has its own.
  Var own_memory(DType dtype, int64_t elements) {
    return is_of_threads_ ? b_.private_memory(dtype, elements) : b_.local(dtype, elements);
  }

  void define_memory() {
    cells_.resize(plan_.cells.size());
    const auto elements = [](const Cell& cell) {
      return std::max<int64_t>(1, max_elements(cell.shape));
    };
    std::map<int64_t, size_t> globals;  // by index
    const CellUse used = cells_of(plan_.statements);
    const auto is_used = [&](size_t c) { return used.read.contains(c) || used.stored.contains(c); };
    for (size_t c = 0; c < plan_.cells.size(); ++c) {
      const Cell& cell = plan_.cells[c];
      if (cell.input) globals[static_cast<int64_t>(*cell.input)] = c;
      if (cell.output) globals[static_cast<int64_t>(num_inputs_ + *cell.output)] = c;
      if (!cell.input && !cell.output && is_used(c))
        cells_[c] = own_memory(cell.dtype, elements(cell));
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
          locals.push_back(own_memory(instr.type.dtype, local->size));
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
      const Var memory = own_memory(node.dtype(), std::max<int64_t>(1, max_elements(node.shape())));
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

  // Whether the loop that begins here is in no other.
  bool is_outermost() const { return counters_.size() == variables_.size(); }

  // Emits a loop. If there are several workgroups, each runs its share of the iterations.
  void run(const Repeat& repeat) {
    // Loops inside of a loop that exchanges memory do not exchange memory themselves.
    if (exchanged_.empty() && workgroups_ == 1 && !is_of_threads_) {
      const Exchanges exchanges = find_exchanges(plan_, repeat);
      if (is_worth_turns(repeat, exchanges)) return run_in_turns(repeat, exchanges);
    }
    Var count = iterations_of(repeat);
    const Var start = size(repeat.start);
    Var first;
    if (workgroups_ > 1 && is_outermost()) {
      const auto share = [&](Var group) {
        return b_.alu(AluOp::Idiv, {b_.alu(AluOp::Mul, {group, count}), number(workgroups_)});
      };
      const Var group = b_.special(lower::SpecialKind::Workgroup_idx, workgroups_, DType::Int64);
      first = share(group);
      count = b_.alu(AluOp::Sub, {share(plus(group, number(1))), first});
    }
    Var i = b_.range(count);
    if (repeat.goes_on)
      b_.break_if(b_.alu(AluOp::Not, {b_.load(memory_of(*repeat.goes_on), number(0))}));
    if (first.valid()) i = plus(i, first);
    std::vector<size_t> all(repeat.body.size());
    std::iota(all.begin(), all.end(), size_t{0});
    run_iteration(repeat, all, plus(start, times(i, repeat.step)));
    b_.end_range();
  }

  // Emits the chosen statements of the body for this value of the counter.
  void run_iteration(const Repeat& repeat, const std::vector<size_t>& statements, Var counter) {
    counters_[repeat.counter.name] = counter;
    for (const size_t s : statements) emit(repeat.body[s]);
    for (const size_t s : statements)
      if (const auto* bind = std::get_if<Bind>(&repeat.body[s].action))
        counters_.erase(bind->variable.name);
    counters_.erase(repeat.counter.name);
  }

  // Whether it pays to run the iterations in two turns. Each turn has code of its own, which takes
  // time to compile. It pays if turns save copies of arrays and the code is short, or longer code
  // runs in each iteration of another loop.
  bool is_worth_turns(const Repeat& repeat, const Exchanges& exchanges) const {
    constexpr int64_t kLeastBytes = 4096;
    const size_t most_instructions = is_outermost() ? 400 : 1000;
    if (exchanges.num_turns != 2 || repeat.goes_on || !span_of(repeat).is_constant()) return false;
    int64_t bytes = 0;
    for (const Exchange& exchange : exchanges.cells) {
      const Cell& cell = plan_.cells[exchange[0]];
      bytes += max_elements(cell.shape) * size_of(cell.dtype);
    }
    return bytes >= kLeastBytes && instructions_of(repeat.body) <= most_instructions;
  }

  size_t instructions_of(const std::vector<Statement>& statements) const {
    size_t sum = 0;
    for (const Statement& statement : statements) {
      if (const auto* repeat = std::get_if<Repeat>(&statement.action))
        sum += instructions_of(repeat->body);
      if (const auto* compute = std::get_if<Compute>(&statement.action))
        for (const lower::Kernel& kernel : compiled_.at(compute).code.kernels)
          sum += kernel.body.size();
    }
    return sum;
  }

  // Emits a loop in which every second iteration runs on exchanged memory instead of copying.
  void run_in_turns(const Repeat& repeat, const Exchanges& exchanges) {
    const int64_t step = std::abs(repeat.step);
    const int64_t count = (span_of(repeat).constant() + step - 1) / step;
    if (count <= 0) return;
    const Var start = size(repeat.start);
    const auto turn = [&](Var i) {
      run_iteration(repeat, exchanges.statements, plus(start, times(i, repeat.step)));
    };
    const bool is_odd = count % 2 != 0;
    const Var i = times(b_.range(number(count / 2 + count % 2)), 2);
    turn(i);
    for (const Exchange& cells : exchanges.cells) {
      exchanged_[cells[0]] = cells[1];
      exchanged_[cells[1]] = cells[0];
    }
    const Var next = plus(i, number(1));
    if (is_odd) b_.if_(b_.alu(AluOp::Cmplt, {next, number(count)}));
    turn(next);
    if (is_odd) b_.end_if();
    exchanged_.clear();
    b_.end_range();
    if (!is_odd) return;
    for (const Exchange& cells : exchanges.cells)
      run(Store{cells[0], std::vector<Dim>(plan_.cells[cells[0]].shape.size(), 0), cells[1]});
  }

  // The memory that is used instead of `memory` in the present iteration, if it is exchanged.
  Var in_this_turn(Var memory) const {
    for (const auto& [cell, other] : exchanged_)
      if (cells_[cell] == memory) return cells_[other];
    return memory;
  }
  // The memory of a cell in the present iteration.
  Var memory_of(size_t cell) const {
    const auto other = exchanged_.find(cell);
    return cells_[other == exchanged_.end() ? cell : other->second];
  }

  // Each thread runs an iteration of these nested loops. Adjacent threads run adjacent iterations
  // of the innermost loop.
  void run_threads(const std::vector<int64_t>& counts, Var task, bool has_others) {
    std::vector<const Repeat*> loops;
    const std::vector<Statement>* body = &plan_.statements;
    for (size_t i = 0; i < counts.size(); ++i) {
      loops.push_back(&std::get<Repeat>(body->front().action));
      body = &loops.back()->body;
    }
    std::vector<Var> positions(counts.size());
    int64_t threads = 1;
    Var rest = task;
    for (size_t i = counts.size(); i-- > 0; threads *= counts[i]) {
      positions[i] = i == 0 ? rest : b_.alu(AluOp::Mod, {rest, number(counts[i])});
      if (i > 0) rest = b_.alu(AluOp::Idiv, {rest, number(counts[i])});
    }
    int open = 0;
    const auto only_if = [&](Var condition) {
      b_.if_(condition);
      ++open;
    };
    if (has_others) only_if(b_.alu(AluOp::Cmplt, {task, number(threads)}));
    for (size_t i = 0; i < counts.size(); ++i) {
      const Dim count = span_of(*loops[i]);
      if (!count.is_constant())
        only_if(b_.alu(AluOp::Cmplt, {positions[i], iterations_of(*loops[i])}));
    }
    for (size_t i = 0; i < counts.size(); ++i)
      counters_[loops[i]->counter.name] =
          plus(size(loops[i]->start), times(positions[i], loops[i]->step));
    for (const Statement& statement : *body) emit(statement);
    while (open-- > 0) b_.end_if();
  }

  Var iterations_of(const Repeat& repeat) {
    const int64_t step = std::abs(repeat.step);
    const Var count = size(span_of(repeat) + (step - 1));
    return step == 1 ? count : b_.alu(AluOp::Idiv, {count, number(step)});
  }

  void run(const Bind& bind) {
    counters_[bind.variable.name] = b_.load(memory_of(bind.cell), number(0));
  }

  void run(const Store& store) {
    if (store.is_covered) return;
    const Cell &target = plan_.cells[store.target], &part = plan_.cells[store.part];
    const Ints to = contiguous_strides(target.shape), from = contiguous_strides(part.shape);
    Var start = number(0);
    for (size_t d = 0; d < to.size(); ++d)
      start = plus(start, times(size(store.offsets[d]), to[d]));
    copy(store, to, from, 0, start, number(0));
  }

  // Emits the copy of a part's elements, for the dimensions from `d` on.
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
    b_.store(memory_of(store.target), target, b_.load(memory_of(store.part), part, lanes));
  }

  void run(const Compute& compute) {
    const Compiled& compiled = compiled_.at(&compute);
    for (const schedule::ScheduleItem& item : compiled.code.schedule.items) {
      const schedule::Launch* launch = item.launch();
      std::vector<Var> memory;
      for (const Value v : lower::kernel_arguments(launch->inputs, launch->outputs))
        memory.push_back(in_this_turn(compiled.memory.at(v)));
      const lower::Kernel& kernel = compiled.code.kernels[launch->kernel];
      const schedule::Kernel& scheduled = compiled.code.schedule.kernels[launch->kernel];
      std::map<std::string, int64_t> arguments;
      for (size_t i = 0; i < launch->arguments.size(); ++i)
        arguments[scheduled.arguments[i].name] = launch->arguments[i];
      inline_kernel(kernel, memory, compiled.locals[launch->kernel], arguments);
    }
    if (compiled.code.store) run(*compiled.code.store);
  }

  // A position in the launch of an inlined kernel. Other kernels may have used its Locals, so no
  // workgroup finds the contents of the one before.
  Var special_of(lower::SpecialKind kind, Var group) {
    switch (kind) {
      case lower::SpecialKind::Local_thread_idx: return number(0);
      case lower::SpecialKind::Previous_workgroup_idx: return number(-1);
      case lower::SpecialKind::Global_task_idx:
      case lower::SpecialKind::Workgroup_idx: return group;
    }
    RUNE_UNREACHABLE();
  }

  // Inserts a kernel's code here. Its workgroups run one after the other.
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
        map.push_back(b_.cast(special_of(special->kind, group), instr.type.dtype));
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
  const size_t num_inputs_;
  int64_t workgroups_ = 1;
  bool is_of_threads_ = false;
  std::vector<Var> cells_;
  std::map<size_t, size_t> exchanged_;  // by cell: the cell whose memory it has in this turn
  std::map<const Compute*, Compiled> compiled_;
  std::vector<const Compute*> computes_;  // in order
  // By name: the values of the program's variables, of open loops' counters, and of variables that
  // Binds have bound.
  std::map<std::string, Var> counters_;
};

}  // namespace

double mean_trips(const LoopRange& range) {
  return schedule::mean_trips(range.start, range.stop, range.step, range.goes_on.has_value());
}

double thread_operations(const schedule::ItemAnalysis& item) {
  constexpr double kElementBytes = 8;
  return static_cast<double>(item.flops) + static_cast<double>(item.bytes_written) / kElementBytes;
}

lower::Kernel lower_loop_kernel(LoopPlan plan, const Capabilities& caps, const std::string& device,
                                std::vector<SymVar> variables, int64_t workgroups) {
  return LoopsLowerer(std::move(plan), caps, device, std::move(variables)).run(workgroups);
}

ThreadsKernel lower_threads_kernel(LoopPlan plan, const std::vector<int64_t>& counts,
                                   const Capabilities& caps, const std::string& device,
                                   std::vector<SymVar> variables) {
  return LoopsLowerer(std::move(plan), caps, device, std::move(variables))
      .run_threads(counts, caps);
}

}  // namespace rune::driver
