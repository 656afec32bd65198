// The rules of `simplify`. Private to graph/passes.
#pragma once

#include <optional>
#include <vector>

#include "graph/passes/rewrite.h"

namespace rune::graph {

// Builds the simplified graph. Nodes that a rule builds are simplified as well.
class Simplifier {
 public:
  explicit Simplifier(Builder& out) : out_(out) {}

  Value emit(Payload payload, std::vector<Value> inputs, const Metadata& declared = {});
  Value alu(AluOp op, std::vector<Value> inputs);

  const Node& operator[](Value v) const { return out_[v]; }
  const Shape& shape(Value v) const { return out_.shape(v); }
  std::optional<Scalar> splat(Value v) const { return out_.splat(v); }
  Value full(Scalar value, const Shape& shape) { return out_.full(value, shape); }
  Builder& builder() { return out_; }
  // Whether `v` is known to have one use in the graph before this sweep.
  bool single_use(Value v) const { return v.id < uses_.size() && uses_[v.id] == 1; }

  // Records that `v` took the place of a node with these operands and this many uses.
  void record_uses(Value v, const std::vector<Value>& operands, uint32_t uses, bool replaced);
  bool any_rule_applied() const { return any_; }

 private:
  Builder& out_;
  std::vector<uint32_t> uses_;
  bool any_ = false;
};

// A rule looks at a node that is not part of the graph yet and returns the value that replaces it,
// or no value if the rule does not apply.
using Rule = Value (*)(Simplifier&, const Node&);

// The rules of nodes of one kind, in the order in which they are tried.
struct RulesOfKind {
  NodeKind kind;
  std::vector<Rule> rules;
};
std::vector<RulesOfKind> elementwise_rules();
std::vector<RulesOfKind> structure_rules();
std::vector<RulesOfKind> permute_rules();

}  // namespace rune::graph
