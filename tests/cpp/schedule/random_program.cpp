#include "random_program.h"

#include <algorithm>
#include <numeric>

namespace rune::schedule {

namespace {

constexpr int64_t kMaxElements = 120;

std::vector<Shape> factorisations(int64_t n) {
  std::vector<Shape> result{{n}, {1, n}, {n, 1}};
  for (int64_t a = 2; a < n; ++a) {
    if (n % a) continue;
    result.push_back({a, n / a});
    for (int64_t c = 2; c < n / a; ++c)
      if ((n / a) % c == 0) result.push_back({a, c, n / a / c});
  }
  return result;
}

}  // namespace

Value RandomProgram::pick() {
  // Late values more often.
  const auto n = static_cast<int64_t>(pool_.size());
  return pool_[std::max(below(n), below(n))];
}

void RandomProgram::add_input() {
  Ints shape;
  const int64_t rank = below(4);
  for (int64_t i = 0; i < rank; ++i) shape.push_back(1 + below(5));
  pool_.push_back(builder_.placeholder(DType::Int64, to_shape(shape)));
  inputs_.push_back(arange(shape, static_cast<int64_t>(100 * inputs_.size()) + 1));
}

Value RandomProgram::view(Value x) {
  const int64_t count = max_elements(builder_.shape(x));
  ShapeTracker tracker;
  int64_t available = count;
  for (int64_t level = chance(50) ? 2 : 1; level-- > 0;) {
    View v;
    int64_t low = 0, high = 0;
    std::vector<std::pair<int64_t, int64_t>> mask;
    for (int64_t i = below(3) + 1; i-- > 0;) {
      const int64_t size = 1 + below(5);
      const int64_t begin = chance(30) ? below(size) : 0;
      const int64_t end = chance(30) ? begin + 1 + below(size - begin) : size;
      const int64_t stride = below(7) - 2;
      v.shape.push_back(size);
      v.strides.push_back(stride);
      mask.push_back({begin, end});
      low += std::min(stride * begin, stride * (end - 1));
      high += std::max(stride * begin, stride * (end - 1));
    }
    if (high - low >= available) return x;
    v.offset = -low + below(available - (high - low));
    if (chance(60)) {
      v.mask = mask;
    } else {
      for (size_t i = 0; i < mask.size(); ++i) {
        if (mask[i] != std::pair<int64_t, int64_t>{0, v.shape[i]}) v.mask = mask;
      }
    }
    available = num_elements(v.shape);
    tracker.views.push_back(std::move(v));
  }
  return builder_.add(graph::View{tracker}, {x});
}

void RandomProgram::add_movement() {
  const Value x = pick();
  const Shape shape = builder_.shape(x);
  const auto rank = static_cast<int64_t>(shape.size());
  Value y = x;
  switch (below(8)) {
    case 0: {
      const std::vector<Shape> options = factorisations(max_elements(shape));
      y = builder_.reshape(x, options[below(static_cast<int64_t>(options.size()))]);
      break;
    }
    case 1: {
      Ints axes(rank);
      std::iota(axes.begin(), axes.end(), 0);
      std::shuffle(axes.begin(), axes.end(), random_);
      y = builder_.permute(x, axes);
      break;
    }
    case 2: {
      Shape wide = shape;
      for (Dim& size : wide)
        if (size == 1 && max_elements(wide) <= kMaxElements / 4) size = 1 + below(4);
      y = builder_.expand(x, wide);
      break;
    }
    case 3: {
      graph::DimPairs widths;
      for (int64_t i = 0; i < rank; ++i) widths.push_back({below(3), below(3)});
      if (max_elements(shape) <= kMaxElements / 8) y = builder_.pad(x, widths);
      break;
    }
    case 4: {
      graph::DimPairs limits;
      for (const int64_t size : constants_of(shape)) {
        const int64_t low = below(size);
        limits.push_back({low, low + 1 + below(size - low)});
      }
      y = builder_.shrink(x, limits);
      break;
    }
    case 5: {
      Ints axes;
      for (int64_t i = 0; i < rank; ++i)
        if (chance(50)) axes.push_back(i);
      y = builder_.flip(x, axes);
      break;
    }
    case 6: {
      if (rank == 0 || max_elements(shape) > kMaxElements / 2) break;
      const int64_t axis = below(rank);
      std::vector<Value> parts{x};
      for (const Value v : pool_) {
        Shape other = builder_.shape(v);
        if (other.size() != shape.size()) continue;
        other[axis] = shape[axis];
        if (other == shape && parts.size() < 3 &&
            max_elements(builder_.shape(v)) <= kMaxElements / 4)
          parts.push_back(v);
      }
      if (parts.size() == 1) parts.push_back(x);
      std::shuffle(parts.begin(), parts.end(), random_);
      y = builder_.cat(parts, axis);
      break;
    }
    default: y = view(x); break;
  }
  pool_.push_back(y);
}

Value RandomProgram::fit(Value x, const Shape& shape) {
  if (builder_.shape(x) == shape) return x;
  const int64_t have = max_elements(builder_.shape(x)), want = max_elements(shape);
  if (have == want) return builder_.reshape(x, shape);
  Value flat = builder_.reshape(x, {have});
  if (have > want) flat = builder_.shrink(flat, {{have - want, have}});
  if (have < want) flat = builder_.pad(flat, {{0, want - have}});
  return builder_.reshape(flat, shape);
}

void RandomProgram::add_elementwise() {
  static constexpr AluOp kOps[] = {AluOp::Add, AluOp::Sub, AluOp::Mul, AluOp::Max, AluOp::Min};
  const Value x = pick();
  const Shape shape = builder_.shape(x);
  Value y = pick();
  const Shape& other = builder_.shape(y);
  bool broadcasts = other.size() == shape.size();
  for (size_t i = 0; i < shape.size() && broadcasts; ++i)
    broadcasts = other[i] == 1 || other[i] == shape[i];
  y = broadcasts ? builder_.expand(y, shape) : fit(y, shape);
  if (chance(10)) y = builder_.full(Scalar::of(DType::Int64, below(5) - 2), shape);
  pool_.push_back(chance(10) ? builder_.alu(AluOp::Neg, {x})
                             : builder_.alu(kOps[below(5)], {x, y}));
}

void RandomProgram::add_reduction() {
  static constexpr ReduceOp kOps[] = {ReduceOp::Add, ReduceOp::Max, ReduceOp::Min, ReduceOp::Prod};
  const Value x = pick();
  const Shape shape = builder_.shape(x);
  Ints axes;
  for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i)
    if (chance(50)) axes.push_back(i);
  if (axes.empty()) return;
  const Value y = builder_.reduce(kOps[below(4)], x, axes);
  pool_.push_back(y);
  // Often back over what was reduced, as in a normalisation.
  if (chance(50)) pool_.push_back(builder_.alu(AluOp::Sub, {x, builder_.expand(y, shape)}));
}

void RandomProgram::add_contraction() {
  const Value x = pick();
  const Shape shape = builder_.shape(x);
  if (shape.size() < 2) return;
  const int64_t k = shape.back().constant();
  const bool batched = shape.size() == 3;
  const Value y = fit(pick(), batched ? Shape{shape[0], k, 3} : Shape{k, 4});
  pool_.push_back(batched ? builder_.contract(x, y, {{2, 1}}, {{0, 0}})
                          : builder_.contract(x, y, {{1, 0}}, {}));
}

void RandomProgram::add_any() {
  const int64_t kind = below(10);
  if (kind < 4)
    add_elementwise();
  else if (kind < 7)
    add_movement();
  else if (kind < 9)
    add_reduction();
  else
    add_contraction();
  if (chance(5)) pool_.push_back(builder_.contiguous(pool_.back()));
}

std::vector<Value> RandomProgram::pick_outputs() {
  std::vector<Value> outputs{pool_.back()};
  for (int64_t i = below(3); i-- > 0;) outputs.push_back(pick());
  return outputs;
}

}  // namespace rune::schedule
