#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "graph/field_hash.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

bool is_commutative(const Node& node) {
  const auto* binop = node.as<Binop>();
  return binop && info(binop->op).commutes(node.dtype());
}

// The operands, sorted if the operation is commutative.
std::vector<Value> canonical_inputs(const Node& node) {
  std::vector<Value> inputs = node.inputs;
  if (is_commutative(node)) std::sort(inputs.begin(), inputs.end());
  return inputs;
}

uint64_t hash_of(const Node& node) {
  FieldHash hash;
  hash.add(node.kind());
  std::visit([&](const auto& payload) { hash.add(payload); }, node.payload);
  for (const Value v : canonical_inputs(node)) hash.add(v.id);
  hash.add(node.meta.dtype);
  hash.add(node.meta.shape);
  return hash.value();
}

bool same(const Node& a, const Node& b) {
  return a.payload == b.payload && a.meta == b.meta && canonical_inputs(a) == canonical_inputs(b);
}

// Whether equal nodes may be merged. A user's operation may give another result each time.
bool may_merge(const Node& node) {
  return !node.as<Custom>() && !node.as<Sink>() && !node.as<Placeholder>();
}

// Makes nests of loops take each operand only once, so that equal expressions in them can be
// merged.
class Nests {
 public:
  // Changes a node, whose operands are values of the graph that is built.
  void take_operands_once(Node& node) {
    Loop_Nest& nest = std::get<Loop_Nest>(node.payload);
    const Merged& merged = merge(nest.graph, node.inputs);
    nest.graph = merged.nest;
    node.inputs = merged.operands;
  }

 private:
  struct Merged {
    Subgraph nest;
    std::vector<Value> operands;
    std::shared_ptr<const Graph> before;  // kept, so that its address is not reused
  };

  // Merges operands of a nest. All results of a nest get the same graph.
  const Merged& merge(const Subgraph& nest, const std::vector<Value>& operands) {
    const auto [known, is_new] = merged_.try_emplace({nest.graph.get(), operands});
    Merged& result = known->second;
    if (!is_new) return result;
    result = {nest, operands, nest.graph};
    const std::vector<Value> inputs = nest.graph->inputs();
    const std::set<Value> apart = initial_values(*nest.graph);
    std::vector<Value> kept;
    std::vector<size_t> new_index(operands.size());
    std::map<Value, size_t> index_of;
    for (size_t i = 0; i < operands.size(); ++i) {
      const bool may_share = !apart.contains(inputs[i]);
      const auto first = index_of.find(operands[i]);
      if (may_share && first != index_of.end()) {
        new_index[i] = first->second;
        continue;
      }
      new_index[i] = kept.size();
      if (may_share) index_of.emplace(operands[i], kept.size());
      kept.push_back(operands[i]);
    }
    if (kept.size() == operands.size()) return result;
    std::map<size_t, Value> placeholders;  // by new index
    result.operands = std::move(kept);
    result.nest.graph = std::make_shared<const Graph>(
        rewrite(*nest.graph, [&](Builder& b, uint32_t, const Node& old, std::vector<Value> in) {
          const auto* placeholder = old.as<Placeholder>();
          if (!placeholder) return b.append({old.payload, std::move(in), old.meta, old.location});
          const size_t index = new_index[static_cast<size_t>(placeholder->index)];
          if (const auto found = placeholders.find(index); found != placeholders.end())
            return found->second;
          Node node = old;
          std::get<Placeholder>(node.payload).index = static_cast<int64_t>(index);
          return placeholders[index] = b.append(std::move(node));
        }));
    return result;
  }

  // The initial values of loops. Each result may begin in the memory of its own operand, so these
  // are not merged.
  static std::set<Value> initial_values(const Graph& nest) {
    std::set<Value> result;
    for (const Node& node : nest.nodes)
      if (node.as<Carry>() || node.as<End_Loop>())
        result.insert(node.inputs.begin(), node.inputs.end());
    return result;
  }

  std::map<std::pair<const Graph*, std::vector<Value>>, Merged> merged_;
};

}  // namespace

Graph eliminate_common_subexpressions(const Graph& graph) {
  std::unordered_multimap<uint64_t, Value> known(graph.size());  // by hash
  Nests nests;
  return rewrite(graph, [&](Builder& b, uint32_t, const Node& old, std::vector<Value> inputs) {
    Node node{old.payload, std::move(inputs), old.meta, old.location};
    if (node.as<Loop_Nest>()) nests.take_operands_once(node);
    if (!may_merge(node)) return b.append(std::move(node));
    const uint64_t hash = hash_of(node);
    const auto [first, last] = known.equal_range(hash);
    for (auto it = first; it != last; ++it)
      if (same(b[it->second], node)) return it->second;
    return known.emplace(hash, b.append(std::move(node)))->second;
  });
}

}  // namespace rune::graph
