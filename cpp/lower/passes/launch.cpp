#include "lower/passes/launch.h"

#include <algorithm>

namespace rune::lower {

std::vector<schedule::Value> kernel_arguments(const std::vector<schedule::Value>& inputs,
                                              const std::vector<schedule::Value>& outputs) {
  std::vector<schedule::Value> arguments = inputs;
  for (const schedule::Value v : outputs)
    if (!contains(arguments, v)) arguments.push_back(v);
  return arguments;
}

namespace {

DType index_dtype_of(const schedule::Graph& graph, const schedule::Kernel& kernel,
                     const Capabilities& caps) {
  if (caps.model == ExecutionModel::Cores) return DType::Int64;
  // The limit leaves room for positions of the last workgroups beyond the end.
  constexpr int64_t kNarrow = (int64_t{1} << 31) - (int64_t{1} << 20);
  const auto is_large = [&](schedule::Value v) { return max_elements(graph[v].shape()) > kNarrow; };
  // Positions in values that are computed and not stored count, too.
  const std::vector<schedule::Value> arguments = kernel_arguments(kernel.inputs, kernel.outputs);
  const bool wide = std::any_of(arguments.begin(), arguments.end(), is_large) ||
                    std::any_of(kernel.ops.begin(), kernel.ops.end(), is_large);
  return wide ? DType::Int64 : DType::Int32;
}

}  // namespace

Launch::Launch(const schedule::Graph& graph, const schedule::Kernel& kernel,
               const std::vector<SymVar>& vars, const Capabilities& caps,
               const Placements& placements)
    : graph(graph),
      kernel(kernel),
      vars(vars),
      caps(caps),
      placements(placements),
      index_dtype(index_dtype_of(graph, kernel, caps)) {}

}  // namespace rune::lower
