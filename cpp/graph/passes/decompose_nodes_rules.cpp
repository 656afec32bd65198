#include "graph/passes/decompose_nodes_rules.h"

#include <algorithm>
#include <array>
#include <limits>

namespace rune::graph {

namespace {

constexpr int64_t kLongestConstant = 1024;

// Runs of Gep's lanes beyond which they are looked up.
constexpr size_t kMaxRuns = 4;

Value vector_constant(Builder& b, int64_t n, DType dtype) {
  Vconst constant;
  for (int64_t i = 0; i < n; ++i) constant.values.push_back(Scalar::of(dtype, i));
  return b.add(std::move(constant), {});
}

Value slice(Builder& b, Value x, int64_t axis, int64_t low, int64_t high) {
  Pairs limits;
  for (const int64_t size : b.shape(x)) limits.push_back({0, size});
  limits[axis] = {low, high};
  return b.shrink(x, std::move(limits));
}

Value full_like(Builder& b, Scalar value, Value x) {
  return b.full(value, b.shape(x));
}

Value where(Builder& b, Value condition, Value x, Value y) {
  return b.alu(AluOp::Where, {condition, x, y});
}

// x, of the dimensions `at` of `shape` in order, repeated along the others.
Value spread(Builder& b, Value x, const Shape& shape, const Ints& at) {
  Shape ones(shape.size(), 1);
  for (const int64_t axis : at) ones[axis] = shape[axis];
  return b.expand(b.reshape(x, std::move(ones)), shape);
}

}  // namespace

Value iota(Builder& b, int64_t n, DType dtype) {
  if (n <= kLongestConstant) return vector_constant(b, n, dtype);
  // Two digits: the low one of a constant, the high one likewise.
  const int64_t rows = (n + kLongestConstant - 1) / kLongestConstant;
  const Shape shape{rows, kLongestConstant};
  const Value low = spread(b, vector_constant(b, kLongestConstant, dtype), shape, {1});
  const Value high = spread(b, iota(b, rows, dtype), shape, {0});
  const Value scale = b.full(Scalar::of(dtype, kLongestConstant), shape);
  const Value all = b.alu(AluOp::Add, {b.alu(AluOp::Mul, {high, scale}), low});
  return slice(b, b.reshape(all, {rows * kLongestConstant}), 0, 0, n);
}

// Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011), as in
// Random123.
Value decompose_threefry(Builder& b, Value counter, Value key) {
  static constexpr std::array<int, 8> kRotations{13, 15, 26, 6, 17, 29, 16, 24};
  constexpr int kRounds = 20;
  const int64_t last = static_cast<int64_t>(b.shape(counter).size()) - 1;
  const auto word = [&](Value x, int64_t i) { return slice(b, x, last, i, i + 1); };
  const Shape shape = b.shape(word(counter, 0));
  const auto number = [&](uint64_t n) { return b.full(Scalar::of(DType::Uint32, n), shape); };
  const auto alu = [&](AluOp op, Value x, Value y) { return b.alu(op, {x, y}); };

  std::array<Value, 3> keys{word(key, 0), word(key, 1), {}};
  keys[2] = alu(AluOp::Xor, alu(AluOp::Xor, keys[0], keys[1]), number(0x1BD11BDA));
  Value x = alu(AluOp::Add, word(counter, 0), keys[0]);
  Value y = alu(AluOp::Add, word(counter, 1), keys[1]);
  for (int round = 0; round < kRounds; ++round) {
    const int bits = kRotations[round % 8];
    x = alu(AluOp::Add, x, y);
    const Value rotated =
        alu(AluOp::Or, alu(AluOp::Shl, y, number(bits)), alu(AluOp::Shr, y, number(32 - bits)));
    y = alu(AluOp::Xor, rotated, x);
    if (round % 4 != 3) continue;
    const int injection = round / 4 + 1;
    x = alu(AluOp::Add, x, keys[injection % 3]);
    y = alu(AluOp::Add, alu(AluOp::Add, y, keys[(injection + 1) % 3]), number(injection));
  }
  return b.cat({x, y}, last);
}

Value decompose_wmma(Builder& b, Value a, Value bb, Value c) {
  const DType dtype = b.dtype(c);
  const Value product = b.contract(b.cast(a, dtype), b.cast(bb, dtype), {{1, 0}}, {});
  return b.alu(AluOp::Add, {product, c});
}

Value decompose_gep(Builder& b, const Gep& gep, Value x) {
  const int64_t axis = static_cast<int64_t>(b.shape(x).size()) - 1;
  const Ints& lanes = gep.indices;
  if (lanes.empty()) return slice(b, x, axis, 0, 0);
  std::vector<Value> parts;
  for (size_t i = 0; i < lanes.size() && parts.size() <= kMaxRuns;) {
    const int64_t step = i + 1 < lanes.size() && lanes[i + 1] == lanes[i] - 1 ? -1 : 1;
    size_t end = i + 1;
    while (end < lanes.size() && lanes[end] == lanes[end - 1] + step) ++end;
    const int64_t first = lanes[i], last = lanes[end - 1];
    const Value part = slice(b, x, axis, std::min(first, last), std::max(first, last) + 1);
    parts.push_back(step < 0 ? b.flip(part, {axis}) : part);
    i = end;
  }
  if (parts.size() <= kMaxRuns) return parts.size() == 1 ? parts[0] : b.cat(parts, axis);
  Vconst indices;
  for (const int64_t lane : lanes) indices.values.push_back(Scalar::of(DType::Int64, lane));
  return b.add(Gather{axis}, {x, b.add(std::move(indices), {})});
}

Value decompose_multi(Builder& b, const Multi& multi, const std::vector<Value>& shards) {
  std::vector<Value> parts;
  for (size_t i = 0; i < shards.size(); ++i) {
    if (!multi.axis && multi.real[i]) return shards[i];
    parts.push_back(multi.real[i] ? shards[i]
                                  : full_like(b, Scalar::zero(b.dtype(shards[i])), shards[i]));
  }
  return multi.axis && parts.size() > 1 ? b.cat(parts, *multi.axis) : parts[0];
}

namespace {

// The shapes of a Scatter: target [pre, size, post], updates [pre, count, post].
struct ScatterSizes {
  int64_t axis, size, count;
  Shape target;
};

// bool[size, count]: whether update number j is for position i.
Value scatter_matches(Builder& b, const ScatterSizes& s, Value indices) {
  const DType from = b.dtype(indices);
  const bool wide =
      size_of(from) > 4 || from == DType::Uint32 || s.size > std::numeric_limits<int32_t>::max();
  const DType dtype = wide ? DType::Int64 : DType::Int32;
  Value at = b.cast(b.reshape(indices, {s.count}), dtype);
  // A uint64 beyond int64 is negative here, and matches nothing.
  if (is_signed(from)) {
    const Value negative = b.alu(AluOp::Cmplt, {at, full_like(b, Scalar::zero(dtype), at)});
    const Value wrapped = b.alu(AluOp::Add, {at, full_like(b, Scalar::of(dtype, s.size), at)});
    at = where(b, negative, wrapped, at);
  }
  const Shape shape{s.size, s.count};
  return b.alu(AluOp::Cmpeq,
               {spread(b, at, shape, {1}), spread(b, iota(b, s.size, dtype), shape, {0})});
}

// A value for each position along the axis, for the whole target.
Value per_position(Builder& b, const ScatterSizes& s, Value x) {
  return spread(b, b.reshape(x, {s.size}), s.target, {s.axis});
}

Value scatter_add(Builder& b, const ScatterSizes& s, Value target, Value updates, Value matches) {
  const DType dtype = b.dtype(target);
  // Half precision is summed in single and rounded once.
  const DType sum_dtype = is_float(dtype) && size_of(dtype) < 4 ? DType::Float32 : dtype;
  Shape shape = s.target;
  shape.insert(shape.begin() + s.axis + 1, s.count);
  Shape column = shape;
  column[s.axis] = 1;
  const Value each = b.expand(b.reshape(b.cast(updates, sum_dtype), column), shape);
  const Value match = spread(b, matches, shape, {s.axis, s.axis + 1});
  const Value mine = where(b, match, each, b.full(Scalar::zero(sum_dtype), shape));
  const Value sum = b.reshape(b.reduce(ReduceOp::Add, mine, {s.axis + 1}), s.target);
  const Value total = b.cast(b.alu(AluOp::Add, {b.cast(target, sum_dtype), sum}), dtype);
  if (!is_float(dtype)) return total;
  // Where nothing is added, -0.0 and the payload of NaN stay.
  const Value any = b.reduce(ReduceOp::Max, matches, {1});
  return where(b, per_position(b, s, any), total, target);
}

Value scatter_set(Builder& b, const ScatterSizes& s, Value target, Value updates, Value matches) {
  const DType dtype = s.count > std::numeric_limits<int32_t>::max() ? DType::Int64 : DType::Int32;
  const Shape shape{s.size, s.count};
  const Value number = spread(b, iota(b, s.count, dtype), shape, {1});
  const Value none = b.full(Scalar::of(dtype, -1), shape);
  const Value last = b.reduce(ReduceOp::Max, where(b, matches, number, none), {1});
  const Value at = b.reshape(last, {s.size});
  const Value found = b.alu(AluOp::Cmple, {full_like(b, Scalar::zero(dtype), at), at});
  const Value safe = b.alu(AluOp::Max, {at, full_like(b, Scalar::zero(dtype), at)});
  const Value chosen = b.add(Gather{s.axis}, {updates, safe});
  return where(b, per_position(b, s, found), chosen, target);
}

}  // namespace

Value decompose_scatter(Builder& b, const Scatter& scatter, Value target, Value indices,
                        Value updates) {
  const Shape shape = b.shape(target);
  const ScatterSizes s{scatter.axis, shape[scatter.axis], num_elements(b.shape(indices)), shape};
  if (num_elements(shape) == 0 || s.count == 0) return target;
  Shape flat = shape;
  flat[s.axis] = s.count;
  updates = b.reshape(updates, flat);
  const Value matches = scatter_matches(b, s, indices);
  return scatter.mode == ScatterMode::Add ? scatter_add(b, s, target, updates, matches)
                                          : scatter_set(b, s, target, updates, matches);
}

}  // namespace rune::graph
