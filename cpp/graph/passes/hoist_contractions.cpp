// Moves contractions out of loops: those of all iterations become one contraction of larger
// operands.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>

#include "graph/attribute_dims.h"
#include "graph/infer.h"
#include "graph/passes/lift_iterations.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

// A contraction stays in a loop of fewer than kLeastHoisted iterations. It also stays if the
// operand that the iterations share has few elements and so stays in a core's first cache, or if it
// has many rows: then it is fast enough.
constexpr int64_t kLeastHoisted = 8;
constexpr int64_t kLeastShared = 4096;
constexpr int64_t kMostRows = 16;
// The least part of the hoisted contraction's results that the iterations must use, and the most
// results per element of the operands.
constexpr double kLeastUsed = 0.4;
constexpr double kMostResults = 4;

class Hoister : public Lifter {
 public:
  // `map` has the new value of each rebuilt node.
  Hoister(const Graph& graph, const LoopTree::Loop& loop, const Iterations& iterations,
          Builder& builder, const std::vector<Value>& map)
      : Lifter(graph, loop, iterations, builder, map) {
    for (const uint32_t id : members())
      if (const SymVar* var = declared_variable(graph.nodes[id]))
        if (!(*var == iterations.counter)) inner_.insert(var->name);
  }

  // The contraction's result in an iteration, as a part of one contraction before the loop. No
  // value if the contraction stays in the loop.
  Value hoist(Value v) {
    const Node& node = graph_[v];
    const auto* contract = node.as<Contract>();
    if (!contract || contract->contract.empty() || !is_member(v)) return {};
    if (!is_moved(node.inputs[0]) || !is_moved(node.inputs[1])) return {};
    const auto a = lift(node.inputs[0]), b = lift(node.inputs[1]);
    if (!a || !b || a->by_iteration == b->by_iteration || !pays(*contract, *a, *b)) return {};
    builder_.set_location(node.location);
    const auto all = lift_contract(*contract, *a, *b);
    return all ? take_part(node, *all) : Value{};
  }

 private:
  bool is_of_body(const Dim& size) const {
    return std::any_of(size.terms().begin(), size.terms().end(),
                       [&](const Dim::Term& term) { return inner_.contains(term.var.name); });
  }

  // Whether the value comes from a value outside of the loop by movement alone, and the counter
  // selects an element along at most one axis.
  bool is_moved(Value v) const {
    bool is_walked = false;
    for (; is_member(v); v = graph_[v].inputs[0]) {
      const Node& node = graph_[v];
      const auto* shrink = node.as<Shrink>();
      if (!shrink && !node.as<Reshape>() && !node.as<Permute>()) return false;
      bool is_foreign = false;
      for_each_dim(node, [&](const Dim& size) { is_foreign |= is_of_body(size); });
      if (is_foreign) return false;
      if (!shrink) continue;
      for (const auto& [low, high] : shrink->limits) {
        if (!iterations_.decide(low) || iterations_.decide(high - low)) continue;
        const auto growth = iterations_.growth(low);
        if (is_walked || high - low != Dim(1) || !growth || std::abs(*growth) != 1) return false;
        is_walked = true;
      }
    }
    return true;
  }

  // Whether one contraction is faster than those of the iterations, and its result not too large.
  bool pays(const Contract& contract, const Lifted& a, const Lifted& b) const {
    const Lifted &own = a.by_iteration ? a : b, &shared = a.by_iteration ? b : a;
    const double own_elements = static_cast<double>(max_elements(builder_.shape(own.value)));
    const double shared_elements = static_cast<double>(max_elements(builder_.shape(shared.value)));
    double rows = 1, columns = 1, used = 1;
    for (const int64_t d : free_axes(contract, a.by_iteration ? 0 : 1, own.windows.size()))
      rows *= static_cast<double>(size_of(own, d).bound());
    for (const auto& [of_a, of_b] : contract.batch)
      columns *= static_cast<double>(size_of(a, of_a).bound());
    for (const int64_t d : free_axes(contract, a.by_iteration ? 1 : 0, shared.windows.size()))
      columns *= static_cast<double>(size_of(shared, d).bound());
    for (const Lifted& lifted : {own, shared})
      for (size_t d = 0; d < lifted.windows.size(); ++d)
        used *= used_part(lifted.windows[d], size_of(lifted, static_cast<int64_t>(d)));
    const double results = static_cast<double>(trip().constant()) * rows * columns;
    return shared_elements >= kLeastShared && rows <= kMostRows && used >= kLeastUsed &&
           results <= kMostResults * (own_elements + shared_elements);
  }

  // The part of an axis that iterations use on average.
  double used_part(const std::optional<Window>& window, const Dim& size) const {
    if (!window) return 1;
    const Dim length = window->high - window->low;
    const double sum = static_cast<double>(iterations_.at(0, length).bound()) +
                       static_cast<double>(iterations_.at(trip() - 1, length).bound());
    return sum / 2 / static_cast<double>(std::max<int64_t>(size.bound(), 1));
  }

  // The value of `node` in an iteration.
  Value take_part(const Node& node, const Lifted& all) {
    const Dim number = (Dim(iterations_.counter) - iterations_.first) * iterations_.step;
    DimPairs limits{{number, number + 1}};
    for (size_t d = 0; d < all.windows.size(); ++d) {
      const auto& window = all.windows[d];
      limits.push_back(window ? std::pair{window->low, window->high}
                              : std::pair{Dim(0), size_of(all, static_cast<int64_t>(d))});
    }
    return builder_.reshape(builder_.shrink(all.value, std::move(limits)), node.shape());
  }

  std::set<std::string> inner_;  // the other variables that the body declares
};

}  // namespace

Graph hoist_contractions(Graph graph) {
  const auto is = [](NodeKind kind) {
    return [=](const Node& node) { return node.kind() == kind; };
  };
  if (!any_node(graph, is(NodeKind::End_Loop)) || !any_node(graph, is(NodeKind::Contract)))
    return graph;
  // Inner loops come first, because a contraction that leaves one may also leave the loop around
  // it.
  for (size_t number = 0;; ++number) {
    graph = eliminate_dead_code(graph);
    const LoopTree tree(graph);
    if (number >= tree.loops().size()) return graph;
    const LoopTree::Loop& loop = tree.loops()[number];
    const auto contracts = [&](uint32_t id) { return graph.nodes[id].as<Contract>() != nullptr; };
    if (std::none_of(loop.members.begin(), loop.members.end(), contracts)) continue;
    const auto iterations = Iterations::of(graph, tree, loop.end);
    if (!iterations || std::abs(iterations->step) != 1 || !iterations->first.is_constant())
      continue;
    if (!iterations->count.is_constant() || iterations->count.bound() < kLeastHoisted) continue;
    std::vector<Value> map(graph.size());
    std::optional<Hoister> hoister;
    graph = rewrite(
        graph, [&](Builder& builder, uint32_t id, const Node& node, std::vector<Value> inputs) {
          if (!hoister) hoister.emplace(graph, loop, *iterations, builder, map);
          map[id] = hoister->hoist(Value{id});
          if (!map[id].valid()) map[id] = builder.copy(node, std::move(inputs));
          return map[id];
        });
  }
}

}  // namespace rune::graph
