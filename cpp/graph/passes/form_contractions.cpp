// Finds contractions that are written as other operations.
#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

// Whether sums of this node's dtype may become contractions.
bool can_contract(const Node& node) {
  return node.dtype() == DType::Float32 || node.dtype() == DType::Float64;
}

bool is_sum_of(const Node& node, AluOp op) {
  const auto* binop = node.as<Binop>();
  return binop && binop->op == op;
}

// By axis of v: whether all elements along it are the same, because an Expand repeats them.
std::vector<bool> repeated_axes(const Graph& graph, Value v) {
  const Node& node = graph[v];
  std::vector<bool> result(node.shape().size());
  if (const auto* permute = node.as<Permute>()) {
    const std::vector<bool> before = repeated_axes(graph, node.inputs[0]);
    for (size_t d = 0; d < result.size(); ++d) result[d] = before[permute->axes[d]];
  } else if (node.as<Expand>()) {
    const Shape& from = graph[node.inputs[0]].shape();
    result = repeated_axes(graph, node.inputs[0]);
    for (size_t d = 0; d < result.size(); ++d)
      result[d] = result[d] || (from[d] == Dim(1) && node.shape()[d] != Dim(1));
  } else if (node.as<Reshape>()) {
    // Only axes of one element may come and go.
    const Shape& from = graph[node.inputs[0]].shape();
    const std::vector<bool> before = repeated_axes(graph, node.inputs[0]);
    size_t at = 0;
    for (size_t d = 0; d < result.size(); ++d) {
      if (node.shape()[d] == Dim(1)) continue;
      while (at < from.size() && from[at] == Dim(1)) ++at;
      if (at == from.size() || from[at] != node.shape()[d]) return std::vector<bool>(result.size());
      result[d] = before[at++];
    }
  }
  return result;
}

class ContractionFormer {
 public:
  explicit ContractionFormer(const Graph& graph) : graph_(graph), users_(graph.size()) {
    for (const Node& node : graph.nodes)
      for (const Value v : node.inputs) ++users_[v.id];
    for (const Value v : graph.outputs) ++users_[v.id];
    for (uint32_t id = 0; id < graph.size(); ++id) {
      const auto side = side_of_term({id});
      if (side && side_of_term(rest(id, *side)) && users_[rest(id, *side).id] == 1)
        continued_.insert(rest(id, *side).id);
    }
  }

  // The value in the place of a node; nothing if the node stays. `map` has the values in the
  // builder's graph of the nodes before it.
  std::optional<Value> replacement(Builder& builder, uint32_t id, const std::vector<Value>& map) {
    const Node& node = graph_.nodes[id];
    if (!can_contract(node)) return std::nullopt;
    if (node.as<Reduce_Axis>()) return contraction(builder, node, map);
    return continued_.contains(id) ? std::nullopt : sum(builder, {id}, map);
  }

 private:
  // One factor of a sum of products.
  struct Factor {
    Value value;                  // without the axes that repeat its elements
    std::vector<bool> repeats;    // by axis of the product
    std::vector<int64_t> places;  // by axis of the product: the axis of `value`, or -1
  };

  Factor factor(Builder& builder, Value v, const std::vector<Value>& map) const {
    Factor result{map[v.id], repeated_axes(graph_, v), {}};
    DimPairs limits;
    Shape shape;
    for (size_t d = 0; d < result.repeats.size(); ++d) {
      const Dim& size = graph_[v].shape()[d];
      const bool drops = result.repeats[d] || size == Dim(1);
      limits.push_back({0, drops ? Dim(1) : size});
      result.places.push_back(drops ? -1 : std::ssize(shape));
      if (!drops) shape.push_back(size);
    }
    result.value = builder.reshape(builder.shrink(result.value, std::move(limits)), shape);
    return result;
  }

  // Whether a contraction can read the value without computing or storing it first.
  bool is_stored(Value v) const {
    while (is_movement(graph_[v].kind())) v = graph_[v].inputs[0];
    const Node& node = graph_[v];
    return !node.as<Unary>() && !node.as<Binop>() && !node.as<Ternary>() && !node.as<Cast>() &&
           !node.as<Bitcast>();
  }

  // The Contract in the place of a sum of products whose factors repeat along different axes.
  std::optional<Value> contraction(Builder& builder, const Node& node,
                                   const std::vector<Value>& map) const {
    const auto* reduce = node.as<Reduce_Axis>();
    const Node& product = graph_[node.inputs[0]];
    if (reduce->op != ReduceOp::Add || !is_sum_of(product, AluOp::Mul) ||
        users_[node.inputs[0].id] > 1 || !is_stored(product.inputs[0]) ||
        !is_stored(product.inputs[1]))
      return std::nullopt;
    const std::vector<bool> of_a = repeated_axes(graph_, product.inputs[0]),
                            of_b = repeated_axes(graph_, product.inputs[1]);
    Ints batch_axes, axes_of_a, axes_of_b;
    bool has_single = false;  // an axis of one element, such as a batch of one picture
    for (size_t d = 0; d < of_a.size(); ++d) {
      const auto axis = static_cast<int64_t>(d);
      const bool is_reduced = contains(reduce->axes, axis);
      if (product.shape()[d] == Dim(1)) {
        has_single |= !is_reduced;
        continue;
      }
      if ((of_a[d] && of_b[d]) || (is_reduced && (of_a[d] || of_b[d]))) return std::nullopt;
      if (!is_reduced) (of_a[d] ? axes_of_b : of_b[d] ? axes_of_a : batch_axes).push_back(axis);
    }
    const int free = !axes_of_a.empty() + !axes_of_b.empty();
    if (free == 0 || (free == 1 && !has_single)) return std::nullopt;
    const Factor a = factor(builder, product.inputs[0], map),
                 b = factor(builder, product.inputs[1], map);
    Pairs pairs, batch;
    for (const int64_t axis : reduce->axes)
      if (a.places[axis] >= 0) pairs.push_back({a.places[axis], b.places[axis]});
    for (const int64_t axis : batch_axes) batch.push_back({a.places[axis], b.places[axis]});
    Ints order = batch_axes;
    order.insert(order.end(), axes_of_a.begin(), axes_of_a.end());
    order.insert(order.end(), axes_of_b.begin(), axes_of_b.end());
    Ints sorted = order, axes;
    std::sort(sorted.begin(), sorted.end());
    for (const int64_t axis : sorted)
      axes.push_back(std::find(order.begin(), order.end(), axis) - order.begin());
    const Value result = builder.contract(a.value, b.value, std::move(pairs), std::move(batch));
    return builder.reshape(builder.permute(result, std::move(axes)), node.shape());
  }

  // Whether `v` is a Contract that nothing else uses, or its movement.
  bool is_term(Value v) const {
    for (; users_[v.id] == 1 && (graph_[v].as<Reshape>() || graph_[v].as<Permute>());)
      v = graph_[v].inputs[0];
    return users_[v.id] == 1 && graph_[v].as<Contract>();
  }
  // Which operand of a sum is such a term.
  std::optional<int> side_of_term(Value v) const {
    const Node& node = graph_[v];
    if (!is_sum_of(node, AluOp::Add) || !can_contract(node)) return std::nullopt;
    return is_term(node.inputs[1])   ? std::optional(1)
           : is_term(node.inputs[0]) ? std::optional(0)
                                     : std::nullopt;
  }
  Value rest(uint32_t id, int side) const { return graph_.nodes[id].inputs[1 - side]; }

  // Compares two terms that differ only in the limits of Shrinks. Appends by how much the limits
  // differ. False if the terms differ in anything else.
  bool compare(Value a, Value b, Ints& distances) const {
    if (a == b) return true;
    const Node &x = graph_[a], &y = graph_[b];
    if (x.kind() != y.kind() || x.meta != y.meta || !is_constant(x.shape())) return false;
    if (const auto* shrink = x.as<Shrink>()) {
      const auto* other = y.as<Shrink>();
      if (!is_constant(graph_[x.inputs[0]].shape())) return false;
      for (size_t d = 0; d < shrink->limits.size(); ++d) {
        const Dim distance = other->limits[d].first - shrink->limits[d].first;
        if (!distance.is_constant()) return false;
        distances.push_back(distance.constant());
      }
    } else {
      const bool is_known =
          x.as<Reshape>() || x.as<Permute>() || x.as<Expand>() || x.as<Contract>();
      if (!is_known || x.payload != y.payload) return false;
    }
    for (size_t i = 0; i < x.inputs.size(); ++i) {
      const size_t before = distances.size();
      if (!compare(x.inputs[i], y.inputs[i], distances)) return false;
      // Both operands of a contraction must differ, or more of one would be multiplied by the same.
      if (x.as<Contract>() && distances.size() == before) return false;
    }
    return true;
  }

  // The number of terms, from the first on, whose parts of arrays are equally far apart.
  size_t equally_spaced(std::span<const Value> terms) const {
    Ints step;
    if (terms.size() < 2 || !compare(terms[0], terms[1], step)) return 1;
    size_t count = 2;
    for (; count < terms.size(); ++count) {
      Ints distances, expected = step;
      for (int64_t& distance : expected) distance *= static_cast<int64_t>(count);
      if (!compare(terms[0], terms[count], distances) || distances != expected) break;
    }
    return count;
  }

  // The term of iteration `counter`, if `a` and `b` are those of the first two iterations.
  Value rolled(Builder& builder, Value a, Value b, const SymVar& counter,
               const std::vector<Value>& map) const {
    if (a == b) return map[a.id];
    const Node &x = graph_[a], &y = graph_[b];
    std::vector<Value> inputs;
    for (size_t i = 0; i < x.inputs.size(); ++i)
      inputs.push_back(rolled(builder, x.inputs[i], y.inputs[i], counter, map));
    const auto* shrink = x.as<Shrink>();
    if (!shrink) return builder.copy(x, std::move(inputs));
    DimPairs limits = shrink->limits;
    for (size_t d = 0; d < limits.size(); ++d) {
      const Dim low = y.as<Shrink>()->limits[d].first - limits[d].first;
      const Dim moved = Dim(counter) * low.constant();
      limits[d] = {limits[d].first + moved, limits[d].second + moved};
    }
    return builder.add(Shrink{std::move(limits)}, std::move(inputs));
  }

  // A sum of several terms, where loops add the terms that are equally spaced.
  std::optional<Value> sum(Builder& builder, Value v, const std::vector<Value>& map) const {
    std::vector<Value> terms;
    std::optional<Value> first;  // what is no term
    for (;;) {
      const auto side = side_of_term(v);
      if (!side || (!terms.empty() && users_[v.id] > 1)) break;
      terms.insert(terms.begin(), graph_[v].inputs[*side]);
      v = rest(v.id, *side);
    }
    if (terms.empty()) return std::nullopt;
    if (is_term(v))
      terms.insert(terms.begin(), v);
    else
      first = map[v.id];
    const Node& node = graph_[terms.back()];
    std::vector<size_t> counts;
    for (size_t i = 0; i < terms.size(); i += counts.back())
      counts.push_back(equally_spaced(std::span(terms).subspan(i)));
    if (counts.size() == terms.size()) return std::nullopt;
    Value total = first ? *first : builder.full(Scalar::of(node.dtype(), 0.0), node.shape());
    size_t at = 0;
    for (const size_t count : counts) {
      if (count == 1) {
        total = builder.alu(AluOp::Add, {total, map[terms[at].id]});
      } else {
        const SymVar var{"term" + std::to_string(builder.size()), 0,
                         static_cast<int64_t>(count) - 1};
        const Value counter = builder.add(Loop_Counter{var}, {});
        const Value carry = builder.add(Carry{0}, {total, counter});
        const Value term = rolled(builder, terms[at], terms[at + 1], var, map);
        const Value next = builder.alu(AluOp::Add, {carry, term});
        const Value end =
            builder.add(End_Loop{0, Dim(static_cast<int64_t>(count)), 1}, {counter, next, total});
        total = builder.add(Loop_Result{0}, {end, next});
      }
      at += count;
    }
    return total;
  }

  const Graph& graph_;
  std::vector<int> users_;
  std::set<uint32_t> continued_;  // sums of terms to which another sum adds a term
};

}  // namespace

Graph form_contractions(const Graph& graph) {
  const auto sums = [](const Node& node) {
    return (node.as<Reduce_Axis>() || node.as<Contract>()) && can_contract(node);
  };
  if (!any_node(graph, sums)) return graph;
  ContractionFormer former(graph);
  std::vector<Value> map(graph.size());
  return rewrite(graph, [&](Builder& b, uint32_t id, const Node& node, std::vector<Value> inputs) {
    const auto replacement = former.replacement(b, id, map);
    return map[id] = replacement ? *replacement : b.copy(node, std::move(inputs));
  });
}

}  // namespace rune::graph
