#include "graph/builder.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include "base/error.h"
#include "graph/infer.h"

namespace rune::graph {

Builder::Builder(Graph graph) {
  std::vector<Node> nodes = std::move(graph.nodes);
  graph_.outputs = std::move(graph.outputs);
  reserve(nodes.size());
  for (Node& node : nodes) append(std::move(node));
}

Node Builder::make(Payload payload, std::vector<Value> inputs, const Metadata& declared) const {
  constexpr size_t kFew = 4;
  std::array<const Metadata*, kFew> few{};
  std::vector<const Metadata*> many(inputs.size() > kFew ? inputs.size() : 0);
  const std::span<const Metadata*> operands =
      many.empty() ? std::span(few).first(inputs.size()) : std::span(many);
  for (size_t i = 0; i < inputs.size(); ++i) {
    RUNE_CHECK(inputs[i].id < graph_.size(), "operand %", inputs[i].id, " of ", graph_.size(),
               " nodes");
    operands[i] = &graph_[inputs[i]].meta;
  }
  Node node;
  node.meta = infer(payload, operands, declared);
  node.payload = std::move(payload);
  node.inputs = std::move(inputs);
  node.location = location_;
  return node;
}

Value Builder::append(Node node) {
  const Value v{static_cast<uint32_t>(graph_.size())};
  Value root;
  switch (node.kind()) {
    case NodeKind::Const_Scalar: root = v; break;
    case NodeKind::Reshape:
    case NodeKind::Permute:
    case NodeKind::Expand:
    case NodeKind::Shrink:
    case NodeKind::Flip: root = splat_root(node.inputs[0]); break;
    default: break;  // all others make new values
  }
  if (const auto* placeholder = node.as<Placeholder>())
    num_placeholders_ = std::max(num_placeholders_, placeholder->index + 1);
  splat_roots_.push_back(root);
  graph_.nodes.push_back(std::move(node));
  return v;
}

std::optional<Scalar> Builder::splat(Value v) const {
  const Value root = splat_root(v);
  return root.valid() ? std::optional((*this)[root].as<Const_Scalar>()->value) : std::nullopt;
}

void Builder::make_argument(Value v) {
  Node& node = graph_.nodes[v.id];
  node.payload = Placeholder{num_placeholders_++};
  node.inputs.clear();
}

Value Builder::placeholder(DType dtype, Shape shape) {
  return add(Placeholder{num_placeholders_}, {}, {dtype, std::move(shape), std::nullopt});
}

Value Builder::constant(Scalar value) {
  return add(Const_Scalar{value}, {});
}

Value Builder::full(Value root, Shape shape) {
  const Value one = reshape(root, Shape(shape.size(), 1));
  return expand(one, std::move(shape));
}

Value Builder::alu(AluOp op, std::vector<Value> operands) {
  switch (info(op).arity) {
    case 1: return add(Unary{op}, std::move(operands));
    case 2: return add(Binop{op}, std::move(operands));
    case 3: return add(Ternary{op}, std::move(operands));
    default: RUNE_UNREACHABLE(name_of(op), " has ", info(op).arity, " operands");
  }
}

Value Builder::reshape(Value x, Shape to) {
  return to == shape(x) ? x : add(Reshape{std::move(to)}, {x});
}

Value Builder::permute(Value x, Ints axes) {
  Ints identity(shape(x).size());
  std::iota(identity.begin(), identity.end(), int64_t{0});
  return axes == identity ? x : add(Permute{std::move(axes)}, {x});
}

Value Builder::expand(Value x, Shape to) {
  return to == shape(x) ? x : add(Expand{std::move(to)}, {x});
}

Value Builder::pad(Value x, DimPairs widths) {
  return widths == DimPairs(shape(x).size()) ? x : add(Pad{std::move(widths)}, {x});
}

Value Builder::shrink(Value x, DimPairs limits) {
  DimPairs whole;
  for (const Dim& size : shape(x)) whole.emplace_back(0, size);
  return limits == whole ? x : add(Shrink{std::move(limits)}, {x});
}

Value Builder::slice(Value x, int64_t axis, Dim low, Dim high) {
  DimPairs limits;
  for (const Dim& size : shape(x)) limits.emplace_back(0, size);
  limits[axis] = {std::move(low), std::move(high)};
  return shrink(x, std::move(limits));
}

Value Builder::flip(Value x, Ints axes) {
  std::sort(axes.begin(), axes.end());
  return axes.empty() ? x : add(Flip{std::move(axes)}, {x});
}

Value Builder::reduce(ReduceOp op, Value x, Ints axes) {
  std::sort(axes.begin(), axes.end());
  return axes.empty() ? x : add(Reduce_Axis{op, std::move(axes)}, {x});
}

Value Builder::scan(ReduceOp op, Value x, int64_t axis) {
  return add(Scan{op, axis}, {x});
}

Value Builder::cast(Value x, DType to) {
  return dtype(x) == to ? x : add(Cast{to}, {x});
}

Value Builder::complex(Value real, Value imag) {
  return add(Complex{}, {real, imag});
}

Value Builder::real(Value x) {
  const Node& node = (*this)[x];
  return node.as<Complex>() ? node.inputs[0] : add(Real{}, {x});
}

Value Builder::imag(Value x) {
  const Node& node = (*this)[x];
  return node.as<Complex>() ? node.inputs[1] : add(Imag{}, {x});
}

Value Builder::bitcast(Value x, DType to) {
  return dtype(x) == to ? x : add(Bitcast{to}, {x});
}

Value Builder::contract(Value a, Value b, Pairs contract, Pairs batch) {
  return add(Contract{std::move(contract), std::move(batch)}, {a, b});
}

Value Builder::cat(std::vector<Value> parts, int64_t axis) {
  return parts.size() == 1 ? parts[0] : add(Cat{axis}, std::move(parts));
}

Value Builder::contiguous(Value x) {
  return (*this)[x].as<Contiguous>() ? x : add(Contiguous{}, {x});
}

}  // namespace rune::graph
