#include "runtime/executable.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "runtime/any_step.h"
#include "runtime/join_steps.h"

namespace rune::runtime {

namespace {

std::shared_ptr<void> copy_to_device(const std::shared_ptr<Device>& device,
                                     std::span<const uint8_t> bytes) {
  void* const memory = device->allocator().allocate(bytes.size());
  std::shared_ptr<void> owner(
      memory, [device, size = bytes.size()](void* m) { device->allocator().deallocate(m, size); });
  if (!bytes.empty()) device->copy_in(memory, bytes.data(), bytes.size());
  return owner;
}

// The number of steps of a loop, as profiles count them. The bodies of a loop share their numbers.
size_t count(const Repeat& loop);
size_t count(const std::vector<Step>& steps) {
  size_t result = 0;
  for (const Step& step : steps) {
    if (const auto* sequence = std::get_if<Launch_Sequence>(&step))
      result += count(sequence->body->steps);
    else if (const auto* loop = std::get_if<Repeat>(&step))
      result += count(*loop);
    else
      ++result;
  }
  return result;
}

size_t count(const Repeat& loop) {
  size_t result = count(loop.body->steps);
  for (const Repeat::Turn& turn : loop.turns) result += count(turn.end->steps);
  return result;
}

}  // namespace

bool Executable::reads(size_t input) const {
  const auto is_input = [&](const Slot& slot) {
    return slot.kind == Slot::Kind::Input && slot.index == static_cast<int64_t>(input);
  };
  const auto any_is = [&](const std::vector<Slot>& slots) {
    return std::any_of(slots.begin(), slots.end(), is_input);
  };
  return any_step(steps, [&](const Step& step) {
    if (const auto* launch = std::get_if<Launch>(&step)) return any_is(launch->arguments);
    if (const auto* call = std::get_if<Host_Callback>(&step)) return any_is(call->arguments);
    if (const auto* transfer = std::get_if<Memory_Transfer>(&step))
      return is_input(transfer->source);
    if (const auto* read = std::get_if<Read>(&step)) return is_input(read->from);
    const auto* loop = std::get_if<Repeat>(&step);
    return loop && loop->goes_on && is_input(*loop->goes_on);
  });
}

bool Executable::calls_host() const {
  return any_step(steps,
                  [](const Step& step) { return std::holds_alternative<Host_Callback>(step); });
}

// Memory for the temporaries of one run, on each device.
class Executable::Arenas {
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

  // Calls f with the arguments' addresses. It allocates no memory for as many arguments as kernels
  // usually have.
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
  // The arguments of a sequence's parts, one after the other.
  struct Parts {
    std::vector<void*> addresses;
    std::vector<int64_t> values;
    std::vector<std::pair<size_t, size_t>> ends;  // by part: where its addresses and values end
  };
  void add_parts(const std::vector<Step>& steps, Parts& parts) const {
    for (const Step& step : steps) {
      if (const auto* launch = std::get_if<Launch>(&step)) {
        for (const Slot& slot : launch->arguments) parts.addresses.push_back(resolve(slot));
        add_variables(*launch, parts.values);
      } else if (const auto* copy = std::get_if<Memory_Transfer>(&step)) {
        if (!copy->bytes) continue;
        parts.addresses.push_back(resolve(copy->destination));
        parts.addresses.push_back(resolve(copy->source));
      } else if (const auto* sequence = std::get_if<Launch_Sequence>(&step)) {
        add_parts(sequence->body->steps, parts);
        continue;
      } else {
        const auto& loop = std::get<Repeat>(step);
        repeat(loop, [&](const Body& body) { add_parts(body.steps, parts); });
        continue;
      }
      parts.ends.emplace_back(parts.addresses.size(), parts.values.size());
    }
  }
  static void launch(Sequence& sequence, const Parts& parts) {
    std::vector<LaunchArguments> arguments;
    arguments.reserve(parts.ends.size());
    size_t address = 0, value = 0;
    for (const auto& [addresses_end, values_end] : parts.ends) {
      arguments.push_back({std::span(parts.addresses).subspan(address, addresses_end - address),
                           std::span(parts.values).subspan(value, values_end - value)});
      address = addresses_end;
      value = values_end;
    }
    sequence.launch(arguments);
  }
  void operator()(const Launch_Sequence& step) const {
    Parts parts;
    add_parts(step.body->steps, parts);
    launch(*step.sequence, parts);
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
    if (step.together && step.goes_on) return run_on_device(step);
    const int64_t all = num_iterations(step);
    int64_t done = 0;
    for (; step.together && all - done >= step.num_together; done += step.num_together) {
      check_interrupt();
      Parts parts;
      repeat(
          step, [&](const Body& body) { add_parts(body.steps, parts); }, done,
          done + step.num_together);
      launch(*step.together, parts);
    }
    repeat(
        step,
        [&](const Body& body) {
          for (const Step& inner : body.steps) std::visit(*this, inner);
        },
        done, all);
  }

  // The device decides when the loop ends. It gets a limited number of iterations at a time, so
  // that the user can interrupt an endless loop.
  void run_on_device(const Repeat& step) const {
    constexpr int64_t kFewIterations = 16, kLongNs = 20'000'000;
    int64_t left = num_iterations(step);
    int64_t most = kFewIterations * static_cast<int64_t>(step.turns.size() + 1);
    for (;; most *= 2) {
      check_interrupt();
      const int64_t begin = profile_clock_ns();
      Parts parts;
      parts.addresses.push_back(resolve(*step.goes_on));
      parts.values.push_back(std::min(left, most));
      parts.ends.emplace_back(1, 1);
      add_parts(step.body->steps, parts);
      for (const Repeat::Turn& turn : step.turns) {
        add_parts(turn.body->steps, parts);
        add_parts(turn.end->steps, parts);
      }
      launch(*step.together, parts);
      left -= std::min(left, most);
      if (!left || !read<uint8_t>(*step.goes_on)) return;
      if (profile_clock_ns() - begin > kLongNs) most /= 2;
    }
  }

  int64_t num_iterations(const Repeat& step) const {
    const int64_t start = value_of(step.start), stop = value_of(step.stop);
    if (step.step > 0 ? start >= stop : start <= stop) return 0;
    const auto from = static_cast<uint64_t>(start), to = static_cast<uint64_t>(stop);
    const uint64_t distance = step.step > 0 ? to - from : from - to;
    const auto size = static_cast<uint64_t>(step.step > 0 ? step.step : -step.step);
    return static_cast<int64_t>(
        std::min<uint64_t>((distance - 1) / size + 1, std::numeric_limits<int64_t>::max()));
  }

  template <class F>
  void repeat(const Repeat& step, const F& run_body) const {
    repeat(step, run_body, 0, num_iterations(step));
  }
  // Runs the iterations from number `begin` to `end`. Iteration `begin` runs the first turn.
  template <class F>
  void repeat(const Repeat& step, const F& run_body, int64_t begin, int64_t end) const {
    const int64_t start = value_of(step.start);
    size_t turn = 0;
    for (int64_t i = begin; i < end; ++i) {
      check_interrupt();
      if (step.goes_on && !read<uint8_t>(*step.goes_on)) break;
      all_vars[step.counter] = start + i * step.step;
      run_body(turn ? *step.turns[turn - 1].body : *step.body);
      turn = turn == step.turns.size() ? 0 : turn + 1;
    }
    if (turn) run_body(*step.turns[turn - 1].end);
  }
};

void Executable::prepare() {
  if (peers.empty()) steps = join_steps(std::move(steps), *device);
  const std::vector<std::vector<uint8_t>> all = std::exchange(constants, {});
  for (size_t number = 0; number <= peers.size(); ++number) {
    const std::shared_ptr<Device>& owner = number == 0 ? device : peers[number - 1];
    std::vector<std::shared_ptr<void>>& there = device_constants_.emplace_back();
    for (const std::vector<uint8_t>& constant : all)
      there.push_back(copy_to_device(owner, constant));
  }
}

// Runs the steps one by one and notes their times. This includes the parts of a sequence, because
// the device may be unable to time them within it. The steps get the numbers from `number` on; the
// result is the number after the last one. A step of a Repeat has the same number in all
// iterations.
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
      number = run_profiled(run, sequence->body->steps, number);
    } else if (const auto* loop = std::get_if<Repeat>(&step)) {
      run.repeat(*loop, [&](const Body& body) {
        size_t first = number;
        if (const auto ended = std::find_if(loop->turns.begin(), loop->turns.end(),
                                            [&](const auto& turn) { return &*turn.end == &body; });
            ended != loop->turns.end()) {
          first += count(loop->body->steps);
          for (auto before = loop->turns.begin(); before != ended; ++before)
            first += count(before->end->steps);
        }
        run_profiled(run, body.steps, first);
      });
      number += count(*loop);
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
    // Earlier launches still use the arena, so wait for them. The first error is the one to report.
    try {
      if (arena_bytes) synchronize();
    } catch (...) {
    }
    throw;
  }
  // The arena is freed when this returns.
  const bool frees_late = peers.empty() && device->allocator().defers_frees();
  if (arena_bytes && !frees_late) synchronize();
}

}  // namespace rune::runtime
