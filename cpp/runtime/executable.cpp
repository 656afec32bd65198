#include "runtime/executable.h"

#include <array>

#include "base/error.h"

namespace rune::runtime {

namespace {

// Memory for the temporaries of one run, returned when the run ends, however it ends.
class Arena {
 public:
  Arena(Allocator& allocator, size_t bytes)
      : allocator_(allocator), bytes_(bytes), memory_(bytes ? allocator.allocate(bytes) : nullptr) {}
  ~Arena() {
    if (memory_) allocator_.deallocate(memory_, bytes_);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  void* at(int64_t offset) const { return static_cast<char*>(memory_) + offset; }

 private:
  Allocator& allocator_;
  const size_t bytes_;
  void* const memory_;
};

struct Run {
  const Executable& executable;
  std::span<void* const> inputs, outputs;
  std::span<const int64_t> vars;
  const Arena& arena;

  void* resolve(const Slot& slot) const {
    char* base = nullptr;
    switch (slot.kind) {
      case Slot::Kind::Input: base = static_cast<char*>(inputs[slot.index]); break;
      case Slot::Kind::Output: base = static_cast<char*>(outputs[slot.index]); break;
      case Slot::Kind::Temporary: return arena.at(slot.offset);
      case Slot::Kind::Constant:
        base = reinterpret_cast<char*>(const_cast<uint8_t*>(executable.constants[slot.index].data()));
        break;
    }
    return base + slot.offset;
  }

  // Calls f with the arguments' addresses, without an allocation for as many as kernels usually have.
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
    with_addresses(step.arguments, [&](std::span<void* const> addresses) { step.program->launch({addresses, vars}); });
  }
  void operator()(const Memory_Transfer& step) const {
    executable.device->copy(resolve(step.destination), resolve(step.source), step.bytes);
  }
  void operator()(const Synchronization&) const { executable.device->synchronize(); }
  void operator()(const Host_Callback& step) const {
    executable.device->synchronize();
    with_addresses(step.arguments, [&](std::span<void* const> addresses) { step.function(addresses); });
  }
};

void check(const Executable& e, const Slot& slot) {
  switch (slot.kind) {
    case Slot::Kind::Input: RUNE_CHECK(static_cast<size_t>(slot.index) < e.num_inputs, "input ", slot.index); break;
    case Slot::Kind::Output: RUNE_CHECK(static_cast<size_t>(slot.index) < e.num_outputs, "output ", slot.index); break;
    case Slot::Kind::Temporary:
      RUNE_CHECK(slot.offset >= 0 && static_cast<size_t>(slot.offset) < e.arena_bytes, "arena offset ", slot.offset);
      break;
    case Slot::Kind::Constant:
      RUNE_CHECK(static_cast<size_t>(slot.index) < e.constants.size(), "constant ", slot.index);
      break;
  }
}

}  // namespace

void Executable::validate() const {
  RUNE_CHECK(device, "an executable without a device");
  for (const Step& step : steps) {
    if (const auto* launch = std::get_if<Launch>(&step)) {
      RUNE_CHECK(launch->program, "a launch without a program");
      for (const Slot& slot : launch->arguments) check(*this, slot);
    } else if (const auto* transfer = std::get_if<Memory_Transfer>(&step)) {
      check(*this, transfer->destination);
      check(*this, transfer->source);
    } else if (const auto* callback = std::get_if<Host_Callback>(&step)) {
      RUNE_CHECK(callback->function, "a callback without a function");
      for (const Slot& slot : callback->arguments) check(*this, slot);
    }
  }
}

void Executable::run(std::span<void* const> inputs, std::span<void* const> outputs,
                     std::span<const int64_t> vars) const {
  RUNE_CHECK(inputs.size() == num_inputs && outputs.size() == num_outputs, "wrong number of arguments");
  const Arena arena(device->allocator(), arena_bytes);
  const Run run{*this, inputs, outputs, vars, arena};
  for (const Step& step : steps) std::visit(run, step);
  // The arena goes back when this returns, so its users must be done.
  if (arena_bytes) device->synchronize();
}

}  // namespace rune::runtime
