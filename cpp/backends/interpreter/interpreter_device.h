// A device that interprets the Lowered IR: runs what a GPU would run, on any machine, with every
// access checked.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace rune::runtime {

// Host memory and synchronous launches. A KernelSource's text is one printed kernel of the Lowered
// IR; compile throws UserError(Runtime) with the parser's message or the verifier's violations,
// launch with what lower::interpret reports. Launch::vars are the kernel's symbolic variables, in
// order of first definition. With another device's capabilities it runs the kernels that are
// lowered for that device.
std::shared_ptr<Device> make_interpreter_device(const Capabilities& capabilities);

// A grid device of 256 threads a group and 32 KiB of shared memory that computes everything itself.
Capabilities interpreter_capabilities();

}  // namespace rune::runtime
