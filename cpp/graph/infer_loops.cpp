// Type inference for the nodes that make loops.
#include "graph/infer_detail.h"

namespace rune::graph::detail {

Metadata infer_node(const Carry& node, const Operands& in) {
  if (node.index < 0)
    user_error(ErrorKind::Value, "carry: cannot be number ", node.index, " (negative)");
  return same_as_operand(in);
}

Metadata infer_node(const End_Loop& node, const Operands& in) {
  if (node.step == 0)
    user_error(ErrorKind::Value, "end_loop: cannot count in steps of 0 (the step must not be 0)");
  if (in.size() % 2 == 0)
    user_error(ErrorKind::Value, "end_loop: cannot carry ", in.size() - 1,
               " operands (each value needs one for the end of an iteration and an initial one)");
  const size_t count = in.size() / 2;
  for (size_t i = 1; i <= count; ++i) {
    check_same_dtype("end_loop", in.dtype(i + count), in.dtype(i), i);
    check_same_shape("end_loop", concat("carry value ", i - 1, " of").c_str(), in.shape(i + count),
                     "on as", in.shape(i));
  }
  if (!node.goes_on) return no_value();
  if (*node.goes_on < 0 || *node.goes_on >= static_cast<int64_t>(count))
    user_error(ErrorKind::Value, "end_loop: cannot use value ", *node.goes_on,
               " as the condition (the loop carries ", count, " values)");
  const size_t goes_on = static_cast<size_t>(*node.goes_on) + 1;
  if (in.dtype(goes_on) != DType::Bool || !in.shape(goes_on).empty())
    user_error(ErrorKind::Type, "end_loop: cannot use a ", name_of(in.dtype(goes_on)), " of shape ",
               shape_text(in.shape(goes_on)), " as the condition (a 0-d bool is needed)");
  return no_value();
}

Metadata infer_node(const Loop_Result& node, const Operands& in) {
  if (node.index < 0)
    user_error(ErrorKind::Value, "loop_result: cannot be number ", node.index, " (negative)");
  return result(in.dtype(1), in.shape(1));
}

Metadata infer_node(const Update& node, const Operands& in) {
  const Shape& target = in.shape(0);
  check_same_dtype("update", in.dtype(0), in.dtype(1), 1);
  check_entries("update", "offsets", node.offsets.size(), target);
  if (in.rank(1) != in.rank(0)) refuse_difference(in.shape(1), target, "update: cannot write");
  for (size_t d = 0; d < target.size(); ++d) {
    const Dim end = node.offsets[d] + in.shape(1)[d];
    if (!is_range({node.offsets[d], end}, target[d]))
      refuse_sizes(
          {node.offsets[d], end, target[d]},
          concat("update: cannot write ", shape_text(in.shape(1)), " to ", shape_text(target),
                 " (dimension ", d, ": [", node.offsets[d], ",", end, ") of ", target[d], ")"));
  }
  return same_as_operand(in);
}

Metadata infer_node(const Loop_Nest& node, const Operands& in) {
  const Graph& graph = *node.graph.graph;
  const std::vector<Value> inputs = graph.inputs();
  if (inputs.size() != in.size())
    user_error(ErrorKind::Value, "loop_nest: cannot take ", in.size(), " operands (its graph has ",
               inputs.size(), " arguments)");
  for (size_t i = 0; i < in.size(); ++i) {
    check_same_dtype("loop_nest", graph[inputs[i]].dtype(), in.dtype(i), i);
    check_same_shape("loop_nest", concat("take operand ", i, " of").c_str(), in.shape(i), "as",
                     graph[inputs[i]].shape());
  }
  if (node.result < 0 || node.result >= std::ssize(graph.outputs))
    user_error(ErrorKind::Value, "loop_nest: cannot be result ", node.result, " (its graph has ",
               graph.outputs.size(), " outputs)");
  const Node& output = graph[graph.outputs[node.result]];
  return result(output.dtype(), output.shape());
}

}  // namespace rune::graph::detail
