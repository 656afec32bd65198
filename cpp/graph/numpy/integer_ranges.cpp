#include "graph/numpy/integer_ranges.h"

#include <algorithm>
#include <map>
#include <utility>

namespace rune::graph::numpy {

namespace {

using Wide = __int128;
using Range = IntegerRange;
using Ranges = std::unordered_map<uint32_t, std::optional<Range>>;

// Bounds of greater magnitude count as unknown, so that products of two bounds fit 128 bits.
constexpr Wide kMost = Wide{1} << 63;

Range range_of(DType dtype) {
  return {lowest_integer(dtype), highest_integer(dtype)};
}

Range join(const Range& a, const Range& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

bool has(const Range& outer, const Range& inner) {
  return outer.low <= inner.low && inner.high <= outer.high;
}

Range around(Wide a, Wide b, Wide c, Wide d) {
  return {std::min({a, b, c, d}), std::max({a, b, c, d})};
}

Wide magnitude(const Range& x) {
  return std::max(x.low < 0 ? -x.low : x.low, x.high < 0 ? -x.high : x.high);
}

// The least 2^k - 1 that is at least x.
Wide all_ones(Wide x) {
  Wide ones = 0;
  while (ones < x) ones = 2 * ones + 1;
  return ones;
}

// The range of all numbers with no more bits than the numbers of two ranges.
Range of_bits(const Range& a, const Range& b) {
  const Wide low = std::min(a.low, b.low), high = std::max(a.high, b.high);
  const Wide ones = all_ones(std::max(high, low < 0 ? -low - 1 : Wide{0}));
  return {low < 0 ? -ones - 1 : 0, ones};
}

Wide floored(Wide a, Wide b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

// The range of powers with exponents that are not negative.
std::optional<Range> of_power(const Range& base, const Range& exponent) {
  const Wide size = magnitude(base);
  if (exponent.low < 0 || size > kMost) return std::nullopt;
  Wide most = 1;
  if (size > 1)
    for (Wide i = 0; i < exponent.high; ++i) {
      most *= size;
      if (most > kMost) return std::nullopt;
    }
  return Range{base.low < 0 ? -most : 0, most};
}

// The range of an operation on exact integers, without wrapping. Nothing if it is unknown.
std::optional<Range> of_ufunc(AluOp op, const Range& a, const Range& b) {
  if (op == AluOp::Add) return Range{a.low + b.low, a.high + b.high};
  if (op == AluOp::Sub) return Range{a.low - b.high, a.high - b.low};
  if (op == AluOp::Mul) {
    if (magnitude(a) > kMost || magnitude(b) > kMost) return std::nullopt;
    return around(a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high);
  }
  if (op == AluOp::Pow) return of_power(a, b);
  if (op == AluOp::Max) return Range{std::max(a.low, b.low), std::max(a.high, b.high)};
  if (op == AluOp::Min) return Range{std::min(a.low, b.low), std::min(a.high, b.high)};
  if (op == AluOp::And && a.low >= 0)
    return Range{0, b.low >= 0 ? std::min(a.high, b.high) : a.high};
  if (op == AluOp::And && b.low >= 0) return Range{0, b.high};
  if (op == AluOp::And || op == AluOp::Or || op == AluOp::Xor) return of_bits(a, b);
  if (op == AluOp::Idiv) {
    if (b.low <= 0 && b.high >= 0) return Range{-magnitude(a), magnitude(a)};  // b may be 0
    return around(floored(a.low, b.low), floored(a.low, b.high), floored(a.high, b.low),
                  floored(a.high, b.high));
  }
  if (op == AluOp::Mod) {
    if (a.low >= 0 && b.low > a.high) return a;
    return Range{std::min(b.low + 1, Wide{0}), std::max(b.high - 1, Wide{0})};
  }
  if (op == AluOp::Div || op == AluOp::Fmod) return Range{-magnitude(a), magnitude(a)};
  if (op == AluOp::Shl && b.low >= 0 && b.high <= 62)
    return around(a.low << b.low, a.low << b.high, a.high << b.low, a.high << b.high);
  if (op == AluOp::Shr && b.low >= 0 && b.high <= 63)
    return around(a.low >> b.low, a.low >> b.high, a.high >> b.low, a.high >> b.high);
  return std::nullopt;
}

std::optional<Range> of_ufunc(AluOp op, const Range& a, DType dtype) {
  if (op == AluOp::Neg) return Range{-a.high, -a.low};
  if (op == AluOp::Not) {
    const Wide ones = kind(dtype) == Kind::Int ? -1 : highest_integer(dtype);
    return Range{ones - a.high, ones - a.low};
  }
  if (op == AluOp::Abs) return Range{a.low > 0 ? a.low : a.high < 0 ? -a.high : 0, magnitude(a)};
  if (op == AluOp::Sign) return Range{a.low < 0 ? -1 : a.low > 0, a.high > 0 ? 1 : -(a.high < 0)};
  return std::nullopt;
}

// The range of a result whose exact range may exceed its dtype. A narrower or unsigned dtype wraps,
// so it is the dtype's range. For int64 it is unknown.
std::optional<Range> within(DType dtype, const std::optional<Range>& exact) {
  const Range all = range_of(dtype);
  if (exact && has(all, *exact)) return exact;
  if (dtype == DType::Int64) return std::nullopt;
  return all;
}

class Analysis {
 public:
  // `ranges` has the known ranges. New ones are added to it.
  Analysis(const TracedGraph& t, Ranges& ranges) : t_(t), ranges_(ranges) {}

  std::optional<Range> of(Value x) {
    std::vector<Value> open{x};
    while (!open.empty()) {
      const Value v = open.back();
      if (ranges_.contains(v.id)) {
        open.pop_back();
        continue;
      }
      const size_t before = open.size();
      for (const Value input : read(v))
        if (!ranges_.contains(input.id)) open.push_back(input);
      if (open.size() > before) continue;
      ranges_[v.id] = compute(v);
      open.pop_back();
    }
    return ranges_.at(x.id);
  }

 private:
  // The operands that determine the range of a value.
  std::vector<Value> read(Value v) const {
    const Node& node = t_[v];
    if (!is_integer(node.meta.dtype) || t_.ranges.contains(v)) return {};
    const auto integers = [&](std::vector<Value> values) {
      std::erase_if(values, [&](Value x) { return !is_discrete(x); });
      return values;
    };
    switch (node.kind()) {
      case NodeKind::Binop:
      case NodeKind::Unary:
      case NodeKind::Cat:
      case NodeKind::Update: return integers(node.inputs);
      case NodeKind::Loop_Result: {  // the value after the last iteration, or the initial one
        const std::vector<Value>& ended = t_[node.inputs[0]].inputs;
        const int64_t index = node.as<Loop_Result>()->index;
        return {ended[1 + index], ended[1 + ended.size() / 2 + index]};
      }
      case NodeKind::Ternary:
        if (node.as<Ternary>()->op != AluOp::Where) return {};
        return {node.inputs[1], node.inputs[2]};
      case NodeKind::Reshape:
      case NodeKind::Permute:
      case NodeKind::Expand:
      case NodeKind::Pad:
      case NodeKind::Shrink:
      case NodeKind::Flip:
      case NodeKind::Contiguous:
      case NodeKind::Copy:
      case NodeKind::Detach:
      case NodeKind::Cast:
      case NodeKind::Gather: return integers({node.inputs[0]});
      case NodeKind::Reduce_Axis: {
        const ReduceOp op = node.as<Reduce_Axis>()->op;
        if (op != ReduceOp::Max && op != ReduceOp::Min) return {};
        return integers({node.inputs[0]});
      }
      default: return {};
    }
  }

  bool is_discrete(Value x) const {
    const DType dtype = t_.dtype(x);
    return is_integer(dtype) || is_bool(dtype);
  }

  std::optional<Range> compute(Value v) {
    const Node& node = t_[v];
    const DType dtype = node.meta.dtype;
    if (!is_integer(dtype)) return is_bool(dtype) ? Range{0, 1} : std::optional<Range>();
    if (const auto known = t_.ranges.find(v); known != t_.ranges.end())
      return Range{known->second.first.least(), known->second.second.bound()};
    if (const auto* number = node.as<Const_Scalar>()) return of_number(number->value);
    if (node.as<Iota>() && rune::is_constant(node.shape()))
      return Range{0, std::max<int64_t>(0, node.shape()[0].constant() - 1)};
    if (const SymVar* var = declared_variable(node)) return Range{var->min_val, var->max_val};
    const std::vector<Value> inputs = read(v);
    if (inputs.empty())  // int64 ufuncs may wrap, so nothing is known of them
      return is_ufunc(node) && dtype == DType::Int64 ? std::nullopt
                                                     : std::optional(range_of(dtype));
    std::vector<Range> known;
    for (const Value input : inputs) {
      const std::optional<Range>& range = ranges_.at(input.id);
      if (!range) return std::nullopt;
      known.push_back(*range);
    }
    if (const auto* op = node.as<Binop>())
      return within(dtype, known.size() == 2 ? of_ufunc(op->op, known[0], known[1]) : std::nullopt);
    if (const auto* op = node.as<Unary>()) return within(dtype, of_ufunc(op->op, known[0], dtype));
    Range all = known[0];
    for (const Range& range : known) all = join(all, range);
    if (node.as<Pad>()) all = join(all, {0, 0});
    return within(dtype, all);
  }

  static bool is_ufunc(const Node& node) {
    return node.as<Binop>() || node.as<Unary>() || node.as<Ternary>() || node.as<Reduce_Axis>() ||
           node.as<Scan>() || node.as<Contract>();
  }

  static Range of_number(const Scalar& value) {
    if (value.dtype() == DType::Uint64) return {value.as_uint64(), value.as_uint64()};
    return {value.as_int64(), value.as_int64()};
  }

  const TracedGraph& t_;
  Ranges& ranges_;
};

// The Python integers that some loops carry.
class Recurrences {
 public:
  Recurrences(const TracedGraph& t, const Operands& carries) : t_(t) {
    std::unordered_map<uint32_t, Value> ends;  // by counter
    for (uint32_t id = 0; id < t.size(); ++id)
      if (t[{id}].as<End_Loop>()) ends[t[{id}].inputs[0].id] = {id};
    for (const Operand& x : carries) {
      const Node& carry = t[x.value];
      const Value end = ends.at(carry.inputs[1].id);
      const Value next = t[end].inputs[1 + carry.as<Carry>()->index];
      carries_.push_back(
          {x.value, carry.inputs[0], next, trips_of(*t[end].as<End_Loop>()), carries_.size()});
    }
    // An initial value depends only on carries before it in this order.
    std::sort(carries_.begin(), carries_.end(),
              [](const Recurrence& a, const Recurrence& b) { return a.value < b.value; });
    for (uint32_t id = 0; id < t.size(); ++id) {
      const auto* result = t[{id}].as<Loop_Result>();
      if (!result) continue;
      const Value counter = t[t[{id}].inputs[0]].inputs[0];
      for (size_t i = 0; i < carries_.size(); ++i) {
        const Node& carry = t[carries_[i].value];
        if (carry.inputs[1] == counter && carry.as<Carry>()->index == result->index)
          results_[id] = i;
      }
    }
  }

  std::optional<Unbounded> find_unbounded() {
    // Begins with the ranges before the loops, and repeats iterations until no range grows.
    std::vector<std::optional<Range>> now(carries_.size());
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      bool is_stable = true;
      for (size_t i = 0; i < carries_.size(); ++i) {
        Sweep known = begin(now);
        const std::optional<Range> initial = of(known, carries_[i].initial);
        if (!initial) return unbounded(now, i);
        Range next = now[i] ? join(*now[i], *initial) : *initial;
        if (now[i]) {
          const std::optional<Growth> growth = growth_of(known, carries_[i].next, i);
          const std::optional<Range> last = of(known, carries_[i].next);
          if (growth && grows_by(*initial, *growth, carries_[i].trips))
            next = join(next, *grows_by(*initial, *growth, carries_[i].trips));
          else if (!last)
            return unbounded(now, i);
          else
            next = sweep < kPreciseSweeps ? join(next, *last) : widened(next, *last);
        }
        if (!has(range_of(DType::Int64), next)) return unbounded(now, i);
        is_stable = is_stable && now[i] && has(*now[i], next);
        now[i] = next;
      }
      if (is_stable) {
        Sweep known = begin(now);
        const bool all_fit = std::all_of(t_.must_fit.begin(), t_.must_fit.end(),
                                         [&](const LoopInteger& x) { return of(known, x.value); });
        if (!all_fit) return unbounded(now, carries_.size());
        for (const auto& [id, i] : results_) known_.push_back({{id}, *now[i]});
        return std::nullopt;
      }
    }
    return unbounded(now, carries_.size());
  }

  // The ranges of the loops' results, if find_unbounded has found nothing.
  const std::vector<std::pair<Value, Range>>& results() const { return known_; }

 private:
  static constexpr int kPreciseSweeps = 4, kMostSweeps = 300;

  struct Recurrence {
    Value value, initial, next;
    Wide trips;
    size_t position;  // in the constructor's `carries`
  };

  static Wide trips_of(const End_Loop& loop) {
    const Dim span = loop.step > 0 ? loop.stop - loop.start : loop.start - loop.stop;
    const Wide step = loop.step > 0 ? loop.step : -Wide{loop.step};
    return std::max<Wide>(0, (span.bound() + step - 1) / step);
  }

  Unbounded unbounded(const std::vector<std::optional<Range>>& now, size_t i) const {
    Unbounded found{i < carries_.size() ? carries_[i].position : i, {}};
    Sweep known = begin(now);
    for (const auto& [value, location] : t_.must_fit) {
      const std::vector<Value>& inputs = t_[value].inputs;
      const bool begins = std::all_of(inputs.begin(), inputs.end(),
                                      [&](Value x) { return of(known, x).has_value(); });
      if (begins && !of(known, value)) found.locations.push_back(location);
    }
    return found;
  }

  // Widens changed bounds to the next powers of two, so that few sweeps suffice.
  static Range widened(const Range& now, const Range& next) {
    const Range all = of_bits(now, next);
    return {next.low < now.low ? all.low : now.low, next.high > now.high ? all.high : now.high};
  }

  // The amount that is added to an integer: in a whole iteration of a loop, including all
  // iterations of loops inside of it, and in a single step.
  struct Growth {
    Range whole, once;
  };

  // What is known if the carried integers have some ranges: the ranges of other values, and by
  // value and number of a carried integer what growth_of has found.
  struct Sweep {
    Ranges ranges;
    std::map<std::pair<uint32_t, size_t>, std::optional<Growth>> growths;
  };

  Sweep begin(const std::vector<std::optional<Range>>& now) const {
    Sweep known;
    for (size_t i = 0; i < carries_.size(); ++i)
      if (now[i]) known.ranges[carries_[i].value.id] = now[i];
    for (const auto& [id, i] : results_)
      if (now[i]) known.ranges[id] = now[i];
    return known;
  }

  // No program runs this many iterations, even if those of inner loops are counted one by one.
  static constexpr Wide kMostIterations = Wide{1} << 53;

  static Range times(const Range& growth, Wide trips) {
    return {std::min<Wide>(growth.low, 0) * trips, std::max<Wide>(growth.high, 0) * trips};
  }

  static std::optional<Range> grows_by(const Range& from, const Growth& growth, Wide trips) {
    if (magnitude(growth.whole) >= kMost || magnitude(growth.once) >= kMost || trips >= kMost)
      return std::nullopt;
    const Range by_trips = times(growth.whole, trips), most = times(growth.once, kMostIterations);
    const Range result{from.low + std::max(by_trips.low, most.low),
                       from.high + std::min(by_trips.high, most.high)};
    if (!has(range_of(DType::Int64), result)) return std::nullopt;
    return result;
  }

  std::optional<Range> of(Sweep& known, Value x) const { return Analysis(t_, known.ranges).of(x); }

  // The amount that is added to carried integer `i` to give x. Nothing if x is not such a sum.
  std::optional<Growth> growth_of(Sweep& known, Value x, size_t i) const {
    const std::pair<uint32_t, size_t> key{x.id, i};
    // (A value that depends on itself is no such sum.)
    if (const auto [found, is_new] = known.growths.try_emplace(key); !is_new) return found->second;
    return known.growths[key] = computed_growth(known, x, i);
  }

  std::optional<Growth> computed_growth(Sweep& known, Value x, size_t i) const {
    if (x == carries_[i].value) return Growth{{0, 0}, {0, 0}};
    const auto inner = [&](Value v) { return growth_of(known, v, i); };
    const auto both = [&](Value a, Value b) -> std::optional<Growth> {
      const std::optional<Growth> p = inner(a);
      const std::optional<Growth> q = p ? inner(b) : std::nullopt;
      if (!q) return std::nullopt;
      return Growth{join(p->whole, q->whole), join(p->once, q->once)};
    };
    const Node& node = t_[x];
    if (const auto* op = node.as<Ternary>(); op && op->op == AluOp::Where)
      return both(node.inputs[1], node.inputs[2]);
    if (const auto* op = node.as<Binop>();
        op && (op->op == AluOp::Add || op->op == AluOp::Sub) && node.meta.dtype == DType::Int64) {
      const bool adds = op->op == AluOp::Add;
      std::optional<Growth> grown = inner(node.inputs[0]);
      Value other = node.inputs[1];
      if (!grown && adds) {
        grown = inner(node.inputs[1]);
        other = node.inputs[0];
      }
      if (!grown) return std::nullopt;
      const std::optional<Range> step = of(known, other);
      if (!step) return std::nullopt;
      const Growth sum{*of_ufunc(op->op, grown->whole, *step),
                       *of_ufunc(op->op, grown->once, *step)};
      if (magnitude(sum.whole) >= kMost || magnitude(sum.once) >= kMost) return std::nullopt;
      return sum;
    }
    size_t loop = carries_.size();  // number of the carried integer that x is
    if (const auto found = results_.find(x.id); found != results_.end()) loop = found->second;
    for (size_t k = 0; k < carries_.size(); ++k)
      if (carries_[k].value == x) loop = k;
    if (loop == carries_.size()) return std::nullopt;
    const std::optional<Growth> before = inner(carries_[loop].initial);
    if (!before) return std::nullopt;
    const std::optional<Growth> step = growth_of(known, carries_[loop].next, loop);
    if (!step) return std::nullopt;
    const std::optional<Range> whole = grows_by(before->whole, *step, carries_[loop].trips);
    if (!whole) return std::nullopt;
    return Growth{*whole, *of_ufunc(AluOp::Add, before->once, step->once)};
  }

  const TracedGraph& t_;
  std::vector<Recurrence> carries_;
  std::unordered_map<uint32_t, size_t> results_;  // the Loop_Results of carried integers
  std::vector<std::pair<Value, Range>> known_;
};

}  // namespace

std::optional<IntegerRange> integer_range(TracedGraph& t, Value x) {
  return Analysis(t, t.integer_ranges).of(x);
}

bool may_be_zero(TracedGraph& t, const Operand& x) {
  if (x.literal) return x.literal->real == 0 && x.literal->imag == 0;
  Value v = x.value;
  if (t.nonzero.contains(v)) return false;
  if (const Node& node = t[v]; node.as<Cast>() && is_float(node.meta.dtype)) v = node.inputs[0];
  if (!is_integer(t.dtype(v))) return true;
  const std::optional<IntegerRange> range = integer_range(t, v);
  return !range || (range->low <= 0 && range->high >= 0);
}

bool is_known_to_fit(TracedGraph& t, const Operand& x, DType dtype) {
  const std::optional<IntegerRange> range = integer_range(t, x.value);
  return range && range->low >= lowest_integer(dtype) && range->high <= highest_integer(dtype);
}

std::optional<Unbounded> find_unbounded(TracedGraph& t, const Operands& carries) {
  Recurrences recurrences(t, carries);
  std::optional<Unbounded> found = recurrences.find_unbounded();
  t.must_fit.clear();
  for (const auto& [value, range] : recurrences.results())
    t.ranges.try_emplace(value, static_cast<int64_t>(range.low), static_cast<int64_t>(range.high));
  if (!recurrences.results().empty()) t.integer_ranges.clear();
  return found;
}

}  // namespace rune::graph::numpy
