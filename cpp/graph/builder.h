// Builds graphs: appends a node, infers its metadata, asserts its operands.
#pragma once

#include <string>

#include "graph/node.h"

namespace rune::graph {

class Builder {
 public:
  Builder() = default;
  // Continues a graph.
  explicit Builder(Graph graph);

  // Appends a node. `declared` is needed for Buffer, Placeholder, Custom and Host_Callback.
  // Throws UserError as `infer` does, InternalError for an operand that does not exist.
  Value add(Payload payload, std::vector<Value> inputs, const Metadata& declared = {});

  // The helpers below build one node each, or none where the node would change nothing (a Reshape
  // to the same shape, a Cast to the same dtype ...).
  Value placeholder(DType dtype, Shape shape);
  Value constant(Scalar value);
  // A scalar constant expanded to a shape.
  Value full(Scalar value, const Shape& shape);
  // Operands of one shape and dtype.
  Value alu(AluOp op, std::vector<Value> operands);
  Value reshape(Value x, Shape shape);
  Value permute(Value x, Ints axes);
  Value expand(Value x, Shape shape);
  Value pad(Value x, DimPairs widths);
  Value shrink(Value x, DimPairs limits);
  Value flip(Value x, Ints axes);
  Value reduce(ReduceOp op, Value x, Ints axes);
  Value scan(ReduceOp op, Value x, int64_t axis);
  Value cast(Value x, DType dtype);
  Value bitcast(Value x, DType dtype);
  Value contract(Value a, Value b, Pairs contract, Pairs batch);
  Value cat(std::vector<Value> parts, int64_t axis);
  Value contiguous(Value x);

  const Node& operator[](Value v) const { return graph_.nodes[v.id]; }
  const Shape& shape(Value v) const { return graph_.nodes[v.id].meta.shape; }
  DType dtype(Value v) const { return graph_.nodes[v.id].meta.dtype; }
  size_t size() const { return graph_.size(); }

  // Recorded in the nodes added from now on.
  void set_location(std::string location) { location_ = std::move(location); }

  void set_outputs(std::vector<Value> outputs) { graph_.outputs = std::move(outputs); }
  const Graph& graph() const { return graph_; }
  Graph take() { return std::move(graph_); }

 private:
  Graph graph_;
  int64_t num_placeholders_ = 0;
  std::string location_;
};

}  // namespace rune::graph
