#include "lower/passes/kernel_context.h"

#include "lower/passes/lower_kernel.h"

namespace rune::lower {

using sym::Expr;

KernelContext::KernelContext(Launch& launch, const schedule::Kernel& kernel)
    : graph(launch.graph),
      kernel(kernel),
      caps(launch.caps),
      outer(schedule::outer_axes(kernel)),
      builder(launch.builder),
      index(launch, static_cast<int>(kernel.lanes())),
      memory(launch, kernel, index),
      values(launch, kernel, index, memory),
      nest(builder, index, kernel) {}

Index KernelContext::index_of(const schedule::Stage& stage, const schedule::StageValue& value,
                              const std::vector<Expr>& axes) const {
  return schedule::value_index(graph, kernel.iter, stage, value, axes);
}

Index KernelContext::kept_index(const schedule::StageValue& kept,
                                const std::vector<Expr>& axes) const {
  Expr position;
  for (size_t i = 0; i < axes.size(); ++i) position = position + axes[i] * kept.strides[i];
  return schedule::unflatten_index(position, graph[kept.value].shape());
}

void KernelContext::keep_points(const schedule::Stage& stage, const Index& origin,
                                const Points& points) {
  const Value v = stage.keeps->value;
  std::vector<Access> wanted;
  for (const Point& point : points)
    wanted.push_back({v, kept_index(*stage.keeps, point.axes), point.mask});
  memory.take(stage.takes.value_or(std::vector<Value>{}));
  const std::vector<Var> results = values.evaluate(wanted);
  for (size_t i = 0; i < wanted.size(); ++i)
    memory.keep(v, origin, wanted[i].index, results[i], wanted[i].mask);
}

bool KernelContext::is_nontemporal(Value v) const {
  const std::vector<Value>& values = kernel.nontemporal;
  return contains(values, v);
}

}  // namespace rune::lower
