#include "graph/passes/simplify.h"

#include <algorithm>
#include <array>

#include "graph/passes/eliminate_dead_code.h"
#include "graph/passes/simplify_rules.h"

namespace rune::graph {

namespace {

struct Row {
  NodeKind root;
  std::vector<Rule> rules;  // tried in this order
};

const std::vector<Row>& table() {
  using namespace rules;
  static const std::vector<Row> rows = {
      {NodeKind::Binop,
       {constant_to_the_right, right_identity, right_absorber, known_result, equal_operands,
        power_to_product, quotient_to_product, merge_constants, subtraction, comparison_with_bool}},
      {NodeKind::Unary, {involution, projection, abs_of_neg, not_of_comparison}},
      {NodeKind::Ternary,
       {where_chosen, where_not, where_of_bools, where_nested, mulacc_of_constant}},
      {NodeKind::Cast, {cast_same, cast_chain}},
      {NodeKind::Bitcast, {cast_same, bitcast_chain}},
      {NodeKind::View, {identity_movement, movement_of_constant, merge_movement}},
      {NodeKind::Reshape, {identity_movement, movement_of_constant, merge_movement}},
      {NodeKind::Permute, {identity_movement, movement_of_constant, merge_movement}},
      {NodeKind::Expand, {identity_movement, movement_of_constant, merge_movement}},
      {NodeKind::Pad, {identity_movement, movement_of_constant, merge_movement}},
      {NodeKind::Shrink, {identity_movement, movement_of_constant, merge_movement}},
      {NodeKind::Flip, {identity_movement, movement_of_constant, flip_of_one, merge_movement}},
      {NodeKind::Buffer_View, {identity_movement, merge_movement}},
      {NodeKind::Reduce_Axis, {reduce_of_one, merge_reduces}},
      {NodeKind::Detach, {forward_operand}},
      {NodeKind::Contiguous_Backward, {forward_operand}},
      {NodeKind::Noop, {forward_operand}},
      {NodeKind::Contiguous, {contiguous_twice}},
      {NodeKind::Copy, {copy_in_place}},
      {NodeKind::Cat, {cat_parts}},
      {NodeKind::Gep, {gep_of_all}},
  };
  return rows;
}

const std::vector<Rule>& rules_of(NodeKind kind) {
  static const auto by_kind = [] {
    std::array<std::vector<Rule>, kNumNodeKinds> result;
    for (const Row& row : table()) result[static_cast<int>(row.root)] = row.rules;
    return result;
  }();
  return by_kind[static_cast<int>(kind)];
}

struct Sweep {
  Graph graph;
  bool any_rule_applied;
};

Sweep sweep(const Graph& graph) {
  const std::vector<bool> written = written_storage(graph);
  const std::vector<uint32_t> uses = count_uses(graph);
  std::optional<Simplifier> simplifier;
  Graph result =
      rewrite(graph, [&](Rewriter& out, uint32_t id, const Node& old, std::vector<Value> inputs) {
        if (!simplifier) simplifier.emplace(out);
        const size_t before = out.size();
        // A value that is written must stay a place of its own; movement leads to the same place.
        const bool fixed = written[id] && !is_movement(old.kind());
        const Value v = fixed ? out.append(out.make(old.payload, inputs, old.meta))
                              : simplifier->emit(old.payload, inputs, old.meta);
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
    // A rule may lose the device of an operand that it drops: then it does not apply.
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
