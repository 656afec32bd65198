#include "graph/builder.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "graph/infer.h"

namespace rune::graph {

Builder::Builder(Graph graph) : graph_(std::move(graph)) {
  for (const Node& node : graph_.nodes)
    if (const auto* placeholder = node.as<Placeholder>())
      num_placeholders_ = std::max(num_placeholders_, placeholder->index + 1);
}

Value Builder::add(Payload payload, std::vector<Value> inputs, const Metadata& declared) {
  std::vector<const Metadata*> operands;
  operands.reserve(inputs.size());
  for (const Value v : inputs) {
    RUNE_CHECK(v.id < graph_.size(), "operand %", v.id, " of ", graph_.size(), " nodes");
    operands.push_back(&graph_[v].meta);
  }
  Node node;
  node.meta = infer(payload, operands, declared);
  if (const auto* placeholder = std::get_if<Placeholder>(&payload))
    num_placeholders_ = std::max(num_placeholders_, placeholder->index + 1);
  node.payload = std::move(payload);
  node.inputs = std::move(inputs);
  node.location = location_;
  graph_.nodes.push_back(std::move(node));
  return {static_cast<uint32_t>(graph_.size() - 1)};
}

Value Builder::placeholder(DType dtype, Shape shape) {
  return add(Placeholder{num_placeholders_}, {}, {dtype, std::move(shape), std::nullopt});
}

Value Builder::constant(Scalar value) {
  return add(Const_Scalar{value}, {});
}

Value Builder::full(Scalar value, const Shape& shape) {
  return expand(reshape(constant(value), Shape(shape.size(), 1)), shape);
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
