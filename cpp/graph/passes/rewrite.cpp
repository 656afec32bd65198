#include "graph/passes/rewrite.h"

#include <algorithm>

#include "graph/infer.h"

namespace rune::graph {

bool is_movement(NodeKind kind) {
  return kind == NodeKind::View || kind == NodeKind::Reshape || kind == NodeKind::Permute ||
         kind == NodeKind::Expand || kind == NodeKind::Pad || kind == NodeKind::Shrink ||
         kind == NodeKind::Flip || kind == NodeKind::Buffer_View;
}

std::vector<bool> written_storage(const Graph& graph) {
  std::vector<bool> written(graph.size());
  // Users come after their operands, so one walk backwards sees every user first.
  for (size_t id = graph.size(); id-- > 0;) {
    const Node& node = graph.nodes[id];
    if (node.as<Assign>() || (written[id] && is_movement(node.kind())))
      written[node.inputs[0].id] = true;
  }
  return written;
}

Node Rewriter::make(Payload payload, std::vector<Value> inputs, const Metadata& declared) const {
  std::vector<const Metadata*> operands;
  operands.reserve(inputs.size());
  for (const Value v : inputs) operands.push_back(&graph_[v].meta);
  Node node;
  node.meta = infer(payload, operands, declared);
  node.payload = std::move(payload);
  node.inputs = std::move(inputs);
  node.location = location_;
  return node;
}

Value Rewriter::append(Node node) {
  const Value v{static_cast<uint32_t>(graph_.size())};
  Value root;
  switch (node.kind()) {
    case NodeKind::Const_Scalar: root = v; break;
    case NodeKind::Reshape:
    case NodeKind::Permute:
    case NodeKind::Expand:
    case NodeKind::Shrink:
    case NodeKind::Flip: root = roots_[node.inputs[0].id]; break;
    default: break;  // all others make new values
  }
  roots_.push_back(root);
  graph_.nodes.push_back(std::move(node));
  return v;
}

std::optional<Scalar> Rewriter::splat(Value v) const {
  const Value root = roots_[v.id];
  if (!root.valid()) return std::nullopt;
  return graph_[root].as<Const_Scalar>()->value;
}

Value Rewriter::full(Scalar value, const Shape& shape) {
  return full_of(append(make(Const_Scalar{value}, {})), shape);
}

Value Rewriter::full_of(Value root, const Shape& shape) {
  const Shape ones(shape.size(), 1);
  Value v = root;
  if (!shape.empty()) v = append(make(Reshape{ones}, {v}));
  if (shape != ones) v = append(make(Expand{shape}, {v}));
  return v;
}

bool Rewriter::is_canonical_splat(const Node& node) const {
  const Node& operand = graph_[node.inputs[0]];
  const auto ones = [](const Shape& shape) {
    return std::all_of(shape.begin(), shape.end(), [](const Dim& size) { return size == 1; });
  };
  if (node.as<Reshape>())
    return operand.as<Const_Scalar>() && !node.shape().empty() && ones(node.shape());
  return node.as<Expand>() && operand.as<Reshape>() && ones(operand.shape()) &&
         graph_[operand.inputs[0]].as<Const_Scalar>() && !ones(node.shape());
}

Value Rewriter::moved_splat(const Node& node) {
  if (!is_movement(node.kind()) || is_canonical_splat(node)) return {};
  const Value root = roots_[node.inputs[0].id];
  if (!root.valid()) return {};
  bool inserts_zeros = node.as<Pad>();
  if (const auto* view = node.as<View>())
    for (const rune::View& v : view->tracker.views) inserts_zeros |= v.mask.has_value();
  if (inserts_zeros && graph_[root].as<Const_Scalar>()->value.bits() != 0) return {};
  return full_of(root, node.shape());
}

Graph Rewriter::take(std::vector<Value> outputs) {
  graph_.outputs = std::move(outputs);
  return std::move(graph_);
}

}  // namespace rune::graph
