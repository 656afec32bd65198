#include "graph/passes/passes.h"

#include <algorithm>
#include <array>

#include "graph/passes/simplify_rules.h"

namespace rune::graph {

namespace {

const std::vector<Rule>& rules_of(NodeKind kind) {
  static const auto by_kind = [] {
    std::array<std::vector<Rule>, kNumNodeKinds> result;
    for (const auto& table : {elementwise_rules(), structure_rules(), permute_rules()})
      for (const RulesOfKind& row : table) {
        std::vector<Rule>& rules = result[static_cast<int>(row.kind)];
        rules.insert(rules.end(), row.rules.begin(), row.rules.end());
      }
    return result;
  }();
  return by_kind[static_cast<int>(kind)];
}

struct Sweep {
  Graph graph;
  bool any_rule_applied;
};

Sweep sweep(const Graph& graph) {
  const std::vector<uint32_t> uses = count_uses(graph);
  std::optional<Simplifier> simplifier;
  Graph result =
      rewrite(graph, [&](Builder& b, uint32_t id, const Node& old, std::vector<Value> inputs) {
        if (!simplifier) simplifier.emplace(b);
        const size_t before = b.size();
        const Value v = simplifier->emit(old.payload, inputs, old.meta);
        simplifier->record_uses(v, inputs, uses[id], v.id < before);
        return v;
      });
  return {std::move(result), simplifier && simplifier->any_rule_applied()};
}

}  // namespace

Value Simplifier::emit(Payload payload, std::vector<Value> inputs, const Metadata& declared) {
  Node node = out_.make(std::move(payload), std::move(inputs), declared);
  for (const Rule rule : rules_of(node.kind())) {
    const Value v = rule(*this, node);
    // A rule may lose the device of an operand that it drops. Then it does not apply.
    if (!v.valid() || out_[v].meta != node.meta) continue;
    any_ = true;
    return v;
  }
  return out_.append(std::move(node));
}

Value Simplifier::alu(AluOp op, std::vector<Value> inputs) {
  switch (inputs.size()) {
    case 1: return emit(Unary{op}, std::move(inputs));
    case 2: return emit(Binop{op}, std::move(inputs));
    default: return emit(Ternary{op}, std::move(inputs));
  }
}

void Simplifier::record_uses(Value v, const std::vector<Value>& operands, uint32_t uses,
                             bool replaced) {
  if (uses_.size() < out_.size()) uses_.resize(out_.size());
  uses_[v.id] += uses;
  if (replaced && std::count(operands.begin(), operands.end(), v) > 0) --uses_[v.id];
}

Graph simplify(const Graph& graph) {
  Graph result = eliminate_dead_code(graph);
  while (true) {
    Sweep swept = sweep(result);
    if (!swept.any_rule_applied) return result;
    result = eliminate_dead_code(swept.graph);
  }
}

}  // namespace rune::graph
