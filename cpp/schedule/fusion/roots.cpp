#include "schedule/fusion/roots.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>

#include "schedule/analysis/cost.h"
#include "schedule/cat_parts.h"
#include "schedule/fusion/split_kernels.h"

namespace rune::schedule {

using graph::Graph;
using graph::NodeKind;
using graph::Value;

namespace {

std::vector<bool> required_roots(const Graph& graph, const std::vector<Value>& outputs,
                                 const std::vector<bool>& by_parts) {
  std::vector<bool> is_root(graph.size(), false);
  std::vector<bool> is_inline(graph.size(), false);
  for (const graph::Node& node : graph.nodes)
    if (node.kind() == NodeKind::Fuse) is_inline[node.inputs[0].id] = true;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const NodeKind kind = graph.nodes[id].kind();
    const bool reduces = kind == NodeKind::Reduce_Axis || kind == NodeKind::Contract;
    is_root[id] = (reduces && !is_inline[id]) || kind == NodeKind::Contiguous ||
                  kind == NodeKind::Copy || kind == NodeKind::Kernel ||
                  kind == NodeKind::Host_Callback || is_sequential(graph.nodes[id]) || by_parts[id];
    if (kind == NodeKind::Host_Callback)
      for (const Value v : graph.nodes[id].inputs) is_root[v.id] = true;
  }
  for (const graph::Node& node : graph.nodes)
    if (node.kind() == NodeKind::Copy && evaluation_of(node) == Evaluation::Moved)
      is_root[node.inputs[0].id] = true;
  for (const Value v : outputs) is_root[v.id] = true;
  return is_root;
}

// The greatest variable of an expression, or -1.
int64_t last_variable(const sym::Expr& expr) {
  int64_t last = -1;
  for (const sym::Expr::Term& term : expr.terms())
    last = std::max(last, term.atom->kind == sym::Atom::Kind::Variable
                              ? int64_t{term.atom->variable}
                              : last_variable(term.atom->inner));
  return last;
}

class RootFinder {
 public:
  RootFinder(const Graph& graph, const Capabilities& caps, std::vector<bool> is_root,
             std::vector<bool> by_parts)
      : graph_(graph), caps_(caps), operations_(tree_operations(caps, graph, is_root)) {
    moved_ = find_moved();
    result.is_root = std::move(is_root);
    result.by_parts = std::move(by_parts);
    result.uses.resize(graph.size());
    result.num_nodes.resize(graph.size(), 0);
    evaluated_.resize(graph.size(), 0);
    visits_.resize(graph.size());
    is_known_.resize(graph.size(), false);
  }

  // A value found cheaper to store may already have been followed through by the uses of roots
  // after it, so uses are found again once the roots are known: before they are judged again, and
  // in the end.
  void run(const std::vector<Value>& outputs) {
    add_costly_shared_roots();
    add_roots_of_scatters();
    split_long_kernels(graph_, result.is_root);
    find_uses(outputs);
    may_add_ = false;
    if (!stored_by_cost_.empty()) {
      find_uses(outputs);
      drop_cheap_roots();
    }
    add_shared_roots();
    find_uses(outputs);
  }

  Roots result;

 private:
  // By node: the one root that computes elements of it, or that there is none, or several.
  static constexpr uint32_t kNoRoot = ~uint32_t{0}, kSeveralRoots = kNoRoot - 1;
  // A value that a root computes, and how often.
  struct Visit {
    uint32_t id;
    double evaluations;
  };
  // Simple operations from which on a value may be costly to compute anew.
  static constexpr double kCostlyOperations = 128;
  // Times that a kernel computes a value because what gathers from it is computed several times:
  // a chain of gathers, each from a value made of the one before it, doubles them at each step.
  static constexpr double kMostCopies = 16;

  void find_roots_above() {
    std::vector<uint32_t>& above = above_;
    above.assign(graph_.size(), kNoRoot);
    for (uint32_t id = static_cast<uint32_t>(graph_.size()); id-- > 0;) {
      const uint32_t root = result.is_root[id] ? id : above[id];
      if (root == kNoRoot) continue;
      for (const Value input : graph_.nodes[id].inputs) {
        uint32_t& known = above[input.id];
        known = known == kNoRoot || known == root ? root : kSeveralRoots;
      }
    }
  }

  // Values that several roots need and that take many operations: a chain in which each step is
  // needed by a reduction, too, would else be computed from its beginning for each of them.
  void add_costly_shared_roots() {
    find_roots_above();
    std::vector<double> operations(graph_.size(), 0);
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      const graph::Node& node = graph_.nodes[id];
      if (above_[id] == kNoRoot || evaluation_of(node) == Evaluation::Memory) continue;
      operations[id] = operations_now(id, operations);
      if (result.is_root[id] || above_[id] != kSeveralRoots || operations[id] < kCostlyOperations)
        continue;
      const double elements = static_cast<double>(num_elements(node.shape()));
      const double recompute = operations_ns(caps_, elements * operations[id], node.dtype());
      if (recompute > boundary_ns(node, false)) result.is_root[id] = true;
    }
  }

  // Places and updates that a core computes one after the other for a Scatter, where vectors of
  // them are so much faster that a kernel of their own pays.
  void add_roots_of_scatters() {
    if (caps_.model != ExecutionModel::Cores) return;
    for (const graph::Node& scatter : graph_.nodes) {
      if (scatter.kind() != NodeKind::Scatter) continue;
      for (const Value v : {scatter.inputs[1], scatter.inputs[2]}) {
        const graph::Node& node = graph_[v];
        if (evaluation_of(node) == Evaluation::Memory || result.is_root[v.id]) continue;
        const double operations = static_cast<double>(num_elements(node.shape())) *
                                  operations_[v.id] * (caps_.lanes(node.dtype()) - 1);
        if (operations_ns(caps_, operations, node.dtype()) > boundary_ns(node, false))
          result.is_root[v.id] = true;
      }
    }
  }

  // Consumers first, so that a value made a root here is visited later.
  void find_uses(const std::vector<Value>& outputs) {
    std::vector<bool> wanted(graph_.size(), false);
    for (const Value v : outputs) wanted[v.id] = true;
    for (uint32_t id = static_cast<uint32_t>(graph_.size()); id-- > 0;) {
      if (!wanted[id] || evaluation_of(graph_.nodes[id]) == Evaluation::Memory) {
        result.is_root[id] = false;
        forget(id);
        continue;
      }
      if (is_outdated(id)) visit(Value{id});
      for (const Use& use : result.uses[id]) wanted[use.value.id] = true;
    }
  }

  // Whether the root's uses are not known, or go through a value that has become a root since.
  bool is_outdated(uint32_t root) const {
    return !is_known_[root] ||
           std::any_of(visits_[root].begin(), visits_[root].end(),
                       [&](const Visit& visit) { return result.is_root[visit.id]; });
  }

  void forget(uint32_t root) {
    for (const Visit& visit : visits_[root]) evaluated_[visit.id] -= visit.evaluations;
    visits_[root].clear();
    is_known_[root] = false;
  }

  void visit(Value root) {
    forget(root.id);
    is_known_[root.id] = true;
    const graph::Node& node = graph_[root];
    extents_ = node.shape();
    const Evaluation evaluation = evaluation_of(node);
    if (evaluation == Evaluation::Moved) {
      result.uses[root.id] = {{node.inputs[0], {}}};
      return;
    }
    if (evaluation == Evaluation::Called) {
      result.uses[root.id].clear();
      for (const Value v : node.inputs) result.uses[root.id].push_back({v, {}});
      return;
    }
    std::map<uint32_t, std::vector<Demand>, std::greater<>> uses;
    result.num_nodes[root.id] = 0;
    for (const CatPart& part :
         result.by_parts[root.id] ? cat_parts(graph_, root) : std::vector<CatPart>{}) {
      const int64_t axis = node.as<graph::Cat>()->axis;
      extents_[axis] = part.size;
      Seed seed{root, variable_index(extents_, 0), {}};
      seed.index[axis] = seed.index[axis] + part.start;
      follow(root, {std::move(seed)}, uses);
    }
    if (!result.by_parts[root.id]) follow(root, seeds_of(root), uses);
    result.uses[root.id].clear();
    result.uses[root.id].reserve(uses.size());
    for (auto& [id, demands] : uses)
      result.uses[root.id].push_back({Value{id}, std::move(demands)});
  }

  // Sets the extents of their variables.
  std::vector<Seed> seeds_of(Value root) {
    const graph::Node& node = graph_[root];
    const auto rank = static_cast<uint32_t>(node.shape().size());
    const Evaluation evaluation = evaluation_of(node);
    std::vector<Seed> seeds{{root, variable_index(node.shape(), 0), {}}};
    if (evaluation == Evaluation::Reduction || evaluation == Evaluation::Scattered) {
      const Shape inner = reduced_shape(graph_, root);
      extents_.insert(extents_.end(), inner.begin(), inner.end());
      // A scatter computes each element of its beginning and of its updates once.
      if (evaluation == Evaluation::Scattered) {
        seeds.push_back(seeds[0]);
        extents_[sequential_axis(node)] = 1;
      }
      seeds.back().inner = variable_index(inner, rank);
    }
    return seeds;
  }

  void follow(Value root, const std::vector<Seed>& seeds,
              std::map<uint32_t, std::vector<Demand>, std::greater<>>& uses) {
    num_visited_ = 0;
    Walk walked = walk(graph_, seeds, [&](Value v, const std::vector<Demand>& demands) {
      const bool in_memory = evaluation_of(graph_[v]) == Evaluation::Memory;
      if (may_add_ && !in_memory && !result.is_root[v.id]) {
        const bool costly = cheaper_to_store(v, demands), copied = is_copied(demands);
        if (costly && !copied) stored_by_cost_.push_back(v.id);
        if (costly || copied || ends_shared_chain(v)) result.is_root[v.id] = true;
      }
      if (in_memory || result.is_root[v.id]) return true;
      double count = 0;
      for (const Demand& demand : demands) count += evaluations(demand, false);
      evaluated_[v.id] += count;
      visits_[root.id].push_back({v.id, count});
      ++num_visited_;
      return false;
    });
    result.num_nodes[root.id] += num_visited_;
    for (auto& [id, demands] : walked.demands) {
      if (!result.is_root[id] && evaluation_of(graph_.nodes[id]) != Evaluation::Memory) continue;
      std::vector<Demand>& known = uses[id];
      std::move(demands.begin(), demands.end(), std::back_inserter(known));
    }
  }

  // Many roots that share a long chain would each follow it to its beginning.
  bool ends_shared_chain(Value v) const {
    constexpr int64_t kMostShared = 48;
    return num_visited_ > kMostShared && above_[v.id] == kSeveralRoots &&
           operations_[v.id] >= kCostlyOperations;
  }

  // What computing a root anew for each of its uses takes.
  struct Reuse {
    double evaluations = 0;
    std::vector<uint32_t> users;  // roots
    bool may_drop = true;
  };

  std::map<uint32_t, Reuse> reuse_of_stored() {
    std::map<uint32_t, Reuse> reuse;
    for (const uint32_t id : stored_by_cost_) reuse[id];
    for (uint32_t root = 0; root < graph_.size(); ++root) {
      if (!result.is_root[root]) continue;
      bool is_user = false;
      for (const Use& use : result.uses[root]) is_user |= reuse.count(use.value.id) > 0;
      if (!is_user) continue;
      extents_ = graph_.nodes[root].shape();
      seeds_of(Value{root});
      for (const Use& use : result.uses[root]) {
        const auto it = reuse.find(use.value.id);
        if (it == reuse.end()) continue;
        it->second.users.push_back(root);
        it->second.may_drop &= !result.by_parts[root] && !is_copied(use.demands);
        const bool moves = moves_only(graph_[use.value]);
        for (const Demand& demand : use.demands)
          it->second.evaluations += evaluations(demand, moves);
      }
    }
    return reuse;
  }

  // Consumers are visited first, so that a value was judged by all that computes it. Where some of
  // that is stored now, too, the value itself may be cheap: every second step of a chain, say.
  void drop_cheap_roots() {
    const std::map<uint32_t, Reuse> reuse = reuse_of_stored();
    std::vector<double> operations(graph_.size(), 0);
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      operations[id] = operations_now(id, operations);
      const auto it = reuse.find(id);
      if (it == reuse.end() || !result.is_root[id] || !it->second.may_drop) continue;
      const graph::Node& node = graph_.nodes[id];
      const double again = it->second.evaluations - static_cast<double>(num_elements(node.shape()));
      const bool fits =
          std::all_of(it->second.users.begin(), it->second.users.end(), [&](uint32_t user) {
            return result.num_nodes[user] + result.num_nodes[id] <= kMostNodes;
          });
      if (!fits ||
          operations_ns(caps_, again * operations[id], node.dtype()) > boundary_ns(node, true))
        continue;
      result.is_root[id] = false;
      result.uses[id].clear();
      for (const uint32_t user : it->second.users) {
        result.num_nodes[user] += result.num_nodes[id];
        is_known_[user] = false;
      }
    }
  }

  // Of an element, from what is stored now, given those of the nodes before it.
  double operations_now(uint32_t id, const std::vector<double>& operations) const {
    double total = node_operations(caps_, graph_, graph_.nodes[id]);
    for (const Value input : graph_.nodes[id].inputs)
      if (!result.is_root[input.id]) total += operations[input.id];
    return std::min(total, kMaxTreeOperations);
  }

  // Values that several roots compute, each anew: in order, so that what a stored value is made of
  // is not stored as well. Storing one usually also costs a kernel, hence the factor; roots that
  // share one keep rows of the value in cache.
  void add_shared_roots() {
    constexpr double kKernelBoundary = 2;
    std::vector<double> operations(graph_.size(), 0);
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      const graph::Node& node = graph_.nodes[id];
      operations[id] = operations_now(id, operations);
      const double elements = static_cast<double>(num_elements(node.shape()));
      if (result.is_root[id] || operations[id] == 0 || evaluated_[id] <= elements) continue;
      const double recompute =
          operations_ns(caps_, (evaluated_[id] - elements) * operations[id], node.dtype());
      if (recompute > kKernelBoundary * boundary_ns(node, false)) result.is_root[id] = true;
    }
  }

  // Storing all elements for another kernel. Of the last level, which other programs share, nothing
  // is expected.
  double boundary_ns(const graph::Node& node, bool may_be_cached) const {
    const double bytes = static_cast<double>(num_elements(node.shape())) *
                         static_cast<double>(size_of(node.dtype()));
    const bool cached = may_be_cached && bytes <= static_cast<double>(caps_.l2_bytes);
    return cached ? store_ns(caps_, bytes)
                  : memory_ns(caps_, 2 * bytes, std::numeric_limits<double>::infinity()) +
                        caps_.launch_ns;
  }

  static bool moves_only(const graph::Node& node) {
    const Evaluation evaluation = evaluation_of(node);
    return evaluation == Evaluation::Forward || evaluation == Evaluation::Select;
  }

  // By node: the one computed value whose elements it has, as they are or moved, if there is one.
  std::vector<uint32_t> find_moved() const {
    std::vector<uint32_t> result(graph_.size(), kNoRoot);
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      const graph::Node& node = graph_.nodes[id];
      if (node.kind() == NodeKind::Sink || !is_computed(node)) continue;
      if (!moves_only(node)) {
        result[id] = id;
        continue;
      }
      for (const Value input : node.inputs) {
        if (evaluation_of(graph_[input]) == Evaluation::Constant) continue;
        const uint32_t from = result[input.id];
        result[id] = result[id] == kNoRoot || result[id] == from ? from : kSeveralRoots;
      }
    }
    return result;
  }

  // Whether rather the value that it is moved from, of about as many elements, is stored.
  bool is_moved(Value v) const {
    const uint32_t from = moved_[v.id];
    return from < kSeveralRoots && from != v.id &&
           num_elements(graph_.nodes[from].shape()) < 2 * num_elements(graph_[v].shape());
  }

  // Values of a variable of the loops that conditions on it alone admit.
  int64_t admitted(const sym::Mask& mask, uint32_t variable) const {
    int64_t low = 0, high = extents_[variable] - 1;
    for (const sym::Expr& condition : mask.conditions()) {
      const auto& terms = condition.terms();
      if (terms.size() != 1 || terms[0].atom->kind != sym::Atom::Kind::Variable ||
          terms[0].atom->variable != variable)
        continue;
      const int64_t c = terms[0].coefficient, d = condition.constant();  // c * variable + d >= 0
      if (c > 0)
        low = std::max(low, -floordiv(sym::Expr(d), c).constant());
      else
        high = std::min(high, floordiv(sym::Expr(d), -c).constant());
    }
    return std::max<int64_t>(0, high - low + 1);
  }

  // How often the root's loops compute this demand: a value is computed once per point of the
  // loops down to the innermost one that its index depends on, or only of those where its mask
  // holds.
  double evaluations(const Demand& demand, bool where_masked) const {
    int64_t deepest = -1;
    for (const sym::Expr& expr : demand.index) deepest = std::max(deepest, last_variable(expr));
    // Inside a fused reduction: once per element.
    if (deepest >= static_cast<int64_t>(extents_.size())) return 0;
    double count = 1;
    for (int64_t i = 0; i <= deepest; ++i)
      count *= static_cast<double>(where_masked ? admitted(demand.mask, static_cast<uint32_t>(i))
                                                : extents_[i]);
    return count;
  }

  // Whether gathers, each from a value made of the one before it, ask for it all too often.
  static bool is_copied(const std::vector<Demand>& demands) {
    double copies = 0;
    for (const Demand& demand : demands) copies += demand.copies;
    return copies > kMostCopies + static_cast<double>(demands.size());
  }

  bool cheaper_to_store(Value v, const std::vector<Demand>& demands) const {
    const double operations = operations_[v.id];
    if (operations == 0 || is_moved(v)) return false;
    const graph::Node& node = graph_[v];
    const double elements = static_cast<double>(num_elements(node.shape()));
    double total = 0;
    for (const Demand& demand : demands) total += evaluations(demand, moves_only(node));
    if (total <= elements) return false;
    const double recompute = operations_ns(caps_, (total - elements) * operations, node.dtype());
    return recompute > boundary_ns(node, true);
  }

  const Graph& graph_;
  const Capabilities& caps_;
  const std::vector<double> operations_;
  std::vector<uint32_t> moved_;
  std::vector<double>
      evaluated_;  // by node: times that all roots together compute an element of it
  std::vector<uint32_t> above_;
  std::vector<std::vector<Visit>> visits_;  // by root
  std::vector<bool> is_known_;              // by root: its uses
  std::vector<uint32_t> stored_by_cost_;    // roots that are for this reason
  bool may_add_ = true;
  int64_t num_visited_ = 0;  // nodes that the visited root computes
  Shape extents_;            // of the visited root's variables
};

}  // namespace

Roots find_roots(const Graph& graph, const std::vector<Value>& outputs, const Capabilities& caps) {
  std::vector<bool> by_parts = stored_by_parts(graph);
  std::vector<bool> required = required_roots(graph, outputs, by_parts);
  RootFinder finder(graph, caps, std::move(required), std::move(by_parts));
  finder.run(outputs);
  return std::move(finder.result);
}

}  // namespace rune::schedule
