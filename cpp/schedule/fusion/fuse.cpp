#include "schedule/fusion/fuse.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <queue>
#include <set>

#include "base/error.h"
#include "schedule/analysis/cost.h"
#include "schedule/fusion/materialize.h"
#include "schedule/fusion/split_kernels.h"
#include "schedule/mapping/grid_reduction.h"

namespace rune::schedule {

namespace {

constexpr int kNone = -1;
// A kernel with fewer elements than this is too small to be spread over cores.
constexpr double kSmallKernelElements = 1 << 16;
// The most siblings of a cluster that are tried for merging.
constexpr size_t kMaxSiblings = 4;
// The most values of a cluster after siblings have joined it, because compile time grows more than
// linearly. With reductions there may be fewer, because all accumulators are live at once.
constexpr size_t kMostValues = 64, kMostReducedValues = 16;

using AxisMap = std::vector<int>;  // producer's outer axis -> consumer's outer axis

// The last values of clusters, by their first values. (A Fenwick tree of prefix maxima.)
class Extents {
 public:
  explicit Extents(size_t num_values) : last_(num_values + 1) {
    for (uint32_t i = 0; i < last_.size(); ++i) last_[i] = i == 0 ? 0 : i - 1;
  }

  // Adds a cluster with these first and last values.
  void add(Value first, Value last) {
    for (size_t i = first.id + 1; i < last_.size(); i += i & -i)
      last_[i] = std::max(last_[i], last.id);
  }

  // The last value of all clusters on which a cluster that ends with `v` may depend: clusters that
  // begin up to v, clusters that begin up to the last value of these, and so on. At most `limit`.
  uint32_t last_before(uint32_t v, uint32_t limit) const {
    while (v < limit) {
      uint32_t furthest = v;
      for (size_t i = v + 1; i > 0; i -= i & -i) furthest = std::max(furthest, last_[i]);
      if (furthest == v) return v;
      v = furthest;
    }
    return limit;
  }

 private:
  std::vector<uint32_t> last_;
};

class Fuser {
 public:
  Fuser(const Graph& graph, const Capabilities& caps, Materialized materialized)
      : graph_(graph),
        caps_(caps),
        uses_(std::move(materialized.uses)),
        products_(std::move(materialized.products)),
        cluster_of_(graph.size(), kNone),
        extents_(graph.size()) {}

  Fusion run(const std::vector<Value>& outputs) {
    for (uint32_t id = 0; id < graph_.size(); ++id)
      if (uses_.is_materialized(id)) make_cluster(Value{id});
    merge_producers();
    merge_siblings();
    std::vector<bool> is_stored = find_stored(outputs);
    std::vector<Cluster> clusters;
    for (const int c : topological_order()) clusters.push_back(std::move(clusters_[c]));
    return {std::move(clusters), std::move(uses_), std::move(is_stored), std::move(opportunities_)};
  }

 private:
  // A value that a cluster reads. For each of its dimensions, the outer axis that is the index.
  struct Read {
    Value value;
    std::vector<int> axes;
    auto operator<=>(const Read&) const = default;
  };
  struct Sibling {
    int cluster = kNone;
    std::vector<Read> reads;  // sorted
  };

  // The reason why the cluster cannot be merged with any other, or "".
  std::string refusal_of(const Cluster& cluster) const {
    const graph::Node& node = graph_[cluster.values.front()];
    if (schedule::is_sequential(node)) return "a scan or scatter has a kernel of its own";
    if (uses_.is_by_parts(cluster.values.front().id)) return "its parts have kernels of their own";
    if (cluster.axis_of_groups) return "workgroups combine its results atomically";
    if (products_.count(cluster.values.front().id)) return "a library computes the product";
    if (node.as<graph::Loop_Nest>()) return "loops have a kernel of their own";
    if (evaluation_of(node) == Evaluation::Called) return "a function of the host computes it";
    if (evaluation_of(node) == Evaluation::Moved) return "a transfer has no kernel";
    return "";
  }

  // Whether `a` is a product by a library, and `b` narrows its elements, as the library can itself.
  bool narrows_product(const Cluster& a, const Cluster& b) const {
    const auto product = products_.find(a.values.front().id);
    return product != products_.end() && a.values.size() == 1 &&
           b.values == std::vector<Value>{product->second.result};
  }

  bool reduces(Value v) const { return evaluation_of(graph_[v]) == Evaluation::Reduction; }

  void make_cluster(Value v) {
    if (const auto* callback = graph_[v].as<graph::Host_Callback>()) {
      const auto [known, fresh] =
          cluster_of_call_.insert({callback->call, static_cast<int>(clusters_.size())});
      if (!fresh) {
        RUNE_CHECK(graph_[clusters_[known->second].values.front()].inputs == graph_[v].inputs,
                   "results of call ", callback->call, " with different operands");
        return join(known->second, v);
      }
    }
    if (const auto* nest = graph_[v].as<graph::Loop_Nest>())
      for (const int c : nests_) {
        const graph::Node& other = graph_[clusters_[c].values.front()];
        if (other.as<graph::Loop_Nest>()->graph == nest->graph && other.inputs == graph_[v].inputs)
          return join(c, v);
      }
    Cluster cluster;
    cluster.values = {v};
    cluster.length = uses_.length(v.id);
    Shape shape = graph_[v].shape();
    if (is_sequential(graph_[v])) shape[sequential_axis(graph_[v])] = 1;
    cluster.stores_beginning = stores_beginning(v);
    if (reduces_atomically(graph_, v, caps_))
      cluster.axis_of_groups = axis_of_groups(reduced_shape(graph_, v), caps_);
    if (uses_.is_by_parts(v.id)) cluster.parts = cat_parts(graph_, v);
    AxisMap& axes = cluster.axes[v.id];
    for (const Dim& size : shape) {
      axes.push_back(size == 1 ? kNone : static_cast<int>(cluster.outer.size()));
      if (size != 1) cluster.outer.push_back(size);
    }
    cluster_of_[v.id] = static_cast<int>(clusters_.size());
    if (graph_[v].as<graph::Loop_Nest>()) nests_.push_back(cluster_of_[v.id]);
    clusters_.push_back(std::move(cluster));
  }

  // Adds v to the results of the cluster's call.
  void join(int cluster, Value v) {
    cluster_of_[v.id] = cluster;
    clusters_[cluster].values.push_back(v);
    extents_.add(clusters_[cluster].values.front(), v);
  }

  // Whether a Scatter's kernel stores the initial elements itself. If a core has outer points to
  // itself, it can store them just before the updates. If they are the larger part of the work, a
  // kernel of their own spreads them better.
  bool stores_beginning(Value v) const {
    return graph_[v].as<graph::Scatter>() && caps_.model == ExecutionModel::Cores &&
           graph_[v].shape()[sequential_axis(graph_[v])].bound() <=
               reduced_shape(graph_, v)[0].bound();
  }

  // Whether all values are maps over exactly the outer axes.
  bool is_elementwise(const Cluster& cluster) const {
    for (const Value v : cluster.values) {
      if (reduces(v)) return false;
      const Shape& shape = graph_[v].shape();
      for (size_t d = 0; d < shape.size(); ++d)
        if (shape[d] != 1 && cluster.axes.at(v.id)[d] == kNone) return false;
    }
    return true;
  }

  // Merges producers into consumers. The nearest producer comes first.
  void merge_producers() {
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      if (!uses_.is_materialized(id)) continue;
      for (const Use& use : uses_.of(id)) {  // descending ids
        if (!uses_.is_materialized(use.value.id)) continue;
        const int a = cluster_of_[use.value.id], b = cluster_of_[id];
        if (a == b) continue;
        const std::string refusal = try_merge(a, b);
        record(use.value, Value{id}, refusal);
      }
    }
  }

  void record(Value producer, Value consumer, const std::string& refusal) {
    FusionOpportunity o;
    o.producer = producer;
    o.consumer = consumer;
    const bool p = reduces(producer), c = reduces(consumer);
    o.fusion_type = p && c   ? FusionType::Reduction
                    : p || c ? FusionType::Mixed
                             : FusionType::Elementwise;
    o.taken = refusal.empty();
    o.memory_saved = 2 * max_elements(graph_[producer].shape()) * size_of(graph_[producer].dtype());
    o.benefit_score = store_ns(caps_, static_cast<double>(o.memory_saved / 2));
    o.reason = o.taken ? "each point of the consumer needs one element" : refusal;
    opportunities_.push_back(std::move(o));
  }

  // Matches the outer axes of cluster `a` with those of `b`, according to how b's values read a's.
  // Returns the reason why that is impossible, or "".
  std::string match_axes(const Cluster& a, const Cluster& b, AxisMap& match) const {
    match.assign(a.outer.size(), kNone);
    for (const Value w : b.values) {
      const size_t rank = graph_[w].shape().size();
      for (const Use& use : uses_.of(w.id)) {
        const auto axes = a.axes.find(use.value.id);
        if (axes == a.axes.end()) continue;
        const Shape& shape = graph_[use.value].shape();
        for (const Demand& demand : use.demands) {
          if (!demand.mask.is_true()) return "the consumer reads it through a mask";
          for (size_t d = 0; d < shape.size(); ++d) {
            if (shape[d] == 1) continue;
            const std::optional<uint32_t> variable = demand.index[d].as_variable();
            if (!variable) return "the consumer reads it at shifted or combined indices";
            if (*variable >= rank)
              return "the consumer reduces over an axis that the producer keeps";
            if (graph_[w].shape()[*variable] != shape[d]) return "the consumer reads a part of it";
            const int from = axes->second[d], to = b.axes.at(w.id)[*variable];
            if ((from == kNone) != (to == kNone)) return "their inner axes differ";
            if (from == kNone) continue;
            if (match[from] != kNone && match[from] != to) return "it is read at two index maps";
            match[from] = to;
          }
        }
      }
    }
    std::set<int> used(match.begin(), match.end());
    used.erase(kNone);
    if (used.size() != match.size()) return "the consumer does not run over all of its axes";
    return "";
  }

  // Merges `a` into `b` and returns "", or returns the reason why they cannot be one kernel.
  std::string try_merge(int a_index, int b_index) {
    Cluster& a = clusters_[a_index];
    Cluster& b = clusters_[b_index];
    if (!narrows_product(a, b))
      for (const Cluster* cluster : {&a, &b})
        if (std::string refusal = refusal_of(*cluster); !refusal.empty()) return refusal;
    AxisMap match;
    if (std::string refusal = match_axes(a, b, match); !refusal.empty()) return refusal;
    const bool whole = match.size() == b.outer.size();
    if (!whole) {
      if (!is_elementwise(b)) return "the consumer has outer axes that the producer lacks";
      if (is_elementwise(a))
        return "the producer would be computed again along the consumer's axes";
      if (loses_parallelism(a, b, match)) return "too few outer points to keep the device busy";
    }
    if (a.length + b.length > kMostNodes + kMostNodes / 4)
      return "the kernel would be too long to compile";
    if (has_too_many_buffers(a, b)) return "the kernel would have too many buffers";
    if (has_path_between(a_index, b_index)) return "another kernel lies between them";
    AxisMap outer_of_b(b.outer.size(), kNone);
    for (size_t i = 0; i < match.size(); ++i) outer_of_b[match[i]] = static_cast<int>(i);
    for (auto& [id, axes] : b.axes)
      for (int& axis : axes) axis = axis == kNone ? kNone : outer_of_b[axis];
    absorb(a_index, b_index, a.outer);
    return "";
  }

  // Whether a kernel of both clusters may have more buffers than the device can pass to a kernel.
  // (Every value of the clusters counts as stored.)
  bool has_too_many_buffers(const Cluster& a, const Cluster& b) const {
    const auto most = static_cast<size_t>(caps_.max_buffers);
    if (graph_.size() <= most) return false;
    std::set<Value> buffers;
    for (const Cluster* cluster : {&a, &b})
      for (const Value v : cluster->values) {
        buffers.insert(v);
        for (const Use& use : uses_.of(v.id)) buffers.insert(use.value);
      }
    return buffers.size() > most;
  }

  void absorb(int a_index, int b_index, const Shape& outer) {
    Cluster& a = clusters_[a_index];
    Cluster& b = clusters_[b_index];
    b.outer = Shape(outer);
    b.length += a.length;
    b.axes.insert(a.axes.begin(), a.axes.end());
    b.stores_beginning |= a.stores_beginning;
    for (const Value v : a.values) cluster_of_[v.id] = b_index;
    b.values.insert(b.values.end(), a.values.begin(), a.values.end());
    std::sort(b.values.begin(), b.values.end());
    extents_.add(b.values.front(), b.values.back());
    a = Cluster{};
  }

  // Whether merging leaves too little parallel work. Points of `b` with the same outer point of `a`
  // then run one after the other. On a grid, the threads of a workgroup share them. But if elements
  // that are adjacent in memory have different outer points, a thread has an outer point to itself.
  bool loses_parallelism(const Cluster& a, const Cluster& b, const AxisMap& match) const {
    constexpr int64_t kBusySimdGroups = 16;  // keep a core busy
    const double elements = static_cast<double>(max_elements(b.outer));
    if (elements < kSmallKernelElements) return false;
    const int last = static_cast<int>(b.outer.size()) - 1;
    const bool by_thread = caps_.model == ExecutionModel::Grid && contains(match, last);
    const int64_t least = by_thread ? kBusySimdGroups * caps_.simd_width : 2;
    return max_elements(a.outer) < least * caps_.num_cores;
  }

  // Whether some third cluster needs `a` and is needed by `b`.
  bool has_path_between(int a, int b) const {
    const uint32_t first = clusters_[a].values.front().id;
    std::vector<int> pending;
    std::set<int> seen{a, b};
    const auto push_producers = [&](int cluster) {
      bool reached = false;
      for (const Value v : clusters_[cluster].values)
        for (const Use& use : uses_.of(v.id)) {
          if (!uses_.is_materialized(use.value.id)) continue;
          const int producer = cluster_of_[use.value.id];
          reached |= producer == a && cluster != b;
          // A cluster that ends before `a` begins cannot depend on it, and neither can the clusters
          // on which it depends.
          if (extents_.last_before(clusters_[producer].values.back().id, first) < first) continue;
          if (seen.insert(producer).second) pending.push_back(producer);
        }
      return reached;
    };
    push_producers(b);
    while (!pending.empty()) {
      const int cluster = pending.back();
      pending.pop_back();
      if (push_producers(cluster)) return true;
    }
    return false;
  }

  // Merges clusters over the same outer axes that read the same data at the same indices.
  void merge_siblings() {
    std::map<Shape, std::deque<Sibling>, ShapeOrder> by_outer;  // the last ones
    for (int c = 0; c < static_cast<int>(clusters_.size()); ++c) {
      if (clusters_[c].values.empty()) continue;
      std::deque<Sibling>& siblings = by_outer[clusters_[c].outer];
      Sibling added{c, reads_of(clusters_[c])};
      bool merged = false;
      for (size_t i = siblings.size(); i-- > 0 && !merged;) {
        merged = try_merge_siblings(siblings[i], added);
        if (merged) siblings[i].reads = reads_of(clusters_[siblings[i].cluster]);
      }
      if (merged) continue;
      if (siblings.size() == kMaxSiblings) siblings.pop_front();
      siblings.push_back(std::move(added));
    }
  }

  bool try_merge_siblings(const Sibling& into, const Sibling& added) {
    const int a_index = into.cluster, b_index = added.cluster;
    const Cluster& a = clusters_[a_index];
    const Cluster& b = clusters_[b_index];
    const bool beside =
        reduces_beside_scatter(a, b) || reduces_beside_scatter(b, a) || combine_alike(a, b);
    if (!beside && (!refusal_of(a).empty() || !refusal_of(b).empty())) return false;
    if (is_elementwise(a) != is_elementwise(b) || !reads_alike(into, added)) return false;
    const size_t most = is_elementwise(a) ? kMostValues : kMostReducedValues;
    if (a.values.size() + b.values.size() > most || has_too_many_buffers(a, b)) return false;
    if (depends_directly(a_index, b_index) || depends_directly(b_index, a_index)) return false;
    if (has_path_between(a_index, b_index) || has_path_between(b_index, a_index)) return false;
    record(b.values.front(), a.values.front(), "");
    opportunities_.back().reason = "siblings that read the same data";
    absorb(b_index, a_index, Shape(a.outer));
    return true;
  }

  // Whether one core can run these reductions and this Scatter one after the other. Such reductions
  // usually check the Scatter's indices.
  bool reduces_beside_scatter(const Cluster& reductions, const Cluster& scatter) const {
    return scatter.stores_beginning &&
           std::all_of(reductions.values.begin(), reductions.values.end(),
                       [&](Value v) { return reduces(v) || graph_[v].as<graph::Contiguous>(); });
  }

  // Whether both reduce over the same axes and their workgroups combine results atomically.
  bool combine_alike(const Cluster& a, const Cluster& b) const {
    const Value x = a.values.front(), y = b.values.front();
    return a.axis_of_groups && a.axis_of_groups == b.axis_of_groups &&
           graph_[x].shape() == graph_[y].shape() &&
           reduced_shape(graph_, x) == reduced_shape(graph_, y);
  }

  bool depends_directly(int consumer, int producer) const {
    for (const Value v : clusters_[consumer].values)
      for (const Use& use : uses_.of(v.id))
        if (uses_.is_materialized(use.value.id) && cluster_of_[use.value.id] == producer)
          return true;
    return false;
  }

  std::vector<Read> reads_of(const Cluster& cluster) const {
    std::vector<Read> reads;
    for (const Value w : cluster.values)
      for (const Use& use : uses_.of(w.id))
        for (const Demand& demand : use.demands) {
          std::vector<int> axes;
          for (const sym::Expr& expr : demand.index) {
            const std::optional<uint32_t> variable = expr.as_variable();
            const bool own = variable && *variable < graph_[w].shape().size();
            axes.push_back(own ? cluster.axes.at(w.id)[*variable] : kNone);
          }
          reads.push_back({use.value, std::move(axes)});
        }
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    return reads;
  }

  // Whether both read the same value in memory, with the same outer axes along the same dimensions.
  static bool reads_alike(const Sibling& a, const Sibling& b) {
    return std::any_of(a.reads.begin(), a.reads.end(), [&](const Read& read) {
      return std::binary_search(b.reads.begin(), b.reads.end(), read);
    });
  }

  std::vector<bool> find_stored(const std::vector<Value>& outputs) const {
    std::vector<bool> stored(graph_.size(), false);
    for (const Value v : outputs) stored[v.id] = uses_.is_materialized(v.id);
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      if (!uses_.is_materialized(id)) continue;
      for (const Use& use : uses_.of(id))
        if (uses_.is_materialized(use.value.id) && cluster_of_[use.value.id] != cluster_of_[id])
          stored[use.value.id] = true;
    }
    return stored;
  }

  // Kahn's algorithm, smallest first value first.
  std::vector<int> topological_order() const {
    std::vector<std::set<int>> consumers(clusters_.size());
    std::vector<int> missing(clusters_.size(), 0);
    for (int c = 0; c < static_cast<int>(clusters_.size()); ++c)
      for (const Value v : clusters_[c].values)
        for (const Use& use : uses_.of(v.id)) {
          if (!uses_.is_materialized(use.value.id)) continue;
          const int producer = cluster_of_[use.value.id];
          if (producer != c && consumers[producer].insert(c).second) ++missing[c];
        }
    using Entry = std::pair<uint32_t, int>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    size_t live = 0;
    for (int c = 0; c < static_cast<int>(clusters_.size()); ++c) {
      if (clusters_[c].values.empty()) continue;
      ++live;
      if (missing[c] == 0) ready.push({clusters_[c].values.front().id, c});
    }
    std::vector<int> order;
    while (!ready.empty()) {
      const int c = ready.top().second;
      ready.pop();
      order.push_back(c);
      for (const int consumer : consumers[c])
        if (--missing[consumer] == 0) ready.push({clusters_[consumer].values.front().id, consumer});
    }
    RUNE_CHECK(order.size() == live, "fusion made a cycle of kernels");
    return order;
  }

  const Graph& graph_;
  const Capabilities& caps_;
  Uses uses_;
  const std::map<uint32_t, LibraryProduct> products_;  // by Contract
  std::vector<Cluster> clusters_;
  std::map<int64_t, int> cluster_of_call_;  // all results of a host call are in one cluster
  std::vector<int> nests_;                  // the clusters of Loop_Nests, one for each nest
  std::vector<int> cluster_of_;             // by materialized value
  Extents extents_;
  std::vector<FusionOpportunity> opportunities_;
};

}  // namespace

Fusion fuse(const Graph& graph, const std::vector<Value>& outputs, const Capabilities& caps) {
  return Fuser(graph, caps, materialize(graph, outputs, caps)).run(outputs);
}

}  // namespace rune::schedule
