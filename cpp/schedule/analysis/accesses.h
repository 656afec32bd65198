// The memory accesses of a kernel at each point of its iteration space.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "schedule/indexing/demand.h"
#include "schedule/schedule.h"

namespace rune::schedule {

// An access to memory at a point of a kernel's iteration space. Variable i is axis i.
struct MemoryAccess {
  Value value;
  sym::Expr position;  // row-major
  sym::Mask mask;
  bool is_store = false;
  size_t stage = 0;
  int64_t repeats = 1;                // evaluations per point, by reductions that are folded inside
  std::set<uint32_t> data_axes = {};  // the axes that choose elements of index arrays

  // The distance between neighbours along an axis; nothing if it varies.
  std::optional<int64_t> stride(int64_t axis) const {
    const auto variable = static_cast<uint32_t>(axis);
    return data_axes.count(variable) ? std::nullopt : position.coefficient_of(variable);
  }
};

// The axes of a kernel as variables of index expressions.
std::vector<sym::Expr> axis_variables(const IterSpace& iter);
// The row-major position of a stage's value. The own axes of a stage that reduces do not count.
sym::Expr value_position(const Stage& stage, const StageValue& value,
                         const std::vector<sym::Expr>& axes);
// The index of a stage's value. Each axis counts only for the dimension that it runs along. So an
// axis that goes beyond its end, as lanes under a mask may, does not change other coordinates.
Index value_index(const Graph& graph, const IterSpace& iter, const Stage& stage,
                  const StageValue& value, const std::vector<sym::Expr>& axes);
// The position of a Reduce stage's point among the elements that are reduced to one.
sym::Expr inner_position(const Stage& stage, const StageValue& value,
                         const std::vector<sym::Expr>& axes);

// The seeds of a walk that computes the stage's values at the point given by `axes`.
std::vector<Seed> stage_seeds(const Graph& graph, const Stage& stage,
                              const std::vector<sym::Expr>& axes);

// All accesses of a kernel whose stages are set. `is_input` tells which values the kernel reads
// from memory. Adds the nodes that the kernel computes to `computed`, unless that is null.
std::vector<MemoryAccess> memory_accesses(const Graph& graph, const Kernel& kernel,
                                          const std::function<bool(Value)>& is_input,
                                          std::set<uint32_t>* computed = nullptr);
// The same for a kernel whose inputs are set.
std::vector<MemoryAccess> memory_accesses(const Graph& graph, const Kernel& kernel);

}  // namespace rune::schedule
