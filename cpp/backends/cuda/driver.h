// NVIDIA's driver, libcuda: the part of its interface that this backend uses. It is loaded when a
// device is first opened, and needs no header of the toolkit.
#pragma once

#include <cstddef>
#include <string>

namespace rune::cuda {

using Result = int;
using Address = unsigned long long;
using ContextHandle = struct ContextObject*;
using StreamHandle = struct StreamObject*;
using EventHandle = struct EventObject*;
using ModuleHandle = struct ModuleObject*;
using FunctionHandle = struct FunctionObject*;
using PoolHandle = struct PoolObject*;
using GraphHandle = struct GraphObject*;
using GraphNodeHandle = struct GraphNodeObject*;
using GraphProgramHandle = struct GraphProgramObject*;

inline Address to_address(const void* memory) {
  return reinterpret_cast<Address>(memory);
}

// The numbers of results and attributes are the driver's.
constexpr Result kSuccess = 0;
constexpr Result kOutOfMemory = 2;
constexpr Result kNoDevice = 100;
constexpr unsigned kEventWithTiming = 0;
constexpr unsigned kEventWithoutTiming = 2;
constexpr int kPointerMemoryType = 2;
constexpr int kHostMemory = 1;
constexpr int kFunctionMaxThreads = 0;
constexpr int kPoolReleaseThreshold = 4;

enum class Attribute : int {
  MaxThreadsPerBlock = 1,
  MaxGrid = 5,
  SharedMemoryPerBlock = 8,
  WarpSize = 10,
  ClockKilohertz = 13,
  NumMultiprocessors = 16,
  MemoryClockKilohertz = 36,
  MemoryBusBits = 37,
  L2Bytes = 38,
  ComputeMajor = 75,
  ComputeMinor = 76,
  MemoryPools = 115,
};

// CUmemPoolProps, for memory of one device.
struct PoolProperties {
  int allocation = 1;   // pinned, the only kind
  int handle_type = 0;  // not shared with other processes
  int location = 1;     // a device
  int device = 0;
  void* security = nullptr;
  size_t max_bytes = 0;  // no limit
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};

// CUmemAccessDesc, which lets a device read and write.
struct PoolAccess {
  int location = 1;  // a device
  int device = 0;
  int flags = 3;
};

// One side of a CUDA_MEMCPY3D: bytes of the device's memory in one row.
struct CopySide {
  size_t x = 0, y = 0, z = 0, level = 0;
  int memory_type = 2;  // the device's
  void* host = nullptr;
  Address address = 0;
  void* array = nullptr;
  void* reserved = nullptr;
  size_t row_bytes = 0, num_rows = 1;
};

// CUDA_MEMCPY3D.
struct CopyParameters {
  CopySide from, to;
  size_t bytes = 0, height = 1, depth = 1;
};

// CUDA_KERNEL_NODE_PARAMS_v2.
struct KernelParameters {
  FunctionHandle function = nullptr;
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  void** parameters = nullptr;
  void** extra = nullptr;
  void* kernel = nullptr;  // null: `function` is used
  ContextHandle context = nullptr;
};

// CUlaunchAttribute: whether a kernel may begin before the earlier kernels of its stream have
// ended. The kernel itself then waits for their end.
struct LaunchAttribute {
  int id = 6;
  int padding = 0;
  int overlaps = 1;
  char rest_of_value[60] = {};
};

// CUlaunchConfig.
struct LaunchConfiguration {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  StreamHandle stream = nullptr;
  const LaunchAttribute* attributes = nullptr;
  unsigned num_attributes = 0;
};

// CUgraphEdgeData: an edge from a kernel to the next one, which may begin early (LaunchAttribute).
struct GraphEdge {
  unsigned char from_port = 1, to_port = 0, type = 1;
  unsigned char reserved[5] = {};
};

// CUgraphNodeParams of a node that runs the graph `bodies[0]` if or while a condition holds. The
// driver makes that graph.
struct ConditionalParameters {
  int node_type = 13;
  int reserved[3] = {};
  unsigned long long condition = 0;
  int type = 0;  // 0: if; 1: while
  unsigned num_bodies = 1;
  GraphHandle* bodies = nullptr;
  ContextHandle context = nullptr;
  char rest_of_parameters[200] = {};
  long long reserved_too = 0;
};

struct Driver {
#define RUNE_CUDA_FUNCTION(field, symbol, parameters) Result(*field) parameters = nullptr;
#include "backends/cuda/driver.def"
#undef RUNE_CUDA_FUNCTION
  // Null before CUDA 12.3.
  Result (*add_graph_edges)(GraphHandle graph, const GraphNodeHandle* from,
                            const GraphNodeHandle* to, const GraphEdge* edges,
                            size_t count) = nullptr;
  // Null before CUDA 12.4.
  Result (*create_condition)(unsigned long long* condition, GraphHandle graph,
                             ContextHandle context, unsigned value, unsigned flags) = nullptr;
  Result (*add_graph_node)(GraphNodeHandle* node, GraphHandle graph, const GraphNodeHandle* after,
                           const GraphEdge* edges, size_t num_after,
                           ConditionalParameters* parameters) = nullptr;
  int version = 0;  // 12040 for CUDA 12.4

  // "CUDA_ERROR_INVALID_VALUE: invalid argument"
  std::string describe(Result error) const;
};

// The driver. The first call loads and initialises it. Throws UserError(Runtime), with what to
// install, if this machine has no driver or card, or a driver older than CUDA 12. Throws
// UserError(Runtime) in a forked child of a process that had loaded the driver, because CUDA does
// not work there.
const Driver& driver();

// Whether this process is a forked child of a process that had loaded the driver. Such a process
// must not call the driver.
bool is_forked();

}  // namespace rune::cuda
