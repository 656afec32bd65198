// Rules that move a Permute of operands behind the operation, so that Permutes meet and cancel.
// Values that are transposed in memory are then computed in the order of memory.
#include <algorithm>

#include "graph/passes/simplify_rules.h"

namespace rune::graph {

namespace {

Ints inverse(const Ints& axes) {
  Ints result(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) result[axes[i]] = static_cast<int64_t>(i);
  return result;
}

template <typename T>
std::vector<T> reordered(const std::vector<T>& items, const Ints& axes) {
  std::vector<T> result;
  for (const int64_t axis : axes) result.push_back(items[axis]);
  return result;
}

// Whether a Permute leaves the axes of more than one element in their order.
bool moves_ones_only(const Shape& shape, const Ints& axes) {
  Ints moved;
  for (const int64_t axis : axes)
    if (shape[axis] != 1) moved.push_back(axis);
  return std::is_sorted(moved.begin(), moved.end());
}

bool repeats(Simplifier& s, const Node& node) {
  return node.as<Expand>() &&
         2 * max_elements(s.shape(node.inputs[0])) <= max_elements(node.shape());
}

// Whether a value is a Permute with these axes of a value that is available at no cost.
bool may_undo(Simplifier& s, Value v, const Ints& axes) {
  const Node& node = s[v];
  if (const auto* permute = node.as<Permute>()) return permute->axes == axes;
  return repeats(s, node) || moves_ones_only(node.shape(), inverse(axes));
}

Value undo(Simplifier& s, Value v, const Ints& axes) {
  if (s[v].as<Permute>()) return s[v].inputs[0];
  const Ints back = inverse(axes);
  Shape shape = reordered(s.shape(v), back);
  if (!repeats(s, s[v])) return s.emit(Reshape{std::move(shape)}, {v});
  const Value operand = s[v].inputs[0];
  return s.emit(Expand{std::move(shape)}, {s.emit(Permute{back}, {operand})});
}

// Moves a Permute of the operands behind an elementwise operation or a Cat. The payload is that of
// the operation on the operands without the Permute.
Value permute_behind(Simplifier& s, const Node& node, Payload payload, const Ints& axes) {
  std::vector<Value> operands;
  for (const Value v : node.inputs) operands.push_back(undo(s, v, axes));
  const Value result = s.emit(std::move(payload), std::move(operands));
  return s.emit(Permute{axes}, {result});
}

// The axes of the operands' Permute, if all have the same one.
std::optional<Ints> common_axes(Simplifier& s, const Node& node) {
  std::optional<Ints> axes;
  for (const Value v : node.inputs)
    if (const auto* permute = s[v].as<Permute>()) axes = permute->axes;
  if (!axes) return std::nullopt;
  for (const Value v : node.inputs)
    if (!may_undo(s, v, *axes)) return std::nullopt;
  return axes;
}

Value elementwise_of_permutes(Simplifier& s, const Node& node) {
  const std::optional<Ints> axes = common_axes(s, node);
  return axes ? permute_behind(s, node, node.payload, *axes) : Value{};
}

// Does not apply to a Cast that widens, because a contraction can multiply the Cast's operand
// itself.
Value cast_of_permute(Simplifier& s, const Node& node) {
  const bool widens = size_of(node.dtype()) > size_of(s[node.inputs[0]].dtype());
  return widens ? Value{} : elementwise_of_permutes(s, node);
}

Value cat_of_permutes(Simplifier& s, const Node& node) {
  const std::optional<Ints> axes = common_axes(s, node);
  return axes ? permute_behind(s, node, Cat{(*axes)[node.as<Cat>()->axis]}, *axes) : Value{};
}

Value shrink_of_permute(Simplifier& s, const Node& node) {
  const std::optional<Ints> axes = common_axes(s, node);
  if (!axes) return {};
  return permute_behind(s, node, Shrink{reordered(node.as<Shrink>()->limits, inverse(*axes))},
                        *axes);
}

Value pad_of_permute(Simplifier& s, const Node& node) {
  const std::optional<Ints> axes = common_axes(s, node);
  if (!axes) return {};
  return permute_behind(s, node, Pad{reordered(node.as<Pad>()->widths, inverse(*axes))}, *axes);
}

Ints behind(const Ints& of_result, const Ints& axes) {
  Ints result = reordered(axes, of_result);
  std::sort(result.begin(), result.end());
  return result;
}

Value flip_of_permute(Simplifier& s, const Node& node) {
  const std::optional<Ints> axes = common_axes(s, node);
  return axes ? permute_behind(s, node, Flip{behind(node.as<Flip>()->axes, *axes)}, *axes)
              : Value{};
}

Value reduce_of_permute(Simplifier& s, const Node& node) {
  const std::optional<Ints> axes = common_axes(s, node);
  if (!axes) return {};
  const auto* reduce = node.as<Reduce_Axis>();
  return permute_behind(s, node, Reduce_Axis{reduce->op, behind(reduce->axes, *axes)}, *axes);
}

Value permute_of_ones(Simplifier& s, const Node& node) {
  if (!moves_ones_only(s.shape(node.inputs[0]), node.as<Permute>()->axes)) return {};
  return s.emit(Reshape{node.shape()}, {node.inputs[0]});
}

}  // namespace

std::vector<RulesOfKind> permute_rules() {
  return {{NodeKind::Unary, {elementwise_of_permutes}},
          {NodeKind::Binop, {elementwise_of_permutes}},
          {NodeKind::Ternary, {elementwise_of_permutes}},
          {NodeKind::Cast, {cast_of_permute}},
          {NodeKind::Bitcast, {elementwise_of_permutes}},
          {NodeKind::Cat, {cat_of_permutes}},
          {NodeKind::Shrink, {shrink_of_permute}},
          {NodeKind::Pad, {pad_of_permute}},
          {NodeKind::Flip, {flip_of_permute}},
          {NodeKind::Reduce_Axis, {reduce_of_permute}},
          {NodeKind::Permute, {permute_of_ones}}};
}

}  // namespace rune::graph
