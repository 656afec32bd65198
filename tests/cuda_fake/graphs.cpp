// Graphs of the driver: lists of kernels, copies and conditional nodes.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
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
// What kernels set (cudaGraphSetConditional, in cuda_builtins.h). Its address is the handle.
struct Condition {
  unsigned value = 0;
  bool has_node = false;
};
struct GraphNode;
struct Graph : std::vector<GraphNode*> {
  std::vector<Condition*> conditions;
};
struct GraphNode {
  // Null: a copy to the first pointer from the second one, or what follows.
  Function* function = nullptr;
  Condition* condition = nullptr;  // if or while it holds, the body runs
  bool is_loop = false;
  Graph* body = nullptr;
  unsigned grid = 1, block = 1;
  std::vector<Address> pointers;
  std::vector<char> vars;
  size_t bytes = 0;
  bool follows = false;  // the node before
};

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

struct ConditionalParameters {
  int node_type;
  int reserved[3];
  Condition* condition;
  int type;
  unsigned num_bodies;
  Graph** bodies;
  void* context;
};

// Adds a node, which follows the last one; another edge may say so later.
void add(Graph& graph, GraphNode* node, GraphNode* const* after, size_t num_after) {
  node->follows = graph.empty() || (num_after == 1 && *after == graph.back());
  graph.push_back(node);
}

bool is_complete(const Graph& graph) {
  return std::all_of(graph.begin(), graph.end(), [](const GraphNode* node) {
    return node->follows && (!node->body || is_complete(*node->body));
  });
}

int run(const Graph& graph, void* stream) {
  for (GraphNode* node : graph) {
    int failed = 0;
    if (node->body) {
      if (!numbers()["emulate"]) failed = run(*node->body, stream);
      while (!failed && node->condition->value) {
        failed = run(*node->body, stream);
        if (!node->is_loop) break;
      }
    } else if (!node->function) {
      failed = cuMemcpyDtoDAsync_v2(node->pointers[0], node->pointers[1], node->bytes, stream);
    } else {
      std::vector<void*> parameters;
      for (Address& pointer : node->pointers) parameters.push_back(&pointer);
      parameters.push_back(node->vars.data());
      failed = cuLaunchKernel(node->function, node->grid, 1, 1, node->block, 1, 1, 0, stream,
                              parameters.data(), nullptr);
    }
    if (failed) return failed;
  }
  return 0;
}

}  // namespace

EXPORTED int cuGraphConditionalHandleCreate(Condition** condition, Graph* graph, void*,
                                            unsigned value, unsigned) {
  const Call call("cuGraphConditionalHandleCreate");
  graph->conditions.push_back(*condition = new Condition{value});
  return call.result;
}
EXPORTED int cuGraphAddNode_v2(GraphNode** node, Graph* graph, GraphNode* const* after,
                               const void* edges, size_t num_after,
                               ConditionalParameters* parameters) {
  const Call call("cuGraphAddNode");
  constexpr int kConditional = 13, kWhile = 1;
  if (parameters->node_type != kConditional || parameters->num_bodies != 1 || edges ||
      parameters->type > kWhile || std::exchange(parameters->condition->has_node, true))
    return state().refuse(kInvalidValue, "a conditional node that is none");
  *node = new GraphNode;
  (*node)->condition = parameters->condition;
  (*node)->is_loop = parameters->type == kWhile;
  (*node)->body = new Graph;
  parameters->bodies = &(*node)->body;
  add(*graph, *node, after, num_after);
  return call.result;
}
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
  if (!is_complete(*graph))
    return state().refuse(kInvalidValue, "a node of a graph that does not follow the one before");
  for (const Condition* condition : graph->conditions)
    if (!condition->has_node) return state().refuse(kInvalidValue, "a condition without a node");
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
  const int failed = run(*program, stream);
  return failed ? failed : call.result;
}
EXPORTED int cuGraphExecDestroy(Graph*) {
  return Call("cuGraphExecDestroy").result;
}
