// Handles arrays that are in parts on several devices: computes on them part by part where
// possible, and adds the transfers between devices.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace rune::graph {

namespace {

// "cpu" is "cpu:0".
std::string canonical_device(const std::string& name) {
  return name.find(':') == std::string::npos ? name + ":0" : name;
}

// The kind of device: "cpu" of "cpu:1".
std::string kind_of(const std::string& device) {
  return device.substr(0, device.find(':'));
}

bool is_elementwise(NodeKind kind) {
  return kind == NodeKind::Binop || kind == NodeKind::Unary || kind == NodeKind::Ternary ||
         kind == NodeKind::Cast || kind == NodeKind::Bitcast || kind == NodeKind::Contiguous ||
         kind == NodeKind::Detach || kind == NodeKind::Contiguous_Backward;
}

// A Multi node's value: split along an axis, or copies.
struct Shards {
  std::optional<int64_t> axis;
  std::vector<Value> parts;
};

class Placer {
 public:
  // `program` is the device of values that name none.
  Placer(const Graph& graph, const std::string& program)
      : graph_(graph), program_(canonical_device(program)) {}

  Graph run() {
    return rewrite(
        graph_,
        [&](Builder& b, uint32_t id, const Node& node, std::vector<Value> inputs) {
          if (auto shards = compute_by_part(b, node, inputs)) {
            shards_.emplace(id, std::move(*shards));
            return Value{};  // the parts are joined when it is read as a whole
          }
          for (size_t i = 0; i < inputs.size(); ++i)
            inputs[i] = whole(b, node.inputs[i], inputs[i]);
          if (const auto* copy = node.as<Copy>()) return transfer(b, *copy, inputs[0]);
          if (const auto* multi = node.as<Multi>()) return join(b, *multi, inputs);
          bring_together(b, node, inputs);
          return b.add(node.payload, std::move(inputs), {node.dtype(), node.shape(), std::nullopt});
        },
        [&](Builder& b, Value old, Value v) { return on(b, program_, whole(b, old, v)); });
  }

 private:
  std::string device_of(const Builder& b, Value v) const {
    return b[v].meta.device.value_or(program_);
  }

  // A constant is everywhere.
  static bool is_constant(const Builder& b, Value v) {
    const Node& node = b[v];
    if (node.as<Placeholder>() || node.as<Host_Callback>() || node.as<Loop_Nest>() ||
        node.meta.device)
      return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](Value input) { return is_constant(b, input); });
  }

  // The value on a device. Each value is transferred to each device only once.
  Value on(Builder& b, const std::string& device, Value v) {
    if (device_of(b, v) == device || is_constant(b, v)) return v;
    // If v is itself a transfer, transfer its source directly.
    const auto* copy = b[v].as<Copy>();
    if (copy && !copy->device.empty()) return on(b, device, b[v].inputs[0]);
    Value& there = transfers_[{device, v}];
    if (!there.valid()) there = b.add(Copy{device, false}, {v});
    return there;
  }

  // The value of an old node, which has become `v`, on a single device. If it is in parts, that is
  // the program's device.
  Value whole(Builder& b, Value old, Value v) {
    const auto shards = shards_.find(old.id);
    if (shards == shards_.end()) return v;
    Value& known = wholes_[old.id];
    if (known.valid()) return known;
    std::vector<Value> parts = shards->second.parts;
    if (!shards->second.axis) parts.resize(1);
    for (Value& part : parts) part = on(b, program_, part);
    return known = b.cat(std::move(parts), shards->second.axis.value_or(0));
  }

  Value transfer(Builder& b, const Copy& copy, Value x) {
    const std::string here = device_of(b, x);
    const std::string there = copy.device.empty() ? here : canonical_device(copy.device);
    if (there != here) return on(b, there, x);
    return copy.clone ? b.contiguous(x) : x;
  }

  // Joins shards on one device to an array. Shards that are not real are zeros.
  static Value join(Builder& b, const Multi& multi, const std::vector<Value>& shards) {
    std::vector<Value> parts;
    for (size_t i = 0; i < shards.size(); ++i) {
      if (!multi.axis && multi.real[i]) return shards[i];
      parts.push_back(multi.real[i] ? shards[i]
                                    : b.full(Scalar::zero(b.dtype(shards[i])), b.shape(shards[i])));
    }
    return multi.axis ? b.cat(std::move(parts), *multi.axis) : parts[0];
  }

  // Transfers operands to the same device: that of the first operand that is not on the program's
  // device. Host calls, custom operations and loops run on the program's device.
  void bring_together(Builder& b, const Node& node, std::vector<Value>& inputs) {
    std::string device = program_;
    if (!node.as<Host_Callback>() && !node.as<Custom>() && !node.as<Loop_Nest>())
      for (const Value v : inputs)
        if (device == program_) device = device_of(b, v);
    for (Value& v : inputs) v = on(b, device, v);
  }

  // The parts of a node's value on several devices, if it is a Multi or can be computed part by
  // part from its operands' parts. Otherwise nothing.
  std::optional<Shards> compute_by_part(Builder& b, const Node& node,
                                        const std::vector<Value>& inputs) {
    if (const auto* multi = node.as<Multi>()) return shards_of(b, *multi, node, inputs);
    const Shards* model = nullptr;
    for (const Value v : node.inputs) {
      const auto operand = shards_.find(v.id);
      if (operand == shards_.end()) continue;
      if (model && !lie_alike(b, *model, operand->second)) return std::nullopt;
      model = &operand->second;
    }
    if (!model) return std::nullopt;
    if (is_elementwise(node.kind())) return elementwise(b, node, *model, inputs);
    if (node.as<Reduce_Axis>()) return reduce(b, node, *model);
    if (node.as<Permute>() || node.as<Expand>()) return move(b, node, *model);
    return std::nullopt;
  }

  std::optional<Shards> shards_of(Builder& b, const Multi& multi, const Node& node,
                                  const std::vector<Value>& inputs) {
    Shards shards{multi.axis, {}};
    std::set<std::string> devices;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Value part = whole(b, node.inputs[i], inputs[i]);
      devices.insert(device_of(b, part));
      if (multi.axis && !multi.real[i]) return std::nullopt;
      if (multi.real[i]) shards.parts.push_back(part);
    }
    return devices.size() > 1 && !shards.parts.empty() ? std::optional(shards) : std::nullopt;
  }

  // Whether part i of one array matches part i of the other.
  bool lie_alike(const Builder& b, const Shards& x, const Shards& y) const {
    if (x.axis != y.axis || x.parts.size() != y.parts.size()) return false;
    for (size_t i = 0; i < x.parts.size(); ++i) {
      if (device_of(b, x.parts[i]) != device_of(b, y.parts[i])) return false;
      if (x.axis && b.shape(x.parts[i])[*x.axis] != b.shape(y.parts[i])[*x.axis]) return false;
    }
    return true;
  }

  Shards elementwise(Builder& b, const Node& node, const Shards& model,
                     const std::vector<Value>& operands) {
    Shards result{model.axis, {}};
    Dim start = 0;
    for (size_t i = 0; i < model.parts.size(); ++i) {
      const std::string device = device_of(b, model.parts[i]);
      const Dim end = model.axis ? start + b.shape(model.parts[i])[*model.axis] : start;
      std::vector<Value> inputs;
      for (size_t k = 0; k < operands.size(); ++k) {
        const auto shards = shards_.find(node.inputs[k].id);
        Value part = shards == shards_.end() ? operands[k] : shards->second.parts[i];
        if (shards == shards_.end() && model.axis) part = b.slice(part, *model.axis, start, end);
        inputs.push_back(on(b, device, part));
      }
      result.parts.push_back(b.add(node.payload, std::move(inputs)));
      start = end;
    }
    return result;
  }

  Shards reduce(Builder& b, const Node& node, const Shards& operand) {
    const auto& reduce = *node.as<Reduce_Axis>();
    Shards result{operand.axis, {}};
    for (const Value part : operand.parts) result.parts.push_back(b.add(reduce, {part}));
    if (!operand.axis || !contains(reduce.axes, *operand.axis)) return result;
    Value total = on(b, program_, result.parts[0]);
    for (size_t i = 1; i < result.parts.size(); ++i)
      total = b.alu(alu_of(reduce.op), {total, on(b, program_, result.parts[i])});
    return {std::nullopt, {total}};
  }

  static Shards move(Builder& b, const Node& node, const Shards& operand) {
    const auto* permute = node.as<Permute>();
    Shards result = operand;
    for (Value& part : result.parts) {
      Shape shape = node.shape();
      if (operand.axis && !permute) shape[*operand.axis] = b.shape(part)[*operand.axis];
      part = permute ? b.permute(part, permute->axes) : b.expand(part, shape);
    }
    if (operand.axis && permute)
      result.axis = std::find(permute->axes.begin(), permute->axes.end(), *operand.axis) -
                    permute->axes.begin();
    return result;
  }

  const Graph& graph_;
  const std::string program_;
  std::map<uint32_t, Shards> shards_;                         // by old node
  std::map<uint32_t, Value> wholes_;                          // of those: all parts as one array
  std::map<std::pair<std::string, Value>, Value> transfers_;  // by device and new value
};

}  // namespace

void check_devices(const Graph& graph, const std::string& program) {
  for (const Node& node : graph.nodes)
    if (node.meta.device && kind_of(*node.meta.device) != kind_of(program))
      user_error(ErrorKind::Unsupported, name_of(node.kind()), ": cannot place a value on ",
                 *node.meta.device, " in a program of ", kind_of(program),
                 " (the devices of a program are of one kind)");
}

Graph place_on_devices(Graph graph, const std::string& device) {
  const bool places = any_node(graph, [](const Node& node) {
    return node.meta.device || node.as<Multi>() || node.as<Copy>();
  });
  return places ? Placer(graph, device).run() : std::move(graph);
}

}  // namespace rune::graph
