#include "lower/passes/matrix_stage.h"

#include <algorithm>

#include "base/error.h"
#include "base/math.h"

namespace rune::lower {

using schedule::Stage;
using schedule::StageValue;
using sym::Expr;
using sym::Mask;

namespace {

const MatrixOp& find_operation(const KernelContext& context) {
  const schedule::MatrixPlan& plan = *context.kernel.matrix;
  const DType result = context.graph[context.kernel.stages[0].values[0].value].dtype();
  const auto& all = context.caps.matrix_ops;
  const auto found = std::find_if(all.begin(), all.end(), [&](const MatrixOp& op) {
    return op.m == plan.m && op.n == plan.n && op.k == plan.k && op.operands == plan.operands &&
           op.result == result;
  });
  RUNE_CHECK(found != all.end(), "kernel ", context.kernel.kernel_name, ": ", context.caps.name,
             " has no matrix operation as planned");
  return *found;
}

// The sum of steps[i] over the bits i of a number; bits side by side whose steps double count as
// one number.
Expr sum_of_bits(const Expr& number, const Ints& steps) {
  Expr sum;
  for (size_t i = 0; i < steps.size();) {
    size_t end = i + 1;
    while (steps[i] && end < steps.size() && steps[end] == 2 * steps[end - 1]) ++end;
    const int64_t values = int64_t{1} << (end - i);
    if (steps[i]) sum = sum + mod(floordiv(number, int64_t{1} << i), values) * steps[i];
    i = end;
  }
  return sum;
}

}  // namespace

MatrixStage::MatrixStage(KernelContext& context)
    : context_(context),
      builder_(context.builder),
      values_(context.values),
      plan_(*context.kernel.matrix),
      op_(find_operation(context)) {
  const int64_t threads = context.nest.threads(), width = context.caps.simd_width;
  const Expr thread = context.nest.thread_number(threads);
  thread_ = values_.emit_and_bind(mod(thread, width), width);
  simd_ = values_.emit_and_bind(floordiv(thread, width), threads / width);
}

MatrixStage::Place MatrixStage::place_in_tile(size_t tile, int64_t columns) const {
  const Ints& strides = op_.spread[tile];
  Ints row_steps, column_steps;
  size_t i = 0;
  for (; int64_t{1} << i < context_.caps.simd_width; ++i) {
    row_steps.push_back(strides[i] / columns);
    column_steps.push_back(strides[i] % columns);
  }
  for (int64_t next = 1; i < strides.size(); ++i, next *= 2)
    RUNE_CHECK(strides[i] == next, "the lanes of a tile are no neighbours of a row");
  return {sum_of_bits(thread_, row_steps), sum_of_bits(thread_, column_steps)};
}

// Beyond the axis's end, where the mask does not hold, the position may be wrong: its bounds are
// the axis's, so that indices stay simple.
MatrixStage::Position MatrixStage::position(const Expr& at, int64_t reach, int64_t axis,
                                            bool in_lanes) {
  const int64_t size = context_.nest.extent(axis), lanes = in_lanes ? values_.lanes() : 1;
  const Expr lane = in_lanes ? values_.lane(lanes) : Expr(0);
  Position result;
  if (reach <= size) return {at + lane, {}};
  // Whole vectors are inside or outside where they divide the axis.
  const bool whole = size % lanes == 0;
  const Expr all = values_.emit_and_bind(at, reach);
  result.mask.require_between(whole ? all : all + lane, 0, size);
  result.at = values_.emit_and_bind(at, size - lanes + 1) + lane;
  return result;
}

// Of the tiles that the SIMD-group has in its part of the block, along one side of it.
std::vector<MatrixStage::Position> MatrixStage::along(int64_t axis, size_t side, const Expr& simd,
                                                      const Expr& place) {
  const int64_t size = side == 0 ? plan_.m : plan_.n, part = size * plan_.tiles[side];
  const int64_t block = part * plan_.groups[side], extent = context_.nest.extent(axis);
  const int64_t reach = round_up(extent, block);
  const Expr first = group_.axes[axis] * block + simd * part + place;
  std::vector<Position> result;
  for (int64_t i = 0; i < plan_.tiles[side]; ++i)
    result.push_back(position(first + Expr(i * size), reach, axis, side == 1));
  return result;
}
std::vector<MatrixStage::Position> MatrixStage::rows(const Expr& place) {
  return along(plan_.rows, 0, floordiv(simd_, plan_.groups[1]), place);
}
std::vector<MatrixStage::Position> MatrixStage::columns(const Expr& place) {
  return along(plan_.columns, 1, mod(simd_, plan_.groups[1]), place);
}

Points MatrixStage::points(const Point& group) {
  group_ = group;
  const Place place = place_in_tile(2, plan_.n);
  Points points;
  for (const Position& row : rows(place.row))
    for (const Position& column : columns(place.column)) {
      Point point = group;
      point.axes[plan_.rows] = row.at;
      point.axes[plan_.columns] = column.at;
      point.mask.require(row.mask);
      point.mask.require(column.mask);
      points.push_back(std::move(point));
    }
  return points;
}

void MatrixStage::run(const Stage& stage, const Points& points) {
  const StageValue& value = stage.values[0];
  const Var zero = builder_.constant(Scalar::zero(op_.result), values_.lanes());
  std::vector<Var> sums;
  for (size_t i = 0; i < points.size(); ++i) sums.push_back(builder_.acc(zero));
  const int64_t k = plan_.k, size = context_.nest.extent(plan_.reduced), steps = size / k;
  context_.nest.loop(steps, [&](const Expr& i) { accumulate(stage, sums, i * k, steps * k); });
  if (size % k) accumulate(stage, sums, Expr(steps * k), (steps + 1) * k);
  for (size_t i = 0; i < points.size(); ++i)
    values_.define(value.value, schedule::value_position(stage, value, points[i].axes), sums[i]);
}

// An operand at a position along the one axis of the result's tiles that it has.
Access MatrixStage::operand(const Stage& stage, size_t number, int64_t axis,
                            const Position& position, const Position& reduced) const {
  const StageValue& value = stage.values[0];
  std::vector<Expr> axes = group_.axes;
  axes[plan_.rows] = axes[plan_.columns] = Expr(0);
  axes[axis] = position.at;
  axes[plan_.reduced] = reduced.at;
  const Index inner = sym::unflatten_index(schedule::inner_position(stage, value, axes),
                                           schedule::reduced_shape(context_.graph, value.value));
  Access access = schedule::reduction_accesses(
      context_.graph, value.value, context_.index_of(stage, value, axes), inner)[number];
  const graph::Node& node = context_.graph[access.value];
  if (node.dtype() != op_.operands) access.value = node.inputs[0];  // before it is widened
  access.mask.require(group_.mask);
  access.mask.require(position.mask);
  access.mask.require(reduced.mask);
  return access;
}

// One step along the reduced axis, from `first` on. Elements beyond the axis's end count as zero in
// both operands; what lies beyond rows and columns only reaches results that are not stored.
void MatrixStage::accumulate(const Stage& stage, const std::vector<Var>& sums, const Expr& first,
                             int64_t reach) {
  const Place a = place_in_tile(0, plan_.k), b = place_in_tile(1, plan_.n);
  const Position of_a = position(first + a.column, reach, plan_.reduced, true);
  const Position of_b = position(first + b.row, reach, plan_.reduced, false);
  const auto row_operand = static_cast<size_t>(plan_.row_operand);
  std::vector<Access> wanted;
  for (const Position& row : rows(a.row))
    wanted.push_back(operand(stage, row_operand, plan_.rows, row, of_a));
  const size_t num_rows = wanted.size();
  for (const Position& column : columns(b.column))
    wanted.push_back(operand(stage, 1 - row_operand, plan_.columns, column, of_b));
  std::vector<Var> tiles = values_.evaluate(wanted);
  const Var zero = builder_.constant(Scalar::zero(op_.operands));
  for (size_t i = 0; i < tiles.size(); ++i) {
    const Var inside = values_.emit(i < num_rows ? of_a.mask : of_b.mask);
    if (inside.valid()) tiles[i] = values_.where(inside, tiles[i], zero);
    tiles[i] = builder_.splat(tiles[i], values_.lanes());
  }
  const Wmma shape{op_.m, op_.n, op_.k, op_.spread};
  size_t next = 0;
  for (size_t row = 0; row < num_rows; ++row)
    for (size_t column = num_rows; column < tiles.size(); ++column) {
      const Var sum = sums[next++];
      builder_.assign(sum, builder_.wmma(shape, tiles[row], tiles[column], sum));
    }
}

}  // namespace rune::lower
