#include "lower/passes/matrix_stage.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/math.h"

namespace rune::lower {

using schedule::Stage;
using schedule::StageValue;
using sym::Expr;
using sym::Mask;

namespace {

MatrixOp find_operation(const KernelContext& context) {
  const DType result = context.graph[context.kernel.stages()[0].values[0].value].dtype();
  auto found = schedule::planned_operation(*context.kernel.matrix(), result, context.caps);
  RUNE_CHECK(found, "kernel ", context.kernel.name, ": ", context.caps.name,
             " has no matrix operation as planned");
  return *std::move(found);
}

Expr in_panel(const schedule::Panel& panel, const Expr& row, const Expr& column) {
  return panel.turned ? column * panel.stride + row : row * panel.stride + column;
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
    : Lowering(context),
      plan_(*context.kernel.matrix()),
      op_(find_operation(context)),
      width_(context.nest.threads() / (plan_.groups[0] * plan_.groups[1])) {
  const int64_t threads = context.nest.threads();
  const Expr thread = context.nest.thread_number(threads);
  thread_ = index_.emit_and_bind(mod(thread, width_), width_);
  simd_ = index_.emit_and_bind(floordiv(thread, width_), threads / width_);
  if (plan_.depth > 0) make_panels();
}

MatrixStage::Place MatrixStage::place_in_tile(size_t tile, int64_t columns) const {
  const Ints& strides = op_.spread[tile];
  Ints row_steps, column_steps;
  size_t i = 0;
  for (; int64_t{1} << i < width_; ++i) {
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
  const int64_t size = nest_.extent(axis), lanes = in_lanes ? index_.lanes() : 1;
  const Expr lane = in_lanes ? index_.lane(lanes) : Expr(0);
  Position result;
  if (reach <= size) return {at + lane, {}};
  // Whole vectors are inside or outside where they divide the axis.
  const bool whole = size % lanes == 0;
  const Expr all = index_.emit_and_bind(at, reach);
  result.mask.require_between(whole ? all : all + lane, 0, size);
  result.at = index_.emit_and_bind(at, size - lanes + 1) + lane;
  return result;
}

// Of the tiles that the SIMD-group has in the block, along one side of it. Neighbouring tiles, or
// runs of them, are of neighbouring SIMD-groups, which so read and write neighbouring elements.
std::vector<MatrixStage::Position> MatrixStage::along(size_t side, const Expr& place) {
  std::vector<Position> result;
  for (const Expr& at : in_block(side, place)) result.push_back(of_block(side, at, side == 1));
  return result;
}
std::vector<Expr> MatrixStage::in_block(size_t side, const Expr& place) const {
  const Expr simd = side == 0 ? floordiv(simd_, plan_.groups[1]) : mod(simd_, plan_.groups[1]);
  std::vector<Expr> result;
  const int64_t run = plan_.adjacent_tiles(side);
  for (int64_t i = 0; i < plan_.tiles[side]; ++i) {
    const Expr number = (simd + Expr(i / run * plan_.groups[side])) * run + Expr(i % run);
    result.push_back(number * plan_.tile_size(side) + place);
  }
  return result;
}
MatrixStage::Position MatrixStage::of_block(size_t side, const Expr& at, bool in_lanes) {
  const int64_t axis = plan_.axis(side), block = plan_.block_size(side);
  const int64_t reach = round_up(nest_.extent(axis), block);
  return position(group_.axes[axis] * block + at, reach, axis, in_lanes);
}

Points MatrixStage::points(const Point& group) {
  group_ = group;
  const Place place = place_in_tile(2, plan_.n);
  Points points;
  for (const Position& row : along(0, place.row))
    for (const Position& column : along(1, place.column)) {
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
  const Var zero = builder_.constant(Scalar::zero(op_.result), index_.lanes());
  std::vector<Var> sums;
  for (size_t i = 0; i < points.size(); ++i) sums.push_back(builder_.acc(zero));
  if (plan_.depth == 0)
    accumulate_directly(stage, sums);
  else
    accumulate_by_panels(stage, sums);
  for (size_t i = 0; i < points.size(); ++i)
    values_.define(value.value, schedule::value_position(stage, value, points[i].axes), sums[i]);
}

// The operand of a side of the block at a position along that side's axis.
Access MatrixStage::operand(const Stage& stage, size_t side, const Position& position,
                            const Position& reduced) const {
  const StageValue& value = stage.values[0];
  std::vector<Expr> axes = group_.axes;
  axes[plan_.rows] = axes[plan_.columns] = Expr(0);
  axes[plan_.axis(side)] = position.at;
  axes[plan_.reduced] = reduced.at;
  const Index inner = schedule::unflatten_index(schedule::inner_position(stage, value, axes),
                                                schedule::reduced_shape(graph_, value.value));
  Access access = schedule::reduction_accesses(
      graph_, value.value, context_.index_of(stage, value, axes), inner)[plan_.operand(side)];
  access.value = multiplied_operand(graph_, access.value, plan_);
  access.mask.require(group_.mask);
  access.mask.require(position.mask);
  access.mask.require(reduced.mask);
  return access;
}

void MatrixStage::accumulate_directly(const Stage& stage, const std::vector<Var>& sums) {
  const int64_t k = plan_.k, size = nest_.extent(plan_.reduced), steps = size / k;
  nest_.loop(steps, [&](const Expr& i) { accumulate(stage, sums, i * k, steps * k); });
  if (size % k) accumulate(stage, sums, Expr(steps * k), (steps + 1) * k);
}

// One step along the reduced axis, from `first` on. Elements beyond the axis's end count as zero in
// both operands; what lies beyond rows and columns only reaches results that are not stored.
void MatrixStage::accumulate(const Stage& stage, const std::vector<Var>& sums, const Expr& first,
                             int64_t reach) {
  const Place a = place_in_tile(0, plan_.k), b = place_in_tile(1, plan_.n);
  const Position of_a = position(first + a.column, reach, plan_.reduced, plan_.k > 1);
  const Position of_b = position(first + b.row, reach, plan_.reduced, false);
  std::vector<Access> wanted;
  for (const Position& row : along(0, a.row)) wanted.push_back(operand(stage, 0, row, of_a));
  const size_t num_rows = wanted.size();
  for (const Position& column : along(1, b.column))
    wanted.push_back(operand(stage, 1, column, of_b));
  std::vector<Var> tiles = values_.evaluate(wanted);
  for (size_t i = 0; i < tiles.size(); ++i)
    tiles[i] = or_zero(tiles[i], i < num_rows ? of_a.mask : of_b.mask);
  multiply({tiles.begin(), tiles.begin() + num_rows}, {tiles.begin() + num_rows, tiles.end()},
           sums);
}

Var MatrixStage::or_zero(Var value, const Mask& mask) {
  const Var inside = index_.emit(mask);
  if (!inside.valid()) return value;
  return index_.where(inside, value, builder_.constant(Scalar::zero(op_.operands)));
}

// Adds the products of a column of tiles and a row of tiles to the sums.
void MatrixStage::multiply(const std::vector<Var>& a, const std::vector<Var>& b,
                           const std::vector<Var>& sums) {
  const Wmma shape{op_.m, op_.n, op_.k, op_.spread};
  size_t next = 0;
  for (const Var row : a)
    for (const Var column : b) {
      const Var x = builder_.splat(row, index_.lanes());
      const Var y = builder_.splat(column, index_.lanes()), sum = sums[next++];
      builder_.assign(sum, width_ == 1 ? builder_.alu_here(AluOp::Mulacc, {x, y, sum})
                                       : builder_.wmma(shape, x, y, sum));
    }
}

// Panels in shared memory.

void MatrixStage::make_panels() {
  const schedule::Kernel& kernel = context_.kernel;
  const int64_t bytes = schedule::panel_bytes(plan_);
  RUNE_CHECK(bytes <= context_.caps.shared_memory_bytes, "kernel ", kernel.name, ": ",
             context_.caps.name, " has ", context_.caps.shared_memory_bytes,
             " bytes of shared memory, not ", bytes);
  const std::array<schedule::Panel, 2> shapes = schedule::matrix_panels(plan_);
  const auto reads = schedule::memory_accesses(graph_, kernel);
  for (size_t side = 0; side < 2; ++side) {
    const auto axis = static_cast<uint32_t>(plan_.axis(side));
    const auto reduced = static_cast<uint32_t>(plan_.reduced);
    const bool along_reduced = std::any_of(reads.begin(), reads.end(), [&](const auto& read) {
      const auto stride = read.position.coefficient_of(reduced);
      return read.stage == 0 && read.position.depends_on(axis) && stride && std::abs(*stride) == 1;
    });
    panels_[side] = {shapes[side],
                     builder_.local(op_.operands, plan_.copies * shapes[side].elements()),
                     along_reduced == (side == 0)};
  }
}

// The elements of the panels of a step that this thread copies.
MatrixStage::Copied MatrixStage::load_panels(const Stage& stage, const Expr& step) {
  const int64_t threads = nest_.threads();
  const int64_t reach = round_up(nest_.extent(plan_.reduced), plan_.depth);
  const Expr thread = nest_.thread_number(threads);
  Copied copied;
  std::vector<Access> wanted;
  std::vector<Mask> inside;
  for (size_t side = 0; side < 2; ++side) {
    const auto& [shape, memory, by_rows] = panels_[side];
    const int64_t size = shape.rows * shape.columns, run = by_rows ? shape.columns : shape.rows;
    for (int64_t first = 0; first < size; first += threads) {
      Mask exists;
      if (size - first < threads) exists.require_between(thread, 0, size - first);
      const Expr number = Expr(first) + nest_.thread_number(std::min(threads, size - first));
      const Expr inner = mod(number, run), outer = floordiv(number, run);
      const Expr row = by_rows ? outer : inner, column = by_rows ? inner : outer;
      const Position own = of_block(side, side == 0 ? row : column, false);
      const Position reduced =
          position(step * plan_.depth + (side == 0 ? column : row), reach, plan_.reduced, false);
      wanted.push_back(operand(stage, side, own, reduced));
      wanted.back().mask.require(exists);
      inside.push_back(reduced.mask);
      copied.push_back({side, in_panel(shape, row, column), {}, exists});
    }
  }
  const std::vector<Var> values = values_.evaluate(wanted);
  for (size_t i = 0; i < values.size(); ++i) copied[i].value = or_zero(values[i], inside[i]);
  return copied;
}

void MatrixStage::store_panels(const Copied& copied, const Expr& copy) {
  for (const Element& element : copied) {
    const Panel& panel = panels_[element.side];
    builder_.store(panel.memory, index_.emit(copy * panel.shape.elements() + element.position),
                   element.value, index_.emit(element.exists), false);
  }
}

// Tiles come from the panels, which hold zeros beyond the reduced axis's end.
void MatrixStage::multiply_panels(const std::vector<Var>& sums, const Expr& copy) {
  nest_.unrolled(plan_.depth / plan_.k, [&](const Expr& i) {
    const auto load = [&](size_t side, const Expr& row, const Expr& column, bool in_lanes) {
      const schedule::Panel& shape = panels_[side].shape;
      const Expr at = copy * shape.elements() + in_panel(shape, row, column);
      return builder_.load_here(panels_[side].memory, index_.emit(at),
                                in_lanes ? index_.lanes() : 1, {});
    };
    const Place a = place_in_tile(0, plan_.k), b = place_in_tile(1, plan_.n);
    const Expr first = i * plan_.k;
    std::vector<Var> rows, columns;
    for (const Expr& row : in_block(0, a.row))
      rows.push_back(load(0, row, first + a.column, plan_.k > 1));
    for (const Expr& column : in_block(1, b.column))
      columns.push_back(load(1, first + b.row, column, true));
    multiply(rows, columns, sums);
  });
}

void MatrixStage::accumulate_by_panels(const Stage& stage, const std::vector<Var>& sums) {
  const int64_t steps = ceil_div(nest_.extent(plan_.reduced), plan_.depth);
  if (plan_.copies == 1)
    return nest_.loop(steps, [&](const Expr& step) {
      store_panels(load_panels(stage, step), Expr(0));
      builder_.barrier();
      multiply_panels(sums, Expr(0));
      builder_.barrier();
    });
  // The next step's elements are loaded before this step's products, from one copy, and stored to
  // the other behind them, which no thread has read since the last barrier.
  store_panels(load_panels(stage, Expr(0)), Expr(0));
  builder_.barrier();
  nest_.loop(steps - 1, [&](const Expr& step) {
    const Copied next = load_panels(stage, step + Expr(1));
    multiply_panels(sums, mod(step, plan_.copies));
    store_panels(next, mod(step + Expr(1), plan_.copies));
    builder_.barrier();
  });
  multiply_panels(sums, Expr((steps - 1) % plan_.copies));
}

}  // namespace rune::lower
