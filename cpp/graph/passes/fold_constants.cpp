#include "graph/passes/passes.h"

#include "alu/eval.h"
#include "base/error.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

// The scalar function that an elementwise node applies to each element. Absent for other kinds.
struct Elementwise {
  enum class What { Alu, Cast, Bitcast } what;
  AluOp op = AluOp::Add;
  DType target = DType::Bool;

  Scalar operator()(std::span<const Scalar> operands) const {
    switch (what) {
      case What::Alu: return evaluate(op, operands);
      case What::Cast: return operands[0].cast(target);
      case What::Bitcast: return Scalar::from_bits(target, operands[0].bits());
    }
    RUNE_UNREACHABLE();
  }
};

std::optional<Elementwise> elementwise(const Node& node) {
  using What = Elementwise::What;
  if (const auto* n = node.as<Unary>()) return Elementwise{What::Alu, n->op};
  if (const auto* n = node.as<Binop>()) return Elementwise{What::Alu, n->op};
  if (const auto* n = node.as<Ternary>()) return Elementwise{What::Alu, n->op};
  if (const auto* n = node.as<Cast>()) return Elementwise{What::Cast, {}, n->target};
  if (const auto* n = node.as<Bitcast>()) return Elementwise{What::Bitcast, {}, n->target};
  return std::nullopt;
}

Value fold_elementwise(Builder& b, const Node& node) {
  const auto function = elementwise(node);
  if (!function) return {};
  std::vector<const Vconst*> vectors;
  std::vector<Scalar> operands;
  bool any_vector = false;
  for (const Value v : node.inputs) {
    const auto* vector = b[v].as<Vconst>();
    const auto splat = b.splat(v);
    if (!vector && !splat) return {};
    any_vector |= vector != nullptr;
    vectors.push_back(vector);
    operands.push_back(splat.value_or(Scalar()));
  }
  if (!any_vector) return b.full((*function)(operands), node.shape());
  Vconst result;
  for (int64_t i = 0; i < node.shape()[0].constant(); ++i) {
    for (size_t k = 0; k < operands.size(); ++k)
      if (vectors[k]) operands[k] = vectors[k]->values[i];
    result.values.push_back((*function)(operands));
  }
  return b.add(std::move(result), {});
}

Value fold_cat(Builder& b, const Node& node) {
  if (!node.as<Cat>()) return {};
  const auto first = b.splat(node.inputs[0]);
  for (const Value v : node.inputs)
    if (!first || b.splat(v) != first) return {};
  return b.full(*first, node.shape());
}

Value fold_reduce(Builder& b, const Node& node) {
  const auto* reduce = node.as<Reduce_Axis>();
  if (!reduce) return {};
  const auto value = b.splat(node.inputs[0]);
  if (!value) return {};
  int64_t count = 1;
  for (const int64_t axis : reduce->axes) {
    const Dim& size = b.shape(node.inputs[0])[axis];
    if (!size.is_constant()) return {};
    count *= size.constant();
  }
  if (count == 0) return b.full(identity(reduce->op, node.dtype()), node.shape());
  switch (reduce->op) {
    case ReduceOp::Max:
    case ReduceOp::Min: return b.full(*value, node.shape());
    case ReduceOp::Add:
      if (is_float(node.dtype())) return {};
      return b.full(Scalar::of(node.dtype(), value->as_uint64() * static_cast<uint64_t>(count)),
                    node.shape());
    case ReduceOp::Prod: return {};
  }
  RUNE_UNREACHABLE();
}

Value fold(Builder& b, const Node& node) {
  for (const auto rule : {fold_elementwise, fold_cat, fold_reduce, moved_splat})
    if (const Value v = rule(b, node); v.valid()) return v;
  return {};
}

}  // namespace

Graph fold_constants(const Graph& graph) {
  return eliminate_dead_code(
      rewrite(graph, [&](Builder& b, uint32_t, const Node& old, std::vector<Value> inputs) {
        Node node = b.make(old.payload, std::move(inputs), old.meta);
        const Value v = fold(b, node);
        return v.valid() && b[v].meta == node.meta ? v : b.append(std::move(node));
      }));
}

}  // namespace rune::graph
