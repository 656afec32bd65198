#include "graph/segment.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "graph/attribute_dims.h"

namespace rune::graph {

namespace {

// Whether reading the node means reading its operand at another position. (A Pad is a movement too,
// but is stored.)
bool is_view(const Node& node) {
  switch (node.kind()) {
    case NodeKind::View:
    case NodeKind::Reshape:
    case NodeKind::Permute:
    case NodeKind::Expand:
    case NodeKind::Shrink:
    case NodeKind::Flip: return true;
    default: return false;
  }
}

bool is_constant(const Node& node) {
  return node.as<Const_Scalar>() || node.as<Vconst>();
}

double elements_of(const Node& node) {
  double count = 1;
  for (const Dim& size : node.shape()) count *= static_cast<double>(size.bound());
  return count;
}

// Whether there are sizes among the node's attributes.
bool has_sizes(const Node& node) {
  switch (node.kind()) {
    case NodeKind::Iota:
    case NodeKind::Reshape:
    case NodeKind::Expand:
    case NodeKind::Pad:
    case NodeKind::Shrink:
    case NodeKind::Assign:
    case NodeKind::End_Loop:
    case NodeKind::Update: return true;
    default: return false;
  }
}

// Values, numbered in the order in which they are added. It is an open hash table, because cuts are
// frequent and use it several times for each node.
class Numbering {
 public:
  // Adds v. Returns whether it is new.
  bool add(Value v) {
    if (2 * size_ >= slots_.size()) grow();
    Slot& slot = slots_[position(v.id)];
    if (slot.id == v.id) return false;
    slot = {v.id, static_cast<uint32_t>(size_++)};
    return true;
  }
  bool contains(Value v) const { return slots_[position(v.id)].id == v.id; }
  Value operator[](Value v) const {
    const Slot& slot = slots_[position(v.id)];
    RUNE_CHECK(slot.id == v.id, "%", v.id, " is not part of the segment");
    return {slot.number};
  }
  std::vector<Value> of(const std::vector<Value>& values) const {
    std::vector<Value> result;
    for (const Value v : values) result.push_back((*this)[v]);
    return result;
  }

 private:
  struct Slot {
    uint32_t id = Value{}.id;  // none
    uint32_t number = 0;
  };

  // The position where the id is, or would be inserted.
  size_t position(uint32_t id) const {
    const size_t mask = slots_.size() - 1;
    size_t at = id * uint32_t{0x9e3779b1} & mask;
    while (slots_[at].id != id && slots_[at].id != Value{}.id) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    for (const Slot& slot : old)
      if (slot.id != Value{}.id) slots_[position(slot.id)] = slot;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(64);  // a power of two
  size_t size_ = 0;
};

// Sets the pattern and the sizes.
void describe(const Graph& graph, Segment& segment) {
  std::string& out = segment.pattern;
  Numbering number;
  const auto add_type = [&](const Node& node) {
    text::Codec<DType>::print(out, node.dtype());
    out += '[';
    for (const Dim& size : node.shape()) {
      segment.sizes.push_back(size.constant());
      out += ',';
    }
  };
  const auto print = [&](const Payload& payload) {
    std::visit([&](const auto& node) { text::print_fields(out, node); }, payload);
  };
  for (const Value v : segment.inputs) {
    number.add(v);
    add_type(graph[v]);
    out += ';';
  }
  for (const Value v : segment.nodes) {
    const Node& node = graph[v];
    number.add(v);
    out += name_of(node.kind());
    if (has_sizes(node)) {
      Payload payload = node.payload;
      change_dims(payload, [&](Dim& size) {
        segment.sizes.push_back(size.constant());
        size = 0;
      });
      print(payload);
    } else if (!node.as<Const_Scalar>()) {
      print(node.payload);
    }
    for (const Value operand : node.inputs) text::Codec<Value>::print(out, number[operand]);
    add_type(node);
    out += ';';
  }
  for (const Value v : segment.outputs) text::Codec<Value>::print(out, number[v]);
}

// The cost of an element of the node's result, in additions.
double additions_of(const Node& node) {
  if (const auto* unary = node.as<Unary>()) return info(unary->op).cost;
  if (const auto* binary = node.as<Binop>()) return info(binary->op).cost;
  switch (node.kind()) {
    case NodeKind::Gather:
    case NodeKind::Index:
    case NodeKind::Scatter:
    case NodeKind::Scan: return 20;
    default: return 1;
  }
}

}  // namespace

double numpy_ns(const Graph& graph, Value v) {
  const Node& node = graph[v];
  if (is_view(node) || is_constant(node) || node.as<Placeholder>()) return 0;
  constexpr double kNumber = 150, kCall = 700, kReduction = 2000;
  constexpr double kCache = 1 << 20;  // bytes
  if (node.as<Update>()) {            // (NumPy writes to a part of an array.)
    const Node& part = graph[node.inputs[1]];
    return kCall + 2 * static_cast<double>(bytes_of(part)) / 40 + elements_of(part) / 5;
  }
  double bytes = static_cast<double>(bytes_of(node));
  for (Value operand : node.inputs) {
    if (graph[operand].as<Expand>()) operand = graph[operand].inputs[0];
    bytes += static_cast<double>(bytes_of(graph[operand]));
  }
  double additions = elements_of(node) * additions_of(node);
  if (const auto* contract = node.as<Contract>()) {
    const Ints sizes = bounds_of(graph[node.inputs[0]].shape());
    for (const auto& [a, b] : contract->contract) additions *= static_cast<double>(sizes[a]);
  }
  double call = node.shape().empty() ? kNumber : kCall;
  if (node.as<Reduce_Axis>()) call += kReduction;
  return call + bytes / (bytes < kCache ? 40 : 8) + additions / 5;
}

double compile_ns(const Graph& graph, Value v) {
  const Node& node = graph[v];
  if (is_constant(node) || node.as<Placeholder>()) return 0;
  constexpr double kView = 0.1e6, kNode = 0.5e6, kFunction = 4e6, kPeriodic = 20e6;
  if (is_view(node)) return kView;
  if (node.as<Update>()) return 3 * kNode;  // (It becomes two Pads and a Where.)
  if (const auto* binary = node.as<Binop>())
    return binary->op == AluOp::Pow || binary->op == AluOp::Atan2 ? kFunction : kNode;
  const auto* unary = node.as<Unary>();
  if (!unary) return kNode;
  const AluOp op = unary->op;
  if (op == AluOp::Sin || op == AluOp::Cos || op == AluOp::Tan) return kPeriodic;
  return info(op).cost < 10 ? kNode : kFunction;
}

Ints kernel_sizes(const Graph& graph, Value v) {
  constexpr double kMany = 32;
  const Node& node = graph[v];
  if (!node.as<Reduce_Axis>() || elements_of(node) < kMany) return {};
  Ints sizes = bounds_of(graph[node.inputs[0]].shape());
  const Ints of_result = bounds_of(node.shape());
  sizes.insert(sizes.end(), of_result.begin(), of_result.end());
  return sizes;
}

Segment cut_segment(const Graph& graph, const std::vector<Value>& wanted,
                    const std::vector<Value>& live, const ValueSet& in_memory) {
  Segment segment;
  Numbering outputs;
  ValueSet held;
  const auto is_stored = [&](Value v) { return in_memory.contains(v.id) || outputs.contains(v); };
  const auto store = [&](Value v) {
    if (!in_memory.contains(v.id) && outputs.add(v)) segment.outputs.push_back(v);
  };
  for (const Value v : wanted) store(v);
  for (Value v : live) {
    while (!is_stored(v) && is_view(graph[v])) v = graph[v].inputs[0];
    // A stored value is an argument of later segments.
    const bool is_needed = is_stored(v) || !is_constant(graph[v]);
    if (is_needed && held.insert(v.id)) segment.held.push_back(v);
  }
  for (const Value v : segment.held) store(v);
  // The order in which values are wanted makes no difference to the pattern.
  std::sort(segment.outputs.begin(), segment.outputs.end());
  Numbering seen;
  std::vector<Value> open = segment.outputs;
  while (!open.empty()) {
    const Value v = open.back();
    open.pop_back();
    if (!seen.add(v)) continue;
    if (in_memory.contains(v.id)) continue;
    RUNE_CHECK(!graph[v].as<Placeholder>(), "an argument that is not in memory");
    segment.nodes.push_back(v);
    open.insert(open.end(), graph[v].inputs.begin(), graph[v].inputs.end());
  }
  std::sort(segment.nodes.begin(), segment.nodes.end());
  // Inputs are in the order of their uses, so the order in which they were stored makes no
  // difference.
  Numbering given;
  const auto use = [&](const std::vector<Value>& values) {
    for (const Value v : values)
      if (in_memory.contains(v.id) && given.add(v)) segment.inputs.push_back(v);
  };
  for (const Value v : segment.nodes) use(graph[v].inputs);
  use(segment.outputs);
  for (const Value v : segment.nodes) {
    if (graph[v].as<Const_Scalar>()) segment.constants.push_back(v);
    segment.numpy_ns += numpy_ns(graph, v);
    segment.compile_ns += compile_ns(graph, v);
  }
  for (const Value v : segment.outputs) segment.stored += elements_of(graph[v]);
  describe(graph, segment);
  return segment;
}

Graph program_of(const Graph& graph, const Segment& segment,
                 const std::vector<int64_t>& arguments) {
  Graph program;
  Numbering number;
  const auto add_argument = [&](Value v) {
    number.add(v);
    const auto index = static_cast<int64_t>(program.nodes.size());
    program.nodes.push_back({Placeholder{index}, {}, graph[v].meta, graph[v].location});
  };
  for (const Value v : segment.inputs) add_argument(v);
  for (const int64_t i : arguments) add_argument(segment.constants[i]);
  for (const Value v : segment.nodes) {
    if (!number.add(v)) continue;
    const Node& node = graph[v];
    program.nodes.push_back({node.payload, number.of(node.inputs), node.meta, node.location});
  }
  program.outputs = number.of(segment.outputs);
  return program;
}

}  // namespace rune::graph
