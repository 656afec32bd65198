// Makes the steps by which a program calls functions of the host.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/node.h"
#include "runtime/executable.h"
#include "schedule/schedule.h"

namespace rune::driver {

// An operand or result of a function of the host: row-major elements in the host's memory.
struct HostArray {
  void* memory = nullptr;
  DType dtype = DType::Float32;
  Ints shape;
  int64_t number = 0;  // among the operands, or among all results of the call
};

// Reads the operands and fills the results that the program uses. If it throws, the run ends.
using HostFunction =
    std::function<void(std::span<const HostArray> operands, std::span<const HostArray> results)>;

// The step that calls the callback's function. `slots` are the memory of its operands and results.
// The function's arrays have the dtypes of `traced`, the graph as it was traced. Throws
// UserError(Value) if the function is missing.
runtime::Host_Callback host_call(const schedule::Host_Callback& callback, const graph::Graph& graph,
                                 const graph::Graph& traced, std::vector<runtime::Slot> slots,
                                 const std::vector<HostFunction>& functions,
                                 runtime::Device& device);

}  // namespace rune::driver
