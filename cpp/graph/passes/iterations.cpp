#include "graph/passes/iterations.h"

#include <algorithm>
#include <cstdlib>

#include "base/math.h"

namespace rune::graph {

std::optional<Iterations> Iterations::of(const Graph& graph, const LoopTree& tree, Value end) {
  const auto& range = *graph[end].as<End_Loop>();
  if (range.goes_on) return std::nullopt;
  Iterations result{tree.ended_by(end).counter, range.start, range.step, 0};
  const Dim span = (range.stop - range.start) * (range.step > 0 ? 1 : -1);
  if (span.is_constant() && range.start.is_constant()) {
    result.count = std::max<int64_t>(0, ceil_div(span.constant(), std::abs(range.step)));
    return result;
  }
  const auto is_counter = [&](const Dim::Term& term) {
    return std::any_of(tree.loops().begin(), tree.loops().end(),
                       [&](const LoopTree::Loop& loop) { return loop.counter == term.var; });
  };
  for (const Dim& bound : {range.start, range.stop})
    if (!std::all_of(bound.terms().begin(), bound.terms().end(), is_counter)) return std::nullopt;
  if (std::abs(range.step) != 1 || span.least() < 0) return std::nullopt;
  result.count = span;
  return result;
}

Dim Iterations::at(const Dim& number, const Dim& size) const {
  const Dim value = first + number * step;
  Dim result = size.offset();
  for (const Dim::Term& term : size.terms())
    result += (term.var.name == counter.name ? value : Dim(term.var)) * term.coefficient;
  return result;
}

std::optional<int64_t> Iterations::growth(const Dim& size) const {
  const Dim slope = at(1, size) - at(0, size);
  return slope.is_constant() ? std::optional(slope.constant()) : std::nullopt;
}

Dim Iterations::extreme(const Dim& size, int64_t growth, bool is_least) const {
  return at((growth >= 0) == is_least ? Dim(0) : count - 1, size);
}

bool Writes::add(const Graph& graph, const Iterations& iterations, Value update) {
  const std::vector<Dim>& offsets = graph[update].as<Update>()->offsets;
  const Shape& box = graph[graph[update].inputs[1]].shape();
  std::optional<int64_t> walked;
  for (size_t d = 0; d < offsets.size(); ++d) {
    if (iterations.decide(box[d])) return false;
    if (!iterations.decide(offsets[d])) continue;
    if (walked) return false;
    walked = static_cast<int64_t>(d);
  }
  if (!walked || !box[*walked].is_constant()) return false;
  const Dim& first = offsets[*walked];
  const std::optional<int64_t> step = iterations.growth(first);
  const int64_t length = box[*walked].constant();
  if (!step || std::abs(*step) != length) return false;
  if (!updates.empty() && (*walked != axis || first != offset || length != size)) return false;
  updates.push_back(update);
  axis = *walked;
  offset = first;
  size = length;
  stride = *step;
  return true;
}

bool Writes::leave_to_one(const Graph& graph, const Iterations& iterations,
                          const Shrink& part) const {
  if (updates.empty()) return true;
  const auto& [own_low, own_high] = part.limits[axis];
  if (own_low == offset && own_high - own_low == Dim(size)) return true;
  const auto is_apart = [&](Value update) {
    const std::vector<Dim>& offsets = graph[update].as<Update>()->offsets;
    const Shape& box = graph[graph[update].inputs[1]].shape();
    for (size_t d = 0; d < part.limits.size(); ++d) {
      const auto& [low, high] = part.limits[d];
      const auto of_low = iterations.growth(low), of_high = iterations.growth(high);
      if (!of_low || !of_high) continue;
      const int64_t along = static_cast<int64_t>(d) == axis ? stride : 0;
      const Dim begin = iterations.extreme(offsets[d], along, true);
      const Dim end = iterations.extreme(offsets[d], along, false) + box[d];
      if (always_at_most(iterations.extreme(high, *of_high, false), begin) ||
          always_at_most(end, iterations.extreme(low, *of_low, true)))
        return true;
    }
    return false;
  };
  return std::all_of(updates.begin(), updates.end(), is_apart);
}

}  // namespace rune::graph
