#include "graph/passes/shards.h"

#include <algorithm>

namespace rune::graph {

std::string Transfers::device_of(Value v) const {
  return b_[v].meta.device.value_or(program_);
}

bool Transfers::is_constant(Value v) const {
  const Node& node = b_[v];
  if (node.kind() == NodeKind::Placeholder || node.meta.device) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](Value input) { return is_constant(input); });
}

Value Transfers::on(const std::string& device, Value v) {
  if (device_of(v) == device || is_constant(v)) return v;
  // What has only passed through a device comes from where it was.
  const auto* copy = b_[v].as<Copy>();
  if (copy && !copy->device.empty()) return on(device, b_[v].inputs[0]);
  Value& there = known_[{device, v}];
  if (!there.valid()) there = b_.add(Copy{device, false}, {v});
  return there;
}

namespace {

bool is_elementwise(NodeKind kind) {
  return kind == NodeKind::Binop || kind == NodeKind::Unary || kind == NodeKind::Ternary ||
         kind == NodeKind::Cast || kind == NodeKind::Bitcast || kind == NodeKind::Contiguous ||
         kind == NodeKind::Detach || kind == NodeKind::Contiguous_Backward;
}

// Whether part i of one array is combined with part i of the other.
bool lie_alike(const Builder& b, const Transfers& transfers, const Shards& x, const Shards& y) {
  if (x.axis != y.axis || x.parts.size() != y.parts.size()) return false;
  for (size_t i = 0; i < x.parts.size(); ++i) {
    if (transfers.device_of(x.parts[i]) != transfers.device_of(y.parts[i])) return false;
    if (x.axis && b.shape(x.parts[i])[*x.axis] != b.shape(y.parts[i])[*x.axis]) return false;
  }
  return true;
}

Value slice(Builder& b, Value x, int64_t axis, int64_t low, int64_t high) {
  DimPairs limits;
  for (const Dim& size : b.shape(x)) limits.push_back({0, size});
  limits[axis] = {low, high};
  return b.shrink(x, std::move(limits));
}

// The node on parts of its operands; `payload` may differ by part.
Shards elementwise(Builder& b, Transfers& transfers, const Node& node, const Shards& model,
                   const std::vector<const Shards*>& operands,
                   const std::function<Value(size_t)>& whole) {
  Shards result{model.axis, {}};
  int64_t start = 0;
  for (size_t i = 0; i < model.parts.size(); ++i) {
    const std::string device = transfers.device_of(model.parts[i]);
    const int64_t length = model.axis ? b.shape(model.parts[i])[*model.axis].constant() : 0;
    std::vector<Value> inputs;
    for (size_t k = 0; k < operands.size(); ++k) {
      Value part = operands[k] ? operands[k]->parts[i] : whole(k);
      if (!operands[k] && model.axis) part = slice(b, part, *model.axis, start, start + length);
      inputs.push_back(transfers.on(device, part));
    }
    result.parts.push_back(b.add(node.payload, std::move(inputs)));
    start += length;
  }
  return result;
}

std::optional<Shards> reduce(Builder& b, Transfers& transfers, const Node& node,
                             const Shards& operand) {
  const auto& reduce = *node.as<Reduce_Axis>();
  Shards result{operand.axis, {}};
  for (const Value part : operand.parts) result.parts.push_back(b.add(node.payload, {part}));
  const bool across = operand.axis && std::find(reduce.axes.begin(), reduce.axes.end(),
                                                *operand.axis) != reduce.axes.end();
  if (!across) return result;
  Value total = transfers.on_program(result.parts[0]);
  for (size_t i = 1; i < result.parts.size(); ++i)
    total = b.alu(alu_of(reduce.op), {total, transfers.on_program(result.parts[i])});
  return Shards{std::nullopt, {total}};
}

Shards permute(Builder& b, const Node& node, const Shards& operand) {
  const Ints& axes = node.as<Permute>()->axes;
  Shards result = operand;
  for (Value& part : result.parts) part = b.permute(part, axes);
  if (operand.axis) result.axis = std::find(axes.begin(), axes.end(), *operand.axis) - axes.begin();
  return result;
}

std::optional<Shards> expand(Builder& b, const Node& node, const Shards& operand) {
  Shards result = operand;
  for (Value& part : result.parts) {
    Shape shape = node.shape();
    if (operand.axis) shape[*operand.axis] = b.shape(part)[*operand.axis];
    part = b.expand(part, shape);
  }
  return result;
}

}  // namespace

std::optional<Shards> compute_by_part(Builder& b, Transfers& transfers, const Node& node,
                                      const std::vector<const Shards*>& operands,
                                      const std::function<Value(size_t)>& whole) {
  const Shards* model = nullptr;
  for (const Shards* operand : operands) {
    if (!operand) continue;
    if (model && !lie_alike(b, transfers, *model, *operand)) return std::nullopt;
    model = operand;
  }
  if (!model) return std::nullopt;
  if (is_elementwise(node.kind())) return elementwise(b, transfers, node, *model, operands, whole);
  switch (node.kind()) {
    case NodeKind::Reduce_Axis: return reduce(b, transfers, node, *model);
    case NodeKind::Permute: return permute(b, node, *model);
    case NodeKind::Expand: return expand(b, node, *model);
    default: return std::nullopt;
  }
}

Value gather_parts(Builder& b, Transfers& transfers, const Shards& shards) {
  if (!shards.axis) return transfers.on_program(shards.parts[0]);
  std::vector<Value> parts;
  for (const Value part : shards.parts) parts.push_back(transfers.on_program(part));
  return b.cat(std::move(parts), *shards.axis);
}

}  // namespace rune::graph
