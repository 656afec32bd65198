#include "driver/begun_outputs.h"

#include <algorithm>
#include <span>
#include <variant>

#include "driver/loop_plan.h"
#include "schedule/indexing/indexing.h"

namespace rune::driver {

namespace {

using schedule::Value;

bool reads(std::span<const Statement> statements, size_t cell) {
  return std::any_of(statements.begin(), statements.end(), [&](const Statement& statement) {
    if (const auto* store = std::get_if<Store>(&statement.action)) return store->part == cell;
    if (const auto* bind = std::get_if<Bind>(&statement.action)) return bind->cell == cell;
    if (const auto* repeat = std::get_if<Repeat>(&statement.action))
      return repeat->goes_on == cell || reads(repeat->body, cell);
    const std::vector<size_t>& inputs = std::get<Compute>(statement.action).inputs;
    return contains(inputs, cell);
  });
}

// Whether the plan only uses this operand as the initial value of outputs.
bool only_begins(const LoopPlan& plan, size_t operand) {
  for (const auto& [cell, other] : plan.as_before)
    if (plan.cells[other].input == operand) return false;
  for (size_t c = 0; c < plan.cells.size(); ++c)
    if (plan.cells[c].input == operand && reads(plan.statements, c)) return false;
  return true;
}

// The number of the value's uses as an operand of items or as an output.
int64_t num_uses(const schedule::Schedule& schedule, Value v) {
  int64_t uses = std::count(schedule.outputs.begin(), schedule.outputs.end(), v);
  for (const schedule::ScheduleItem& item : schedule.items) {
    const auto [read, written] = schedule::accesses_of(item);
    uses += std::count(read.begin(), read.end(), v);
  }
  return uses;
}

}  // namespace

std::map<Value, Value> begun_outputs(const schedule::Schedule& schedule) {
  std::map<Value, Value> result;
  // Later loops come first, because a loop's result may be another one's initial value.
  for (auto item = schedule.items.rbegin(); item != schedule.items.rend(); ++item) {
    const schedule::Loop_Nest* loops = item->loops();
    if (!loops) continue;
    const auto& nest = *schedule.graph[loops->outputs[0]].as<graph::Loop_Nest>();
    const LoopPlan plan = plan_loops(*nest.graph.graph);
    for (const auto& [number, operand] : plan.copies) {
      const Value begin = loops->inputs[operand];
      const bool is_temporary =
          schedule::evaluation_of(schedule.graph[begin]) != schedule::Evaluation::Memory;
      if (!is_temporary || num_uses(schedule, begin) != 1 || !only_begins(plan, operand)) continue;
      for (const Value v : loops->outputs) {
        const auto& output = *schedule.graph[v].as<graph::Loop_Nest>();
        if (output.result != static_cast<int64_t>(number)) continue;
        const auto uses = std::count(schedule.outputs.begin(), schedule.outputs.end(), v);
        if (uses == 1) result.try_emplace(begin, v);
        if (const auto known = result.find(v); known != result.end())
          result.try_emplace(begin, known->second);
      }
    }
  }
  return result;
}

}  // namespace rune::driver
