#include "graph/passes/eliminate_common_subexpressions.h"

#include <algorithm>
#include <unordered_set>

#include "graph/field_hash.h"
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

bool may_merge(const Node& node, bool written) {
  if (const auto* copy = node.as<Copy>()) return !copy->clone && !written;
  const NodeKind kind = node.kind();
  const bool unique = kind == NodeKind::Buffer || kind == NodeKind::Unique ||
                      kind == NodeKind::Custom || kind == NodeKind::Assign ||
                      kind == NodeKind::Sink || kind == NodeKind::Placeholder;
  return !unique && (!written || is_movement(kind));
}

}  // namespace

Graph eliminate_common_subexpressions(const Graph& graph) {
  const std::vector<bool> written = written_storage(graph);
  // The nodes of the result so far; the table holds their ids.
  std::vector<Node> renamed;
  renamed.reserve(graph.size());
  std::vector<uint64_t> hashes;
  hashes.reserve(graph.size());
  const auto hash = [&](uint32_t i) { return hashes[i]; };
  const auto equal = [&](uint32_t a, uint32_t b) {
    return hashes[a] == hashes[b] && same(renamed[a], renamed[b]);
  };
  std::unordered_set<uint32_t, decltype(hash), decltype(equal)> known(graph.size(), hash, equal);
  std::vector<Value> map(graph.size());
  const auto rename = [&](std::vector<Value>& values) {
    for (Value& v : values) v = map[v.id];
  };
  for (uint32_t id = 0; id < graph.size(); ++id) {
    Node node = graph.nodes[id];
    rename(node.inputs);
    const uint32_t next = static_cast<uint32_t>(renamed.size());
    const bool mergeable = may_merge(node, written[id]);
    hashes.push_back(mergeable ? hash_of(node) : 0);
    renamed.push_back(std::move(node));
    map[id] = {next};
    if (!mergeable) continue;
    const auto [first, fresh] = known.insert(next);
    if (fresh) continue;
    map[id] = {*first};
    renamed.pop_back();
    hashes.pop_back();
  }
  Graph result;
  result.nodes = std::move(renamed);
  result.outputs = graph.outputs;
  rename(result.outputs);
  return result;
}

}  // namespace rune::graph
