#include <algorithm>

#include "graph/field_hash.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

bool is_commutative(const Node& node) {
  const auto* binop = node.as<Binop>();
  return binop && info(binop->op).has(alu_flags::Commutative);
}

// Operands in an order that does not tell apart what commutes.
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

// A user's operation may give something else each time.
bool may_merge(const Node& node) {
  return !node.as<Custom>() && !node.as<Sink>() && !node.as<Placeholder>();
}

}  // namespace

Graph eliminate_common_subexpressions(const Graph& graph) {
  std::unordered_multimap<uint64_t, Value> known(graph.size());  // by hash
  return rewrite(graph, [&](Builder& b, uint32_t, const Node& old, std::vector<Value> inputs) {
    Node node{old.payload, std::move(inputs), old.meta, old.location};
    if (!may_merge(node)) return b.append(std::move(node));
    const uint64_t hash = hash_of(node);
    const auto [first, last] = known.equal_range(hash);
    for (auto it = first; it != last; ++it)
      if (same(b[it->second], node)) return it->second;
    return known.emplace(hash, b.append(std::move(node)))->second;
  });
}

}  // namespace rune::graph
