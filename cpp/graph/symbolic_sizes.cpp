#include "graph/symbolic_sizes.h"

#include <algorithm>

#include "base/error.h"
#include "graph/text.h"

namespace rune::graph {

const SymVar* symbolic_size(const std::vector<SymVar>& vars, int64_t size) {
  for (const SymVar& var : vars)
    if (var.max_val == size) return &var;
  return nullptr;
}

bool is_symbolic(const std::vector<SymVar>& vars, const Shape& shape) {
  for (const int64_t size : shape)
    if (symbolic_size(vars, size)) return true;
  return false;
}

namespace {

bool is_prime(int64_t n) {
  for (int64_t d = 2; d * d <= n; ++d)
    if (n % d == 0) return false;
  return n >= 2;
}

class Checker {
 public:
  Checker(const Graph& graph, const std::vector<SymVar>& sizes) : graph_(graph), vars_(sizes) {}

  void check_bounds() const {
    for (const SymVar& v : vars_)
      if (!is_prime(v.max_val))
        user_error(ErrorKind::Value, "define_var: cannot use ", v.max_val, " as the bound of size ",
                   v.name, " (it is no prime, so that a product of sizes may hide it)");
  }

  void check_nodes(uint32_t first) {
    for (id_ = first; id_ < graph_.size(); ++id_) {
      const Node& node = graph_.nodes[id_];
      check_sizes(node);
      bool involved = is_symbolic(vars_, node.shape());
      for (const Value v : node.inputs) involved |= is_symbolic(vars_, graph_[v].shape());
      if (involved) check(node);
    }
  }

 private:
  const SymVar* var(int64_t size) const { return symbolic_size(vars_, size); }
  const Shape& operand(const Node& node, size_t i = 0) const {
    return graph_[node.inputs[i]].shape();
  }

  void check_sizes(const Node& node) const {
    for (const int64_t size : node.shape())
      for (const SymVar& v : vars_)
        if (size != 0 && size % v.max_val == 0 && size != v.max_val)
          fail(v, "merge", "with another", "as");
  }

  [[noreturn]] void fail(const SymVar& v, const char* verb, const char* how,
                         const char* preposition) const {
    const std::string& location = graph_.nodes[id_].location;
    user_error(ErrorKind::Unsupported, name_of(graph_.nodes[id_].kind()), ": cannot ", verb,
               " the symbolic size ", v.name, ' ', how, " (", preposition, " `",
               print_node(graph_, {id_}), '`', location.empty() ? "" : ", at ", location, ")");
  }

  void no_symbol(int64_t size, const char* verb) const {
    if (const SymVar* v = var(size)) fail(*v, verb, "along its axis", "in");
  }

  // Each symbolic dimension keeps its place in the row-major order.
  void check_reshape(const Node& node) const {
    const auto places = [&](const Shape& shape) {
      std::vector<std::pair<int64_t, int64_t>> result;  // size, elements outside of it
      int64_t outside = 1;
      for (const int64_t size : shape) {
        if (var(size)) result.push_back({size, outside});
        outside *= size;
      }
      return result;
    };
    if (places(node.shape()) == places(operand(node))) return;
    for (const Shape* shape : {&node.shape(), &operand(node)})
      for (const int64_t size : *shape) no_symbol(size, "reorder");
  }

  void check(const Node& node) const {
    switch (node.kind()) {
      case NodeKind::Binop:
      case NodeKind::Unary:
      case NodeKind::Ternary:
      case NodeKind::Cast:
      case NodeKind::Bitcast:
      case NodeKind::Contiguous:
      case NodeKind::Detach:
      case NodeKind::Contiguous_Backward:
      case NodeKind::Noop:
      case NodeKind::Fuse:
      case NodeKind::Unroll:
      case NodeKind::Kernel:
      case NodeKind::Sink:
      case NodeKind::Permute:
      case NodeKind::Expand:
      case NodeKind::Vectorize:
      case NodeKind::Reduce_Axis:
      case NodeKind::Contract:
      case NodeKind::Scan:
      case NodeKind::Gather:
      case NodeKind::Scatter:
      case NodeKind::Placeholder: return;
      case NodeKind::Reshape: return check_reshape(node);
      case NodeKind::Pad:
        for (size_t d = 0; d < node.shape().size(); ++d)
          if (node.as<Pad>()->widths[d] != std::pair<int64_t, int64_t>{0, 0})
            no_symbol(operand(node)[d], "pad"), no_symbol(node.shape()[d], "pad to");
        return;
      case NodeKind::Shrink:
        for (size_t d = 0; d < node.shape().size(); ++d)
          if (node.shape()[d] != operand(node)[d]) {
            const SymVar* v = var(operand(node)[d]);  // what every value has may be cut out
            if (v && node.as<Shrink>()->limits[d].second > v->min_val)
              fail(*v, "slice", "along its axis", "in");
            no_symbol(node.shape()[d], "slice to");
          }
        return;
      case NodeKind::Flip:
        for (const int64_t axis : node.as<Flip>()->axes) no_symbol(node.shape()[axis], "flip");
        return;
      case NodeKind::Cat:
        for (size_t i = 0; i < node.inputs.size(); ++i)
          no_symbol(operand(node, i)[node.as<Cat>()->axis], "join");
        no_symbol(node.shape()[node.as<Cat>()->axis], "join to");
        return;
      case NodeKind::Threefry: return no_symbol(node.shape().back(), "split");
      case NodeKind::Buffer:
      case NodeKind::Buffer_View:
      case NodeKind::Const_Scalar:
      case NodeKind::Vconst:
      case NodeKind::View:
      case NodeKind::Valid:
      case NodeKind::Index:
      case NodeKind::Gep:
      case NodeKind::Wmma:
      case NodeKind::Copy:
      case NodeKind::Assign:
      case NodeKind::Define_Var:
      case NodeKind::Bind:
      case NodeKind::Unique:
      case NodeKind::Device:
      case NodeKind::Multi:
      case NodeKind::Host_Callback:
      case NodeKind::Custom: break;
    }
    for (const int64_t size : node.shape()) no_symbol(size, "handle");
    for (size_t i = 0; i < node.inputs.size(); ++i)
      for (const int64_t size : operand(node, i)) no_symbol(size, "handle");
  }

  const Graph& graph_;
  const std::vector<SymVar>& vars_;
  uint32_t id_ = 0;
};

}  // namespace

void check_symbolic_sizes(const Graph& graph) {
  // Variables that no dimension has are only numbers.
  const std::vector<SymVar> vars = graph.symbolic_vars();
  std::vector<SymVar> sizes;
  for (const SymVar& v : vars)
    if (std::any_of(graph.nodes.begin(), graph.nodes.end(),
                    [&](const Node& node) { return is_symbolic({v}, node.shape()); }))
      sizes.push_back(v);
  Checker checker(graph, sizes);
  checker.check_bounds();
  checker.check_nodes(0);
}

void check_symbolic_sizes(const Graph& graph, const std::vector<SymVar>& sizes, uint32_t first) {
  Checker(graph, sizes).check_nodes(first);
}

}  // namespace rune::graph
