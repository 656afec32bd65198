#include "runtime/executable.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"

namespace rune::runtime {

namespace {

// Memory for the temporaries of one run, on each device.
class Arenas {
 public:
  Arenas(Device& device, const std::vector<std::shared_ptr<Device>>& peers, size_t bytes)
      : device_(device), bytes_(static_cast<int64_t>(bytes)), first_(device.allocator(), bytes) {
    for (const std::shared_ptr<Device>& peer : peers)
      others_.push_back(std::make_unique<ScopedMemory>(peer->allocator(), bytes));
    if (bytes_) note_device_memory(device_, bytes_);
  }
  ~Arenas() {
    if (bytes_) note_device_memory(device_, -bytes_);
  }
  Arenas(const Arenas&) = delete;
  void* at(int device, int64_t offset) const {
    const ScopedMemory& arena = device == 0 ? first_ : *others_[device - 1];
    return static_cast<char*>(arena.get()) + offset;
  }

 private:
  const Device& device_;
  const int64_t bytes_;
  const ScopedMemory first_;
  std::vector<std::unique_ptr<ScopedMemory>> others_;
};

std::shared_ptr<void> copy_to_device(const std::shared_ptr<Device>& device,
                                     std::span<const uint8_t> bytes) {
  void* const memory = device->allocator().allocate(bytes.size());
  std::shared_ptr<void> owner(
      memory, [device, size = bytes.size()](void* m) { device->allocator().deallocate(m, size); });
  if (!bytes.empty()) device->copy_in(memory, bytes.data(), bytes.size());
  return owner;
}

}  // namespace

namespace {

// As profiles number them.
size_t count(const std::vector<Step>& steps) {
  size_t result = 0;
  for (const Step& step : steps) {
    if (const auto* sequence = std::get_if<Launch_Sequence>(&step))
      result += sequence->launches.size();
    else if (const auto* loop = std::get_if<Repeat>(&step))
      result += count(loop->body->steps);
    else
      ++result;
  }
  return result;
}

}  // namespace

struct Executable::Run {
  const Executable& executable;
  std::span<void* const> inputs, outputs;
  std::span<const int64_t> vars;  // that the run was given
  std::span<int64_t> all_vars;    // and those of its loops; empty if there are no loops
  const Arenas& arenas;

  void* resolve(const Slot& slot) const {
    void* base = nullptr;
    switch (slot.kind) {
      case Slot::Kind::Input: base = inputs[slot.index]; break;
      case Slot::Kind::Output: base = outputs[slot.index]; break;
      case Slot::Kind::Temporary: return arenas.at(slot.device, slot.offset);
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

  size_t num_variables(const Launch& launch) const {
    return (launch.variables ? launch.variables->size() : vars.size()) + launch.vars.size();
  }
  void add_variables(const Launch& launch, std::vector<int64_t>& values) const {
    if (launch.variables)
      for (const size_t number : *launch.variables) values.push_back(all_vars[number]);
    else
      values.insert(values.end(), vars.begin(), vars.end());
    values.insert(values.end(), launch.vars.begin(), launch.vars.end());
  }

  int64_t value_of(const Affine& sum) const {
    int64_t value = sum.offset;
    for (const auto& [variable, factor] : sum.terms) value += factor * all_vars[variable];
    return value;
  }
  template <class T>
  T read(const Slot& from) const {
    T value{};
    executable.device->copy_out(&value, resolve(from), sizeof(T));
    return value;
  }

  void operator()(const Launch& step) const {
    with_addresses(step.arguments, [&](std::span<void* const> addresses) {
      if (num_variables(step) == step.vars.size())
        return step.program->launch({addresses, step.vars});
      std::vector<int64_t> values;
      add_variables(step, values);
      step.program->launch({addresses, values});
    });
  }
  void operator()(const Launch_Sequence& step) const {
    std::vector<void*> addresses;
    std::vector<int64_t> values;
    for (const Launch& launch : step.launches) {
      for (const Slot& slot : launch.arguments) addresses.push_back(resolve(slot));
      add_variables(launch, values);
    }
    std::vector<LaunchArguments> arguments;
    size_t address = 0, value = 0;
    for (const Launch& launch : step.launches) {
      const size_t num_values = num_variables(launch);
      arguments.push_back({std::span(addresses).subspan(address, launch.arguments.size()),
                           std::span(values).subspan(value, num_values)});
      address += launch.arguments.size();
      value += num_values;
    }
    step.sequence->launch(arguments);
  }
  void operator()(const Memory_Transfer& step) const {
    if (!step.bytes) return;
    void* const to = resolve(step.destination);
    void* const from = resolve(step.source);
    if (step.from == step.to) return executable.at(step.from).copy(to, from, step.bytes);
    if (executable.at(step.to).copy_from(executable.at(step.from), to, from, step.bytes)) return;
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
  void operator()(const Read& step) const { all_vars[step.variable] = read<int64_t>(step.from); }
  void operator()(const Repeat& step) const {
    repeat(step, [&] {
      for (const Step& inner : step.body->steps) std::visit(*this, inner);
    });
  }

  template <class F>
  void repeat(const Repeat& step, const F& run_body) const {
    const int64_t start = value_of(step.start), stop = value_of(step.stop);
    for (int64_t i = start; step.step > 0 ? i < stop : i > stop; i += step.step) {
      check_interrupt();
      if (step.goes_on && !read<uint8_t>(*step.goes_on)) return;
      all_vars[step.counter] = i;
      run_body();
    }
  }
};

// Launches without other steps between them.
std::vector<Step> Executable::join_launches(std::vector<Step> steps) const {
  constexpr size_t kLeastLaunches = 3;
  if (!peers.empty()) return steps;
  std::vector<Step> joined;
  for (size_t i = 0; i < steps.size();) {
    if (auto* repeat = std::get_if<Repeat>(&steps[i]))
      repeat->body->steps = join_launches(std::move(repeat->body->steps));
    std::vector<std::shared_ptr<Program>> programs;
    for (size_t next = i; next < steps.size(); ++next) {
      const auto* launch = std::get_if<Launch>(&steps[next]);
      if (!launch || !launch->program->joins_sequences()) break;
      programs.push_back(launch->program);
    }
    std::shared_ptr<Sequence> sequence;
    if (programs.size() >= kLeastLaunches) sequence = device->sequence(programs);
    const size_t end = i + std::max<size_t>(programs.size(), 1);
    if (sequence) {
      Launch_Sequence step{{}, std::move(sequence)};
      for (; i < end; ++i) step.launches.push_back(std::get<Launch>(std::move(steps[i])));
      joined.emplace_back(std::move(step));
    }
    for (; i < end; ++i) joined.push_back(std::move(steps[i]));
  }
  return joined;
}

void Executable::prepare() {
  steps = join_launches(std::move(steps));
  const std::vector<std::vector<uint8_t>> all = std::exchange(constants, {});
  for (size_t number = 0; number <= peers.size(); ++number) {
    const std::shared_ptr<Device>& owner = number == 0 ? device : peers[number - 1];
    std::vector<std::shared_ptr<void>>& there = device_constants_.emplace_back();
    for (const std::vector<uint8_t>& constant : all)
      there.push_back(copy_to_device(owner, constant));
  }
}

// Launches of a sequence run one by one, since the device may tell no times of parts of it. Notes
// steps from `number` on; returns the number behind the last one. A Repeat's steps have one number
// each for all iterations.
size_t Executable::run_profiled(const Run& run, const std::vector<Step>& steps,
                                size_t number) const {
  const auto timed = [&](const auto& step) {
    const int64_t begin = profile_clock_ns();
    std::optional<double> ns;
    if constexpr (std::is_same_v<std::decay_t<decltype(step)>, Launch>) {
      ns = at(step.device).time([&] { run(step); });
    } else {
      run(step);
      synchronize();
    }
    const auto of_host = static_cast<double>(profile_clock_ns() - begin);
    note_step(info, number++, begin, ns.value_or(of_host), ns.has_value());
  };
  for (const Step& step : steps) {
    if (const auto* sequence = std::get_if<Launch_Sequence>(&step)) {
      for (const Launch& launch : sequence->launches) timed(launch);
    } else if (const auto* loop = std::get_if<Repeat>(&step)) {
      run.repeat(*loop, [&] { run_profiled(run, loop->body->steps, number); });
      number += count(loop->body->steps);
    } else {
      std::visit(timed, step);
    }
  }
  return number;
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
  std::vector<int64_t> all_vars;
  if (num_loop_variables) {
    all_vars.assign(vars.begin(), vars.end());
    all_vars.resize(vars.size() + num_loop_variables);
  }
  const Run run{*this, inputs, outputs, vars, all_vars, arenas};
  try {
    if (is_profiling() && info) [[unlikely]] {
      synchronize();
      const int64_t begin = profile_clock_ns();
      run_profiled(run, steps, 0);
      note_program(info, begin);
    } else {
      for (const Step& step : steps) std::visit(run, step);
    }
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
