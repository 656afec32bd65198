// The registry of targets: for each, its capabilities, its renderer and its device.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lower/instr.h"
#include "runtime/device.h"

namespace rune::driver {

// A place that programs can be made for, whether or not this machine has it.
struct Target {
  std::string name;
  // The capabilities of its devices in general. References stay valid when the CPU is calibrated.
  const Capabilities& (*capabilities)();
  // The source texts that a device's compiler takes, one a kernel. A text may hold the kernels that
  // follow, too, whose texts are empty.
  std::vector<std::string> (*render)(std::span<const lower::Kernel>);
  // What the target calls a kernel of this name; null if the name itself.
  std::string (*symbol)(std::string_view);
  // Opens device number `ordinal`; throws UserError(Runtime) if this machine has none. Null for
  // targets that are only rendered.
  std::shared_ptr<runtime::Device> (*open)(int ordinal);
};

// The target of a device name, "cpu" or "cpu:1". Throws UserError(Value) that lists the targets.
const Target& find_target(const std::string& device);
std::vector<std::string> target_names();
// The device's capabilities, if it is open, or those of its target.
const Capabilities& known_capabilities(const std::string& device);
// The device, opened once and kept.
std::shared_ptr<runtime::Device> open_device(const std::string& device);
// Gives the memory that the open devices keep for reuse back to the system.
void release_memory();

}  // namespace rune::driver
