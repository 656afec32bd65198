// A device that interprets the Lowered IR. It runs a GPU's kernels on any machine and checks every
// memory access.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace rune::runtime {

// The device has host memory and synchronous launches. A KernelSource's text is one printed kernel
// of the Lowered IR. compile() throws UserError(Runtime) with the parser's message or the
// verifier's violations, and launch() throws it with the report of lower::Interpreter. Launch::vars
// are the kernel's symbolic variables, in order of first definition. With another device's
// capabilities, it runs the kernels that are lowered for that device.
std::shared_ptr<Device> make_interpreter_device(const Capabilities& capabilities);

// The capabilities of a grid device with 256 threads in a workgroup, 32 KiB of shared memory and
// all scalar operations.
Capabilities interpreter_capabilities();

}  // namespace rune::runtime
