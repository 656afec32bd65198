#include "graph/passes/decompose_nodes.h"

#include <algorithm>

#include "base/error.h"
#include "graph/passes/decompose_nodes_rules.h"
#include "graph/passes/eliminate_dead_code.h"
#include "graph/symbolic_sizes.h"
#include "graph/text.h"

namespace rune::graph {

namespace {

// "cpu:0" is "cpu".
std::string canonical_device(const std::string& name) {
  return name.ends_with(":0") ? name.substr(0, name.size() - 2) : name;
}

class Decomposer {
 public:
  Decomposer(const Graph& graph, const std::string& device)
      : graph_(graph),
        device_(canonical_device(device)),
        vars_(graph.symbolic_vars()),
        places_(graph, b_, map_) {}

  Graph run() {
    map_.resize(graph_.size());
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      b_.set_location(graph_.nodes[id].location);
      check_device(graph_.nodes[id]);
      map_[id] = decompose(id);
    }
    std::vector<Value> outputs;
    for (const Value v : graph_.outputs) outputs.push_back(read(v));
    b_.set_outputs(std::move(outputs));
    return b_.take();
  }

 private:
  void check_device(const Node& node) const {
    if (!node.meta.device || canonical_device(*node.meta.device) == device_) return;
    user_error(ErrorKind::Unsupported, name_of(node.kind()), ": cannot place a value on ",
               *node.meta.device, " in a program of ", device_,
               " (programs of several devices are not supported yet)");
  }

  Value read(Value v) {
    const Value value = places_.read(v);
    RUNE_CHECK(value.valid(), "%", v.id, " has no value");
    return value;
  }

  // Keeps the source for this target only.
  Value custom(const Node& node, const std::vector<Value>& in) {
    const auto& custom = *node.as<Custom>();
    const std::string target = device_.substr(0, device_.find(':'));
    const std::string* source = custom_source(custom, target);
    if (!source && target != "cpu") source = custom_source(custom, "c");
    if (!source)
      user_error(ErrorKind::Unsupported, "custom: cannot compile ", custom.op_name, " for ",
                 device_, " (it has no source for ", target,
                 ")\nhint: give it one as the attribute \"", target, "\"");
    for (const Value v : in)
      if (b_.shape(v) != node.shape())
        user_error(ErrorKind::Value, "custom: cannot compute ", custom.op_name, " of ",
                   shape_text(b_.shape(v)), " as ", shape_text(node.shape()),
                   " (it works element by element)\nhint: expand the operands");
    return b_.add(Custom{custom.op_name, {{"text", *source}}}, in,
                  {node.dtype(), node.shape(), std::nullopt});
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
    if ((gather ? source[gather->axis] : num_elements(source)) > 0) return keep(node, in);
    if (num_elements(node.shape()) > 0 && in.size() < 3)
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
    std::vector<Value> in;
    for (const Value v : node.inputs) in.push_back(read(v));
    return decompose(node, in);
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
      case NodeKind::Copy: return b_.add(Copy{"", node.as<Copy>()->clone}, in);
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
      case NodeKind::Buffer: break;  // above
    }
    RUNE_UNREACHABLE(name_of(node.kind()));
  }

  const Graph& graph_;
  const std::string device_;
  const std::vector<SymVar> vars_;
  Builder b_;
  std::vector<Value> map_;
  Places places_;
};

}  // namespace

Graph decompose_nodes(const Graph& graph, const std::string& device) {
  check_symbolic_sizes(graph);
  const Graph live = eliminate_dead_code(graph);
  return Decomposer(live, device).run();
}

}  // namespace rune::graph
