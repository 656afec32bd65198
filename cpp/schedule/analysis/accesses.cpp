#include "schedule/analysis/accesses.h"

namespace rune::schedule {

using sym::Expr;

std::vector<Expr> axis_variables(const IterSpace& iter) {
  std::vector<Expr> axes;
  for (size_t i = 0; i < iter.axes.size(); ++i)
    axes.push_back(Expr::variable(static_cast<uint32_t>(i), {0, iter.axes[i].extent() - 1}));
  return axes;
}

namespace {

// The stride of an axis in a stage's value. The reduced axes of a stage have none.
int64_t value_stride(const Stage& stage, const StageValue& value, size_t axis) {
  const bool whole = stage.kind == StageKind::Map || stage.kind == StageKind::Scan;
  return whole || !contains(stage.axes, static_cast<int64_t>(axis)) ? value.strides[axis] : 0;
}

}  // namespace

Expr value_position(const Stage& stage, const StageValue& value, const std::vector<Expr>& axes) {
  Expr position(value.offset.value_or(0));
  for (size_t i = 0; i < axes.size(); ++i)
    position = position + axes[i] * value_stride(stage, value, i);
  return position;
}

Index value_index(const Graph& graph, const IterSpace& iter, const Stage& stage,
                  const StageValue& value, const std::vector<Expr>& axes) {
  const Shape& shape = graph[value.value].shape();
  const Ints sizes = bounds_of(shape);
  Index index = sym::unflatten_index(Expr(value.offset.value_or(0)), sizes);
  Ints last;  // by dimension: the greatest coordinate that the axes reach
  for (const Expr& first : index) last.push_back(first.constant());
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t stride = value_stride(stage, value, i);
    if (stride == 0) continue;
    size_t dim = sizes.size() - 1;
    for (; dim > 0 && sizes[dim] > 0 && stride % sizes[dim] == 0; --dim) stride /= sizes[dim];
    last[dim] += stride * (iter.axes[i].extent() - 1);
    if (stride < 0 || last[dim] >= sizes[dim])
      return unflatten_index(value_position(stage, value, axes), shape);
    index[dim] = index[dim] + axes[i] * stride;
  }
  return index;
}

Expr inner_position(const Stage& stage, const StageValue& value, const std::vector<Expr>& axes) {
  Expr position;
  for (const int64_t i : stage.axes) position = position + axes[i] * value.strides[i];
  return position;
}

std::vector<Seed> stage_seeds(const Graph& graph, const Stage& stage,
                              const std::vector<Expr>& axes) {
  std::vector<Seed> seeds;
  for (const StageValue& value : stage.values) {
    Seed seed{value.value,
              unflatten_index(value_position(stage, value, axes), graph[value.value].shape()),
              {}};
    if (stage.kind == StageKind::Reduce || stage.kind == StageKind::Scatter)
      seed.inner =
          unflatten_index(inner_position(stage, value, axes), reduced_shape(graph, value.value));
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

std::vector<MemoryAccess> memory_accesses(const Graph& graph, const Kernel& kernel,
                                          const std::function<bool(Value)>& is_input,
                                          std::set<uint32_t>* computed) {
  std::set<uint32_t> reduced, begun;  // begun: values that an earlier stage has stored
  for (const Stage& stage : kernel.stages())
    if (stage.kind == StageKind::Reduce)
      for (const StageValue& value : stage.values) reduced.insert(value.value.id);
  const std::vector<Expr> axes = axis_variables(kernel.iter);
  std::vector<MemoryAccess> result;
  for (size_t s = 0; s < kernel.stages().size(); ++s) {
    const Stage& stage = kernel.stages()[s];
    std::vector<Seed> seeds;
    for (Seed& seed : stage_seeds(graph, stage, axes)) {
      if (computed) computed->insert(seed.value.id);
      const bool is_stored_reduction =
          stage.kind == StageKind::Map && evaluation_of(graph[seed.value]) == Evaluation::Reduction;
      if (stage.kind != StageKind::Reduce) {
        MemoryAccess access{seed.value, flatten_index(seed.index, graph[seed.value].shape()), {}};
        access.stage = s;
        if (stage.kind == StageKind::Scatter && !begun.count(seed.value.id)) {
          access.repeats = max_elements(reduced_shape(graph, seed.value));
          result.push_back(access);
        } else if (is_stored_reduction && is_input(seed.value)) {
          result.push_back(access);
        }
        access.is_store = true;
        begun.insert(seed.value.id);
        result.push_back(std::move(access));
      }
      if (!is_stored_reduction) seeds.push_back(std::move(seed));
    }
    const Walk walked = walk(graph, seeds, [&](Value v, const std::vector<Demand>& demands) {
      if (reduced.count(v.id)) return true;
      if (!is_input(v)) {
        if (computed) computed->insert(v.id);
        return false;
      }
      for (const Demand& demand : demands)
        result.push_back(
            {v, flatten_index(demand.index, graph[v].shape()), demand.mask, false, s, 1});
      return true;
    });
    for (MemoryAccess& access : result) {
      if (access.stage != s) continue;
      for (const uint32_t variable : access.position.variables()) {
        const auto extent = walked.inner_extents.find(variable);
        if (extent != walked.inner_extents.end()) access.repeats *= extent->second;
        if (const auto data = walked.positions.find(variable); data != walked.positions.end())
          access.data_axes.insert(data->second.begin(), data->second.end());
      }
    }
  }
  return result;
}

std::vector<MemoryAccess> memory_accesses(const Graph& graph, const Kernel& kernel) {
  std::set<uint32_t> inputs;
  for (const Value v : kernel.inputs) inputs.insert(v.id);
  return memory_accesses(graph, kernel, [&](Value v) { return inputs.count(v.id) > 0; });
}

}  // namespace rune::schedule
