// Rules whose root is a conversion, a movement, a reduction, or a mark.
#include <algorithm>

#include "alu/eval.h"
#include "graph/infer.h"
#include "graph/passes/simplify_rules.h"

namespace rune::graph {

namespace {

// Bits of the integers that a float dtype holds exactly.
int mantissa_bits(DType dtype) {
  switch (dtype) {
    case DType::Float16: return 11;
    case DType::Bfloat16: return 8;
    case DType::Float32: return 24;
    default: return 53;
  }
}

// Whether `to` holds every value of `from`, so that the conversion loses nothing.
bool is_lossless(DType from, DType to) {
  if (from == to || is_bool(from)) return true;
  if (is_bool(to)) return false;
  if (is_float(from)) return is_float(to) && promote(from, to) == to;
  const int value_bits = bits_of(from) - (kind(from) == Kind::Int ? 1 : 0);
  if (is_float(to)) return value_bits <= mantissa_bits(to);
  if (kind(from) == Kind::Int && kind(to) == Kind::Uint) return false;
  return value_bits <= bits_of(to) - (kind(to) == Kind::Int ? 1 : 0);
}

Ints merged_permutation(const Ints& inner, const Ints& outer) {
  Ints axes;
  for (const int64_t axis : outer) axes.push_back(inner[axis]);
  return axes;
}

DimPairs merged_limits(const DimPairs& inner, const DimPairs& outer) {
  DimPairs limits;
  for (size_t i = 0; i < inner.size(); ++i)
    limits.emplace_back(inner[i].first + outer[i].first, inner[i].first + outer[i].second);
  return limits;
}

DimPairs merged_widths(const DimPairs& inner, const DimPairs& outer) {
  DimPairs widths;
  for (size_t i = 0; i < inner.size(); ++i)
    widths.emplace_back(inner[i].first + outer[i].first, inner[i].second + outer[i].second);
  return widths;
}

Ints merged_flips(const Ints& inner, const Ints& outer) {
  Ints a = inner, b = outer, axes;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(axes));
  return axes;
}

// Two trackers as one: the outer's views index the last view of the inner one.
ShapeTracker merged_trackers(const ShapeTracker& inner, const ShapeTracker& outer) {
  ShapeTracker result = inner;
  result.views.insert(result.views.end(), outer.views.begin(), outer.views.end());
  return result;
}

bool is_identity_view(const ShapeTracker& tracker, const Shape& shape) {
  if (tracker.views.size() != 1) return false;
  const rune::View& view = tracker.views[0];
  return to_shape(view.shape) == shape && view.offset == 0 && !view.mask &&
         view.strides == contiguous_strides(shape);
}

// The payload that does `inner` and then `outer`, if they are of the same kind and it can be
// merged.
std::optional<Payload> merged(const Node& inner, const Node& outer) {
  if (inner.kind() != outer.kind()) return std::nullopt;
  if (outer.as<Reshape>() || outer.as<Expand>()) return outer.payload;
  if (const auto* n = outer.as<Permute>())
    return Permute{merged_permutation(inner.as<Permute>()->axes, n->axes)};
  if (const auto* n = outer.as<Pad>())
    return Pad{merged_widths(inner.as<Pad>()->widths, n->widths)};
  if (const auto* n = outer.as<Shrink>())
    return Shrink{merged_limits(inner.as<Shrink>()->limits, n->limits)};
  if (const auto* n = outer.as<Flip>()) return Flip{merged_flips(inner.as<Flip>()->axes, n->axes)};
  if (const auto* n = outer.as<View>())
    return View{merged_trackers(inner.as<View>()->tracker, n->tracker)};
  return std::nullopt;
}

Value cast_same(Simplifier& s, const Node& node) {
  return s[node.inputs[0]].dtype() == node.dtype() ? node.inputs[0] : Value{};
}

// i8 -> i32 -> f64 becomes i8 -> f64.
Value cast_chain(Simplifier& s, const Node& node) {
  const Node& inner = s[node.inputs[0]];
  if (!inner.as<Cast>()) return {};
  const Value x = inner.inputs[0];
  const DType from = s[x].dtype(), between = inner.dtype(), to = node.dtype();
  // Wrapping to fewer bits makes an earlier wrapping to more bits irrelevant.
  const bool wraps =
      is_integer(from) && is_integer(between) && is_integer(to) && bits_of(between) >= bits_of(to);
  if (!is_lossless(from, between) && !wraps) return {};
  // Converting an integer by way of a float does not wrap.
  if (!is_float(from) && is_float(between) && is_integer(to) && !is_lossless(from, to)) return {};
  return s.emit(Cast{to}, {x});
}

// Makes an Iota that is converted to floats narrow if possible, because processors without AVX-512
// have no instruction to convert wide integers.
Value cast_of_iota(Simplifier& s, const Node& node) {
  const auto* iota = s[node.inputs[0]].as<Iota>();
  const DType narrow = is_integer(node.dtype()) ? node.dtype() : DType::Int32;
  if (!iota || iota->target == narrow || !holds_iota(narrow, iota->shape)) return {};
  return s.emit(Cast{node.dtype()}, {s.emit(Iota{narrow, iota->shape}, {})});
}

Value bitcast_chain(Simplifier& s, const Node& node) {
  const Node& inner = s[node.inputs[0]];
  // A Bitcast to bool keeps only one bit of its operand.
  if (!inner.as<Bitcast>() || is_bool(inner.dtype())) return {};
  return s.emit(Bitcast{node.dtype()}, {inner.inputs[0]});
}

// A Reshape to the same shape.
Value identity_movement(Simplifier& s, const Node& node) {
  const Value x = node.inputs[0];
  const Shape& shape = s.shape(x);
  bool same = false;
  if (node.as<Reshape>() || node.as<Expand>() || node.as<Shrink>() || node.as<Pad>())
    same = node.shape() == shape;  // with equal sizes, nothing is cut or added
  if (const auto* n = node.as<Permute>()) same = std::is_sorted(n->axes.begin(), n->axes.end());
  if (const auto* n = node.as<Flip>()) same = n->axes.empty();
  if (const auto* n = node.as<View>()) same = is_identity_view(n->tracker, shape);
  return same ? x : Value{};
}

// A Permute of a Permute.
Value merge_movement(Simplifier& s, const Node& node) {
  const Node& inner = s[node.inputs[0]];
  std::optional<Payload> payload = merged(inner, node);
  if (!payload) return {};
  const Value x = inner.inputs[0];
  return s.emit(std::move(*payload), {x});
}

Value movement_of_constant(Simplifier& s, const Node& node) {
  return moved_splat(s.builder(), node);
}

// A Flip of axes of size 1.
Value flip_of_one(Simplifier& s, const Node& node) {
  Ints axes;
  for (const int64_t axis : node.as<Flip>()->axes)
    if (node.shape()[axis].bound() > 1) axes.push_back(axis);
  if (axes.size() == node.as<Flip>()->axes.size()) return {};
  return s.emit(Flip{axes}, {node.inputs[0]});
}

// A reduction of no elements: the identity.
Value reduce_of_none(Simplifier& s, const Node& node) {
  const auto is_empty = [&](Value v) { return max_elements(s.shape(v)) == 0; };
  if (std::none_of(node.inputs.begin(), node.inputs.end(), is_empty)) return {};
  const auto* reduce = node.as<Reduce_Axis>();  // otherwise it is a Contract
  return s.full(identity(reduce ? reduce->op : ReduceOp::Add, node.dtype()), node.shape());
}

// A reduction of axes of size 1.
Value reduce_of_one(Simplifier& s, const Node& node) {
  const auto* reduce = node.as<Reduce_Axis>();
  Ints axes;
  for (const int64_t axis : reduce->axes)
    if (s.shape(node.inputs[0])[axis] != 1) axes.push_back(axis);
  if (axes.empty()) return node.inputs[0];
  if (axes.size() == reduce->axes.size()) return {};
  return s.emit(Reduce_Axis{reduce->op, axes}, {node.inputs[0]});
}

// A sum of a sum over other axes. Nothing else may use the inner one, or it would be computed
// twice.
Value merge_reduces(Simplifier& s, const Node& node) {
  const auto* outer = node.as<Reduce_Axis>();
  const auto* inner = s[node.inputs[0]].as<Reduce_Axis>();
  if (!inner || inner->op != outer->op || !s.single_use(node.inputs[0])) return {};
  Ints axes = inner->axes;
  axes.insert(axes.end(), outer->axes.begin(), outer->axes.end());
  std::sort(axes.begin(), axes.end());
  return s.emit(Reduce_Axis{outer->op, std::move(axes)}, {s[node.inputs[0]].inputs[0]});
}

Value contiguous_twice(Simplifier& s, const Node& node) {
  return s[node.inputs[0]].as<Contiguous>() ? node.inputs[0] : Value{};
}

// A Cat of one part, or of empty parts.
Value cat_parts(Simplifier& s, const Node& node) {
  const auto* cat = node.as<Cat>();
  std::vector<Value> parts;
  for (const Value v : node.inputs)
    if (s.shape(v)[cat->axis] != 0) parts.push_back(v);
  if (parts.empty()) parts.push_back(node.inputs[0]);
  if (parts.size() == 1) return parts[0];
  return parts.size() == node.inputs.size() ? Value{} : s.emit(Cat{cat->axis}, std::move(parts));
}

}  // namespace

std::vector<RulesOfKind> structure_rules() {
  const std::vector<Rule> movement = {identity_movement, movement_of_constant, merge_movement};
  return {{NodeKind::Cast, {cast_same, cast_chain, cast_of_iota}},
          {NodeKind::Bitcast, {cast_same, bitcast_chain}},
          {NodeKind::View, movement},
          {NodeKind::Reshape, movement},
          {NodeKind::Permute, movement},
          {NodeKind::Expand, movement},
          {NodeKind::Pad, movement},
          {NodeKind::Shrink, movement},
          {NodeKind::Flip, {identity_movement, movement_of_constant, flip_of_one, merge_movement}},
          {NodeKind::Contract, {reduce_of_none}},
          {NodeKind::Reduce_Axis, {reduce_of_none, reduce_of_one, merge_reduces}},
          {NodeKind::Contiguous, {contiguous_twice}},
          {NodeKind::Cat, {cat_parts}}};
}

}  // namespace rune::graph
