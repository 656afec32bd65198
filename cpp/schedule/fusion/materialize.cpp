#include "schedule/fusion/materialize.h"

#include <algorithm>
#include <limits>
#include <map>

#include "schedule/analysis/cost.h"
#include "schedule/fusion/cat_parts.h"
#include "schedule/fusion/split_kernels.h"

namespace rune::schedule {

using graph::Graph;
using graph::NodeKind;
using graph::Value;

namespace {

// By node: whether it must be materialized, whatever the cost.
std::vector<bool> required(const Graph& graph, const std::vector<Value>& outputs,
                           const std::vector<bool>& by_parts) {
  std::vector<bool> result(graph.size(), false);
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const NodeKind kind = graph.nodes[id].kind();
    const bool reduces = kind == NodeKind::Reduce_Axis || kind == NodeKind::Contract;
    result[id] = reduces || kind == NodeKind::Contiguous || kind == NodeKind::Copy ||
                 kind == NodeKind::Host_Callback || kind == NodeKind::Loop_Nest ||
                 is_sequential(graph.nodes[id]) || by_parts[id];
    if (kind == NodeKind::Host_Callback || kind == NodeKind::Loop_Nest || kind == NodeKind::Copy)
      for (const Value v : graph.nodes[id].inputs) result[v.id] = true;
  }
  for (const Value v : outputs) result[v.id] = true;
  return result;
}

class Materializer {
 public:
  Materializer(const Graph& graph, const Capabilities& caps, std::vector<bool> required,
               std::vector<bool> by_parts)
      : graph_(graph),
        caps_(caps),
        operations_(tree_operations(caps, graph, required)),
        moved_(find_moved()),
        widened_(find_widened_operands()),
        uses_(graph, std::move(required), std::move(by_parts)) {}

  // When a value turns out to be cheaper to store, uses of later values may already have been
  // followed through it. So uses are found again, before such values are judged again and at the
  // end.
  Uses run(const std::vector<Value>& outputs) {
    store_costly_shared();
    store_operands_of_scatters();
    std::vector<bool> split = uses_.materialized();
    split_long_kernels(graph_, split);
    for (uint32_t id = 0; id < graph_.size(); ++id)
      if (split[id]) uses_.materialize(id);
    uses_.update(outputs, [this](const Uses::Reached& reached) { return pays(reached); });
    const auto never = [](const Uses::Reached&) { return false; };
    if (!stored_by_cost_.empty()) {
      uses_.update(outputs, never);
      drop_cheap();
      uses_.update(outputs, never);
      drop_shared(outputs);
    }
    store_shared();
    uses_.update(outputs, never);
    return std::move(uses_);
  }

 private:
  // `above_` has, for each node, the only materialized value that needs it, or kNone or kSeveral.
  static constexpr uint32_t kNone = ~uint32_t{0}, kSeveral = kNone - 1;
  // A value of at least this many simple operations may be costly to compute again.
  static constexpr double kCostlyOperations = 128;
  // The most copies of a value that a kernel computes because gathers from it are computed several
  // times. A chain of gathers, each from a value made of the one before it, doubles them at each
  // step.
  static constexpr double kMostCopies = 16;

  std::vector<uint32_t> find_above() const {
    std::vector<uint32_t> above(graph_.size(), kNone);
    for (uint32_t id = static_cast<uint32_t>(graph_.size()); id-- > 0;) {
      const uint32_t from = uses_.is_materialized(id) ? id : above[id];
      if (from == kNone) continue;
      for (const Value input : graph_.nodes[id].inputs) {
        uint32_t& known = above[input.id];
        known = known == kNone || known == from ? from : kSeveral;
      }
    }
    return above;
  }

  // Stores values that several others need and that take many operations. Otherwise, if a reduction
  // needs each step of a chain, the chain would be computed from its beginning for each of them.
  void store_costly_shared() {
    above_ = find_above();
    std::vector<double> operations(graph_.size(), 0);
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      const graph::Node& node = graph_.nodes[id];
      if (above_[id] == kNone || evaluation_of(node) == Evaluation::Memory) continue;
      operations[id] = operations_now(id, operations);
      if (uses_.is_materialized(id) || above_[id] != kSeveral || operations[id] < kCostlyOperations)
        continue;
      const double elements = static_cast<double>(max_elements(node.shape()));
      const double recompute = operations_ns(caps_, elements * operations[id], node.dtype());
      if (recompute > boundary_ns(node, false)) uses_.materialize(id);
    }
  }

  // Stores indices and updates of a Scatter, which a core would compute one after the other, if
  // computing them by vectors is so much faster that a kernel of their own pays.
  void store_operands_of_scatters() {
    if (caps_.model != ExecutionModel::Cores) return;
    for (const graph::Node& scatter : graph_.nodes) {
      if (scatter.kind() != NodeKind::Scatter) continue;
      for (const Value v : {scatter.inputs[1], scatter.inputs[2]}) {
        const graph::Node& node = graph_[v];
        if (evaluation_of(node) == Evaluation::Memory || uses_.is_materialized(v.id)) continue;
        const double operations = static_cast<double>(max_elements(node.shape())) *
                                  operations_[v.id] * (caps_.lanes(node.dtype()) - 1);
        if (operations_ns(caps_, operations, node.dtype()) > boundary_ns(node, false))
          uses_.materialize(v.id);
      }
    }
  }

  // Whether to materialize a value that another one needs.
  bool pays(const Uses::Reached& reached) {
    const bool costly = cheaper_to_store(reached), copied = is_copied(reached.demands);
    if (costly && !copied) stored_by_cost_.push_back(reached.value.id);
    return costly || copied || ends_shared_chain(reached) || is_too_long(reached);
  }

  // Whether the value ends a long chain that many values share. Each would compute it from its
  // beginning.
  bool ends_shared_chain(const Uses::Reached& reached) const {
    constexpr int64_t kMostShared = 48;
    const uint32_t id = reached.value.id;
    return reached.num_computed > kMostShared && above_[id] == kSeveral &&
           operations_[id] >= kCostlyOperations;
  }

  // Whether the kernel's text would be too long. In a chain of values, each of which is needed at
  // several positions of the next one, the number of needed elements grows with each step. The text
  // computes each of them.
  bool is_too_long(const Uses::Reached& reached) const {
    constexpr size_t kFewDemands = 8;
    const size_t demands = reached.demands.size();
    return demands > kFewDemands && reached.length + static_cast<int64_t>(demands) > kMostNodes &&
           operations_[reached.value.id] > 0 && !is_moved(reached.value);
  }

  // Whether a kernel that computes the value again for each demand is short enough.
  bool fits(uint32_t id, uint32_t user) const {
    int64_t demands = 0;
    for (const Use& use : uses_.of(user))
      if (use.value.id == id) demands += static_cast<int64_t>(use.demands.size());
    return uses_.length(user) + demands * std::max<int64_t>(uses_.length(id), 1) <= kMostNodes;
  }

  // The cost of computing a value again for each of its uses.
  struct Reuse {
    double evaluations = 0;
    std::vector<uint32_t> users;  // materialized values
    bool may_drop = true;
  };

  std::map<uint32_t, Reuse> reuse_of_stored() {
    std::map<uint32_t, Reuse> reuse;
    for (const uint32_t id : stored_by_cost_) reuse[id];
    for (uint32_t user = 0; user < graph_.size(); ++user) {
      if (!uses_.is_materialized(user)) continue;
      const Ints extents = uses_.loop_extents(Value{user});
      for (const Use& use : uses_.of(user)) {
        const auto it = reuse.find(use.value.id);
        if (it == reuse.end()) continue;
        it->second.users.push_back(user);
        it->second.may_drop &= !uses_.is_by_parts(user) && !is_copied(use.demands);
        const bool moves = moves_only(graph_[use.value]);
        for (const Demand& demand : use.demands)
          it->second.evaluations += evaluations(demand, extents, moves);
      }
    }
    return reuse;
  }

  // Consumers were judged first, so a value's cost included everything that it is computed from.
  // Now some of that may be stored, and the value itself may be cheap, such as every second step of
  // a chain.
  void drop_cheap() {
    const std::map<uint32_t, Reuse> reuse = reuse_of_stored();
    std::vector<double> operations(graph_.size(), 0);
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      operations[id] = operations_now(id, operations);
      const auto it = reuse.find(id);
      if (it == reuse.end() || !uses_.is_materialized(id) || !it->second.may_drop) continue;
      const graph::Node& node = graph_.nodes[id];
      const double again = it->second.evaluations - static_cast<double>(max_elements(node.shape()));
      const bool fit = std::all_of(it->second.users.begin(), it->second.users.end(),
                                   [&](uint32_t user) { return fits(id, user); });
      if (!fit ||
          operations_ns(caps_, again * operations[id], node.dtype()) > boundary_ns(node, true))
        continue;
      uses_.dematerialize(id, it->second.users);
    }
  }

  // A value that is needed at several positions, as in a stencil, may be made of values that these
  // positions share. The cost of computing it again is found by trying it, one value after the
  // other. Reading its operands takes as long again.
  void drop_shared(const std::vector<Value>& outputs) {
    constexpr size_t kMostTried = 16;
    constexpr double kWithReads = 2;
    const auto never = [](const Uses::Reached&) { return false; };
    std::map<uint32_t, Reuse> reuse = reuse_of_stored();
    if (reuse.size() > kMostTried) return;
    for (auto& [id, of_value] : reuse) {
      if (!uses_.is_materialized(id) || !of_value.may_drop || of_value.users.size() != 1) continue;
      const uint32_t user = of_value.users[0];
      if (!uses_.is_materialized(user)) continue;
      if (!fits(id, user)) continue;
      const double before = all_operations_ns();
      uses_.dematerialize(id, of_value.users);
      uses_.update(outputs, never);
      const double again = all_operations_ns() - before;
      if (kWithReads * again <= boundary_ns(graph_.nodes[id], true)) continue;
      uses_.materialize(id);
      uses_.update(outputs, never);
    }
  }

  // The time of all operations for all materialized values.
  double all_operations_ns() const {
    double ns = 0;
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      const graph::Node& node = graph_.nodes[id];
      const double count = uses_.is_materialized(id)
                               ? static_cast<double>(max_elements(node.shape()))
                               : uses_.evaluated(id);
      if (count > 0)
        ns += operations_ns(caps_, count * node_operations(caps_, graph_, node), node.dtype());
    }
    return ns;
  }

  // The operations for an element, from the values stored now. `operations` has those of earlier
  // nodes.
  double operations_now(uint32_t id, const std::vector<double>& operations) const {
    double total = node_operations(caps_, graph_, graph_.nodes[id]);
    for (const Value input : graph_.nodes[id].inputs)
      if (!uses_.is_materialized(input.id)) total += operations[input.id];
    return std::min(total, kMaxTreeOperations);
  }

  // Stores values that several others would each compute again. Values are visited in order, so
  // that the operands of a stored value are not stored as well. Storing a value usually also costs
  // a kernel, hence the factor. If values share a kernel, rows of the stored value stay in cache.
  void store_shared() {
    constexpr double kKernelBoundary = 2;
    std::vector<double> operations(graph_.size(), 0);
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      const graph::Node& node = graph_.nodes[id];
      operations[id] = operations_now(id, operations);
      const double elements = static_cast<double>(max_elements(node.shape()));
      if (uses_.is_materialized(id) || operations[id] == 0 || widened_[id] ||
          uses_.evaluated(id) <= elements)
        continue;
      const double recompute =
          operations_ns(caps_, (uses_.evaluated(id) - elements) * operations[id], node.dtype());
      if (recompute > kKernelBoundary * boundary_ns(node, false)) uses_.materialize(id);
    }
  }

  // The time to store all elements for another kernel. Values are not expected to stay in the last
  // level of cache, which other programs share.
  double boundary_ns(const graph::Node& node, bool may_be_cached) const {
    const double bytes = static_cast<double>(max_elements(node.shape())) *
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

  // By node: the only computed value whose elements it has, perhaps moved, if there is one.
  std::vector<uint32_t> find_moved() const {
    std::vector<uint32_t> result(graph_.size(), kNone);
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
        result[id] = result[id] == kNone || result[id] == from ? from : kSeveral;
      }
    }
    return result;
  }

  // By node: whether it widens narrow floats, or moves widened ones, only for contractions.
  // Contractions read the narrow elements. On a grid they multiply them in matrix units or widen
  // them in registers. On cores they widen each element once, when they pack it or keep it in
  // scratch memory. An array of the wide elements would only cost time.
  std::vector<bool> find_widened_operands() const {
    std::vector<bool> only_contracted(graph_.size(), true), is_used(graph_.size(), false);
    std::vector<bool> result(graph_.size(), false);
    const auto moves = [&](const graph::Node& node) {
      return node.kind() != NodeKind::Sink && is_computed(node) && moves_only(node);
    };
    for (uint32_t id = static_cast<uint32_t>(graph_.size()); id-- > 0;) {
      const graph::Node& node = graph_.nodes[id];
      const bool feeds =
          node.kind() == NodeKind::Contract || (moves(node) && is_used[id] && only_contracted[id]);
      for (const Value input : node.inputs) {
        is_used[input.id] = true;
        only_contracted[input.id] = only_contracted[input.id] && feeds;
      }
    }
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      const graph::Node& node = graph_.nodes[id];
      if (!is_used[id] || !only_contracted[id]) continue;
      if (node.kind() == NodeKind::Cast) {
        const DType from = graph_[node.inputs[0]].dtype();
        result[id] = node.dtype() == DType::Float32 && is_float(from) && size_of(from) == 2;
      } else {
        result[id] = moves(node) && std::any_of(node.inputs.begin(), node.inputs.end(),
                                                [&](Value input) { return result[input.id]; });
      }
    }
    return result;
  }

  // Whether v only moves another value of about as many elements, which is better stored instead.
  bool is_moved(Value v) const {
    const uint32_t from = moved_[v.id];
    return from < kSeveral && from != v.id &&
           max_elements(graph_.nodes[from].shape()) < 2 * max_elements(graph_[v].shape());
  }

  // Whether the value would be computed too often because of a chain of gathers (kMostCopies).
  static bool is_copied(const std::vector<Demand>& demands) {
    double copies = 0;
    for (const Demand& demand : demands) copies += demand.copies;
    return copies > kMostCopies + static_cast<double>(demands.size());
  }

  bool cheaper_to_store(const Uses::Reached& reached) const {
    const Value v = reached.value;
    const double operations = operations_[v.id];
    if (operations == 0 || is_moved(v) || widened_[v.id]) return false;
    const graph::Node& node = graph_[v];
    const double elements = static_cast<double>(max_elements(node.shape()));
    double total = 0;
    for (const Demand& demand : reached.demands)
      total += evaluations(demand, reached.extents, moves_only(node));
    if (total <= elements) return false;
    const double recompute = operations_ns(caps_, (total - elements) * operations, node.dtype());
    return recompute > boundary_ns(node, true);
  }

  const Graph& graph_;
  const Capabilities& caps_;
  const std::vector<double> operations_;
  const std::vector<uint32_t> moved_;
  const std::vector<bool> widened_;
  std::vector<uint32_t> above_;
  std::vector<uint32_t> stored_by_cost_;  // values that were materialized because of their cost
  Uses uses_;
};

}  // namespace

Materialized materialize(const Graph& graph, const std::vector<Value>& outputs,
                         const Capabilities& caps) {
  std::vector<bool> by_parts = stored_by_parts(graph);
  std::vector<bool> is_required = required(graph, outputs, by_parts);
  std::map<uint32_t, LibraryProduct> products = library_products(graph, outputs, is_required, caps);
  for (const auto& [id, product] : products)
    for (const Value v : {product.a, product.b, product.result}) is_required[v.id] = true;
  Materializer materializer(graph, caps, std::move(is_required), std::move(by_parts));
  return {materializer.run(outputs), std::move(products)};
}

}  // namespace rune::schedule
