#include "graph/passes/loop_choice.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "alu/alu.h"
#include "graph/parallel_work.h"
#include "graph/passes/iterations.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

// The least work, in additions of all iterations, of a loop that is worth dividing.
constexpr double kLeastWork = 1 << 17;
// The size of a block in bytes. It stays in a core's first cache.
constexpr int64_t kBlockBytes = 24 << 10;
// The least elements of an operation in a block. They fill vectors, and outweigh the fixed cost of
// an iteration.
constexpr int64_t kLeastElements = 32;
// A loop with fewer than kWorkOfStream additions for each element that it reads from memory is
// bound by memory. In each iteration, a block then reads at least kLeastNeighbours adjacent
// elements, because with fewer the prefetcher cannot predict the next ones.
constexpr int64_t kLeastNeighbours = 512;
constexpr double kWorkOfStream = 20;
// The greatest part of the work that blocks may repeat.
constexpr double kMostRepeated = 0.1;
// The least multiply-adds of a contraction that is better computed by a kernel of its own.
constexpr double kLargeContraction = 1 << 16;
// The most nodes in all iterations of a loop that is expanded and fuses with the nodes around it.
constexpr double kMostExpandedNodes = 400;
// The assumed number of iterations of a loop that a condition ends.
constexpr double kGuessedTrip = 100;

// Estimates a loop's work.
class Chooser {
 public:
  Chooser(const Graph& graph, const LoopTree& tree, const LoopTree::Loop& loop, const RowAxes& axes,
          const Capabilities& caps)
      : graph_(graph), tree_(tree), loop_(loop), axes_(axes), caps_(caps) {
    count_iterations(loop, 1);
    for (const uint32_t id : axes.body()) work_ += work_of(id);
  }

 protected:
  // Counts, for each node, how often it is computed.
  void count_iterations(const LoopTree::Loop& loop, double around) {
    const auto& range = *graph_[loop.end].as<End_Loop>();
    const Dim span = range.step > 0 ? range.stop - range.start : range.start - range.stop;
    double trip = static_cast<double>(span.bound()) / static_cast<double>(std::abs(range.step));
    if (!span.is_constant()) trip /= 2;
    if (range.goes_on) trip = std::min(trip, kGuessedTrip);
    if (loop.end == loop_.end) trip_ = trip;
    const double times = around * std::max(trip, 0.0);
    for (const uint32_t id : loop.members) {
      times_[id] = times;
      if (graph_.nodes[id].as<End_Loop>()) count_iterations(tree_.ended_by({id}), times);
    }
  }

  double operations_of(const Node& node) const {
    if (is_movement(node.kind()) || node.as<Carry>() || node.as<Update>() || node.as<End_Loop>() ||
        node.as<Loop_Result>())
      return 0;
    double cost = 1;
    if (const auto* unary = node.as<Unary>()) cost = cost_of(caps_, unary->op, node.dtype());
    if (const auto* binop = node.as<Binop>()) cost = cost_of(caps_, binop->op, node.dtype());
    return cost * static_cast<double>(max_elements(node.shape())) * reduced_elements(graph_, node);
  }
  double work_of(uint32_t id) const { return operations_of(graph_.nodes[id]) * times_.at(id); }

  bool has_rows(uint32_t id, size_t group) const { return axes_.axis_in({id}, group).has_value(); }

  // The greatest position of the rows' axis in the carried values. 0 is the outermost axis.
  size_t position_of(size_t group, const CarriedRows& carried) const {
    size_t result = 0;
    for (size_t k = 0; k < carried.kinds.size(); ++k)
      if (carried.kinds[k] != Carried::Common)
        result += *axes_.axis_in(graph_[loop_.end].inputs[1 + k], group);
    return result;
  }

  const Graph& graph_;
  const LoopTree& tree_;
  const LoopTree::Loop& loop_;
  const RowAxes& axes_;
  const Capabilities& caps_;
  std::map<uint32_t, double> times_;
  double trip_ = 0, work_ = 0;
};

// Chooses blocks that cores share and that stay in a core's first cache.
class CoreChooser : Chooser {
 public:
  using Chooser::Chooser;

  std::optional<BlockChoice> choose() const {
    if (work_ < kLeastWork || trip_ < 2 ||
        std::any_of(
            axes_.body().begin(), axes_.body().end(),
            [&](uint32_t id) { return is_large_contraction(id); }) ||
        stays_in_registers())
      return std::nullopt;
    std::optional<BlockChoice> best;
    size_t least_position = 0;
    for (const size_t group : axes_.groups()) {
      const auto [first, end] = *axes_.rows_of(group);
      if (end - first < 2) continue;
      auto carried = carried_rows(graph_, tree_, loop_, axes_, group);
      if (!carried) continue;
      const int64_t size = rows_of_block(group, *carried, end - first);
      // Blocks of contiguous rows are contiguous.
      const size_t position = position_of(group, *carried);
      if (size == 0 || (best && position >= least_position)) continue;
      best = BlockChoice{{{group, size}}, *std::move(carried)};
      least_position = position;
    }
    return best;
  }

 private:
  bool is_large_contraction(uint32_t id) const {
    const Node& node = graph_.nodes[id];
    return node.as<Contract>() && operations_of(node) >= kLargeContraction;
  }

  // Whether the loop will be expanded and its iterations compute each element only from the same
  // element. A kernel then keeps the carried values in registers.
  bool stays_in_registers() const {
    const auto& range = *graph_[loop_.end].as<End_Loop>();
    const bool is_known = !range.goes_on && range.start.is_constant() && range.stop.is_constant();
    return is_known && expands_on_cores(graph_, tree_, loop_, caps_) &&
           is_by_element(graph_, loop_);
  }

  // The bytes that reading the value takes. Movement has no memory of its own.
  int64_t bytes_of(Value v) const {
    int64_t elements = max_elements(graph_[v].shape());
    while (is_movement(graph_[v].kind())) {
      v = graph_[v].inputs[0];
      elements = std::min(elements, max_elements(graph_[v].shape()));
    }
    return elements * size_of(graph_[v].dtype());
  }

  // The memory that an iteration uses: parts of arrays and carried values. `streamed` is the number
  // of elements that no other iteration reads.
  struct Traffic {
    int64_t bytes = 0, streamed = 0;
    int64_t neighbours = 0;  // adjacent rows of streamed memory, or 0 if nothing is streamed
  };

  Traffic traffic_of(size_t group, const CarriedRows& carried) const {
    Traffic result;
    std::set<Value> counted;
    const auto count = [&](Value v) {
      if (counted.insert(v).second) result.bytes += bytes_of(v);
    };
    for (const uint32_t id : axes_.body()) {
      const Node& node = graph_.nodes[id];
      if (node.as<End_Loop>() || node.as<Loop_Result>()) continue;
      if (node.as<Carry>() && !carried.whole.contains({id}) && has_rows(id, group)) count({id});
      const auto* shrink = node.as<Shrink>();
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const Value v = node.inputs[i];
        const bool is_array = !axes_.is_member(v) || carried.whole.contains(v);
        if (!is_array || carried.whole.contains({id})) continue;
        if (shrink) {
          const auto axis = axes_.axis_in({id}, group);
          if (!axis) continue;
          count({id});
          const bool walks =
              std::any_of(shrink->limits.begin(), shrink->limits.end(),
                          [](const auto& limits) { return !limits.first.is_constant(); });
          if (!walks) continue;
          result.streamed += max_elements(node.shape());
          int64_t behind = 1;
          for (size_t d = *axis + 1; d < node.shape().size(); ++d)
            behind *= node.shape()[d].bound();
          result.neighbours = result.neighbours == 0 ? behind : std::min(result.neighbours, behind);
        } else if (uses_rows(id, i, group)) {
          count(v);
        }
      }
    }
    return result;
  }

  bool uses_rows(uint32_t user, size_t input, size_t group) const {
    const Node& node = graph_[graph_.nodes[user].inputs[input]];
    for (size_t d = 0; d < node.shape().size(); ++d)
      if (axes_.of_operand(user, input, d).group == group) return true;
    return false;
  }

  // The number of rows of a block, or 0 if blocks do not pay.
  int64_t rows_of_block(size_t group, const CarriedRows& carried, int64_t rows) const {
    int64_t most_elements = 1;  // the most elements of an operation, in all rows
    double repeated = 0, in_iteration = 0;
    for (const uint32_t id : axes_.body()) {
      if (!has_rows(id, group)) {
        repeated += work_of(id);
        continue;
      }
      const Node& node = graph_.nodes[id];
      if (operations_of(node) > 0)
        most_elements = std::max(most_elements, max_elements(node.shape()));
      in_iteration += work_of(id);
    }
    const Traffic traffic = traffic_of(group, carried);
    const int64_t cores = std::max(caps_.num_cores, 1);
    const int64_t bytes = std::max<int64_t>(traffic.bytes / rows, 1);
    const int64_t elements = std::max<int64_t>(most_elements / rows, 1);
    int64_t size = std::min(kBlockBytes / bytes, rows / std::max<int64_t>(cores, 2));
    int64_t least = (kLeastElements + elements - 1) / elements;
    const double streamed_work =
        in_iteration / std::max(1.0, trip_ * static_cast<double>(traffic.streamed));
    if (traffic.neighbours > 0 && streamed_work < kWorkOfStream)
      least = std::max(least, (kLeastNeighbours + traffic.neighbours - 1) / traffic.neighbours);
    if (repeated > 0) {
      const double most_blocks = std::min(1 + kMostRepeated * work_ / repeated, 1e9);
      least = std::max(least, rows / static_cast<int64_t>(most_blocks) + 1);
    }
    // A block that exceeds the first cache may fit the second one.
    size = std::max(size, least);
    if (rows / size < std::max<int64_t>(cores, 2)) return 0;
    return even_size(size, least, rows, elements);
  }

  // A size near the wanted one that divides the rows, or else one that gives all cores the same
  // number of blocks. Rows of one element should fill vectors together.
  int64_t even_size(int64_t wanted, int64_t least, int64_t rows, int64_t elements) const {
    const int64_t cores = std::max(caps_.num_cores, 1);
    const int64_t lanes = elements == 1 ? 8 : 1;
    for (const int64_t unit : {lanes, int64_t{1}})
      for (int64_t size = wanted; size >= std::max(least, wanted / 2); --size)
        if (size % unit == 0 && rows % size == 0 && (rows / size) % cores == 0) return size;
    const int64_t rounds = (rows + wanted * cores - 1) / (wanted * cores);
    int64_t even = std::max(rows / (rounds * cores), int64_t{1});
    if (even > lanes) even = even / lanes * lanes;
    // A remainder of rows would need a loop of its own, which takes time to compile.
    for (int64_t distance = 0; distance <= even / 8; ++distance)
      for (const int64_t size : {even + distance, even - distance})
        if (rows % size == 0 && rows / size >= cores) return size;
    return even;
  }
};

// Chooses a thread for each row.
class ThreadChooser : Chooser {
 public:
  using Chooser::Chooser;

  std::optional<BlockChoice> choose() const {
    if (!stays_loop()) return std::nullopt;
    // All groups for which the loop carries the same arrays. With more groups, there are more and
    // shorter rows.
    struct Candidate {
      CarriedRows carried;
      std::vector<std::pair<size_t, size_t>> groups;  // (position, group)
      double rows = 1;
    };
    std::map<std::vector<Carried>, Candidate> candidates;
    for (const size_t group : axes_.groups()) {
      const auto [first, end] = *axes_.rows_of(group);
      if (end - first < 2) continue;
      auto carried = carried_rows(graph_, tree_, loop_, axes_, group);
      if (!carried) continue;
      Candidate& candidate = candidates[carried->kinds];
      candidate.groups.emplace_back(position_of(group, *carried), group);
      candidate.rows *= static_cast<double>(end - first);
      candidate.carried = *std::move(carried);
    }
    std::optional<BlockChoice> best;
    double least_ns = ns_of_launches();
    for (auto& [kinds, candidate] : candidates) {
      std::sort(candidate.groups.begin(), candidate.groups.end());
      // With few rows, the loop may have so few nodes that it is expanded.
      if (candidate.rows * kMostExpandedNodes < caps_.max_expanded_nodes) continue;
      const double ns = ns_of_threads(candidate.groups, candidate.rows);
      if (ns >= least_ns) continue;
      least_ns = ns;
      best = BlockChoice{{}, std::move(candidate.carried)};
      // Adjacent threads get rows that are adjacent in memory.
      for (const auto& [position, group] : candidate.groups) best->groups.push_back({group, 1});
    }
    return best;
  }

 private:
  // Whether the loop, together with the outermost loop around it, is better not expanded.
  bool stays_loop() const {
    const LoopTree::Loop* outermost = &loop_;
    while (outermost->parent) outermost = &tree_.loops()[*outermost->parent];
    const auto has_known_count = [&](const Node& end) {
      const auto& range = *end.as<End_Loop>();
      return !range.goes_on && range.start.is_constant() && range.stop.is_constant();
    };
    if (!has_known_count(graph_[outermost->end])) return true;
    for (const uint32_t id : tree_.body_of(*outermost)) {
      const Node& node = graph_.nodes[id];
      if (node.as<Loop_Size>() || (node.as<End_Loop>() && node.as<End_Loop>()->goes_on))
        return true;
    }
    return expanded_nodes(graph_, tree_, *outermost) > kMostExpandedNodes;
  }

  // The time of launches: at least one kernel for each iteration, and more if elements are
  // combined.
  double ns_of_launches() const {
    double result = 0;
    for (const uint32_t id : axes_.body()) {
      const Node& node = graph_.nodes[id];
      if (node.as<Loop_Counter>() || node.as<Reduce_Axis>() || node.as<Contract>() ||
          node.as<Scan>() || node.as<Scatter>())
        result += times_.at(id) * caps_.launch_ns;
    }
    // Carried values pass through memory.
    const Node& end = graph_[loop_.end];
    for (size_t k = 0; k < num_carried(end); ++k) {
      const Node& last = graph_[end.inputs[1 + k]];
      if (values_of_updated(graph_, tree_, loop_, k) || !is_constant(last.shape())) continue;
      const double bytes = static_cast<double>(graph::bytes_of(last));
      if (bytes > static_cast<double>(caps_.last_level_bytes))
        result += 2 * trip_ * bytes / caps_.bandwidth_bytes_per_ns;
    }
    return result;
  }

  // The time of threads, each of which does the operations of its row one after the other.
  double ns_of_threads(const std::vector<std::pair<size_t, size_t>>& groups, double rows) const {
    // An operation with the cost of this many additions takes as long as another one's loads.
    constexpr double kAdditions = 5;
    double operations = 0;
    for (const uint32_t id : axes_.body()) {
      const double work = work_of(id);
      if (work == 0) continue;
      const Node& node = graph_.nodes[id];
      const double elements =
          static_cast<double>(max_elements(node.shape())) * reduced_elements(graph_, node);
      if (elements == 0) continue;
      const double cost = work / (elements * times_.at(id));
      double own = elements;
      for (const auto& [position, group] : groups)
        if (const auto axis = axes_.axis_in({id}, group))
          own /= static_cast<double>(node.shape()[*axis].bound());
      operations += own * times_.at(id) * std::max(1.0, cost / kAdditions);
    }
    const double at_once =
        static_cast<double>(caps_.num_cores) * static_cast<double>(caps_.max_threads_per_group);
    return caps_.launch_ns + caps_.thread_operation_ns * operations * std::max(1.0, rows / at_once);
  }
};

}  // namespace

std::optional<BlockChoice> choose_blocks(const Graph& graph, const LoopTree& tree,
                                         const LoopTree::Loop& loop, const RowAxes& axes,
                                         const Capabilities& caps) {
  if (!axes.is_known() || have_own_parts(graph, tree, loop)) return std::nullopt;
  if (caps.model == ExecutionModel::Grid)
    return ThreadChooser(graph, tree, loop, axes, caps).choose();
  return CoreChooser(graph, tree, loop, axes, caps).choose();
}

}  // namespace rune::graph
