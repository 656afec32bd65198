#include "graph/passes/decompose_nodes_rules.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace rune::graph {

namespace {

// Runs of Gep's lanes beyond which they are looked up.
constexpr size_t kMaxRuns = 4;

Value slice(Builder& b, Value x, int64_t axis, int64_t low, int64_t high) {
  DimPairs limits;
  for (const Dim& size : b.shape(x)) limits.push_back({0, size});
  limits[axis] = {low, high};
  return b.shrink(x, std::move(limits));
}

Value full_like(Builder& b, Scalar value, Value x) {
  return b.full(value, b.shape(x));
}

}  // namespace

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

Value decompose_scatter(Builder& b, const Scatter& scatter, Value target, Value indices,
                        Value updates) {
  const Shape shape = b.shape(target);
  const Shape& all = b.shape(indices);
  if (max_elements(shape) == 0 || max_elements(all) == 0) return target;
  const auto own = all.begin() + scatter.batch_rank();
  Shape flat(all.begin(), own), rows = shape;
  flat.push_back(std::accumulate(
      own, all.end(), Dim(1), [](const Dim& x, const Dim& y) { return product("scatter", x, y); }));
  rows[scatter.axis] = flat.back();
  return b.add(scatter, {target, b.reshape(indices, flat), b.reshape(updates, rows)});
}

Value decompose_scan(Builder& b, const Scan& scan, const std::vector<Value>& in) {
  const Shape shape = b.shape(in[0]);
  if (max_elements(shape) == 0) return b.full(Scalar::zero(b.dtype(in[0])), shape);
  if (shape[scan.axis] != 1) return b.add(scan, in);
  return in.size() == 1 ? in[0] : b.alu(alu_of(scan.op), {in[1], in[0]});
}

}  // namespace rune::graph
