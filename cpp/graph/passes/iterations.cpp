#include "graph/passes/iterations.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>

#include "base/math.h"
#include "graph/parallel_work.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

// x * (a number) + y * (another number) + constant >= 0.
struct Inequality {
  int64_t x, y, constant;
};

// Whether two rational numbers x and y may satisfy all inequalities. So the answer may be true even
// if no integers do.
bool may_hold(const std::vector<Inequality>& all) {
  // Eliminates y: combines each of its lower bounds with each upper bound.
  std::vector<Inequality> of_x;
  for (const Inequality& below : all) {
    if (below.y == 0) of_x.push_back(below);
    if (below.y <= 0) continue;
    for (const Inequality& above : all)
      if (above.y < 0)
        of_x.push_back({below.x * -above.y + above.x * below.y, 0,
                        below.constant * -above.y + above.constant * below.y});
  }
  double least = -std::numeric_limits<double>::infinity(), greatest = -least;
  for (const Inequality& each : of_x) {
    const double bound = -static_cast<double>(each.constant) / static_cast<double>(each.x);
    if (each.x > 0) least = std::max(least, bound);
    if (each.x < 0) greatest = std::min(greatest, bound);
    if (each.x == 0 && each.constant < 0) return false;
  }
  return least <= greatest;
}

// Whether an iteration may read from a box elements that have been written to another box: by an
// earlier iteration if `before` is set, otherwise by itself.
bool may_meet(const Iterations& iterations, const DimPairs& read, const DimPairs& written,
              bool before) {
  if (!iterations.count.is_constant()) return true;
  const int64_t last = iterations.count.constant() - 1;
  // x is the number of the reading iteration, y that of the writing one.
  std::vector<Inequality> all{{1, 0, 0}, {-1, 0, last}, {0, 1, 0}, {0, -1, last}};
  all.push_back(before ? Inequality{1, -1, -1} : Inequality{1, -1, 0});
  if (!before) all.push_back({-1, 1, 0});
  const auto is_below = [&](const Dim& low, bool of_reader, const Dim& high) {
    const Dim first_low = iterations.at(0, low), first_high = iterations.at(0, high);
    const auto of_low = iterations.growth(low), of_high = iterations.growth(high);
    if (!of_low || !of_high || !(first_high - first_low).is_constant()) return;
    const int64_t constant = (first_high - first_low).constant() - 1;
    all.push_back(of_reader ? Inequality{-*of_low, *of_high, constant}
                            : Inequality{*of_high, -*of_low, constant});
  };
  for (size_t d = 0; d < read.size(); ++d) {
    is_below(read[d].first, true, written[d].second);
    is_below(written[d].first, false, read[d].second);
  }
  return may_hold(all);
}

// Whether no iteration reads from a box elements that any iteration writes to another box.
bool are_apart(const Iterations& iterations, const DimPairs& read, const DimPairs& written) {
  for (size_t d = 0; d < read.size(); ++d) {
    const auto all_read = iterations.hull(read[d].first, read[d].second);
    const auto all_written = iterations.hull(written[d].first, written[d].second);
    if (!all_read || !all_written) continue;
    if (always_at_most(all_read->second, all_written->first) ||
        always_at_most(all_written->second, all_read->first))
      return true;
  }
  return false;
}

}  // namespace

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

std::optional<std::pair<Dim, Dim>> Iterations::hull(const Dim& low, const Dim& high) const {
  const auto of_low = growth(low), of_high = growth(high);
  if (!of_low || !of_high) return std::nullopt;
  return std::pair{extreme(low, *of_low, true), extreme(high, *of_high, false)};
}

std::optional<Write> Write::of(const Graph& graph, const Iterations& iterations, Value update) {
  const std::vector<Dim>& offsets = graph[update].as<Update>()->offsets;
  const Shape& box = graph[graph[update].inputs[1]].shape();
  Write result{update, -1, 0, 0, 0, {}};
  for (size_t d = 0; d < offsets.size(); ++d) {
    const auto axis = static_cast<int64_t>(d);
    if (iterations.decide(box[d])) {
      result.windows.push_back(axis);
    } else if (iterations.decide(offsets[d])) {
      if (result.axis >= 0 || !box[d].is_constant()) return std::nullopt;
      result.axis = axis;
    }
  }
  if (result.axis < 0) return std::nullopt;
  result.offset = offsets[result.axis];
  result.size = box[result.axis].constant();
  const std::optional<int64_t> stride = iterations.growth(result.offset);
  if (!stride || std::abs(*stride) != result.size) return std::nullopt;
  result.stride = *stride;
  return result;
}

bool Writes::add(const Graph& graph, const Iterations& iterations, Value update) {
  const std::optional<Write> box = Write::of(graph, iterations, update);
  if (!box) return false;
  if (!boxes.empty()) {
    const Write& first = boxes[0];
    share_axis &= box->axis == first.axis && box->offset == first.offset && box->size == first.size;
  }
  boxes.push_back(*box);
  return true;
}

bool Writes::own(const Shrink& part) const {
  if (!share_axis || boxes.empty()) return false;
  const auto& [low, high] = part.limits[boxes[0].axis];
  return low == boxes[0].offset && high - low == Dim(boxes[0].size);
}

bool Writes::leave(const Graph& graph, const Iterations& iterations, const Shrink& part,
                   size_t count) const {
  const auto leaves = [&](const Write& write) {
    DimPairs limits;
    const std::vector<Dim>& offsets = graph[write.update].as<Update>()->offsets;
    const Shape& box = graph[graph[write.update].inputs[1]].shape();
    for (size_t d = 0; d < box.size(); ++d) limits.emplace_back(offsets[d], offsets[d] + box[d]);
    if (are_apart(iterations, part.limits, limits)) return true;
    const bool is_done = &write < boxes.data() + count;
    return !may_meet(iterations, part.limits, limits, true) &&
           !(is_done && may_meet(iterations, part.limits, limits, false));
  };
  return std::all_of(boxes.begin(), boxes.end(), leaves);
}

std::optional<std::vector<Value>> values_of_updated(const Graph& graph, const LoopTree& tree,
                                                    const LoopTree::Loop& loop, size_t k) {
  const std::vector<uint32_t> body = tree.body_of(loop);
  std::vector<Value> values;
  Value v = graph[loop.end].inputs[1 + k];
  while (std::binary_search(body.begin(), body.end(), v.id)) {
    const Node& node = graph[v];
    values.push_back(v);
    if (const auto* carry = node.as<Carry>()) {
      const bool is_own = node.inputs[1] == graph[loop.end].inputs[0];
      if (is_own && static_cast<size_t>(carry->index) == k) return values;
      return std::nullopt;
    }
    if (node.as<Update>()) {
      v = node.inputs[0];
      continue;
    }
    const auto* result = node.as<Loop_Result>();
    if (!result) return std::nullopt;
    const Value end = node.inputs[0];
    const auto index = static_cast<size_t>(result->index);
    const auto inner = values_of_updated(graph, tree, tree.ended_by(end), index);
    if (!inner) return std::nullopt;
    values.insert(values.end(), inner->begin(), inner->end());
    v = graph[end].inputs[1 + num_carried(graph[end]) + index];
  }
  return std::nullopt;
}

bool have_own_parts(const Graph& graph, const LoopTree& tree, const LoopTree::Loop& loop) {
  const auto iterations = Iterations::of(graph, tree, loop.end);
  if (!iterations) return false;
  std::map<uint32_t, size_t> arrays;  // by value: the carried index
  std::vector<Writes> writes(num_carried(graph[loop.end]));
  for (size_t k = 0; k < writes.size(); ++k) {
    const auto values = values_of_updated(graph, tree, loop, k);
    if (!values) return false;
    for (const Value v : *values) {
      arrays[v.id] = k;
      if (graph[v].as<Update>() && !writes[k].add(graph, *iterations, v)) return false;
    }
  }
  for (const uint32_t id : tree.body_of(loop)) {
    const Node& node = graph.nodes[id];
    for (const Value v : node.inputs) {
      const auto known = arrays.find(v.id);
      if (known == arrays.end() || node.as<End_Loop>() || arrays.contains(id)) continue;
      const Writes& all = writes[known->second];
      const auto* part = node.as<Shrink>();
      if (!part) return false;
      if (!all.own(*part) && !all.leave(graph, *iterations, *part, all.boxes.size())) return false;
    }
  }
  return true;
}

namespace {

// A loop is expanded on cores if it has at most this many nodes and an iteration has at least this
// many elements. If iterations read other elements than they write, they are not in one kernel and
// take longer to compile.
constexpr double kMostNodesOnCores = 400, kMostNodesByElement = 600;
constexpr double kLargeIteration = 1 << 16;

// Whether a loop is better compiled as a kernel, which writes parts of arrays in place. That is so
// if most carried bytes are arrays that iterations write in parts, and if all stay in a core's
// cache or there is only one core. Expanded, each write computes its whole array. That takes about
// twice the time on one core, and more cores make up for it only if the arrays are large.
bool is_better_in_place(const Graph& graph, const LoopTree& tree, const LoopTree::Loop& loop,
                        const Capabilities& caps) {
  int64_t in_place = 0, carried = 0;
  for (size_t k = 0; k < num_carried(graph[loop.end]); ++k) {
    const int64_t bytes = bytes_of(graph[graph[loop.end].inputs[1 + k]]);
    carried += bytes;
    if (values_of_updated(graph, tree, loop, k)) in_place += bytes;
  }
  return 2 * in_place > carried && (caps.num_cores == 1 || carried <= caps.l2_bytes);
}

}  // namespace

double expanded_nodes(const Graph& graph, const LoopTree& tree, const LoopTree::Loop& loop) {
  double nodes = 0;
  for (const uint32_t id : loop.members) {
    const Node& node = graph.nodes[id];
    if (node.as<End_Loop>()) nodes += expanded_nodes(graph, tree, tree.ended_by({id}));
    if (!is_movement(node.kind()) && !node.as<Carry>() && !node.as<Loop_Result>()) ++nodes;
  }
  const auto& range = *graph[loop.end].as<End_Loop>();
  const Dim span = range.step > 0 ? range.stop - range.start : range.start - range.stop;
  return nodes * std::max(0.0, static_cast<double>(span.bound()) /
                                   static_cast<double>(std::abs(range.step)));
}

bool is_by_element(const Graph& graph, const LoopTree::Loop& loop) {
  return std::all_of(loop.members.begin(), loop.members.end(), [&](uint32_t id) {
    switch (graph.nodes[id].kind()) {
      case NodeKind::Unary:
      case NodeKind::Binop:
      case NodeKind::Ternary:
      case NodeKind::Cast:
      case NodeKind::Bitcast:
      case NodeKind::Const_Scalar:
      case NodeKind::Iota:
      case NodeKind::Reshape:
      case NodeKind::Expand:
      case NodeKind::Carry:
      case NodeKind::Loop_Counter: return true;
      default: return Value{id} == loop.end;
    }
  });
}

bool expands_on_cores(const Graph& graph, const LoopTree& tree, const LoopTree::Loop& loop,
                      const Capabilities& caps) {
  double elements = 0;  // that an iteration computes or reduces
  for (const uint32_t id : loop.members) {
    const Node& node = graph.nodes[id];
    if (is_movement(node.kind()) || node.as<Carry>() || node.as<Update>()) continue;
    elements += static_cast<double>(max_elements(node.shape())) * reduced_elements(graph, node);
  }
  const double most = is_by_element(graph, loop) ? kMostNodesByElement : kMostNodesOnCores;
  return elements >= kLargeIteration && expanded_nodes(graph, tree, loop) <= most &&
         !is_better_in_place(graph, tree, loop, caps);
}

}  // namespace rune::graph
