#include "graph/passes/decompose_nodes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "graph/passes/decompose_nodes_rules.h"
#include "graph/passes/eliminate_dead_code.h"
#include "graph/passes/shards.h"
#include "graph/text.h"

namespace rune::graph {

namespace {

// "cpu" is "cpu:0".
std::string canonical_device(const std::string& name) {
  return name.find(':') == std::string::npos ? name + ":0" : name;
}

// The kind of device: "cpu" of "cpu:1".
std::string target_of(const std::string& device) {
  return device.substr(0, device.find(':'));
}

class Decomposer {
 public:
  Decomposer(const Graph& graph, const std::string& device, const Languages& languages)
      : graph_(graph),
        device_(canonical_device(device)),
        languages_(languages),
        vars_(graph.symbolic_vars()),
        transfers_(b_, device_),
        places_(graph, b_, map_) {}

  Graph run() {
    map_.resize(graph_.size());
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      b_.set_location(graph_.nodes[id].location);
      check_device(graph_.nodes[id]);
      map_[id] = decompose(id);
    }
    std::vector<Value> outputs;
    for (const Value v : graph_.outputs) outputs.push_back(transfers_.on_program(read(v)));
    b_.set_outputs(std::move(outputs));
    return b_.take();
  }

 private:
  void check_device(const Node& node) const {
    if (!node.meta.device || target_of(*node.meta.device) == target_of(device_)) return;
    user_error(ErrorKind::Unsupported, name_of(node.kind()), ": cannot place a value on ",
               *node.meta.device, " in a program of ", target_of(device_),
               " (the devices of a program are of one kind)");
  }

  Value read(Value v) {
    const auto shards = shards_.find(v.id);
    if (shards != shards_.end() && !map_[v.id].valid())
      map_[v.id] = gather_parts(b_, transfers_, shards->second);
    const Value value = places_.read(v);
    RUNE_CHECK(value.valid(), "%", v.id, " has no value");
    return value;
  }

  // Keeps the source for this target only, or calls the reference.
  Value custom(const Node& node, const std::vector<Value>& in) {
    const auto& custom = *node.as<Custom>();
    for (const Value v : in)
      if (b_.shape(v) != node.shape())
        user_error(ErrorKind::Value, "custom: cannot compute ", custom.op_name, " of ",
                   shape_text(b_.shape(v)), " as ", shape_text(node.shape()),
                   " (it works element by element)\nhint: expand the operands");
    const Metadata type{node.dtype(), node.shape(), std::nullopt};
    for (const std::string& language : languages_)
      if (const std::string* source = custom_source(custom, language))
        return b_.add(Custom{custom.op_name, {{"text", *source}}}, in, type);
    const std::string target = target_of(device_);
    const std::optional<int64_t> call = custom_reference(custom);
    if (!call)
      user_error(ErrorKind::Unsupported, "custom: cannot compile ", custom.op_name, " for ", target,
                 " (it has no source for ", target, ")\nhint: give it one as the attribute \"",
                 target, "\", or a reference");
    if (max_elements(node.shape()) == 0) return b_.full(Scalar::zero(node.dtype()), node.shape());
    return called(Host_Callback{custom.op_name, *call, 0}, in, type);
  }

  // A host function runs beside the program's own device.
  Value called(const Host_Callback& callback, std::vector<Value> in, const Metadata& type) {
    for (Value& v : in) v = transfers_.on_program(v);
    const auto [known, fresh] = operands_of_call_.insert({callback.call, in});
    if (!fresh && known->second != in)
      user_error(ErrorKind::Value, "host_callback: cannot call ", callback.name,
                 " with other operands (call ", callback.call, " has its own already)",
                 "\nhint: give each call a number and a function of its own");
    return b_.add(callback, std::move(in), type);
  }

  // Nodes without a value are arrays of no elements.
  Value nothing() { return b_.full(Scalar::of(DType::Bool, false), {0}); }

  Value keep(const Node& node, const std::vector<Value>& in) {
    return b_.add(node.payload, in, {node.dtype(), node.shape(), std::nullopt});
  }

  // A Gather or Index, for which a source without elements is special.
  Value looked_up(const Node& node, const std::vector<Value>& in) {
    const Shape& source = b_.shape(in[0]);
    const auto* gather = node.as<Gather>();
    if (gather ? source[gather->axis] != 0 : max_elements(source) != 0) return keep(node, in);
    if (max_elements(node.shape()) > 0 && in.size() < 3)
      user_error(ErrorKind::Index, name_of(node.kind()), ": cannot take elements ",
                 shape_text(node.shape()), " from ", shape_text(source),
                 " (the source has no elements)");
    return b_.full(Scalar::zero(node.dtype()), node.shape());
  }

  // A variable that is only bound has no value when the program runs.
  Value define_var(const Node& node) {
    const SymVar& var = node.as<Define_Var>()->var;
    const bool given = std::find(vars_.begin(), vars_.end(), var) != vars_.end();
    return given ? keep(node, {}) : Value{};  // only a Bind reads it
  }

  Value sink(const Node& node, const std::vector<Value>& in) {
    keep(node, in);
    return nothing();
  }

  Value decompose(uint32_t id) {
    const Node& node = graph_.nodes[id];
    if (places_.is_alias(id)) return {};  // built when it is read
    if (node.as<Assign>()) return places_.assign(id);
    if (node.as<Buffer>()) return places_.make_buffer(id);
    if (node.as<Bind>()) return b_.constant(Scalar::of(DType::Int64, node.as<Bind>()->value));
    if (in_parts(id)) return {};  // gathered when it is read
    std::vector<Value> in;
    for (const Value v : node.inputs) in.push_back(read(v));
    if (node.as<Copy>()) return copy(node, in[0]);
    return decompose(node, on_one_device(in));
  }

  // Whether the node's value lies in parts on several devices; then it is in shards_.
  bool in_parts(uint32_t id) {
    const Node& node = graph_.nodes[id];
    std::optional<Shards> shards;
    if (const auto* multi = node.as<Multi>()) {
      shards = Shards{multi->axis, {}};
      std::set<std::string> devices;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const Value part = read(node.inputs[i]);
        devices.insert(transfers_.device_of(part));
        if (multi->axis && !multi->real[i]) return false;
        if (multi->axis || multi->real[i]) shards->parts.push_back(part);
      }
      if (devices.size() < 2 || shards->parts.empty()) return false;
    } else {
      std::vector<const Shards*> operands;
      for (const Value v : node.inputs) {
        const auto found = shards_.find(v.id);
        operands.push_back(found == shards_.end() ? nullptr : &found->second);
      }
      shards = compute_by_part(b_, transfers_, node, operands,
                               [&](size_t i) { return read(node.inputs[i]); });
    }
    if (!shards) return false;
    shards_.emplace(id, std::move(*shards));
    return true;
  }

  Value copy(const Node& node, Value x) {
    const auto& copy = *node.as<Copy>();
    const std::string here = transfers_.device_of(x);
    const std::string there = copy.device.empty() ? here : canonical_device(copy.device);
    return there == here ? b_.add(Copy{"", copy.clone}, {x}) : transfers_.on(there, x);
  }

  // Operands come to the device of the first that is not on the program's.
  std::vector<Value> on_one_device(std::vector<Value> in) {
    std::string device = device_;
    for (const Value v : in)
      if (device == device_) device = transfers_.device_of(v);
    if (device != device_)
      for (Value& v : in) v = transfers_.on(device, v);
    return in;
  }

  Value decompose(const Node& node, const std::vector<Value>& in) {
    switch (node.kind()) {
      case NodeKind::Placeholder:
      case NodeKind::Const_Scalar:
      case NodeKind::Vconst:
      case NodeKind::Binop:
      case NodeKind::Unary:
      case NodeKind::Ternary:
      case NodeKind::View:
      case NodeKind::Buffer_View:
      case NodeKind::Reshape:
      case NodeKind::Permute:
      case NodeKind::Expand:
      case NodeKind::Pad:
      case NodeKind::Shrink:
      case NodeKind::Flip:
      case NodeKind::Reduce_Axis:
      case NodeKind::Valid:
      case NodeKind::Vectorize:
      case NodeKind::Cast:
      case NodeKind::Bitcast:
      case NodeKind::Contiguous:
      case NodeKind::Fuse:
      case NodeKind::Unroll:
      case NodeKind::Kernel:
      case NodeKind::Contract:
      case NodeKind::Cat: return keep(node, in);
      case NodeKind::Host_Callback:
        return called(*node.as<Host_Callback>(), in, {node.dtype(), node.shape(), std::nullopt});
      case NodeKind::Index:
      case NodeKind::Gather: return looked_up(node, in);
      case NodeKind::Detach:
      case NodeKind::Contiguous_Backward: return in[0];
      case NodeKind::Noop: return in.empty() ? nothing() : in[0];
      case NodeKind::Device: return nothing();
      case NodeKind::Sink: return sink(node, in);
      case NodeKind::Unique: return b_.constant(Scalar::of(DType::Int64, node.as<Unique>()->id));
      case NodeKind::Multi: return decompose_multi(b_, *node.as<Multi>(), in);
      case NodeKind::Gep: return decompose_gep(b_, *node.as<Gep>(), in[0]);
      case NodeKind::Wmma: return decompose_wmma(b_, in[0], in[1], in[2]);
      case NodeKind::Threefry: return decompose_threefry(b_, in[0], in[1]);
      case NodeKind::Scatter:
        return decompose_scatter(b_, *node.as<Scatter>(), in[0], in[1], in[2]);
      case NodeKind::Scan: return decompose_scan(b_, *node.as<Scan>(), in);
      case NodeKind::Define_Var: return define_var(node);
      case NodeKind::Custom: return custom(node, in);
      case NodeKind::Assign:
      case NodeKind::Bind:
      case NodeKind::Copy:
      case NodeKind::Buffer: break;  // above
    }
    RUNE_UNREACHABLE(name_of(node.kind()));
  }

  const Graph& graph_;
  const std::string device_;
  const Languages& languages_;
  const std::vector<SymVar> vars_;
  Builder b_;
  std::vector<Value> map_;
  Transfers transfers_;
  Places places_;
  std::map<uint32_t, Shards> shards_;  // by node
  std::map<int64_t, std::vector<Value>> operands_of_call_;
};

}  // namespace

Graph decompose_nodes(const Graph& graph, const std::string& device, const Languages& languages) {
  const Graph live = eliminate_dead_code(graph);
  return Decomposer(live, device, languages).run();
}

}  // namespace rune::graph
