// Replaces complex values by pairs of real ones.
#include <map>
#include <utility>

#include "base/error.h"
#include "graph/infer.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

class Splitter {
 public:
  explicit Splitter(const Graph& graph)
      : graph_(graph), whole_(graph.size()), parts_(graph.size()) {
    for (const Node& node : graph.nodes)
      if (node.as<End_Loop>()) number_carries(node);
  }

  Graph run() {
    b_.reserve(graph_.size());
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.nodes[id];
      b_.set_location(node.location);
      if (is_complex(node.dtype()))
        parts_[id] = split(node);
      else
        whole_[id] = of_real(node);
    }
    std::vector<Value> outputs;
    for (const Value v : graph_.outputs) outputs.push_back(stored(v));
    b_.set_outputs(std::move(outputs));
    return b_.take();
  }

 private:
  // The real and the imaginary part.
  using Parts = std::pair<Value, Value>;

  bool is_split(Value v) const { return is_complex(graph_[v].dtype()); }
  const Parts& parts(Value v) const { return parts_[v.id]; }

  // Computes the parts of a node with a complex value.
  Parts split(const Node& node) {
    switch (node.kind()) {
      case NodeKind::Complex: return {whole_[node.inputs[0].id], whole_[node.inputs[1].id]};
      case NodeKind::Placeholder: return unstack(b_.add(node.payload, {}, stacked_type(node)));
      case NodeKind::Host_Callback:
        return unstack(b_.add(node.payload, all_stored(node), stacked_type(node)));
      case NodeKind::Cast: return cast(node);
      case NodeKind::Contract: return contract(node);
      case NodeKind::Carry: {
        const auto [real, imag] = parts(node.inputs[0]);
        const Value counter = whole_[node.inputs[1].id];
        const int64_t index = carries_.at(node.inputs[1])[node.as<Carry>()->index];
        return {b_.add(Carry{index}, {real, counter}), b_.add(Carry{index + 1}, {imag, counter})};
      }
      case NodeKind::Loop_Result: {
        const auto [real, imag] = parts(node.inputs[1]);
        const Value end = whole_[node.inputs[0].id];
        const int64_t index = number_of_result(node);
        return {b_.add(Loop_Result{index}, {end, real}),
                b_.add(Loop_Result{index + 1}, {end, imag})};
      }
      case NodeKind::Custom:
      case NodeKind::Bitcast: refuse(node);
      default: return {of_parts(node, &Parts::first), of_parts(node, &Parts::second)};
    }
  }

  // Computes a node whose value is not complex. Its operands may be.
  Value of_real(const Node& node) {
    if (const auto* carry = node.as<Carry>())
      return b_.add(Carry{carries_.at(node.inputs[1])[carry->index]}, of_parts(node.inputs));
    if (node.as<Loop_Result>())
      return b_.add(Loop_Result{number_of_result(node)},
                    {whole_[node.inputs[0].id], whole_[node.inputs[1].id]});
    if (const auto* end = node.as<End_Loop>()) {
      End_Loop numbered = *end;
      if (end->goes_on) numbered.goes_on = carries_.at(node.inputs[0])[*end->goes_on];
      return b_.add(numbered, of_parts(node.inputs));
    }
    bool has_complex = false;
    for (const Value v : node.inputs) has_complex |= is_split(v);
    if (!has_complex) {
      std::vector<Value> inputs;
      for (const Value v : node.inputs) inputs.push_back(whole_[v.id]);
      return b_.copy(node, std::move(inputs));
    }
    switch (node.kind()) {
      case NodeKind::Real: return parts(node.inputs[0]).first;
      case NodeKind::Imag: return parts(node.inputs[0]).second;
      case NodeKind::Cast: return real_cast(node);
      case NodeKind::Host_Callback: return b_.copy(node, all_stored(node));
      case NodeKind::Sink: return b_.copy(node, of_parts(node.inputs));
      case NodeKind::Valid: return b_.copy(node, {parts(node.inputs[0]).first});
      default: refuse(node);
    }
  }

  // The values, where a complex one is replaced by its two parts.
  std::vector<Value> of_parts(const std::vector<Value>& values) const {
    std::vector<Value> result;
    for (const Value v : values) {
      result.push_back(is_split(v) ? parts(v).first : whole_[v.id]);
      if (is_split(v)) result.push_back(parts(v).second);
    }
    return result;
  }

  // Gives a loop's carried values new numbers, two for each complex one.
  void number_carries(const Node& end) {
    Ints& numbers = carries_[end.inputs[0]];
    int64_t next = 0;
    for (size_t k = 0; k < num_carried(end); ++k) {
      numbers.push_back(next);
      next += is_split(end.inputs[1 + k]) ? 2 : 1;
    }
  }
  int64_t number_of_result(const Node& result) const {
    return carries_.at(graph_[result.inputs[0]].inputs[0])[result.as<Loop_Result>()->index];
  }

  [[noreturn]] void refuse(const Node& node) const {
    DType dtype = node.dtype();
    for (const Value v : node.inputs)
      if (is_split(v)) dtype = graph_[v].dtype();
    user_error(ErrorKind::Unsupported, name_of(node.kind()), ": cannot compute with ",
               numpy_name(dtype), " (it has no meaning for the parts of complex numbers)");
  }

  // The node applied to one part of its complex operands.
  Value of_parts(const Node& node, Value Parts::* part) {
    std::vector<Value> inputs;
    for (const Value v : node.inputs) inputs.push_back(is_split(v) ? parts(v).*part : whole_[v.id]);
    return b_.add(node.payload, std::move(inputs),
                  {real_of(node.dtype()), node.shape(), node.meta.device});
  }

  Parts cast(const Node& node) {
    const DType to = real_of(node.dtype());
    const Value operand = node.inputs[0];
    if (is_split(operand))
      return {b_.cast(parts(operand).first, to), b_.cast(parts(operand).second, to)};
    return {b_.cast(whole_[operand.id], to), b_.full(Scalar::zero(to), node.shape())};
  }

  // A cast to a real dtype: the real part, or for bool, whether one of the parts is not 0.
  Value real_cast(const Node& node) {
    const auto [real, imag] = parts(node.inputs[0]);
    if (!is_bool(node.dtype())) return b_.cast(real, node.dtype());
    return b_.alu(AluOp::Or, {b_.cast(real, DType::Bool), b_.cast(imag, DType::Bool)});
  }

  // A contraction of complex numbers becomes one contraction of real numbers. The sums over k of
  // (ar br - ai bi, ar bi + ai br) are sums over k and over the two parts of a, which are adjacent
  // in memory, of products with the rows (br, bi) and (-bi, br). The results have the same order in
  // memory as those of the complex contraction. If possible, the axes of the parts are joined with
  // adjacent axes, so that a product of matrices remains one.
  Parts contract(const Node& node) {
    const auto& [contract, batch] = *node.as<Contract>();
    const auto rank_a = static_cast<int64_t>(graph_[node.inputs[0]].shape().size());
    const auto rank_b = static_cast<int64_t>(graph_[node.inputs[1]].shape().size());
    const bool joins_rows = contract.size() == 1 && contract[0].first == rank_a - 1;
    const int64_t rows =
        joins_rows ? contract[0].second + 1 : rank_b;  // the axis of a's parts in b
    const auto [real, imag] = parts(node.inputs[1]);
    const Value of_real = stack(real, b_.alu(AluOp::Neg, {imag}), rows);
    Value b = stack(of_real, stack(imag, real, rows), rank_b + 1);
    const Ints columns = free_axes(*node.as<Contract>(), 1, static_cast<size_t>(rank_b));
    const bool joins_columns =
        rows <= rank_b - 1 && !columns.empty() && columns.back() == rank_b - 1;
    if (joins_columns) b = join(b, rank_b);
    Value a = stored(node.inputs[0]);
    Pairs pairs = contract;
    if (joins_rows) {
      a = join(a, rank_a - 1);
      b = join(b, rows - 1);
    } else {
      pairs.emplace_back(rank_a, rank_b);
    }
    return unstack(
        b_.reshape(b_.contract(a, b, std::move(pairs), batch), stacked_type(node).shape));
  }

  // x with the axes `axis` and `axis` + 1 as one.
  Value join(Value x, int64_t axis) {
    Shape shape = b_.shape(x);
    shape[axis] = product("contract", shape[axis], shape[axis + 1]);
    shape.erase(shape.begin() + axis + 1);
    return b_.reshape(x, std::move(shape));
  }

  // The type of a complex value in memory: the last axis is that of the two parts.
  static Metadata stacked_type(const Node& node) {
    Shape shape = node.shape();
    shape.push_back(2);
    return {real_of(node.dtype()), std::move(shape), node.meta.device};
  }

  // Joins x and y along a new axis.
  Value stack(Value x, Value y, int64_t axis) {
    Shape shape = b_.shape(x);
    shape.insert(shape.begin() + axis, 1);
    return b_.cat({b_.reshape(x, shape), b_.reshape(y, shape)}, axis);
  }

  Parts unstack(Value pairs) {
    Shape shape = b_.shape(pairs);
    shape.pop_back();
    const auto axis = static_cast<int64_t>(shape.size());
    const Parts parts{b_.reshape(b_.slice(pairs, axis, 0, 1), shape),
                      b_.reshape(b_.slice(pairs, axis, 1, 2), shape)};
    stacks_[parts] = pairs;
    return parts;
  }

  // The value in the form that it has in memory.
  Value stored(Value v) {
    if (!is_split(v)) return whole_[v.id];
    Value& known = stacks_[parts(v)];
    const auto rank = static_cast<int64_t>(graph_[v].shape().size());
    if (!known.valid()) known = stack(parts(v).first, parts(v).second, rank);
    return known;
  }

  std::vector<Value> all_stored(const Node& node) {
    std::vector<Value> inputs;
    for (const Value v : node.inputs) inputs.push_back(stored(v));
    return inputs;
  }

  const Graph& graph_;
  Builder b_;
  std::vector<Value> whole_;       // by node, if it is not complex
  std::vector<Parts> parts_;       // by node, if it is complex
  std::map<Parts, Value> stacks_;  // by parts: the value in memory that has both
  std::map<Value, Ints> carries_;  // by counter: the new numbers of the carried values
};

}  // namespace

Graph split_complex(const Graph& graph) {
  const bool has_complex =
      any_node(graph, [](const Node& node) { return is_complex(node.dtype()); });
  if (!has_complex) return graph;
  const Graph live = eliminate_dead_code(graph);  // removes loops without an end
  return Splitter(live).run();
}

}  // namespace rune::graph
