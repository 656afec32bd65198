#include "lower/passes/mirrored_store.h"

#include "lower/passes/lane_expressions.h"

namespace rune::lower {

using sym::Expr;

void store_mirrored(KernelContext& context, const schedule::Stage& stage,
                    const schedule::StageValue& value, const Points& points,
                    std::vector<MemoryEmitter::Element> elements, const schedule::Mirror& mirror) {
  IndexEmitter& index = context.index;
  MemoryEmitter& memory = context.memory;
  const int lanes = index.lanes();
  std::vector<bool> done(points.size(), false);
  for (size_t first = 0; first < points.size(); ++first) {
    const Expr column = points[first].axes[mirror.columns], row = points[first].axes[mirror.rows];
    elements[first].mask.require_nonnegative(row - column);
    memory.store(value.value, elements[first], false);
    if (done[first]) continue;
    std::vector<Var> vectors;
    for (size_t i = first; i < points.size() && vectors.size() < static_cast<size_t>(lanes); ++i) {
      const auto count = static_cast<int64_t>(vectors.size());
      if (points[i].axes[mirror.columns] != column ||
          points[i].axes[mirror.rows] != row + Expr(count))
        continue;
      done[i] = true;
      vectors.push_back(context.builder.splat(elements[i].value, lanes));
    }
    const auto rows = static_cast<int64_t>(vectors.size());
    vectors.resize(lanes, vectors.back());
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Point image = points[first];
      image.axes[mirror.rows] = with_lane(column, Expr(lane));
      image.axes[mirror.columns] = row + index.lane(lanes);
      image.mask = with_lane(image.mask, Expr(lane));
      image.mask.require_nonnegative(Expr(rows - 1) - index.lane(lanes));
      image.mask.require_nonnegative(image.axes[mirror.columns] - image.axes[mirror.rows] - 1);
      memory.store(value.value,
                   {schedule::value_position(stage, value, image.axes),
                    transposed(context.builder, vectors, lane, lanes / 2), image.mask},
                   false);
    }
  }
}

}  // namespace rune::lower
