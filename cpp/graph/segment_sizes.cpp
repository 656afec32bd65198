#include "graph/segment_sizes.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>

#include "base/error.h"
#include "graph/attribute_dims.h"
#include "graph/infer.h"

namespace rune::graph {

namespace {

// The first program of a pattern takes sizes up to kFirstMax. If sizes grow, the next program takes
// kRoom times the largest size seen (rounded up to a power of two), so that few programs follow.
// But no value may then have room for more than kFew elements that is more than kRoom times its
// size.
constexpr int64_t kFirstMax = 256, kRoom = 4, kFew = 1 << 14;
// Lower bounds of sizes that are tried in turn, if no smaller size has been seen. x[1:-1] and x[:5]
// need more than 1.
constexpr int64_t kLeast[] = {1, 2, 4, 8, 16, 64, std::numeric_limits<int64_t>::max()};
// The greatest difference of two sizes that are expressed by the same variable.
constexpr int64_t kNear = 4;

// A size's value in each segment that has been seen.
using History = Ints;

bool is_constant(const History& h) {
  return std::all_of(h.begin(), h.end(), [&](int64_t n) { return n == h.front(); });
}

// The largest size that a program should take. If `is_tight`, room for larger sizes would need too
// much memory.
int64_t most(const History& h, bool is_tight) {
  const int64_t largest = *std::max_element(h.begin(), h.end());
  if (!is_tight && largest <= kFirstMax) return kFirstMax;
  const auto power = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(largest)));
  return h.back() == largest && !is_tight ? power * kRoom : power;
}

// Finds expressions for a segment's sizes, in the order of the segment.
class Expressions {
 public:
  Expressions(const std::vector<Ints>& seen, int64_t least, bool is_tight)
      : seen_(seen), least_(least), is_tight_(is_tight) {}

  SegmentSizes take() && { return std::move(result_); }

  // The next size, which is an argument's. It gets a variable of its own if no similar size is
  // known.
  Dim of_argument() {
    const History h = next();
    if (is_constant(h)) return add(h, h.front());
    if (const auto dim = known(h, kNear)) {
      if (dim->least() < 0)
        user_error(ErrorKind::Unsupported, "segment: cannot express a size by ", *dim,
                   " (it may be negative)");
      return add(h, *dim);
    }
    const int64_t low = std::clamp<int64_t>(*std::min_element(h.begin(), h.end()), 1, least_);
    return add_variable(h, low, most(h, is_tight_));
  }

  // The next size, for which type inference has found `dim`.
  void inferred(const Dim& dim) {
    const History h = next();
    for (size_t i = 0; i < h.size(); ++i)
      if (value(dim, i) != h[i])
        user_error(ErrorKind::Unsupported, "segment: cannot express the size ", h[i],
                   " by other sizes (it is not ", dim, " in all segments)");
    add(h, dim);
  }

  // Replaces the sizes of a node's attributes by expressions.
  void of_attributes(Payload& payload, const Shape& operand) {
    if (auto* shrink = std::get_if<Shrink>(&payload)) {
      for (size_t i = 0; i < shrink->limits.size(); ++i) limits(shrink->limits[i], operand[i]);
    } else {
      change_dims(payload, [&](Dim& size) { size = of_attribute(); });
    }
  }

 private:
  struct Known {
    History history;
    Dim dim;
  };

  History next() {
    History h;
    for (const Ints& sizes : seen_) h.push_back(sizes.at(result_.sizes.size()));
    return h;
  }

  Dim add(const History& h, Dim dim) {
    if (!dim.is_constant()) known_.push_back({h, dim});
    result_.sizes.push_back(dim);
    return dim;
  }

  Dim add_variable(const History& h, int64_t low, int64_t high) {
    const auto [smallest, largest] = std::minmax_element(h.begin(), h.end());
    if (*smallest < low || *largest > high || low == high)
      user_error(ErrorKind::Unsupported, "segment: cannot bound a size by [", low, ",", high, "]");
    result_.vars.push_back({concat("n", result_.vars.size()), low, high});
    result_.places.push_back(result_.sizes.size());
    return add(h, Dim(result_.vars.back()));
  }

  int64_t value(const Dim& dim, size_t i) const {
    return dim.evaluate([&](const SymVar& var) {
      const auto at = std::find(result_.vars.begin(), result_.vars.end(), var);
      return seen_[i][result_.places[at - result_.vars.begin()]];
    });
  }

  // An expression from the latest size that was always the same, or else always differed by the
  // same amount of at most `near`.
  std::optional<Dim> known(const History& h, int64_t near) const {
    for (auto k = known_.rbegin(); k != known_.rend(); ++k)
      if (k->history == h) return k->dim;
    for (auto k = known_.rbegin(); k != known_.rend(); ++k)
      if (const int64_t more = h.front() - k->history.front();
          std::abs(more) <= near && is_constant(less(h, k->history)))
        return k->dim + more;
    return std::nullopt;
  }

  Dim of_attribute() {
    const History h = next();
    if (is_constant(h)) return add(h, h.front());
    if (const auto dim = known(h, std::numeric_limits<int64_t>::max())) return add(h, *dim);
    for (auto k = known_.rbegin(); k != known_.rend(); ++k) {
      const int64_t factor = k->history.front() == 0 ? 0 : h.front() / k->history.front();
      bool is_multiple = factor > 1;
      for (size_t i = 0; i < h.size(); ++i) is_multiple &= h[i] == factor * k->history[i];
      if (is_multiple) return add(h, k->dim * factor);
    }
    user_error(ErrorKind::Unsupported, "segment: cannot express the size ", h.back(),
               " by other sizes (no expression fits all segments)");
  }

  // The limits of a part of an axis. Data may determine one of them, or the position of a part of
  // known size.
  void limits(std::pair<Dim, Dim>& range, const Dim& axis) {
    const size_t at = result_.sizes.size();
    History low, high;
    for (const Ints& sizes : seen_) low.push_back(sizes[at]), high.push_back(sizes[at + 1]);
    const auto is_free = [&](const History& h) {
      return !is_constant(h) && !known(h, std::numeric_limits<int64_t>::max());
    };
    if (axis.is_constant() && is_free(low) && is_constant(less(high, low))) {
      range.first = add_variable(low, 0, axis.constant() - (high.front() - low.front()));
      range.second = of_attribute();
    } else if (axis.is_constant() && is_free(low) && is_constant(high)) {
      range.first = add_variable(low, 0, high.front() - 1);
      range.second = of_attribute();
    } else {
      range.first = of_attribute();
      const bool data_decide = axis.is_constant() && range.first.is_constant() && is_free(high);
      range.second = data_decide ? add_variable(high, range.first.constant() + 1, axis.constant())
                                 : of_attribute();
    }
  }

  static History less(const History& a, const History& b) {
    History result;
    for (size_t i = 0; i < a.size(); ++i) result.push_back(a[i] - b[i]);
    return result;
  }

  const std::vector<Ints>& seen_;
  int64_t least_;
  bool is_tight_;
  SegmentSizes result_;
  std::vector<Known> known_;
};

// Finds expressions for the sizes. Returns nothing if values would have room for many more elements
// than they have.
std::optional<SegmentSizes> infer_sizes(const Graph& graph, const Segment& segment,
                                        const std::vector<Ints>& seen, int64_t least,
                                        bool is_tight) {
  Expressions expressions(seen, least, is_tight);
  std::unordered_map<uint32_t, Metadata> metas;  // by value
  for (const Value v : segment.inputs) {
    Metadata& meta = metas[v.id] = graph[v].meta;
    for (Dim& size : meta.shape) size = expressions.of_argument();
  }
  for (const Value v : segment.nodes) {
    const Node& node = graph[v];
    std::vector<const Metadata*> operands;
    for (const Value operand : node.inputs) operands.push_back(&metas.at(operand.id));
    Payload payload = node.payload;
    expressions.of_attributes(payload, operands.empty() ? Shape{} : operands[0]->shape);
    Metadata meta = infer(payload, operands, node.meta);
    for (const Dim& size : meta.shape) expressions.inferred(size);
    const int64_t room = max_elements(meta.shape), now = max_elements(node.shape());
    if (!is_tight && room > std::max(kFew, kRoom * now)) return std::nullopt;
    metas[v.id] = std::move(meta);
  }
  return std::move(expressions).take();
}

}  // namespace

std::optional<Ints> SegmentSizes::values_for(const Ints& of_segment) const {
  RUNE_CHECK(of_segment.size() == sizes.size(), "segments of two patterns");
  Ints values;
  for (size_t v = 0; v < vars.size(); ++v) {
    const int64_t value = of_segment[places[v]];
    if (value < vars[v].min_val || value > vars[v].max_val) return std::nullopt;
    values.push_back(value);
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t size = sizes[i].offset();
    for (const Dim::Term& term : sizes[i].terms())
      for (size_t v = 0; v < vars.size(); ++v)
        if (term.var.name == vars[v].name) size += term.coefficient * values[v];
    if (size != of_segment[i]) return std::nullopt;
  }
  return values;
}

SegmentSizes symbolic_sizes(const Graph& graph, const Segment& segment,
                            const std::vector<Ints>& seen) {
  RUNE_CHECK(!seen.empty() && seen.back() == segment.sizes, "a segment that has not been seen");
  for (const int64_t least : kLeast) {
    try {
      for (const bool is_tight : {false, true})
        if (auto sizes = infer_sizes(graph, segment, seen, least, is_tight)) return *sizes;
    } catch (const UserError&) {
      if (least == std::end(kLeast)[-1]) throw;
    }
  }
  RUNE_UNREACHABLE("a least size");
}

Graph program_of(const Graph& graph, const Segment& segment, const std::vector<int64_t>& arguments,
                 const SegmentSizes& sizes) {
  Graph program = program_of(graph, segment, arguments);
  const auto num_vars = static_cast<uint32_t>(sizes.vars.size());
  const auto move = [&](std::vector<Value>& values) {
    for (Value& v : values) v.id += num_vars;
  };
  size_t next = 0;  // number of the next of the segment's sizes
  for (Node& node : program.nodes) {
    change_dims(node.payload, [&](Dim& size) { size = sizes.sizes[next++]; });
    for (Dim& size : node.meta.shape) size = sizes.sizes[next++];
    move(node.inputs);
  }
  RUNE_CHECK(next == sizes.sizes.size(), "sizes of another segment");
  move(program.outputs);
  std::vector<Node> variables;
  for (const SymVar& var : sizes.vars)
    variables.push_back({Define_Var{var}, {}, {DType::Int64, {}, std::nullopt}, ""});
  program.nodes.insert(program.nodes.begin(), variables.begin(), variables.end());
  return program;
}

}  // namespace rune::graph
