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
  return panel.transposed ? column * panel.stride + row : row * panel.stride + column;
}

// The sum of steps[i] over the bits i that are set in a number. Adjacent bits whose steps double
// are treated as one number.
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

MatrixStage::Fragment MatrixStage::fragment(size_t tile, int64_t columns) const {
  const Ints& strides = op_.spread[tile];
  Ints row_steps, column_steps;
  size_t i = 0;
  for (; int64_t{1} << i < width_; ++i) {
    row_steps.push_back(strides[i] / columns);
    column_steps.push_back(strides[i] % columns);
  }
  Fragment result{
      {sum_of_bits(thread_, row_steps), sum_of_bits(thread_, column_steps)}, 1, false, {}};
  result.in_column = i < strides.size() && strides[i] == columns && columns > 1;
  const int64_t step = result.in_column ? columns : 1;
  for (; i < strides.size() && strides[i] == step * result.lanes; ++i) result.lanes *= 2;
  const int64_t count = int64_t{1} << (strides.size() - i);
  for (int64_t piece = 0; piece < count; ++piece) {
    int64_t at = 0;
    for (size_t bit = i; bit < strides.size(); ++bit)
      if (piece >> (bit - i) & 1) at += strides[bit];
    result.pieces.emplace_back(at / columns, at % columns);
  }
  return result;
}

// The position along an axis. Beyond the axis's end, where the mask is false, it may be wrong: its
// bounds are those of the axis, so that indices stay simple.
MatrixStage::Position MatrixStage::position(const Expr& at, int64_t reach, int64_t axis,
                                            bool in_lanes) {
  const int64_t size = nest_.extent(axis), lanes = in_lanes ? index_.lanes() : 1;
  const Expr lane = in_lanes ? index_.lane(lanes) : Expr(0);
  Position result;
  if (reach <= size) return {at + lane, {}};
  // If vectors divide the axis, each is inside or outside as a whole.
  const bool whole = size % lanes == 0;
  const Expr all = index_.emit_and_bind(at, reach);
  result.mask.require_between(whole ? all : all + lane, 0, size);
  result.at = index_.emit_and_bind(at, size - lanes + 1) + lane;
  return result;
}

// The positions of the SIMD-group's tiles along one side of the block. Adjacent tiles, or runs of
// them, belong to adjacent SIMD-groups, so that these read and write adjacent elements.
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
  const Fragment held = fragment(2, plan_.n);
  std::vector<std::vector<Position>> rows, columns;  // by piece
  for (const auto& [row, column] : held.pieces) {
    rows.push_back(along(0, held.first.row + row));
    columns.push_back(along(1, held.first.column + column));
  }
  Points points;
  for (int64_t i = 0; i < plan_.tiles[0] * plan_.tiles[1]; ++i)
    for (size_t piece = 0; piece < held.pieces.size(); ++piece) {
      const Position& row = rows[piece][i / plan_.tiles[1]];
      const Position& column = columns[piece][i % plan_.tiles[1]];
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
  const Fragment held = fragment(2, plan_.n);
  const size_t pieces = held.pieces.size();
  const Var zero =
      builder_.constant(Scalar::zero(op_.result), static_cast<int>(pieces * held.lanes));
  std::vector<Var> sums;
  for (size_t i = 0; i < points.size() / pieces; ++i) sums.push_back(builder_.acc(zero));
  if (plan_.depth == 0)
    accumulate_directly(stage, sums);
  else
    accumulate_by_panels(stage, sums);
  for (size_t i = 0; i < points.size(); ++i) {
    Var sum = sums[i / pieces];
    if (pieces > 1) {
      Ints lanes;
      for (int64_t lane = 0; lane < held.lanes; ++lane)
        lanes.push_back(static_cast<int64_t>(i % pieces) * held.lanes + lane);
      sum = builder_.shuffle_here(sum, std::move(lanes));
    }
    values_.define(value.value, schedule::value_position(stage, value, points[i].axes), sum);
  }
}

// The access of the operand that belongs to a side of the block, at a position along that side's
// axis.
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

// Does one step along the reduced axis, from `first` on. Elements beyond the axis's end count as
// zero in both operands. Elements beyond rows and columns only affect results that are not stored.
void MatrixStage::accumulate(const Stage& stage, const std::vector<Var>& sums, const Expr& first,
                             int64_t reach) {
  const Place a = fragment(0, plan_.k).first, b = fragment(1, plan_.n).first;
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
      const Var sum = sums[next++];
      // An operand that is a single number has no lanes yet.
      const auto splat = [&](Var x, int64_t lanes) {
        return builder_.splat(x, static_cast<int>(lanes));
      };
      if (width_ == 1) {
        const int lanes = index_.lanes();
        builder_.assign(
            sum, builder_.alu_here(AluOp::Mulacc, {splat(row, lanes), splat(column, lanes), sum}));
        continue;
      }
      const int64_t threads = shape.threads(builder_.type(sum).lanes);
      const Var left = splat(row, op_.m * op_.k / threads);
      const Var right = splat(column, op_.k * op_.n / threads);
      builder_.assign(sum, builder_.wmma(shape, left, right, sum));
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
                     along_reduced == (side == 0), neighbours(side, along_reduced)};
  }
}

// The number of adjacent elements of an operand that a thread copies in one access: those of a
// vector, if all runs are aligned.
int64_t MatrixStage::neighbours(size_t side, bool along_reduced) const {
  // If threads multiply alone, loads of single elements keep more loads in flight.
  const int64_t count = width_ == 1 ? 1 : index_.lanes();
  const auto divides = [&](int64_t axis, int64_t block) { return nest_.extent(axis) % block == 0; };
  if (count < 2 || count * size_of(op_.operands) > context_.caps.access_bytes ||
      plan_.depth % count || plan_.block_size(side) % count ||
      !divides(plan_.reduced, plan_.depth) || !divides(plan_.axis(side), plan_.block_size(side)))
    return 1;
  const int64_t along = along_reduced ? plan_.reduced : plan_.axis(side);
  const auto is_aligned = [&](const schedule::MemoryAccess& read) {
    const auto depends = [&](int64_t axis) {
      return read.position.depends_on(static_cast<uint32_t>(axis));
    };
    if (read.stage != 0 || !depends(plan_.axis(side)) || !depends(along)) return true;
    const sym::Expr start = read.position - schedule::axis_variables(context_.kernel.iter)[along];
    return !start.depends_on(static_cast<uint32_t>(along)) && start.known_divisor() % count == 0;
  };
  const auto reads = schedule::memory_accesses(graph_, context_.kernel);
  return std::all_of(reads.begin(), reads.end(), is_aligned) ? count : 1;
}

// Loads the elements of a step's panels that this thread copies.
MatrixStage::Copied MatrixStage::load_panels(const Stage& stage, const Expr& step) {
  const int64_t threads = nest_.threads();
  const int64_t reach = round_up(nest_.extent(plan_.reduced), plan_.depth);
  const Expr thread = nest_.thread_number(threads);
  Copied copied;
  std::vector<Access> wanted;
  std::vector<Mask> inside;
  for (size_t side = 0; side < 2; ++side) {
    const auto& [shape, memory, by_rows, together] = panels_[side];
    const int64_t size = shape.rows * shape.columns, run = by_rows ? shape.columns : shape.rows;
    for (int64_t first = 0; first < size / together; first += threads) {
      const int64_t left = size / together - first;
      Mask exists;
      if (left < threads) exists.require_between(thread, 0, left);
      const Expr number = Expr(first) + nest_.thread_number(std::min(threads, left));
      const Expr inner = mod(number, run / together) * together;
      const Expr outer = floordiv(number, run / together);
      const Expr row = by_rows ? outer : inner, column = by_rows ? inner : outer;
      const bool along_reduced = by_rows == (side == 0);
      const Position own = of_block(side, side == 0 ? row : column, together > 1 && !along_reduced);
      const Position reduced = position(step * plan_.depth + (side == 0 ? column : row), reach,
                                        plan_.reduced, together > 1 && along_reduced);
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

// Stores the copied elements to the panels. Vectors across a panel are stored element by element.
void MatrixStage::store_panels(const Copied& copied, const Expr& copy) {
  for (const Element& element : copied) {
    const Panel& panel = panels_[element.side];
    const Expr at = copy * panel.shape.elements() + element.position;
    Var exists = index_.emit(element.exists);
    const bool across = panel.by_rows == panel.shape.transposed;
    const int64_t lanes = across ? panel.neighbours : 1;
    const Var value = builder_.splat(element.value, static_cast<int>(panel.neighbours));
    if (exists.valid() && lanes == 1)
      exists = builder_.splat(exists, static_cast<int>(panel.neighbours));
    for (int64_t lane = 0; lane < lanes; ++lane)
      builder_.store(panel.memory, index_.emit(at + Expr(lane * panel.shape.stride)),
                     lanes == 1 ? value : builder_.shuffle_here(value, {lane}), exists, false);
  }
}

// Loads the thread's elements of the tile that begins at a position in the panel.
Var MatrixStage::load_fragment(size_t side, const Expr& copy, const Place& tile,
                               const Fragment& held) {
  const schedule::Panel& shape = panels_[side].shape;
  RUNE_CHECK(held.lanes == 1 || held.in_column == shape.transposed,
             "the lanes of a tile are no neighbours in its panel");
  std::vector<Var> pieces;
  for (const auto& [row, column] : held.pieces) {
    const Expr at = copy * shape.elements() + in_panel(shape, tile.row + row, tile.column + column);
    pieces.push_back(builder_.load_here(panels_[side].memory, index_.emit(at),
                                        static_cast<int>(held.lanes), {}));
  }
  if (pieces.size() == 1) return pieces[0];
  Ints lanes;
  for (int64_t i = 0; i < static_cast<int64_t>(pieces.size()) * held.lanes; ++i) lanes.push_back(i);
  return builder_.shuffle(pieces, std::move(lanes));
}

// Multiplies tiles from the panels, which hold zeros beyond the reduced axis's end.
void MatrixStage::multiply_panels(const std::vector<Var>& sums, const Expr& copy) {
  const Fragment a = fragment(0, plan_.k), b = fragment(1, plan_.n);
  nest_.unrolled(plan_.depth / plan_.k, [&](const Expr& i) {
    const Expr first = i * plan_.k;
    std::vector<Var> rows, columns;
    for (const Expr& row : in_block(0, a.first.row))
      rows.push_back(load_fragment(0, copy, {row, first + a.first.column}, a));
    for (const Expr& column : in_block(1, b.first.column))
      columns.push_back(load_fragment(1, copy, {first + b.first.row, column}, b));
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
  // There are two copies of the panels. Before this step's products, which read one copy, the next
  // step's elements are loaded. After the products, they are stored to the other copy, which no
  // thread has read since the last barrier.
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
