// The rules of `simplify`. Private to graph/passes.
#pragma once

#include <optional>
#include <vector>

#include "graph/passes/rewrite.h"

namespace rune::graph {

// Builds the simplified graph; what a rule builds is simplified as well.
class Simplifier {
 public:
  explicit Simplifier(Rewriter& out) : out_(out) {}

  Value emit(Payload payload, std::vector<Value> inputs, const Metadata& declared = {});
  Value alu(AluOp op, std::vector<Value> inputs);

  const Node& operator[](Value v) const { return out_[v]; }
  const Shape& shape(Value v) const { return out_.shape(v); }
  std::optional<Scalar> splat(Value v) const { return out_.splat(v); }
  Value full(Scalar value, const Shape& shape) { return out_.full(value, shape); }
  Value moved_splat(const Node& node) { return out_.moved_splat(node); }
  // Whether `v` is known to have one use in the graph before this sweep.
  bool single_use(Value v) const { return v.id < uses_.size() && uses_[v.id] == 1; }

  // Records that `v` took the place of a node with these operands and this many uses.
  void record_uses(Value v, const std::vector<Value>& operands, uint32_t uses, bool replaced);
  bool any_rule_applied() const { return any_; }

 private:
  Rewriter& out_;
  std::vector<uint32_t> uses_;
  bool any_ = false;
};

// A rule looks at a node that is not part of the graph yet and returns the value that replaces it,
// or no value if the rule does not apply.
using Rule = Value (*)(Simplifier&, const Node&);

namespace rules {

// Binop; x is any operand and c a constant of one value.
Value constant_to_the_right(Simplifier& s, const Node& node);  // c + x -> x + c
Value right_identity(Simplifier& s, const Node& node);         // x * 1 -> x
Value right_absorber(Simplifier& s, const Node& node);         // x & 0 -> 0
Value known_result(Simplifier& s, const Node& node);           // x ** 0 -> 1
Value equal_operands(Simplifier& s, const Node& node);         // x - x -> 0
Value power_to_product(Simplifier& s, const Node& node);       // x ** 2 -> x * x
Value quotient_to_product(Simplifier& s, const Node& node);    // x / 4.0 -> x * 0.25
Value merge_constants(Simplifier& s, const Node& node);        // (x + c) + d -> x + (c + d)
Value subtraction(Simplifier& s, const Node& node);            // x - c -> x + -c, integers
Value comparison_with_bool(Simplifier& s, const Node& node);   // x != true -> not x

Value involution(Simplifier& s, const Node& node);         // neg neg x -> x
Value projection(Simplifier& s, const Node& node);         // abs abs x -> abs x
Value abs_of_neg(Simplifier& s, const Node& node);         // abs neg x -> abs x
Value not_of_comparison(Simplifier& s, const Node& node);  // not (x == y) -> x != y

Value where_chosen(Simplifier& s, const Node& node);        // where(c, x, x) -> x
Value where_not(Simplifier& s, const Node& node);           // where(not c, x, y) -> where(c, y, x)
Value where_of_bools(Simplifier& s, const Node& node);      // where(c, true, false) -> c
Value where_nested(Simplifier& s, const Node& node);        // where(c, where(c, x, y), z)
Value mulacc_of_constant(Simplifier& s, const Node& node);  // x * 1 + y -> x + y

Value cast_same(Simplifier& s, const Node& node);
Value cast_chain(Simplifier& s, const Node& node);  // i8 -> i32 -> f64 to i8 -> f64
Value bitcast_chain(Simplifier& s, const Node& node);

Value identity_movement(Simplifier& s, const Node& node);  // Reshape to the same shape
Value merge_movement(Simplifier& s, const Node& node);     // Permute of Permute
Value movement_of_constant(Simplifier& s, const Node& node);
Value flip_of_one(Simplifier& s, const Node& node);  // Flip of axes of size 1

Value reduce_of_one(Simplifier& s, const Node& node);  // axes of size 1
Value merge_reduces(Simplifier& s, const Node& node);  // sum of sum over other axes

Value forward_operand(Simplifier& s, const Node& node);  // Detach, Contiguous_Backward, Noop
Value contiguous_twice(Simplifier& s, const Node& node);
Value copy_in_place(Simplifier& s, const Node& node);  // Copy to the same device
Value cat_parts(Simplifier& s, const Node& node);      // one part, empty parts
Value gep_of_all(Simplifier& s, const Node& node);

}  // namespace rules

}  // namespace rune::graph
