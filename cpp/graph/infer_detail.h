// Shared by the files of inference. Private to graph/.
#pragma once

#include <span>
#include <string>

#include "base/error.h"
#include "graph/node.h"

namespace rune::graph::detail {

// The metadata that inference may use: one per operand, and what the caller declared.
struct Operands {
  std::span<const Metadata* const> in;
  const Metadata& declared;

  size_t size() const { return in.size(); }
  const Metadata& operator[](size_t i) const { return *in[i]; }
  const Shape& shape(size_t i) const { return in[i]->shape; }
  int64_t rank(size_t i) const { return static_cast<int64_t>(in[i]->shape.size()); }
  DType dtype(size_t i) const { return in[i]->dtype; }
};

// A result without a device; `infer` adds the operands'.
inline Metadata result(DType dtype, Shape shape) {
  return {dtype, std::move(shape), std::nullopt};
}

// The metadata of nodes without a value: an array without elements.
inline Metadata no_value() {
  return result(DType::Bool, {0});
}
inline Metadata same_as_operand(const Operands& in) {
  return result(in.dtype(0), in.shape(0));
}

// Throws `message (dimension 1: 4 and 5)` or `message (number of dimensions: 1 and 2)`: the first
// difference between two shapes.
[[noreturn]] void refuse_difference(const Shape& a, const Shape& b, const std::string& message);
// Throws unless the shapes are equal: `op: cannot <verb> <a> <to> <b> (<difference>)`.
void check_same_shape(const char* op, const char* verb, const Shape& a, const char* to,
                      const Shape& b);
// Throws unless the dtypes are equal, naming operand `i`.
void check_same_dtype(const char* op, DType expected, DType found, size_t i);
// Throws unless 0 <= axis < rank.
void check_axis(const char* op, int64_t axis, const Shape& shape);
// Throws unless every axis is in range and named once.
void check_axes(const char* op, const Ints& axes, const Shape& shape);
// Throws unless a list of attributes has one entry for each dimension.
void check_entries(const char* op, const char* what, size_t count, const Shape& shape);
// Throws if a size may be negative or the number of elements does not fit.
void check_sizes(const char* op, const Shape& shape);
// Whether 0 <= first <= second <= size for all values of the variables.
bool is_range(const std::pair<Dim, Dim>& range, const Dim& size);
// Throws for a symbolic size.
void check_constant(const char* op, const Shape& shape);
void check_integer(const char* op, const char* what, DType dtype);

// One overload per kind of node.
Metadata infer_node(const Iota& node, const Operands& in);
Metadata infer_node(const View& node, const Operands& in);
Metadata infer_node(const Reshape& node, const Operands& in);
Metadata infer_node(const Permute& node, const Operands& in);
Metadata infer_node(const Expand& node, const Operands& in);
Metadata infer_node(const Pad& node, const Operands& in);
Metadata infer_node(const Shrink& node, const Operands& in);
Metadata infer_node(const Flip& node, const Operands& in);
Metadata infer_node(const Valid& node, const Operands& in);
Metadata infer_node(const Index& node, const Operands& in);
Metadata infer_node(const Shuffle& node, const Operands& in);
Metadata infer_node(const Vectorize& node, const Operands& in);
Metadata infer_node(const Cat& node, const Operands& in);
Metadata infer_node(const Gather& node, const Operands& in);
Metadata infer_node(const Scatter& node, const Operands& in);
Metadata infer_node(const Carry& node, const Operands& in);
Metadata infer_node(const End_Loop& node, const Operands& in);
Metadata infer_node(const Loop_Result& node, const Operands& in);
Metadata infer_node(const Update& node, const Operands& in);
Metadata infer_node(const Loop_Nest& node, const Operands& in);

}  // namespace rune::graph::detail
