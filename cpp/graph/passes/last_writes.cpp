#include "graph/passes/last_writes.h"

#include <algorithm>

#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

// Iterations must write at least this part of the computed elements.
constexpr double kLeastWritten = 0.4;

Value full_true(Builder& b, const Shape& shape) {
  return b.full(Scalar::of(DType::Bool, true), shape);
}

// For each point, whether `constant` plus the sum of its coordinates times `factors` is not
// negative. No value if that holds for all points.
Value not_negative(Builder& b, const Ints& shape, Ints factors, int64_t constant) {
  int64_t least = constant, greatest = constant;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t last = factors[d] * (shape[d] - 1);
    least += std::min<int64_t>(last, 0);
    greatest += std::max<int64_t>(last, 0);
  }
  if (least >= 0) return {};
  if (greatest < 0) return b.full(Scalar::of(DType::Bool, false), to_shape(shape));
  const int64_t values = greatest - least + 1;
  const rune::View range{{values}, {0}, 0, std::vector{std::pair{-least, values}}};
  const rune::View points{shape, std::move(factors), constant - least, std::nullopt};
  return b.add(View{ShapeTracker{{range, points}}}, {full_true(b, {Dim(1)})});
}

// The logical `and` of two masks. A mask without a value is true everywhere.
Value both(Builder& b, Value x, Value y) {
  if (!x.valid() || !y.valid()) return x.valid() ? x : y;
  return b.alu(AluOp::And, {x, y});
}

// A size that is linear in the number of the iteration, where iterations are numbered in the order
// of memory.
struct Line {
  int64_t at_first, slope;
};
std::optional<Line> line_of(const Iterations& iterations, const Dim& size, bool is_backwards) {
  const Dim first = iterations.at(is_backwards ? iterations.count - 1 : Dim(0), size);
  const int64_t growth = *iterations.growth(size);
  if (!first.is_constant()) return std::nullopt;
  return Line{first.constant(), is_backwards ? -growth : growth};
}

}  // namespace

std::optional<Boxes> boxes_of_all(Builder& b, const Graph& graph, const Iterations& iterations,
                                  const Write& write, const Lifted& part) {
  Boxes result{part.value,      {},         graph[write.update].as<Update>()->offsets,
               write.axis,      write.size, write.stride < 0,
               iterations.count};
  const Shape& box = graph[graph[write.update].inputs[1]].shape();
  const auto rank = static_cast<int64_t>(box.size());
  Value& all = result.all;
  if (result.is_backwards) all = b.flip(all, {0});

  // By axis of `all`: the number of elements of its window in the first iteration, and in the
  // others.
  struct Limits {
    int64_t axis;
    Line low, high;
  };
  std::vector<Limits> limits;
  double used = 1;
  for (const int64_t d : write.windows) {
    const Dim low = result.offsets[d], high = low + box[d];
    const auto hull = iterations.hull(low, high);
    const std::optional<Window>& window = part.windows[d];
    if (!hull || !window || !iterations.count.is_constant()) return std::nullopt;
    const auto& [least, greatest] = *hull;
    const auto first = line_of(iterations, low - least, result.is_backwards);
    const auto last = line_of(iterations, high - least, result.is_backwards);
    if (!first || !last || !(greatest - least).is_constant()) return std::nullopt;
    const int64_t size = (greatest - least).constant();
    const int64_t count = iterations.count.constant();
    if (size <= 0) return std::nullopt;
    used *= (static_cast<double>(last->at_first - first->at_first) +
             static_cast<double>((last->slope - first->slope) * (count - 1)) / 2) /
            static_cast<double>(size);
    if (window->is_uniform) {
      Shape shape = b.shape(all);
      shape[1 + d] = size;
      all = b.expand(all, std::move(shape));
    } else {
      const Dim shift = window->low - low;
      if (iterations.decide(shift)) return std::nullopt;
      all = b.slice(all, 1 + d, shift + least, shift + greatest);
    }
    limits.push_back({1 + d, *first, *last});
    result.offsets[d] = least;
  }
  if (used < kLeastWritten) return std::nullopt;
  for (const Limits& each : limits) {
    if (!is_constant(b.shape(all))) return std::nullopt;
    const Ints shape = constants_of(b.shape(all));
    Ints factors(shape.size());
    factors[each.axis] = 1, factors[0] = -each.low.slope;
    result.written = both(b, result.written, not_negative(b, shape, factors, -each.low.at_first));
    factors[each.axis] = -1, factors[0] = each.high.slope;
    result.written =
        both(b, result.written, not_negative(b, shape, factors, each.high.at_first - 1));
  }

  // Puts the boxes side by side.
  Ints order;
  for (int64_t d = 0; d < rank; ++d) {
    if (d == write.axis) order.push_back(0);
    order.push_back(1 + d);
  }
  Shape shape = b.shape(all);
  shape.erase(shape.begin());
  shape[write.axis] = iterations.count * write.size;
  for (Value* v : {&all, &result.written})
    if (v->valid()) *v = b.reshape(b.permute(*v, order), shape);
  result.offsets[write.axis] = iterations.extreme(write.offset, write.stride, true);
  return result;
}

Value write_boxes(Builder& b, const Boxes& boxes, Value target) {
  Value all = boxes.all;
  const Shape shape = b.shape(all);
  if (boxes.written.valid()) {
    DimPairs limits;
    for (size_t d = 0; d < shape.size(); ++d)
      limits.emplace_back(boxes.offsets[d], boxes.offsets[d] + shape[d]);
    all = b.alu(AluOp::Where, {boxes.written, all, b.shrink(target, std::move(limits))});
  }
  if (shape == b.shape(target)) return all;
  return b.add(Update{boxes.offsets}, {target, all});
}

std::optional<Value> write_last(Builder& b, std::vector<Boxes> writes, Value target) {
  constexpr size_t kMostWrites = 4;  // because each is compared with those before it
  if (writes.size() > kMostWrites || !is_constant(b.shape(target))) return std::nullopt;
  const Ints shape = constants_of(b.shape(target));
  for (Boxes& boxes : writes) {
    if (boxes.size != 1 || !is_constant(b.shape(boxes.all))) return std::nullopt;
    const double part = static_cast<double>(max_elements(b.shape(boxes.all)));
    if (part < kLeastWritten * static_cast<double>(num_elements(shape))) return std::nullopt;
    if (!boxes.written.valid()) boxes.written = full_true(b, b.shape(boxes.all));
    DimPairs around;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (!boxes.offsets[d].is_constant()) return std::nullopt;
      around.emplace_back(boxes.offsets[d], shape[d] - boxes.offsets[d] - b.shape(boxes.all)[d]);
    }
    boxes.all = b.pad(boxes.all, around);
    boxes.written = b.pad(boxes.written, around);
  }
  // The number of the iteration that writes an element, as a function of its coordinate.
  const auto number = [](const Boxes& boxes) {
    const int64_t first = boxes.offsets[boxes.axis].constant();
    return boxes.is_backwards ? Line{first + boxes.count.constant() - 1, -1} : Line{-first, 1};
  };
  Value result = target;
  for (size_t i = 0; i < writes.size(); ++i) {
    const Boxes& own = writes[i];
    Value counts = own.written;
    for (size_t j = 0; j < i; ++j) {
      const Boxes& other = writes[j];
      const Line a = number(own), c = number(other);
      Ints factors(shape.size());
      factors[own.axis] += a.slope, factors[other.axis] -= c.slope;
      const Value is_later = not_negative(b, shape, factors, a.at_first - c.at_first);
      if (!is_later.valid()) continue;
      const Value is_alone = b.alu(AluOp::Not, {other.written});
      counts = both(b, counts, b.alu(AluOp::Or, {is_alone, is_later}));
    }
    result = b.alu(AluOp::Where, {counts, own.all, result});
  }
  return result;
}

}  // namespace rune::graph
