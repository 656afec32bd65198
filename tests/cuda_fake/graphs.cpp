// Graphs of the driver: lists of kernels and copies.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "fake.h"

using namespace rune::cuda_fake;

namespace {

struct KernelParameters {
  Function* function;
  unsigned grid[3], block[3], shared_bytes;
  void** parameters;
  void** extra;
  void* kernel;
  void* context;
};
struct CopySide {
  size_t x, y, z, level;
  int memory_type;
  void* host;
  Address address;
  void *array, *reserved;
  size_t row_bytes, num_rows;
};
struct CopyParameters {
  CopySide from, to;
  size_t bytes, height, depth;
};
struct GraphNode {
  Function* function = nullptr;  // null: a copy to the first pointer from the second one
  unsigned grid = 1, block = 1;
  std::vector<Address> pointers;
  std::vector<char> vars;
  size_t bytes = 0;
  bool follows = false;  // the node before
};
using Graph = std::vector<GraphNode*>;

void fill(GraphNode& node, const KernelParameters& from) {
  node.function = from.function;
  node.grid = from.grid[0];
  node.block = from.block[0];
  node.pointers.clear();
  for (int i = 0; i < from.function->num_pointers; ++i)
    node.pointers.push_back(*static_cast<Address*>(from.parameters[i]));
  if (const size_t bytes = from.function->vars_bytes) {
    const auto* const vars = static_cast<char*>(from.parameters[from.function->num_pointers]);
    node.vars.assign(vars, vars + bytes);
  }
}

bool is_row(const CopySide& side, size_t bytes) {
  constexpr int kDeviceMemory = 2;
  return !side.x && !side.y && !side.z && !side.level && side.memory_type == kDeviceMemory &&
         !side.host && !side.array && side.row_bytes >= bytes;
}

int fill(GraphNode& node, const CopyParameters& from) {
  if (from.height != 1 || from.depth != 1 || !is_row(from.to, from.bytes) ||
      !is_row(from.from, from.bytes))
    return state().refuse(kInvalidValue, "a copy of a graph that is not one row of memory");
  node.pointers = {from.to.address, from.from.address};
  node.bytes = from.bytes;
  return 0;
}

// Adds a node, which follows the last one; another edge may say so later.
void add(Graph& graph, GraphNode* node, GraphNode* const* after, size_t num_after) {
  node->follows = graph.empty() || (num_after == 1 && *after == graph.back());
  graph.push_back(node);
}

}  // namespace

EXPORTED int cuGraphCreate(Graph** graph, unsigned) {
  *graph = new Graph;
  return Call("cuGraphCreate").result;
}
EXPORTED int cuGraphDestroy(Graph*) {
  return Call("cuGraphDestroy").result;
}
EXPORTED int cuGraphAddKernelNode_v2(GraphNode** node, Graph* graph, GraphNode* const* after,
                                     size_t num_after, const KernelParameters* parameters) {
  const Call call("cuGraphAddKernelNode");
  fill(*(*node = new GraphNode), *parameters);
  add(*graph, *node, after, num_after);
  return call.result;
}
EXPORTED int cuGraphAddMemcpyNode(GraphNode** node, Graph* graph, GraphNode* const* after,
                                  size_t num_after, const CopyParameters* parameters, void*) {
  const Call call("cuGraphAddMemcpyNode");
  if (const int failed = fill(*(*node = new GraphNode), *parameters)) return failed;
  add(*graph, *node, after, num_after);
  return call.result;
}
EXPORTED int cuGraphAddDependencies_v2(Graph* graph, GraphNode* const* from, GraphNode* const* to,
                                       const unsigned char (*edges)[8], size_t count) {
  const Call call("cuGraphAddDependencies");
  const unsigned char(&edge)[8] = *edges;
  const bool is_programmatic = edge[0] == 1 && edge[1] == 0 && edge[2] == 1;
  if (count != 1 || graph->size() < 2 || *from != graph->end()[-2] || *to != graph->back() ||
      !is_programmatic || !(*from)->function || !(*to)->function || !(*to)->function->waits)
    return state().refuse(kInvalidValue, "an edge of a graph that does not join two kernels");
  (*to)->follows = true;
  return call.result;
}
EXPORTED int cuGraphExecMemcpyNodeSetParams(Graph*, GraphNode* node,
                                            const CopyParameters* parameters, void*) {
  const Call call("cuGraphExecMemcpyNodeSetParams");
  if (node->function) return state().refuse(kInvalidValue, "a kernel becomes a copy");
  if (const int failed = fill(*node, *parameters)) return failed;
  return call.result;
}
EXPORTED int cuGraphInstantiateWithFlags(Graph** program, Graph* graph, unsigned long long) {
  for (const GraphNode* node : *graph)
    if (!node->follows)
      return state().refuse(kInvalidValue, "a node of a graph that does not follow the one before");
  *program = graph;
  return Call("cuGraphInstantiate").result;
}
EXPORTED int cuGraphExecKernelNodeSetParams_v2(Graph*, GraphNode* node,
                                               const KernelParameters* parameters) {
  const Call call("cuGraphExecKernelNodeSetParams");
  if (node->function != parameters->function)
    return state().refuse(kInvalidValue, "a kernel of a graph changes its function");
  fill(*node, *parameters);
  return call.result;
}
EXPORTED int cuGraphLaunch(Graph* program, void* stream) {
  const Call call("cuGraphLaunch");
  for (GraphNode* node : *program) {
    if (!node->function) {
      if (const int failed =
              cuMemcpyDtoDAsync_v2(node->pointers[0], node->pointers[1], node->bytes, stream))
        return failed;
      continue;
    }
    std::vector<void*> parameters;
    for (Address& pointer : node->pointers) parameters.push_back(&pointer);
    parameters.push_back(node->vars.data());
    if (const int failed = cuLaunchKernel(node->function, node->grid, 1, 1, node->block, 1, 1, 0,
                                          stream, parameters.data(), nullptr))
      return failed;
  }
  return call.result;
}
EXPORTED int cuGraphExecDestroy(Graph*) {
  return Call("cuGraphExecDestroy").result;
}
