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

// An arena on each device.
class Arenas {
 public:
  Arenas(Device& device, const std::vector<std::shared_ptr<Device>>& peers, size_t bytes)
      : first_(device, bytes) {
    for (const std::shared_ptr<Device>& peer : peers)
      others_.push_back(std::make_unique<Arena>(*peer, bytes));
  }
  const Arena& operator[](int number) const { return number == 0 ? first_ : *others_[number - 1]; }

 private:
  const Arena first_;
  std::vector<std::unique_ptr<Arena>> others_;
};

std::shared_ptr<void> copy_to_device(const std::shared_ptr<Device>& device,
                                     std::span<const uint8_t> bytes) {
  void* const memory = device->allocator().allocate(bytes.size());
  std::shared_ptr<void> owner(
      memory, [device, size = bytes.size()](void* m) { device->allocator().deallocate(m, size); });
  if (!bytes.empty()) device->copy_in(memory, bytes.data(), bytes.size());
  return owner;
}

void check_device(const Executable& e, int number) {
  RUNE_CHECK(number >= 0 && static_cast<size_t>(number) <= e.peers.size(), "device number ",
             number);
}

// Checks that `bytes` from a slot on exist, as far as the executable knows sizes.
void check(const Executable& e, const Slot& slot, size_t bytes) {
  RUNE_CHECK(slot.offset >= 0, "offset ", slot.offset);
  check_device(e, slot.device);
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
    check_device(executable, step.from);
    check_device(executable, step.to);
  }
  void operator()(const Synchronization& step) const {
    for (const int number : step.devices) check_device(executable, number);
  }
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
  const Arenas& arenas;

  void* resolve(const Slot& slot) const {
    void* base = nullptr;
    switch (slot.kind) {
      case Slot::Kind::Input: base = inputs[slot.index]; break;
      case Slot::Kind::Output: base = outputs[slot.index]; break;
      case Slot::Kind::Temporary: return arenas[slot.device].at(slot.offset);
      case Slot::Kind::Constant:
        base = executable.device_constants_[slot.device][slot.index].get();
        break;
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
      if (vars.empty()) return step.program->launch({addresses, step.vars});
      std::vector<int64_t> all(vars.begin(), vars.end());
      all.insert(all.end(), step.vars.begin(), step.vars.end());
      step.program->launch({addresses, all});
    });
  }
  void operator()(const Memory_Transfer& step) const {
    if (!step.bytes) return;
    void* const to = resolve(step.destination);
    void* const from = resolve(step.source);
    if (step.from == step.to) return executable.at(step.from).copy(to, from, step.bytes);
    std::vector<uint8_t> staged(step.bytes);
    executable.at(step.from).copy_out(staged.data(), from, step.bytes);
    executable.at(step.to).copy_in(to, staged.data(), step.bytes);
  }
  void operator()(const Synchronization& step) const {
    if (step.devices.empty()) return executable.device->synchronize();
    for (const int number : step.devices) executable.at(number).synchronize();
  }
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
  const std::vector<std::vector<uint8_t>> all = std::exchange(constants, {});
  for (size_t number = 0; number <= peers.size(); ++number) {
    const std::shared_ptr<Device>& owner = number == 0 ? device : peers[number - 1];
    std::vector<std::shared_ptr<void>>& there = device_constants_.emplace_back();
    for (const std::vector<uint8_t>& constant : all)
      there.push_back(copy_to_device(owner, constant));
  }
}

void Executable::synchronize() const {
  device->synchronize();
  for (const std::shared_ptr<Device>& peer : peers) peer->synchronize();
}

void Executable::run(std::span<void* const> inputs, std::span<void* const> outputs,
                     std::span<const int64_t> vars) const {
  RUNE_CHECK(inputs.size() == num_inputs && outputs.size() == num_outputs,
             "wrong number of arguments: ", inputs.size(), " inputs of ", num_inputs, ", ",
             outputs.size(), " outputs of ", num_outputs);
  RUNE_CHECK(constants.empty(), "the executable is not prepared");
  const Arenas arenas(*device, peers, arena_bytes);
  const Run run{*this, inputs, outputs, vars, arenas};
  try {
    for (const Step& step : steps) std::visit(run, step);
  } catch (...) {
    // What was launched before still uses the arena. The first error is the one to report.
    try {
      if (arena_bytes) synchronize();
    } catch (...) {
    }
    throw;
  }
  // The arena goes back when this returns.
  const bool frees_late = peers.empty() && device->allocator().defers_frees();
  if (arena_bytes && !frees_late) synchronize();
}

}  // namespace rune::runtime
