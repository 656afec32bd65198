#include "schedule/fusion/tile_fusion.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/math.h"
#include "schedule/analysis/accesses.h"
#include "schedule/analysis/analysis.h"
#include "schedule/analysis/cost.h"
#include "schedule/fusion/form_kernels.h"
#include "schedule/fusion/split_kernels.h"
#include "schedule/mapping/phases.h"

namespace rune::schedule {

namespace {

// The most phases of a kernel. More phases mean more code, and fewer kernels that are equal.
constexpr size_t kMostPhases = 4;

// An axis that clusters have in common: for each cluster, the number of its outer axis.
using CommonAxis = std::map<size_t, int>;

struct Group {
  std::vector<size_t> clusters;  // ascending
  std::vector<CommonAxis> axes;
};

class TileGrouper {
 public:
  TileGrouper(const Graph& graph, const std::vector<Value>& outputs, const Capabilities& caps,
              Fusion& fusion)
      : graph_(graph),
        caps_(caps),
        fusion_(fusion),
        outputs_(outputs.begin(), outputs.end()),
        group_of_(fusion.clusters.size()) {}

  std::vector<TileGroup> run() {
    if (caps_.model != ExecutionModel::Cores || !graph_.symbolic_vars().empty()) return {};
    for (size_t c = 0; c < fusion_.clusters.size(); ++c) add_cluster(c);
    for (size_t c = 0; c < fusion_.clusters.size(); ++c) {
      std::set<size_t> tried;
      for (const size_t producer : producers_[c])
        if (tried.insert(group_of_[producer]).second) try_join(producer, c);
    }
    std::vector<TileGroup> result;
    for (auto& [last, kernel] : kernels_)
      result.push_back({groups_[group_of_[last]].clusters, std::move(kernel)});
    return result;
  }

 private:
  void add_cluster(size_t c) {
    const Cluster& cluster = fusion_.clusters[c];
    group_of_[c] = groups_.size();
    Group& group = groups_.emplace_back();
    group.clusters = {c};
    for (int axis = 0; axis < static_cast<int>(cluster.outer.size()); ++axis)
      group.axes.push_back({{c, axis}});
    for (const Value v : cluster.values) cluster_of_[v] = c;
    std::set<size_t, std::greater<>> producers;  // the nearest first
    for (const Value v : cluster.values)
      for (const Use& use : fusion_.uses.of(v.id)) {
        const auto it = cluster_of_.find(use.value);
        if (it == cluster_of_.end() || it->second == c) continue;
        producers.insert(it->second);
        consumers_[use.value].insert(c);
      }
    producers_.emplace_back(producers.begin(), producers.end());
  }

  bool is_plain(size_t c) const {
    for (const Value v : fusion_.clusters[c].values) {
      const graph::Node& node = graph_[v];
      const Evaluation evaluation = evaluation_of(node);
      if (is_sequential(node) || evaluation == Evaluation::Called ||
          evaluation == Evaluation::Moved || max_elements(node.shape()) == 0)
        return false;
    }
    return true;
  }

  bool contracts(Value v) const { return graph_[v].as<graph::Contract>() != nullptr; }
  bool contracts(const Group& group) const {
    for (const size_t c : group.clusters)
      for (const Value v : fusion_.clusters[c].values)
        if (contracts(v)) return true;
    return false;
  }

  void try_join(size_t producer, size_t consumer) {
    Group& a = groups_[group_of_[producer]];
    Group& b = groups_[group_of_[consumer]];
    if (&a == &b || !is_plain(producer) || !is_plain(consumer)) return;
    if (a.clusters.size() + b.clusters.size() > kMostPhases) return;
    if (!contracts(a) && !contracts(b)) return;

    if (device(a) != device(b) || !ends_in(a, b)) return;
    Group joined{a.clusters, match_axes(a, b)};
    if (joined.axes.empty() || !put_tiled_axis_last(joined)) return;
    joined.clusters.insert(joined.clusters.end(), b.clusters.begin(), b.clusters.end());
    std::sort(joined.clusters.begin(), joined.clusters.end());
    int64_t nodes = 0;
    for (const size_t c : joined.clusters) nodes += fusion_.clusters[c].length;
    if (nodes > kMostNodes) return;
    Kernel kernel = form(joined);
    Kernel mapped = kernel;
    if (!map_phases(graph_, caps_, mapped)) return;
    const bool taken = benefit(a) > cost(mapped);
    record(a, b, taken, mapped);
    if (!taken) return;
    kernels_.erase(a.clusters.back());
    kernels_[joined.clusters.back()] = std::move(kernel);
    const size_t into = group_of_[consumer];
    for (const size_t c : a.clusters) group_of_[c] = into;
    b = std::move(joined);
  }

  std::string device(const Group& group) const {
    const Value v = fusion_.clusters[group.clusters.front()].values.front();
    return graph_[v].meta.device.value_or(caps_.name);
  }

  // Calls f(value, its cluster) for each value that a group's clusters store.
  template <class F>
  void for_stored(const Group& group, F&& f) const {
    for (const size_t c : group.clusters)
      for (const Value v : fusion_.clusters[c].values)
        if (fusion_.is_stored[v.id]) f(v, c);
  }

  // Whether only the two groups need the values of `a`.
  bool ends_in(const Group& a, const Group& b) const {
    bool ends = true;
    for_stored(a, [&](Value v, size_t) {
      ends &= !outputs_.count(v);
      const auto it = consumers_.find(v);
      if (it == consumers_.end()) return;
      for (const size_t c : it->second) ends &= contains(a.clusters, c) || contains(b.clusters, c);
    });
    return ends;
  }

  // The axes of `a` and `b` along which every point of `b` needs only the same point of `a`.
  std::vector<CommonAxis> match_axes(const Group& a, const Group& b) const {
    std::vector<std::optional<size_t>> match(a.axes.size());
    std::vector<bool> differs(a.axes.size(), false);
    for (const size_t c : b.clusters)
      for (const Value w : fusion_.clusters[c].values)
        for (const Use& use : fusion_.uses.of(w.id)) {
          const auto from = cluster_of_.find(use.value);
          if (from == cluster_of_.end() || !contains(a.clusters, from->second)) continue;
          for (const Demand& demand : use.demands)
            for (size_t i = 0; i < a.axes.size(); ++i) {
              const auto to = axis_in(b, c, w, use.value, demand, a.axes[i].at(from->second));
              if (!to || (match[i] && *match[i] != *to)) differs[i] = true;
              match[i] = to;
            }
        }
    std::vector<CommonAxis> result;
    std::set<size_t> taken;
    for (size_t i = 0; i < a.axes.size(); ++i) {
      if (!match[i] || differs[i] || !taken.insert(*match[i]).second) continue;
      CommonAxis axis = a.axes[i];
      axis.insert(b.axes[*match[i]].begin(), b.axes[*match[i]].end());
      result.push_back(std::move(axis));
    }
    return result;
  }

  // `w`, in cluster `c`, reads `v`. Returns the common axis of `b` that is the coordinate along the
  // axis `from` of v's cluster.
  std::optional<size_t> axis_in(const Group& b, size_t c, Value w, Value v, const Demand& demand,
                                int from) const {
    if (!demand.mask.is_true()) return std::nullopt;
    const std::vector<int>& axes = fusion_.clusters[cluster_of_.at(v)].axes.at(v.id);
    const auto d = std::find(axes.begin(), axes.end(), from) - axes.begin();
    if (d == static_cast<int64_t>(axes.size())) return std::nullopt;
    const std::optional<uint32_t> variable = demand.index[d].as_variable();
    const Shape& shape = graph_[w].shape();
    if (!variable || *variable >= shape.size() || shape[*variable] != graph_[v].shape()[d])
      return std::nullopt;
    const int to = fusion_.clusters[c].axes.at(w.id)[*variable];
    for (size_t i = 0; i < b.axes.size(); ++i)
      if (to >= 0 && b.axes[i].at(c) == to) return i;
    return std::nullopt;
  }

  int64_t extent(const CommonAxis& axis) const {
    const auto& [c, outer] = *axis.begin();
    return fusion_.clusters[c].outer[outer].constant();
  }

  // Puts the axis that is tiled last: the longest one that belongs to one operand of each
  // contraction. Returns false if there is none.
  bool put_tiled_axis_last(Group& group) const {
    auto best = group.axes.end();
    for (auto it = group.axes.begin(); it != group.axes.end(); ++it)
      if (!is_batch(*it) && (best == group.axes.end() || extent(*it) > extent(*best))) best = it;
    if (best == group.axes.end()) return false;
    std::rotate(best, best + 1, group.axes.end());
    return true;
  }

  bool is_batch(const CommonAxis& axis) const {
    for (const auto& [c, outer] : axis)
      for (const Value v : fusion_.clusters[c].values) {
        const auto* contract = graph_[v].as<graph::Contract>();
        if (!contract) continue;
        const std::vector<int>& axes = fusion_.clusters[c].axes.at(v.id);
        const auto end = axes.begin() + static_cast<int64_t>(contract->batch.size());
        if (std::find(axes.begin(), end, outer) != end) return true;
      }
    return false;
  }

  // The cluster with the common axes first.
  Cluster reordered(const Group& group, size_t c) const {
    Cluster cluster = fusion_.clusters[c];
    std::vector<int> order;
    for (const CommonAxis& axis : group.axes) order.push_back(axis.at(c));
    cluster.num_fixed = static_cast<int>(order.size());
    for (int i = 0; i < static_cast<int>(cluster.outer.size()); ++i)
      if (!contains(order, i)) order.push_back(i);
    std::vector<int> position(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      position[order[i]] = static_cast<int>(i);
      cluster.outer[i] = fusion_.clusters[c].outer[order[i]];
    }
    for (auto& [id, axes] : cluster.axes)
      for (int& axis : axes) axis = axis < 0 ? axis : position[axis];
    return cluster;
  }

  Kernel form(const Group& group) const {
    Phased body;
    std::set<Value> ops, inputs, between;
    for (const size_t c : group.clusters) {
      Kernel& phase =
          body.phases.emplace_back(form_kernels(graph_, reordered(group, c), fusion_)[0]);
      phase.name = concat("phase_", body.phases.size() - 1);
      ops.insert(phase.ops.begin(), phase.ops.end());
      inputs.insert(phase.inputs.begin(), phase.inputs.end());
      if (c != group.clusters.back()) between.insert(phase.outputs.begin(), phase.outputs.end());
    }
    Kernel kernel;
    kernel.ops.assign(ops.begin(), ops.end());
    std::set_difference(inputs.begin(), inputs.end(), between.begin(), between.end(),
                        std::back_inserter(kernel.inputs));
    kernel.outputs = body.phases.back().outputs;
    const std::vector<Axis>& axes = body.phases[0].iter.axes;
    kernel.iter.axes.assign(axes.begin(), axes.begin() + static_cast<int64_t>(group.axes.size()));
    kernel.body = std::move(body);
    return kernel;
  }

  // The time that is saved if values that leave `a` are not stored.
  double benefit(const Group& a) const {
    double ns = 0;
    for_stored(a, [&](Value v, size_t) {
      const auto it = consumers_.find(v);
      if (it == consumers_.end()) return;
      if (std::all_of(it->second.begin(), it->second.end(),
                      [&](size_t c) { return contains(a.clusters, c); }))
        return;
      const double elements = static_cast<double>(max_elements(graph_[v].shape()));
      ns += store_ns(caps_, elements * size_of(graph_[v].dtype()));
    });
    return ns;
  }

  // The cost of dividing the last axis among workgroups: each keeps values before its tiles, which
  // one workgroup for the whole axis would keep once. Plus the cost of cores without work.
  double cost(const Kernel& kernel) const {
    const auto depth = static_cast<int64_t>(kernel.iter.axes.size());
    const int64_t tiled = kernel.iter.axes.back().extent(), part = kernel.iter.tiles.back().front();
    const int64_t pieces = ceil_div(tiled, part);
    double bytes = 0;
    for (const Kernel& phase : kernel.phases())
      for (const Stage& stage : phase.stages())
        if (stage.depth && *stage.depth < depth)
          bytes += 2.0 * static_cast<double>(phase.scratch_of(stage.keeps->value)->elements *
                                             size_of(graph_[stage.keeps->value].dtype()));
    const double points = static_cast<double>(kernel.workgroups()) / pieces;
    const double again = bytes * points * static_cast<double>(pieces - 1);
    const double idle =
        std::max(0.0, static_cast<double>(caps_.num_cores) / (points * pieces) - 1.0);
    const auto work_ns = static_cast<double>(analyze(graph_, caps_, kernel).work_ns);
    return memory_ns(caps_, again, bytes) + work_ns / caps_.num_cores * idle;
  }

  void record(const Group& a, const Group& b, bool taken, const Kernel& kernel) {
    for (FusionOpportunity& o : fusion_.opportunities) {
      const auto from = cluster_of_.find(o.producer), to = cluster_of_.find(o.consumer);
      if (from == cluster_of_.end() || to == cluster_of_.end() ||
          !contains(a.clusters, from->second) || !contains(b.clusters, to->second))
        continue;
      o.taken = taken;
      if (!taken)
        o.reason += "; tile by tile, other operands prepared again or idle cores cost more";
      else
        o.reason = concat("a tile of it, ", kernel.iter.tiles.back().back(), " along axis `",
                          kernel.iter.axes.back().name, "`, stays in cache");
    }
  }

  const Graph& graph_;
  const Capabilities& caps_;
  Fusion& fusion_;
  const std::set<Value> outputs_;
  std::map<Value, size_t> cluster_of_;
  std::map<Value, std::set<size_t>> consumers_;
  std::vector<std::vector<size_t>> producers_;
  std::vector<Group> groups_;
  std::vector<size_t> group_of_;
  std::map<size_t, Kernel> kernels_;  // by the last cluster of its group
};

}  // namespace

std::vector<TileGroup> group_by_tiles(const Graph& graph, const std::vector<Value>& outputs,
                                      const Capabilities& caps, Fusion& fusion) {
  return TileGrouper(graph, outputs, caps, fusion).run();
}

}  // namespace rune::schedule
