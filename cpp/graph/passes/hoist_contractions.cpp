// Contractions leave loops: those of all iterations become one contraction of larger operands.
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>

#include "graph/attribute_dims.h"
#include "graph/infer.h"
#include "graph/loops.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

// With fewer iterations, or where the operand that they share has fewer elements, so that it stays
// in a core's first cache, the contractions of the iterations are fast enough. So is one of more
// rows.
constexpr int64_t kLeastIterations = 8;
constexpr int64_t kLeastShared = 4096;
constexpr int64_t kMostRows = 16;
// The least part of the results that the iterations must use, and the most results for each
// element of the operands.
constexpr double kLeastUsed = 0.4;
constexpr double kMostResults = 4;

using Window = std::optional<std::pair<Dim, Dim>>;

// What a value of a loop's body is for all iterations together.
struct Lifted {
  Value value;
  // Whether it has a further first axis along which the iterations lie.
  bool by_iteration = false;
  // By axis of the value in the body: which part of the axis here it is, if the counter decides.
  std::vector<Window> windows;
};

bool has_window(const Lifted& lifted, int64_t axis) {
  return lifted.windows[axis].has_value();
}

bool has_windows(const Lifted& lifted) {
  return std::any_of(lifted.windows.begin(), lifted.windows.end(),
                     [](const Window& window) { return window.has_value(); });
}

class Hoister {
 public:
  // `map` says what each node that was rebuilt has become.
  Hoister(const Graph& graph, const LoopTree::Loop& loop, const std::vector<Value>& map)
      : graph_(graph),
        counter_(loop.counter),
        members_(loop.members.begin(), loop.members.end()),
        map_(map) {
    const auto& range = *graph[loop.end].as<End_Loop>();
    const bool is_known = !range.goes_on && range.start.is_constant() && range.stop.is_constant();
    if (!is_known || std::abs(range.step) != 1) return;
    first_ = range.start.constant();
    step_ = range.step;
    trip_ = (range.stop.constant() - first_) * step_;
    for (const uint32_t id : loop.members)
      if (const SymVar* var = declared_variable(graph.nodes[id]))
        if (var->name != counter_.name) inner_.insert(var->name);
  }

  // The contraction's result in an iteration as elements of one contraction before the loop; no
  // value if the contraction stays.
  Value hoist(Builder& builder, uint32_t id) {
    builder_ = &builder;
    const Node& node = graph_.nodes[id];
    const auto* contract = node.as<Contract>();
    if (!contract || trip_ < kLeastIterations || !members_.contains(id)) return {};
    if (contract->contract.empty()) return {};
    const auto a = lift(node.inputs[0]), b = lift(node.inputs[1]);
    if (!a || !b || a->by_iteration == b->by_iteration) return {};
    for (const Pairs& pairs : {contract->contract, contract->batch})
      for (const auto& [of_a, of_b] : pairs)
        if (has_window(*a, of_a) || has_window(*b, of_b)) return {};
    if (!pays(node, *a, *b)) return {};
    return take_part(node, contract_all(*contract, *a, *b), windows_of_result(*contract, *a, *b));
  }

 private:
  bool depends(const Dim& size) const { return size.depends_on(counter_.name); }
  // What the size is in the iteration with this number.
  Dim in_iteration(const Dim& size, int64_t number) const {
    return size.with({{counter_.name, first_ + step_ * number}});
  }
  bool is_of_body(const Dim& size) const {
    return std::any_of(size.terms().begin(), size.terms().end(),
                       [&](const Dim::Term& term) { return inner_.contains(term.var.name); });
  }

  // A movement of a value from outside the loop; nothing for what is computed in the loop, and for
  // movement that cannot be told for all iterations together.
  std::optional<Lifted> lift(Value v) {
    const Node& node = graph_[v];
    if (!members_.contains(v.id))
      return Lifted{map_[v.id], false, std::vector<Window>(node.shape().size())};
    bool is_foreign = false;
    for_each_dim(node, [&](const Dim& size) { is_foreign |= is_of_body(size); });
    if (is_foreign || node.inputs.size() != 1) return std::nullopt;
    if (!node.as<Shrink>() && !node.as<Reshape>() && !node.as<Permute>()) return std::nullopt;
    auto lifted = lift(node.inputs[0]);
    if (!lifted) return std::nullopt;
    if (const auto* shrink = node.as<Shrink>()) return lift_shrink(*shrink, *std::move(lifted));
    if (node.as<Reshape>())
      return lift_reshape(graph_[node.inputs[0]].shape(), node.shape(), *std::move(lifted));
    return lift_permute(node.as<Permute>()->axes, *std::move(lifted));
  }

  std::optional<Lifted> lift_permute(const Ints& axes, Lifted lifted) {
    const int64_t shift = lifted.by_iteration ? 1 : 0;
    Ints order;
    std::vector<Window> windows;
    if (lifted.by_iteration) order.push_back(0);
    for (const int64_t axis : axes) {
      order.push_back(axis + shift);
      windows.push_back(lifted.windows[axis]);
    }
    return Lifted{builder_->permute(lifted.value, std::move(order)), lifted.by_iteration,
                  std::move(windows)};
  }

  // Axes of size 1 come and go. Other reshapes are those of axes without a window.
  std::optional<Lifted> lift_reshape(const Shape& from, const Shape& to, Lifted lifted) {
    const Shape all = builder_->shape(lifted.value);
    const size_t shift = lifted.by_iteration ? 1 : 0;
    Shape shape;
    if (lifted.by_iteration) shape.push_back(all[0]);
    if (!has_windows(lifted)) {
      shape.insert(shape.end(), to.begin(), to.end());
      return Lifted{builder_->reshape(lifted.value, std::move(shape)), lifted.by_iteration,
                    std::vector<Window>(to.size())};
    }
    std::vector<Window> windows;
    size_t axis = 0;  // of `from`
    const auto skip = [&] {
      while (axis < from.size() && from[axis] == Dim(1)) ++axis;
    };
    for (const Dim& size : to) {
      windows.emplace_back();
      if (size != Dim(1)) {
        skip();
        if (axis == from.size() || from[axis] != size) return std::nullopt;
        windows.back() = lifted.windows[axis];
      }
      shape.push_back(size == Dim(1) ? size : all[shift + axis++]);
    }
    skip();
    if (axis != from.size()) return std::nullopt;
    return Lifted{builder_->reshape(lifted.value, std::move(shape)), lifted.by_iteration,
                  std::move(windows)};
  }

  std::optional<Lifted> lift_shrink(const Shrink& shrink, Lifted lifted) {
    const Shape all = builder_->shape(lifted.value);
    const int64_t shift = lifted.by_iteration ? 1 : 0;
    DimPairs limits;
    if (lifted.by_iteration) limits.push_back({0, all[0]});
    std::optional<int64_t> walked;  // the axis of which each iteration has an element
    bool is_backwards = false;
    for (size_t d = 0; d < shrink.limits.size(); ++d) {
      const auto& [low, high] = shrink.limits[d];
      limits.push_back(shrink.limits[d]);
      if (lifted.windows[d]) {
        const auto& [begin, end] = *lifted.windows[d];
        if (low != Dim(0) || high != end - begin) return std::nullopt;
        limits.back() = {0, all[shift + d]};
        continue;
      }
      if (!depends(low) && !depends(high)) continue;
      const auto [least, greatest] = range_of(low, high);
      if (!least.has_value() || !greatest.has_value()) return std::nullopt;
      limits.back() = {*least, *greatest};
      if (depends(high - low)) {
        lifted.windows[d] = {low - *least, high - *least};
        continue;
      }
      const Dim slope = in_iteration(low, 1) - in_iteration(low, 0);
      const bool is_walked = high - low == Dim(1) && (slope == Dim(1) || slope == Dim(-1));
      if (!is_walked || walked || lifted.by_iteration) return std::nullopt;
      walked = static_cast<int64_t>(d);
      is_backwards = slope == Dim(-1);
    }
    lifted.value = builder_->shrink(lifted.value, std::move(limits));
    if (walked) walk(lifted, *walked, is_backwards);
    return lifted;
  }

  // The least lower and the greatest upper limit of all iterations: of the first or the last one.
  std::pair<std::optional<Dim>, std::optional<Dim>> range_of(const Dim& low, const Dim& high) {
    const auto extreme = [&](const Dim& limit, bool is_least) -> std::optional<Dim> {
      const Dim first = in_iteration(limit, 0), last = in_iteration(limit, trip_ - 1);
      if (always_at_most(first, last)) return is_least ? first : last;
      if (always_at_most(last, first)) return is_least ? last : first;
      return std::nullopt;
    };
    return {extreme(low, true), extreme(high, false)};
  }

  // Makes this axis, which has an element for each iteration, the first one.
  void walk(Lifted& lifted, int64_t axis, bool is_backwards) {
    if (is_backwards) lifted.value = builder_->flip(lifted.value, {axis});
    Shape shape = builder_->shape(lifted.value);
    shape.insert(shape.begin() + axis + 1, Dim(1));
    Ints order{axis};
    for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d)
      if (d != axis) order.push_back(d);
    lifted.value = builder_->permute(builder_->reshape(lifted.value, std::move(shape)), order);
    lifted.by_iteration = true;
  }

  // Whether one contraction is faster than those of the iterations, and its result not too large.
  bool pays(const Node& node, const Lifted& a, const Lifted& b) const {
    const Lifted &own = a.by_iteration ? a : b, &shared = a.by_iteration ? b : a;
    const double own_elements = static_cast<double>(max_elements(builder_->shape(own.value)));
    const double shared_elements = static_cast<double>(max_elements(builder_->shape(shared.value)));
    const auto size_in = [&](const Lifted& lifted, int64_t axis) {
      return builder_->shape(lifted.value)[axis + (lifted.by_iteration ? 1 : 0)];
    };
    const auto& contract = *node.as<Contract>();
    double rows = 1, columns = 1, used = 1;
    for (const int64_t d : free_axes(contract, a.by_iteration ? 0 : 1, own.windows.size()))
      rows *= static_cast<double>(size_in(own, d).bound());
    for (const auto& [of_a, of_b] : contract.batch)
      columns *= static_cast<double>(size_in(a, of_a).bound());
    for (const int64_t d : free_axes(contract, a.by_iteration ? 1 : 0, shared.windows.size()))
      columns *= static_cast<double>(size_in(shared, d).bound());
    for (const Lifted& lifted : {own, shared})
      for (size_t d = 0; d < lifted.windows.size(); ++d)
        used *= used_part(lifted.windows[d], size_in(lifted, static_cast<int64_t>(d)));
    const double results = static_cast<double>(trip_) * rows * columns;
    return shared_elements >= kLeastShared && rows <= kMostRows && used >= kLeastUsed &&
           results <= kMostResults * (own_elements + shared_elements);
  }

  // The part of an axis that is in the window of the mean iteration.
  double used_part(const Window& window, const Dim& size) const {
    if (!window) return 1;
    const Dim length = window->second - window->first;
    const double sum = static_cast<double>(in_iteration(length, 0).bound()) +
                       static_cast<double>(in_iteration(length, trip_ - 1).bound());
    return sum / 2 / static_cast<double>(std::max<int64_t>(size.bound(), 1));
  }

  // The contraction for all iterations, which lie along the first axis.
  Value contract_all(const Contract& contract, const Lifted& a, const Lifted& b) {
    const int64_t shift_a = a.by_iteration ? 1 : 0, shift_b = b.by_iteration ? 1 : 0;
    const auto shifted = [&](Pairs pairs) {
      for (auto& [of_a, of_b] : pairs) of_a += shift_a, of_b += shift_b;
      return pairs;
    };
    const Value all =
        builder_->contract(a.value, b.value, shifted(contract.contract), shifted(contract.batch));
    // The axis of iterations is the first free one of its operand.
    size_t before = contract.batch.size();
    if (b.by_iteration) before += free_axes(contract, 0, a.windows.size()).size();
    Ints order{static_cast<int64_t>(before)};
    for (size_t d = 0; d < builder_->shape(all).size(); ++d)
      if (d != before) order.push_back(static_cast<int64_t>(d));
    return builder_->permute(all, std::move(order));
  }

  static std::vector<Window> windows_of_result(const Contract& contract, const Lifted& a,
                                               const Lifted& b) {
    std::vector<Window> windows(contract.batch.size());
    for (const int64_t d : free_axes(contract, 0, a.windows.size()))
      windows.push_back(a.windows[d]);
    for (const int64_t d : free_axes(contract, 1, b.windows.size()))
      windows.push_back(b.windows[d]);
    return windows;
  }

  // What is `node` in an iteration.
  Value take_part(const Node& node, Value all, const std::vector<Window>& windows) {
    const Shape shape = builder_->shape(all);
    const Dim number = (Dim(counter_) - Dim(first_)) * step_;
    DimPairs limits{{number, number + 1}};
    for (size_t d = 0; d < windows.size(); ++d)
      limits.push_back(windows[d].value_or(std::pair<Dim, Dim>{0, shape[1 + d]}));
    return builder_->reshape(builder_->shrink(all, std::move(limits)), node.shape());
  }

  const Graph& graph_;
  const SymVar counter_;
  const std::set<uint32_t> members_;
  const std::vector<Value>& map_;
  Builder* builder_ = nullptr;   // of the new graph
  std::set<std::string> inner_;  // the other variables that the body declares
  int64_t first_ = 0, step_ = 1, trip_ = 0;
};

}  // namespace

Graph hoist_contractions(Graph graph) {
  const auto is = [](NodeKind kind) {
    return [=](const Node& node) { return node.kind() == kind; };
  };
  if (!any_node(graph, is(NodeKind::End_Loop)) || !any_node(graph, is(NodeKind::Contract)))
    return graph;
  // Inner loops come first: what leaves one may leave the loop around it.
  for (size_t number = 0;; ++number) {
    graph = eliminate_dead_code(graph);
    const LoopTree tree(graph);
    if (number >= tree.loops().size()) return graph;
    const LoopTree::Loop& loop = tree.loops()[number];
    const auto contracts = [&](uint32_t id) { return graph.nodes[id].as<Contract>() != nullptr; };
    if (std::none_of(loop.members.begin(), loop.members.end(), contracts)) continue;
    std::vector<Value> map(graph.size());
    Hoister hoister(graph, loop, map);
    graph = rewrite(
        graph, [&](Builder& builder, uint32_t id, const Node& node, std::vector<Value> inputs) {
          map[id] = hoister.hoist(builder, id);
          if (!map[id].valid()) map[id] = builder.copy(node, std::move(inputs));
          return map[id];
        });
  }
}

}  // namespace rune::graph
