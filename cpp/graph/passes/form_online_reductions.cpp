#include "graph/passes/passes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "alu/eval.h"
#include "graph/parallel_work.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

// The number of parts per size of the second-level cache. A part stays in the cache between its two
// reductions, with room for the next one.
constexpr int64_t kPartsPerCache = 8;
constexpr int64_t kPartsPerCore = 8;
// For reductions of columns on a grid: the number of threads per core, and the least and most rows
// of each.
constexpr int64_t kColumnThreads = 2048;
constexpr int64_t kLeastPartRows = 8, kMostPartRows = 32;
// The most scalar nodes between a sum and the value computed from it that is subtracted.
constexpr int kMostSteps = 8;

bool is_alu(const Node& node, AluOp op) {
  const auto* unary = node.as<Unary>();
  const auto* binop = node.as<Binop>();
  return (unary && unary->op == op) || (binop && binop->op == op);
}

bool is_square_of_one(const Node& node) {
  return is_alu(node, AluOp::Mul) && node.inputs[0] == node.inputs[1];
}

// A reduction of x that depends on another reduction of x over the same axes, by way of c:
// - the sum of exp(x - c), where c is x's maximum;
// - the sum of x - c or of its square, where c is computed from x's sum;
// - the least position where x is c, its maximum or minimum.
enum class Term { Exponential, Difference, Square, Position };
struct Dependent {
  Value first;  // the maximum, the minimum or the sum
  Value centre;
  Term term;
};

class DependentFinder {
 public:
  explicit DependentFinder(const Graph& graph) : graph_(graph) {}

  std::optional<Dependent> find(const Node& node) const {
    const auto* reduce = node.as<Reduce_Axis>();
    if (!reduce) return std::nullopt;
    return reduce->op == ReduceOp::Min ? position(node, *reduce) : sum(node, *reduce);
  }

  // The node x == c of min(where(x == c, position, none)). The condition may also be
  // x == c or isnan(x).
  const Node& equal(const Node& minimum) const {
    const Node& condition = graph_[graph_[minimum.inputs[0]].inputs[0]];
    return is_alu(condition, AluOp::Or) ? graph_[condition.inputs[0]] : condition;
  }

 private:
  std::optional<Dependent> position(const Node& node, const Reduce_Axis& minimum) const {
    const Node& chosen = graph_[node.inputs[0]];
    const auto* ternary = chosen.as<Ternary>();
    if (!ternary || ternary->op != AluOp::Where || !is_none(chosen.inputs[2], node.dtype()))
      return std::nullopt;
    const Node& found = equal(node);
    if (!is_alu(found, AluOp::Cmpeq)) return std::nullopt;
    const Value x = found.inputs[0];
    const Node& condition = graph_[chosen.inputs[0]];
    if (&condition != &found) {
      const Node& nan = graph_[condition.inputs[1]];
      if (!is_alu(nan, AluOp::Isnan) || nan.inputs[0] != x) return std::nullopt;
    }
    const Node& spread = graph_[found.inputs[1]];
    if (spread.kind() != NodeKind::Expand) return std::nullopt;
    const Value centre = spread.inputs[0];
    if (graph_[centre].shape() != node.shape()) return std::nullopt;
    const auto* first = graph_[centre].as<Reduce_Axis>();
    if (!first || (first->op != ReduceOp::Max && first->op != ReduceOp::Min) ||
        first->axes != minimum.axes || graph_[centre].inputs[0] != x)
      return std::nullopt;
    return Dependent{centre, centre, Term::Position};
  }

  // Whether no position is greater.
  bool is_none(Value v, DType dtype) const {
    while (is_movement(graph_[v].kind()) && graph_[v].inputs.size() == 1) v = graph_[v].inputs[0];
    const auto* scalar = graph_[v].as<Const_Scalar>();
    return scalar && scalar->value == neutral(ReduceOp::Min, dtype);
  }

  std::optional<Dependent> sum(const Node& node, const Reduce_Axis& sum) const {
    if (sum.op != ReduceOp::Add || !is_float(node.dtype())) return std::nullopt;
    const Node& summed = graph_[node.inputs[0]];
    const bool is_exp = is_alu(summed, AluOp::Exp), is_square = is_square_of_one(summed);
    const Node& difference = is_exp || is_square ? graph_[summed.inputs[0]] : summed;
    if (!is_alu(difference, AluOp::Sub)) return std::nullopt;
    const Value x = difference.inputs[0];
    const Node& spread = graph_[difference.inputs[1]];
    if (spread.kind() != NodeKind::Expand || graph_[spread.inputs[0]].shape() != node.shape())
      return std::nullopt;
    const Value centre = spread.inputs[0];
    const ReduceOp op = is_exp ? ReduceOp::Max : ReduceOp::Add;
    const std::optional<Value> first =
        reduction_below(centre, {op, sum.axes}, x, is_exp ? 0 : kMostSteps);
    if (!first) return std::nullopt;
    const Term term = is_exp ? Term::Exponential : is_square ? Term::Square : Term::Difference;
    return Dependent{*first, centre, term};
  }

  // The reduction of x that is v itself or on which v depends through at most `steps` scalar nodes.
  std::optional<Value> reduction_below(Value v, const Reduce_Axis& wanted, Value x,
                                       int steps) const {
    const Node& node = graph_[v];
    if (const auto* reduce = node.as<Reduce_Axis>()) {
      const bool same = reduce->op == wanted.op && reduce->axes == wanted.axes;
      return same && node.inputs[0] == x ? std::optional(v) : std::nullopt;
    }
    if (steps == 0) return std::nullopt;
    for (const Value input : node.inputs)
      if (const auto found = reduction_below(input, wanted, x, steps - 1)) return found;
    return std::nullopt;
  }

  const Graph& graph_;
};

// A share of the reduced elements, in parts. `x` has its axis split in two, and `first` is the
// first reduction over the second of these and the other reduced axes. If that is a sum, there are
// also the mean, the elements' differences from it and their sum, which is the mean's rounding
// error.
struct Part {
  int64_t begin, end, count;  // the share's limits along x's axis, and its number of parts
  Value x = {}, first = {};
  Value mean = {}, difference = {}, rest = {};
};

class OnlineReductions {
 public:
  OnlineReductions(const Graph& graph, const Capabilities& caps) : graph_(graph), caps_(caps) {
    const DependentFinder finder(graph_);
    for (uint32_t id = 0; id < graph_.size(); ++id)
      if (const auto dependent = finder.find(graph_.nodes[id]);
          dependent && split_of(dependent->first.id)) {
        dependents_[id] = *dependent;
        parts_[dependent->first.id] = {};
        if (dependent->term != Term::Position) continue;
        const Node& where = graph_[graph_.nodes[id].inputs[0]];
        positions_[id] = {where.inputs[1],
                          &finder.equal(graph_.nodes[id]) != &graph_[where.inputs[0]]};
      }
  }

  bool changes_nothing() const { return dependents_.empty(); }

  Graph run() {
    std::vector<Value> map(graph_.size());
    return rewrite(graph_,
                   [&](Builder& builder, uint32_t id, const Node& node, std::vector<Value> inputs) {
                     if (const auto it = dependents_.find(id); it != dependents_.end()) {
                       std::optional<Position> position;
                       if (const auto found = positions_.find(id); found != positions_.end())
                         position = {map[found->second.value.id], found->second.takes_nan};
                       const Value centre = map[it->second.centre.id];
                       map[id] = second(builder, node, it->second, centre, position);
                     } else if (const auto parts = parts_.find(id); parts != parts_.end()) {
                       map[id] = first(builder, node, inputs[0], *split_of(id), parts->second);
                     } else {
                       map[id] = builder.copy(node, std::move(inputs));
                     }
                     return map[id];
                   });
  }

 private:
  // A split of an axis, or of all reduced axes as one.
  struct Split {
    int64_t axis, count;
    bool merges = false;
  };

  // The axis to split, and the number of parts. Nothing if the elements stay in cache anyway, or if
  // there is enough work for all threads of a grid. The number of parts may be half of the wanted
  // one, and that many parts need not be split again.
  std::optional<Split> split_of(uint32_t id) const {
    const Node& node = graph_.nodes[id];
    const Shape& from = graph_[node.inputs[0]].shape();
    const Ints& axes = node.as<Reduce_Axis>()->axes;
    int64_t bytes = size_of(node.dtype());
    for (const int64_t axis : axes) {
      if (!from[axis].is_constant()) return std::nullopt;
      bytes *= from[axis].constant();
    }
    const bool grid = caps_.model == ExecutionModel::Grid;
    if (grid && axes.size() == 1)
      if (const auto rows = rows_of_thread(from, axes[0], node))
        return Split{axes[0], from[axes[0]].constant() / *rows};
    const bool splits =
        grid ? leaves_device_idle(from, node.shape(), caps_) : bytes > caps_.l2_bytes;
    if (!splits) return std::nullopt;
    const int64_t wanted = grid ? 2 * parts_of_grid(caps_)
                                : std::max<int64_t>(bytes * kPartsPerCache / caps_.l2_bytes,
                                                    kPartsPerCore * caps_.num_cores);
    const auto split = [&](int64_t axis, int64_t size, bool merges) {
      return Split{axis, divisor_near(size, wanted).value_or(wanted), merges};
    };
    if (const int64_t size = from[axes[0]].constant(); size >= 2 * wanted)
      return split(axes[0], size, false);
    // If the reduced axes are adjacent in an argument's memory, they can be merged.
    const bool adjacent = axes.back() - axes.front() + 1 == static_cast<int64_t>(axes.size());
    const int64_t all = bytes / size_of(node.dtype());
    if (adjacent && graph_[node.inputs[0]].as<Placeholder>() && all >= 2 * wanted)
      return split(axes[0], all, true);
    for (const int64_t axis : axes)
      if (const int64_t size = from[axis].constant(); size >= 2 * wanted)
        return split(axis, size, false);
    return std::nullopt;
  }

  // If columns are reduced, the number of rows of a column that each thread reduces: so few that
  // the elements of all running threads stay in the last-level cache until they are read again.
  // Nothing if there are enough columns for all threads.
  std::optional<int64_t> rows_of_thread(const Shape& from, int64_t axis, const Node& node) const {
    const int64_t threads = kColumnThreads * caps_.num_cores;
    const int64_t width = max_elements(Shape(from.begin() + axis + 1, from.end()));
    if (width < caps_.simd_width || !is_long_reduction(from) ||
        2 * max_elements(node.shape()) > threads)
      return std::nullopt;
    const int64_t fitting = caps_.last_level_bytes / (2 * threads * size_of(node.dtype()));
    const int64_t rows = std::clamp<int64_t>(fitting, kLeastPartRows, kMostPartRows);
    return from[axis].constant() >= 2 * rows ? std::optional(rows) : std::nullopt;
  }

  // The axes of a part along which it is reduced.
  static Ints inner_axes(const Reduce_Axis& reduce, const Split& split) {
    if (split.merges) return {split.axis + 1};
    Ints axes;
    for (const int64_t axis : reduce.axes) axes.push_back(axis >= split.axis ? axis + 1 : axis);
    return axes;
  }

  // x with the reduced axes as one, if the split merges them.
  static Value merged(Builder& builder, Value x, const Reduce_Axis& reduce, const Split& split) {
    if (!split.merges) return x;
    Shape shape = builder.shape(x);
    const auto begin = shape.begin() + split.axis;
    const auto end = begin + static_cast<int64_t>(reduce.axes.size());
    const int64_t size = max_elements(Shape(begin, end));
    *begin = size;
    shape.erase(begin + 1, end);
    return builder.reshape(x, shape);
  }

  static Value elements_of(Builder& builder, Value x, int64_t axis, const Part& part) {
    return split_axis(builder, builder.slice(x, axis, part.begin, part.end), axis, part.count);
  }

  // Combines the results of parts: over the parts of each share, and then over the shares.
  static Value combine(Builder& builder, const Node& node, int64_t axis,
                       const std::vector<Value>& results) {
    const ReduceOp op = node.as<Reduce_Axis>()->op;
    Value total;
    for (const Value v : results) {
      const Value one = builder.reshape(builder.reduce(op, v, {axis}), node.shape());
      total = total.valid() ? builder.alu(alu_of(op), {total, one}) : one;
    }
    return total;
  }

  // Computes the maximum, the minimum or the sum by parts: some of equal length, and the remainder.
  static Value first(Builder& builder, const Node& node, Value x, Split split,
                     std::vector<Part>& parts) {
    const auto& reduce = *node.as<Reduce_Axis>();
    x = merged(builder, x, reduce, split);
    const int64_t size = builder.shape(x)[split.axis].constant(), main = size - size % split.count;
    parts.push_back({0, main, split.count});
    if (main < size) parts.push_back({main, size, 1});
    std::vector<Value> results;
    for (Part& part : parts) {
      part.x = elements_of(builder, x, split.axis, part);
      part.first = builder.reduce(reduce.op, part.x, inner_axes(reduce, split));
      results.push_back(part.first);
    }
    return combine(builder, node, split.axis, results);
  }

  struct Position {
    Value value;
    bool takes_nan;  // whether positions of NaN count, too
  };

  Value second(Builder& builder, const Node& node, const Dependent& dependent, Value centre,
               const std::optional<Position>& position) {
    const auto& reduce = *node.as<Reduce_Axis>();
    const Split split = *split_of(dependent.first.id);
    const int64_t axis = split.axis;
    const Ints axes = inner_axes(reduce, split);
    centre = merged(builder, centre, reduce, split);
    Shape shape = builder.shape(centre);
    shape.insert(shape.begin() + axis, 1);
    centre = builder.reshape(centre, shape);
    std::vector<Value> results;
    for (Part& part : parts_.at(dependent.first.id)) {
      const Value c = builder.expand(centre, builder.shape(part.first));
      if (position) {
        const Value values = merged(builder, position->value, reduce, split);
        const Value own = elements_of(builder, values, axis, part);
        results.push_back(positions(builder, part, c, own, position->takes_nan, axes));
      } else if (dependent.term == Term::Exponential) {
        results.push_back(exponentials(builder, part, c, axes));
      } else {
        if (!part.mean.valid()) subtract_mean(builder, part, axes);
        const bool squared = dependent.term == Term::Square;
        results.push_back(squared ? squares(builder, part, c, axes)
                                  : differences(builder, part, c));
      }
    }
    return combine(builder, node, axis, results);
  }

  // The minimum, over the parts that contain c, of the least position of the part's own maximum (or
  // minimum).
  static Value positions(Builder& builder, const Part& part, Value c, Value position,
                         bool takes_nan, const Ints& axes) {
    const auto chosen = [&](Value x, Value wanted, Value found) {
      Value is_there = builder.alu(AluOp::Cmpeq, {x, wanted});
      if (takes_nan) is_there = builder.alu(AluOp::Or, {is_there, builder.alu(AluOp::Isnan, {x})});
      const Scalar none = neutral(ReduceOp::Min, builder.dtype(found));
      return builder.alu(AluOp::Where, {is_there, found, builder.full(none, builder.shape(x))});
    };
    const Value own = chosen(part.x, builder.expand(part.first, builder.shape(part.x)), position);
    return chosen(part.first, c, builder.reduce(ReduceOp::Min, own, axes));
  }

  static Value difference(Builder& builder, Value x, Value from) {
    return builder.alu(AluOp::Sub, {x, builder.expand(from, builder.shape(x))});
  }

  // sum exp(x - c) = exp(m - c) * sum exp(x - m) with the part's own maximum m (Milakov and
  // Gimelshein 2018). A part that is all -inf adds nothing, unless all parts are. If m is c, the
  // sum is used as it is, so NaN and inf give the same result as without parts.
  static Value exponentials(Builder& builder, const Part& part, Value c, const Ints& axes) {
    const Value m = part.first;
    const Value own = builder.reduce(
        ReduceOp::Add, builder.alu(AluOp::Exp, {difference(builder, part.x, m)}), axes);
    const auto full = [&](double value) {
      return builder.full(Scalar::of(builder.dtype(m), value), builder.shape(m));
    };
    const Value factor = builder.alu(AluOp::Exp, {builder.alu(AluOp::Sub, {m, c})});
    const Value scaled = builder.alu(AluOp::Mul, {own, factor});
    const Value empty =
        builder.alu(AluOp::Cmpeq, {m, full(-std::numeric_limits<double>::infinity())});
    const Value rest = builder.alu(AluOp::Where, {empty, full(0), scaled});
    return builder.alu(AluOp::Where, {builder.alu(AluOp::Cmpeq, {m, c}), own, rest});
  }

  static Value full_count(Builder& builder, const Part& part) {
    const Shape shape = builder.shape(part.first);
    // The reduced sizes are constant. Other sizes are the same in both.
    const int64_t count = max_elements(builder.shape(part.x)) / max_elements(shape);
    return builder.full(Scalar::of(builder.dtype(part.first), static_cast<double>(count)), shape);
  }

  static void subtract_mean(Builder& builder, Part& part, const Ints& axes) {
    part.mean = builder.alu(AluOp::Fdiv, {part.first, full_count(builder, part)});
    part.difference = difference(builder, part.x, part.mean);
    part.rest = builder.reduce(ReduceOp::Add, part.difference, axes);
  }

  // sum (x - c) = sum (x - a) + n * t with t = a - c, for any a: here the part's own mean.
  static Value differences(Builder& builder, const Part& part, Value c) {
    const Value t = builder.alu(AluOp::Sub, {part.mean, c});
    const Value shift = builder.alu(AluOp::Mul, {full_count(builder, part), t});
    return builder.alu(AluOp::Add, {part.rest, shift});
  }

  // sum (x - c)^2 = sum (x - a)^2 + t * (n * t + 2 * sum (x - a)), with the same t and a (Chan,
  // Golub and LeVeque 1983).
  static Value squares(Builder& builder, const Part& part, Value c, const Ints& axes) {
    const Value square = builder.alu(AluOp::Mul, {part.difference, part.difference});
    const Value own = builder.reduce(ReduceOp::Add, square, axes);
    const Value t = builder.alu(AluOp::Sub, {part.mean, c});
    const Value shift = builder.alu(AluOp::Add, {differences(builder, part, c), part.rest});
    return builder.alu(AluOp::Add, {own, builder.alu(AluOp::Mul, {t, shift})});
  }

  const Graph& graph_;
  const Capabilities& caps_;
  std::map<uint32_t, Dependent> dependents_;     // by the second reduction
  std::map<uint32_t, Position> positions_;       // by the second reduction; values of the old graph
  std::map<uint32_t, std::vector<Part>> parts_;  // by the first reduction
};

}  // namespace

Graph form_online_reductions(Graph graph, const Capabilities& caps) {
  OnlineReductions pass(graph, caps);
  return pass.changes_nothing() ? std::move(graph) : pass.run();
}

}  // namespace rune::graph
