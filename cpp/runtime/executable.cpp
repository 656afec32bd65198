#include "runtime/executable.h"

#include <array>
#include <utility>

#include "base/error.h"

namespace rune::runtime {

namespace {

// Memory for the temporaries of one run, returned when the run ends, however it ends.
class Arena {
 public:
  Arena(Device& device, size_t bytes)
      : device_(device),
        bytes_(bytes),
        memory_(bytes ? device.allocator().allocate(bytes) : nullptr) {}
  ~Arena() {
    if (memory_) device_.allocator().deallocate(memory_, bytes_);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  void* at(int64_t offset) const { return static_cast<char*>(memory_) + offset; }

 private:
  Device& device_;
  const size_t bytes_;
  void* const memory_;
};

std::shared_ptr<void> copy_to_device(const std::shared_ptr<Device>& device,
                                     std::span<const uint8_t> bytes) {
  void* const memory = device->allocator().allocate(bytes.size());
  std::shared_ptr<void> owner(
      memory, [device, size = bytes.size()](void* m) { device->allocator().deallocate(m, size); });
  if (!bytes.empty()) device->copy_in(memory, bytes.data(), bytes.size());
  return owner;
}

// Checks that `bytes` from a slot on exist, as far as the executable knows sizes.
void check(const Executable& e, const Slot& slot, size_t bytes) {
  RUNE_CHECK(slot.offset >= 0, "offset ", slot.offset);
  const size_t offset = static_cast<size_t>(slot.offset);
  const size_t index = static_cast<size_t>(slot.index);
  switch (slot.kind) {
    case Slot::Kind::Input:
      RUNE_CHECK(index < e.num_inputs, "input ", slot.index, " of ", e.num_inputs);
      break;
    case Slot::Kind::Output:
      RUNE_CHECK(index < e.num_outputs, "output ", slot.index, " of ", e.num_outputs);
      break;
    case Slot::Kind::Temporary:
      RUNE_CHECK(offset <= e.arena_bytes && bytes <= e.arena_bytes - offset, "arena offset ",
                 slot.offset, " and ", bytes, " bytes of ", e.arena_bytes);
      break;
    case Slot::Kind::Constant: {
      RUNE_CHECK(index < e.constants.size(), "constant ", slot.index, " of ", e.constants.size());
      const size_t size = e.constants[index].size();
      RUNE_CHECK(offset <= size && bytes <= size - offset, "constant ", slot.index, ": offset ",
                 slot.offset, " and ", bytes, " bytes of ", size);
      break;
    }
  }
}

struct Validation {
  const Executable& executable;

  void operator()(const Launch& step) const {
    RUNE_CHECK(step.program, "a launch without a program");
    for (const Slot& slot : step.arguments) check(executable, slot, 0);
  }
  void operator()(const Memory_Transfer& step) const {
    RUNE_CHECK(step.destination.kind != Slot::Kind::Constant, "a transfer to a constant");
    check(executable, step.destination, step.bytes);
    check(executable, step.source, step.bytes);
  }
  void operator()(const Synchronization&) const {}
  void operator()(const Host_Callback& step) const {
    RUNE_CHECK(step.function, "callback ", step.name, " without a function");
    for (const Slot& slot : step.arguments) check(executable, slot, 0);
  }
};

}  // namespace

struct Executable::Run {
  const Executable& executable;
  std::span<void* const> inputs, outputs;
  std::span<const int64_t> vars;
  const Arena& arena;

  void* resolve(const Slot& slot) const {
    void* base = nullptr;
    switch (slot.kind) {
      case Slot::Kind::Input: base = inputs[slot.index]; break;
      case Slot::Kind::Output: base = outputs[slot.index]; break;
      case Slot::Kind::Temporary: return arena.at(slot.offset);
      case Slot::Kind::Constant: base = executable.device_constants_[slot.index].get(); break;
    }
    return static_cast<char*>(base) + slot.offset;
  }

  // Calls f with the arguments' addresses, without an allocation for as many as kernels usually
  // have.
  template <class F>
  void with_addresses(const std::vector<Slot>& slots, F&& f) const {
    constexpr size_t kInline = 32;
    if (slots.size() <= kInline) {
      std::array<void*, kInline> addresses;
      for (size_t i = 0; i < slots.size(); ++i) addresses[i] = resolve(slots[i]);
      f(std::span<void* const>(addresses.data(), slots.size()));
      return;
    }
    std::vector<void*> addresses;
    addresses.reserve(slots.size());
    for (const Slot& slot : slots) addresses.push_back(resolve(slot));
    f(std::span<void* const>(addresses));
  }

  void operator()(const Launch& step) const {
    with_addresses(step.arguments, [&](std::span<void* const> addresses) {
      step.program->launch({addresses, vars});
    });
  }
  void operator()(const Memory_Transfer& step) const {
    if (step.bytes)
      executable.device->copy(resolve(step.destination), resolve(step.source), step.bytes);
  }
  void operator()(const Synchronization&) const { executable.device->synchronize(); }
  void operator()(const Host_Callback& step) const {
    executable.device->synchronize();
    with_addresses(step.arguments,
                   [&](std::span<void* const> addresses) { step.function(addresses); });
  }
};

void Executable::validate() const {
  RUNE_CHECK(device, "an executable without a device");
  for (const Step& step : steps) std::visit(Validation{*this}, step);
}

void Executable::prepare() {
  validate();
  for (const std::vector<uint8_t>& constant : std::exchange(constants, {}))
    device_constants_.push_back(copy_to_device(device, constant));
}

void Executable::run(std::span<void* const> inputs, std::span<void* const> outputs,
                     std::span<const int64_t> vars) const {
  RUNE_CHECK(inputs.size() == num_inputs && outputs.size() == num_outputs,
             "wrong number of arguments: ", inputs.size(), " inputs of ", num_inputs, ", ",
             outputs.size(), " outputs of ", num_outputs);
  RUNE_CHECK(constants.empty(), "the executable is not prepared");
  const Arena arena(*device, arena_bytes);
  const Run run{*this, inputs, outputs, vars, arena};
  try {
    for (const Step& step : steps) std::visit(run, step);
  } catch (...) {
    // What was launched before still uses the arena. The first error is the one to report.
    try {
      if (arena_bytes) device->synchronize();
    } catch (...) {
    }
    throw;
  }
  // The arena goes back when this returns, so its users must be done.
  if (arena_bytes) device->synchronize();
}

}  // namespace rune::runtime
