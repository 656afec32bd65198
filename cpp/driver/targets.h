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

// A kind of device for which programs can be made, whether or not this machine has one.
struct Target {
  std::string name;
  // The capabilities of its devices in general. References stay valid when the CPU is calibrated.
  const Capabilities& (*capabilities)();
  // The source texts for a device's compiler, one for each kernel. A text may also contain the
  // kernels that follow, whose texts are then empty.
  std::vector<std::string> (*render)(std::span<const lower::Kernel>);
  // The target's symbol for a kernel of this name; null if it is the name itself.
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
// Returns the memory that the open devices keep for reuse to the system.
void release_memory();

}  // namespace rune::driver
