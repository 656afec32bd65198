#include "graph/passes/passes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "graph/parallel_work.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

// Parts stay in the second-level cache between their two reductions, with room for the next one.
constexpr int64_t kPartsPerCache = 8;
constexpr int64_t kPartsPerCore = 8;
// Scalar nodes between a sum and the value that is subtracted for its sake.
constexpr int kMostSteps = 8;

bool is_alu(const Node& node, AluOp op) {
  const auto* unary = node.as<Unary>();
  const auto* binop = node.as<Binop>();
  return (unary && unary->op == op) || (binop && binop->op == op);
}

bool is_square_of_one(const Node& node) {
  return is_alu(node, AluOp::Mul) && node.inputs[0] == node.inputs[1];
}

// The sum over x's axes of exp(x - c), where c is x's maximum over them, or of x - c or its square,
// where c depends on x's sum over them.
enum class Term { Exponential, Difference, Square };
struct Dependent {
  Value first;  // the maximum or the sum
  Value centre;
  Term term;
};

class DependentFinder {
 public:
  explicit DependentFinder(const Graph& graph) : graph_(graph) {}

  std::optional<Dependent> find(const Node& node) const {
    const auto* sum = node.as<Reduce_Axis>();
    if (!sum || sum->op != ReduceOp::Add || !is_float(node.dtype())) return std::nullopt;
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
        reduction_below(centre, {op, sum->axes}, x, is_exp ? 0 : kMostSteps);
    if (!first) return std::nullopt;
    const Term term = is_exp ? Term::Exponential : is_square ? Term::Square : Term::Difference;
    return Dependent{*first, centre, term};
  }

 private:
  // The reduction of x that v is or, by up to so many scalar steps, depends on.
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

// A share of the elements that are reduced: x with its axis split in two, and over the second one
// and the other reduced axes the first reduction. Where that is a sum: the mean, the elements'
// differences from it and their sum, which is what rounding the mean has left.
struct Part {
  Value x, first;
  Value mean = {}, difference = {}, rest = {};
};

class OnlineReductions {
 public:
  OnlineReductions(const Graph& graph, const Capabilities& caps) : graph_(graph), caps_(caps) {
    const DependentFinder finder(graph_);
    for (uint32_t id = 0; id < graph_.size(); ++id)
      if (const auto dependent = finder.find(graph_.nodes[id]); dependent && split_of(id)) {
        dependents_[id] = *dependent;
        parts_[dependent->first.id] = {};
      }
  }

  bool changes_nothing() const { return dependents_.empty(); }

  Graph run() {
    std::vector<Value> map(graph_.size());
    return rewrite(graph_,
                   [&](Builder& builder, uint32_t id, const Node& node, std::vector<Value> inputs) {
                     if (const auto it = dependents_.find(id); it != dependents_.end()) {
                       map[id] = second(builder, node, it->second, map[it->second.centre.id]);
                     } else if (const auto parts = parts_.find(id); parts != parts_.end()) {
                       map[id] = first(builder, node, inputs[0], *split_of(id), parts->second);
                     } else {
                       map[id] = builder.copy(node, std::move(inputs));
                     }
                     return map[id];
                   });
  }

 private:
  // Into how many parts the axis `axes[0]` of a reduction is split; nothing if its elements stay in
  // cache anyway, or a device of many threads has work enough without. The divisor may be half of
  // what is wanted, and that many parts need not be split again.
  std::optional<int64_t> split_of(uint32_t id) const {
    const Node& node = graph_.nodes[id];
    const Shape& from = graph_[node.inputs[0]].shape();
    int64_t bytes = size_of(node.dtype());
    for (const int64_t axis : node.as<Reduce_Axis>()->axes) {
      if (!from[axis].is_constant()) return std::nullopt;
      bytes *= from[axis].constant();
    }
    const int64_t size = from[axis_of(node)].constant();
    const bool grid = caps_.model == ExecutionModel::Grid;
    const bool splits =
        grid ? leaves_device_idle(from, node.shape(), caps_) : bytes > caps_.l2_bytes;
    if (!splits) return std::nullopt;
    const int64_t wanted = grid ? 2 * parts_of_grid(caps_)
                                : std::max<int64_t>(bytes * kPartsPerCache / caps_.l2_bytes,
                                                    kPartsPerCore * caps_.num_cores);
    if (size < 2 * wanted) return std::nullopt;
    return divisor_near(size, wanted).value_or(wanted);
  }

  static int64_t axis_of(const Node& node) { return node.as<Reduce_Axis>()->axes[0]; }

  // Axes of a part over which it is reduced.
  static Ints inner_axes(const Reduce_Axis& reduce) {
    Ints axes;
    for (const int64_t axis : reduce.axes) axes.push_back(axis + 1);
    return axes;
  }

  static Part part_of(Builder& builder, Value x, const Reduce_Axis& reduce, int64_t parts) {
    const Value split = split_axis(builder, x, reduce.axes[0], parts);
    return {split, builder.reduce(reduce.op, split, inner_axes(reduce))};
  }

  // One result from what each part gives: over the parts, and then over head and tail.
  static Value combine(Builder& builder, const Node& node, ReduceOp op,
                       const std::vector<Value>& results) {
    Value total;
    for (const Value v : results) {
      const Value one = builder.reshape(builder.reduce(op, v, {axis_of(node)}), node.shape());
      total = total.valid() ? builder.alu(alu_of(op), {total, one}) : one;
    }
    return total;
  }

  // The maximum or the sum, by parts: some of equal length, and what is left over.
  static Value first(Builder& builder, const Node& node, Value x, int64_t count,
                     std::vector<Part>& parts) {
    const auto& reduce = *node.as<Reduce_Axis>();
    const int64_t axis = axis_of(node), size = builder.shape(x)[axis].constant();
    const int64_t main = size - size % count;
    parts.push_back(part_of(builder, builder.slice(x, axis, 0, main), reduce, count));
    if (main < size)
      parts.push_back(part_of(builder, builder.slice(x, axis, main, size), reduce, 1));
    std::vector<Value> results;
    for (const Part& part : parts) results.push_back(part.first);
    return combine(builder, node, reduce.op, results);
  }

  Value second(Builder& builder, const Node& node, const Dependent& dependent, Value centre) {
    const auto& reduce = *node.as<Reduce_Axis>();
    Shape shape = builder.shape(centre);
    shape.insert(shape.begin() + reduce.axes[0], 1);
    centre = builder.reshape(centre, shape);
    std::vector<Value> results;
    for (Part& part : parts_.at(dependent.first.id)) {
      const Value c = builder.expand(centre, builder.shape(part.first));
      if (dependent.term == Term::Exponential) {
        results.push_back(exponentials(builder, part, c, reduce));
      } else {
        if (!part.mean.valid()) subtract_mean(builder, part, reduce);
        const bool squared = dependent.term == Term::Square;
        results.push_back(squared ? squares(builder, part, c, reduce)
                                  : differences(builder, part, c));
      }
    }
    return combine(builder, node, ReduceOp::Add, results);
  }

  static Value difference(Builder& builder, Value x, Value from) {
    return builder.alu(AluOp::Sub, {x, builder.expand(from, builder.shape(x))});
  }

  // sum exp(x - c) = exp(m - c) * sum exp(x - m) with the part's own maximum m (Milakov and
  // Gimelshein 2018). A part of -inf alone adds nothing, unless there is nothing else; where m is
  // c, NaN and inf give what they give without parts.
  static Value exponentials(Builder& builder, const Part& part, Value c,
                            const Reduce_Axis& reduce) {
    const Value m = part.first;
    const Value own =
        builder.reduce(ReduceOp::Add, builder.alu(AluOp::Exp, {difference(builder, part.x, m)}),
                       inner_axes(reduce));
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
    // The reduced sizes are constant; others are the same in both.
    const int64_t count = max_elements(builder.shape(part.x)) / max_elements(shape);
    return builder.full(Scalar::of(builder.dtype(part.first), static_cast<double>(count)), shape);
  }

  static void subtract_mean(Builder& builder, Part& part, const Reduce_Axis& reduce) {
    part.mean = builder.alu(AluOp::Fdiv, {part.first, full_count(builder, part)});
    part.difference = difference(builder, part.x, part.mean);
    part.rest = builder.reduce(ReduceOp::Add, part.difference, inner_axes(reduce));
  }

  // sum (x - c) = sum (x - a) + n * t with t = a - c, for any a: here the part's own mean.
  static Value differences(Builder& builder, const Part& part, Value c) {
    const Value t = builder.alu(AluOp::Sub, {part.mean, c});
    const Value shift = builder.alu(AluOp::Mul, {full_count(builder, part), t});
    return builder.alu(AluOp::Add, {part.rest, shift});
  }

  // sum (x - c)^2 = sum (x - a)^2 + t * (n * t + 2 * sum (x - a)), with the same t and a (Chan,
  // Golub and LeVeque 1983).
  static Value squares(Builder& builder, const Part& part, Value c, const Reduce_Axis& reduce) {
    const Value square = builder.alu(AluOp::Mul, {part.difference, part.difference});
    const Value own = builder.reduce(ReduceOp::Add, square, inner_axes(reduce));
    const Value t = builder.alu(AluOp::Sub, {part.mean, c});
    const Value shift = builder.alu(AluOp::Add, {differences(builder, part, c), part.rest});
    return builder.alu(AluOp::Add, {own, builder.alu(AluOp::Mul, {t, shift})});
  }

  const Graph& graph_;
  const Capabilities& caps_;
  std::map<uint32_t, Dependent> dependents_;     // by the second reduction
  std::map<uint32_t, std::vector<Part>> parts_;  // by the first reduction
};

}  // namespace

Graph form_online_reductions(Graph graph, const Capabilities& caps) {
  OnlineReductions pass(graph, caps);
  return pass.changes_nothing() ? std::move(graph) : pass.run();
}

}  // namespace rune::graph
