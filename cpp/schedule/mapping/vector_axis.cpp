#include "schedule/mapping/vector_axis.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>

#include "base/math.h"
#include "schedule/analysis/cost.h"

namespace rune::schedule {

namespace {

// Costs in units of the score: of each vector that is loaded and shuffled with others, and of a
// vector that is loaded element by element.
constexpr double kStrideCost = 0.4, kGatherCost = 6;

// The most lanes that are loaded one by one, and the most such loads in all copies of an iteration.
// More take too long to compile.
constexpr int64_t kMostLoadedLanes = 16, kMostLoads = 64;

// Whether a stage has inner axes that can carry the lanes.
bool may_vectorize(const Stage& stage) {
  return !stage.axes.empty() && !is_sequential(stage);
}

}  // namespace

int64_t most_tile_rows(const Capabilities& caps) {
  return (caps.num_vector_registers - 4) / 2;
}

VectorAxis::VectorAxis(const Graph& graph, const Capabilities& caps, const Kernel& kernel,
                       const Kernel* around)
    : graph_(graph),
      caps_(caps),
      kernel_(kernel),
      around_(around),
      accesses_(memory_accesses(graph, kernel)),
      outer_(outer_axes(kernel)),
      contracts_(contracts(graph, kernel)),
      sequential_(sequential_stage(kernel)),
      lanes_(choose_lanes()) {}

bool VectorAxis::is_outer(int64_t axis) const {
  return contains(outer_, axis);
}

// Whether the index of a Scatter's update depends on an axis. All lanes must have the same index.
bool VectorAxis::decides_places(int64_t axis) const {
  const Stage* stage = sequential_stage(kernel_);
  if (!stage || stage->kind != StageKind::Scatter) return false;
  const StageValue& target = stage->values.front();
  const graph::Node& node = graph_[target.value];
  const int64_t batch = node.as<graph::Scatter>()->batch_rank();
  const Shape& shape = node.shape();
  return batch > 0 && target.strides[axis] * extent(axis) >
                          max_elements(Shape(shape.begin() + batch, shape.end()));
}

// Whether a value has one element for each outer point, while other stages have more work there.
bool VectorAxis::is_by_outer_point(Value v) const {
  if (outer_.size() == kernel_.iter.axes.size() || sequential_) return false;
  int64_t points = 1;
  for (const int64_t axis : outer_) points *= extent(axis);
  return evaluation_of(graph_[v]) != Evaluation::Reduction &&
         max_elements(graph_[v].shape()) <= points;
}

// The number of lanes of the widest dtype in a register, leaving out values that are computed only
// at outer points. In an elementwise kernel, the dtype of most operations counts instead, and wider
// values take several registers. Arrays that are read across have lanes for the largest squares
// that can be transposed.
int64_t VectorAxis::choose_lanes() const {
  int widest = 1;
  std::map<int, double> operations;  // by size of dtype in bytes
  for (const Value v : kernel_.ops) {
    if (is_by_outer_point(v)) continue;
    int bytes = size_of(graph_[v].dtype());
    widest = std::max(widest, bytes);
    for (const Value input : graph_[v].inputs)
      bytes = std::max(bytes, size_of(graph_[input].dtype()));
    operations[bytes] += node_operations(caps_, graph_, graph_[v]);
  }
  for (const MemoryAccess& access : accesses_)
    if (!is_by_outer_point(access.value))
      widest = std::max(widest, size_of(graph_[access.value].dtype()));
  const bool elementwise =
      std::all_of(kernel_.stages().begin(), kernel_.stages().end(),
                  [](auto& s) { return s.kind == StageKind::Map && s.axes.empty(); });
  int bytes = widest;
  if (elementwise && !contracts_)
    for (const auto& [size, count] : operations)
      if (size >= 4 && count > operations[bytes]) bytes = size;
  const int64_t most = elementwise && reads_across() ? kMostSquareRows : 64;
  return std::clamp<int64_t>(caps_.vector_bits / (8 * bytes), 1, most);
}

// Whether elements that are adjacent in the results are read far apart, from an array that is
// contiguous along another axis.
bool VectorAxis::reads_across() const {
  const auto steps = [](const MemoryAccess& access, int64_t axis) {
    return std::abs(access.stride(axis).value_or(0));
  };
  const auto is_across = [&](const MemoryAccess& access, int64_t stored) {
    return !access.is_store && steps(access, stored) > kMostSquareRows &&
           std::any_of(outer_.begin(), outer_.end(),
                       [&](int64_t axis) { return steps(access, axis) == 1; });
  };
  for (const int64_t axis : outer_) {
    bool stores = false, across = false;
    for (const MemoryAccess& access : accesses_) {
      stores |= access.is_store && steps(access, axis) == 1;
      across |= is_across(access, axis);
    }
    if (stores && across) return true;
  }
  return false;
}

// How often a stage's accesses are made, relative to the stage with the most accesses.
double VectorAxis::share_of(size_t stage) const {
  const auto points = [&](const Stage& s) {
    double product = 1;
    for (const int64_t axis : s.axes) product *= static_cast<double>(extent(axis));
    return product;
  };
  double most = 1;
  for (const Stage& s : kernel_.stages()) most = std::max(most, points(s));
  return points(kernel_.stages()[stage]) / most;
}

std::optional<int64_t> VectorAxis::filling_axis(const MemoryAccess& access,
                                                int64_t lanes_axis) const {
  const auto stride = access.stride(lanes_axis);
  if (around_ || contracts_ || sequential_ || !is_outer(lanes_axis) || !stride ||
      !interleaves(*stride, lanes_))
    return std::nullopt;
  for (int64_t axis = 0; axis < static_cast<int64_t>(kernel_.iter.axes.size()); ++axis)
    if (!kernel_.iter.axes[axis].is_symbolic() && extent(axis) == *stride &&
        access.stride(axis) == 1)
      return axis;
  return std::nullopt;
}

// The rows of a contraction's tile that use each loaded vector if the lanes are along an outer
// axis.
double VectorAxis::rows_sharing(const MemoryAccess& access, int64_t lanes_axis) const {
  if (!is_outer(lanes_axis)) return 1;
  int64_t longest = 1;
  for (const int64_t axis : outer_)
    if (axis != lanes_axis && !access.position.depends_on(static_cast<uint32_t>(axis)))
      longest = std::max(longest, extent(axis));
  return static_cast<double>(std::min(longest, most_tile_rows(caps_)));
}

// The cost of a contraction's load with a stride, in units of the score.
double VectorAxis::strided_cost(int64_t stride) const {
  const bool whole = loads_whole_vectors(stride, lanes_);
  return whole ? kStrideCost * static_cast<double>(std::abs(stride)) : kGatherCost;
}

// Whether an access is made only at some points of an axis, so that vectors along it compute values
// for all lanes that only some need.
bool VectorAxis::is_for_some(const MemoryAccess& access, int64_t axis) const {
  const auto& conditions = access.mask.conditions();
  return std::any_of(conditions.begin(), conditions.end(), [&](const sym::Expr& condition) {
    return condition.depends_on(static_cast<uint32_t>(axis));
  });
}

// How efficient memory accesses are as vectors along an axis. If `stage` >= 0, only its accesses
// count.
double VectorAxis::score(int64_t axis, int stage) const {
  double score = 0;
  for (const MemoryAccess& access : accesses_) {
    if (stage >= 0 && access.stage != static_cast<size_t>(stage)) continue;
    const auto along = access.stride(axis);
    const double weight = (access.is_store ? 2 : 1) * share_of(access.stage);
    if (!along)
      score -= 4 * weight;
    else if (*along == 1)
      score += 2 * weight;
    else if (*along == 0)
      score += is_for_some(access, axis) ? 0 : weight;
    else if (*along == -1)
      score += 1.5 * weight;
    else if (filling_axis(access, axis))
      score += 2 * weight / static_cast<double>(*along);
    else if (contracts_ && !access.is_store)
      score += weight * (1 - strided_cost(*along) / rows_sharing(access, axis));
    else if (!access.is_store && loads_whole_vectors(*along, lanes_))
      score += weight / static_cast<double>(std::abs(*along));
    else
      score -= 4 * weight;
  }
  return score;
}

double VectorAxis::lane_use(int64_t axis) const {
  return static_cast<double>(extent(axis)) / static_cast<double>(round_up(extent(axis), lanes_));
}

// The efficiency of lanes along an inner axis. After a reduction, lanes are combined by halves.
double VectorAxis::lane_use(const Stage& stage, int64_t axis) const {
  if (stage.kind != StageKind::Reduce) return lane_use(axis);
  const int64_t combined = lanes_ * (std::bit_width(static_cast<uint64_t>(lanes_)) - 1);
  return static_cast<double>(extent(axis)) /
         static_cast<double>(round_up(extent(axis), lanes_) + combined);
}

// The axis of each stage that would carry the lanes if they are along inner axes. Empty if no stage
// has inner axes.
Ints VectorAxis::inner_axes() const {
  Ints result;
  for (size_t s = 0; s < kernel_.stages().size(); ++s) {
    const Ints& axes = kernel_.stages()[s].axes;
    if (!may_vectorize(kernel_.stages()[s])) continue;
    const auto better = [&](int64_t a, int64_t b) {
      return score(a, static_cast<int>(s)) < score(b, static_cast<int>(s));
    };
    result.push_back(*std::max_element(axes.begin(), axes.end(), better));
  }
  return result;
}

Ints VectorAxis::choose() const {
  Ints best = inner_axes();
  double best_score = -1e30;
  if (!best.empty()) {
    double sum = 0, use = 1;
    for (size_t s = 0, next = 0; s < kernel_.stages().size(); ++s) {
      if (!may_vectorize(kernel_.stages()[s])) continue;
      sum += score(best[next], static_cast<int>(s));
      use = std::min(use, lane_use(kernel_.stages()[s], best[next]));
      ++next;
    }
    best_score = sum > 0 ? sum * use : sum;
  }
  if (sequential_) {
    if (best_score <= 0) best.clear();
    best_score = 0;
  }
  const bool has_inner_axes = outer_.size() < kernel_.iter.axes.size();
  for (const int64_t axis : outer_) {
    // A phase may not divide an axis that all phases share.
    if (around_ && axis < static_cast<int64_t>(around_->iter.axes.size())) continue;
    if (decides_places(axis)) continue;
    const double unscaled = score(axis, -1);
    const double scaled = unscaled > 0 ? unscaled * lane_use(axis) : unscaled;
    if (scaled > best_score + 1e-9 || (scaled >= best_score && !has_inner_axes)) {
      best_score = scaled;
      best = {axis};
    }
  }
  return best;
}

// Whether lanes along an axis are loaded one by one, because they are not equally far apart,
// because their stride is too long for loads of whole vectors, or because some of them are not
// loaded.
bool VectorAxis::loads_lanes(const MemoryAccess& access, int64_t axis) const {
  if (access.is_store) return false;
  const auto along = access.stride(axis);
  if (!along) return true;
  if (std::abs(*along) <= 1) return false;
  return is_for_some(access, axis) ||
         !(filling_axis(access, axis) || loads_whole_vectors(*along, lanes_));
}

void VectorAxis::fit_lanes(const Ints& axes) {
  int64_t longest = 1;
  for (const int64_t axis : axes) longest = std::max(longest, extent(axis));
  if (!axes.empty())
    lanes_ = std::min(lanes_, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(longest))));
  // In the code, each lane of a narrow dtype is a separate load.
  const auto loads = std::count_if(accesses_.begin(), accesses_.end(), [&](const auto& access) {
    return size_of(graph_[access.value].dtype()) < 4 &&
           std::any_of(
               axes.begin(), axes.end(), [&](int64_t axis) { return loads_lanes(access, axis); });
  });
  if (loads == 0) return;
  lanes_ = std::min(lanes_, kMostLoadedLanes);
  most_copies_ = std::max<int64_t>(1, kMostLoads / (lanes_ * loads));
}

}  // namespace rune::schedule
