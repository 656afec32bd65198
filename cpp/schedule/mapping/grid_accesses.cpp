#include "schedule/mapping/grid_accesses.h"

#include <algorithm>

namespace rune::schedule {

bool gathers(const MappingState& state) {
  const std::vector<Value>& ops = state.kernel.ops;
  return std::any_of(ops.begin(), ops.end(), [&](Value v) {
    return evaluation_of(state.graph[v]) == Evaluation::Gathered;
  });
}

int64_t neighbours(const MappingState& state, const MemoryAccess& access, int64_t axis,
                   int64_t most) {
  const auto step = access.position.coefficient_of(static_cast<uint32_t>(axis));
  if (!step || (*step != 0 && *step != 1)) return 1;
  if (*step == 0) return most;
  const int64_t bytes = size_of(state.graph[access.value].dtype());
  int64_t lanes = std::min(most, std::max<int64_t>(state.caps.access_bytes / bytes, 1));
  const sym::Expr start = access.position - axis_variables(state.kernel.iter)[axis];
  while (lanes > 1 && start.known_divisor() % lanes) lanes /= 2;
  return lanes;
}

int64_t lanes_of_rows(const MappingState& state) {
  const Mapping& mapping = state.kernel.iter.mapping;
  int64_t lanes = 1;
  while (2 * lanes <= std::min<int64_t>(state.caps.access_bytes, state.caps.row_points_per_thread))
    lanes *= 2;
  if (gathers(state)) return 1;
  for (const int64_t axis : mapping.thread) {
    if (state.kernel.iter.axes[axis].is_symbolic()) return 1;
    const int64_t extent = state.extent(axis);
    while (lanes > 1 && (extent % lanes || extent / mapping.threads < lanes)) lanes /= 2;
  }
  for (const MemoryAccess& access : memory_accesses(state.graph, state.kernel)) {
    const Ints& axes = state.kernel.stages()[access.stage].axes;
    if (!axes.empty() && contains(mapping.thread, axes.back()))
      lanes = neighbours(state, access, axes.back(), lanes);
  }
  return lanes;
}

bool reads_mirror_images(const MappingState& state, const std::pair<int64_t, int64_t>& axes) {
  const auto [row, column] = axes;
  if (state.kernel.iter.mapping.block.size() != 2 || state.extent(row) != state.extent(column))
    return false;
  const std::vector<sym::Expr> variables = axis_variables(state.kernel.iter);
  const auto mirrored = [&](const sym::Expr& position) {
    return position.substitute([&](uint32_t variable) -> std::optional<sym::Expr> {
      if (variable == static_cast<uint32_t>(row)) return variables[column];
      if (variable == static_cast<uint32_t>(column)) return variables[row];
      return std::nullopt;
    });
  };
  const std::vector<MemoryAccess> accesses = memory_accesses(state.graph, state.kernel);
  for (const MemoryAccess& a : accesses)
    for (const MemoryAccess& b : accesses)
      if (&a != &b && !a.is_store && !b.is_store && a.value == b.value &&
          bytes_of(state.graph[a.value]) > state.caps.last_level_bytes / 2 &&
          mirrored(a.position) == b.position)
        return true;
  return false;
}

}  // namespace rune::schedule
