#include "graph/passes/rewrite.h"

namespace rune::graph {

bool is_movement(NodeKind kind) {
  return kind == NodeKind::View || kind == NodeKind::Reshape || kind == NodeKind::Permute ||
         kind == NodeKind::Expand || kind == NodeKind::Pad || kind == NodeKind::Shrink ||
         kind == NodeKind::Flip || kind == NodeKind::Buffer_View;
}

namespace {

bool is_canonical_splat(const Builder& b, const Node& node) {
  const Node& operand = b[node.inputs[0]];
  const auto ones = [](const Shape& shape) {
    return std::all_of(shape.begin(), shape.end(), [](const Dim& size) { return size == 1; });
  };
  if (node.as<Reshape>())
    return operand.as<Const_Scalar>() && !node.shape().empty() && ones(node.shape());
  return node.as<Expand>() && operand.as<Reshape>() && ones(operand.shape()) &&
         b[operand.inputs[0]].as<Const_Scalar>() && !ones(node.shape());
}

}  // namespace

Value moved_splat(Builder& b, const Node& node) {
  if (!is_movement(node.kind()) || is_canonical_splat(b, node)) return {};
  const Value root = b.splat_root(node.inputs[0]);
  if (!root.valid()) return {};
  bool inserts_zeros = node.as<Pad>();
  if (const auto* view = node.as<View>())
    for (const rune::View& v : view->tracker.views) inserts_zeros |= v.mask.has_value();
  if (inserts_zeros && b[root].as<Const_Scalar>()->value.bits() != 0) return {};
  return b.full(root, node.shape());
}

Value strip_reshapes(const Graph& graph, Value v) {
  while (graph[v].as<Reshape>()) v = graph[v].inputs[0];
  return v;
}

Value split_axis(Builder& b, Value x, int64_t axis, int64_t parts) {
  Shape shape = b.shape(x);
  shape[axis] = shape[axis].constant() / parts;
  shape.insert(shape.begin() + axis, parts);
  return b.reshape(x, shape);
}

std::optional<int64_t> divisor_near(int64_t n, int64_t wanted) {
  for (int64_t up = wanted, down = wanted - 1; up <= 4 * wanted; ++up, --down) {
    if (n % up == 0) return up;
    if (down >= wanted / 2 && down > 1 && n % down == 0) return down;
  }
  return std::nullopt;
}

int64_t parts_near(int64_t n, int64_t wanted) {
  if (const auto divisor = divisor_near(n, wanted)) return *divisor;
  int64_t best = wanted;
  for (int64_t parts = wanted; parts <= 2 * wanted; ++parts)
    if (n % parts < n % best) best = parts;
  return best;
}

}  // namespace rune::graph
