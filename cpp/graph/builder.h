// Builds graphs: appends nodes, infers their metadata, and checks their operands.
#pragma once

#include <optional>
#include <string>

#include "graph/node.h"

namespace rune::graph {

class Builder {
 public:
  Builder() = default;
  // Continues a graph.
  explicit Builder(Graph graph);

  // A node with inferred metadata, which is not part of the graph yet. `declared` is needed for
  // Buffer, Placeholder, Custom and Host_Callback. Throws UserError as `infer` does, and
  // InternalError for an operand that does not exist.
  Node make(Payload payload, std::vector<Value> inputs, const Metadata& declared = {}) const;
  // Appends a node, whose metadata must fit its operands.
  Value append(Node node);
  // Makes and appends a node.
  Value add(Payload payload, std::vector<Value> inputs, const Metadata& declared = {}) {
    return append(make(std::move(payload), std::move(inputs), declared));
  }
  // Appends `node` with other operands, from which its metadata is inferred again.
  Value copy(const Node& node, std::vector<Value> inputs) {
    return add(node.payload, std::move(inputs), node.meta);
  }

  // Makes a value that an earlier program has stored an argument. Its node becomes a Placeholder,
  // so nodes that are added from now on do not depend on how the value was computed.
  void make_argument(Value v);

  // The helpers below build one node each, or none if the node would change nothing (a Reshape to
  // the same shape, a Cast to the same dtype ...).
  Value placeholder(DType dtype, Shape shape);
  Value constant(Scalar value);
  // A constant of a shape, in its canonical form: Const_Scalar, then a Reshape to sizes 1, then an
  // Expand, each only if needed. `root` is a Const_Scalar.
  Value full(Scalar value, Shape shape) { return full(constant(value), std::move(shape)); }
  Value full(Value root, Shape shape);
  // Operands of one shape and dtype.
  Value alu(AluOp op, std::vector<Value> operands);
  Value reshape(Value x, Shape shape);
  Value permute(Value x, Ints axes);
  Value expand(Value x, Shape shape);
  Value pad(Value x, DimPairs widths);
  Value shrink(Value x, DimPairs limits);
  // Elements `low` to `high` - 1 along an axis.
  Value slice(Value x, int64_t axis, Dim low, Dim high);
  Value flip(Value x, Ints axes);
  Value reduce(ReduceOp op, Value x, Ints axes);
  Value scan(ReduceOp op, Value x, int64_t axis);
  Value cast(Value x, DType dtype);
  Value complex(Value real, Value imag);
  // The parts of a complex value. If it was made of known parts, returns these.
  Value real(Value x);
  Value imag(Value x);
  Value bitcast(Value x, DType dtype);
  Value contract(Value a, Value b, Pairs contract, Pairs batch);
  Value cat(std::vector<Value> parts, int64_t axis);
  Value contiguous(Value x);

  const Node& operator[](Value v) const { return graph_.nodes[v.id]; }
  const Shape& shape(Value v) const { return graph_.nodes[v.id].meta.shape; }
  DType dtype(Value v) const { return graph_.nodes[v.id].meta.dtype; }
  size_t size() const { return graph_.size(); }
  void reserve(size_t nodes) { graph_.nodes.reserve(nodes); }

  // The Const_Scalar whose value all elements of `v` have, if `v` is one or a movement of one; else
  // no value.
  Value splat_root(Value v) const { return splat_roots_[v.id]; }
  // The value of that Const_Scalar.
  std::optional<Scalar> splat(Value v) const;

  // Sets the location of the nodes that are added from now on.
  void set_location(std::string location) { location_ = std::move(location); }
  const std::string& location() const { return location_; }

  void set_outputs(std::vector<Value> outputs) { graph_.outputs = std::move(outputs); }
  const Graph& graph() const { return graph_; }
  Graph take() { return std::move(graph_); }

 private:
  Graph graph_;
  std::vector<Value> splat_roots_;  // by node
  int64_t num_placeholders_ = 0;
  std::string location_;
};

}  // namespace rune::graph
