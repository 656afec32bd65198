#include "runtime/join_steps.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "runtime/any_step.h"

namespace rune::runtime {

namespace {

constexpr size_t kLeastParts = 3;
// The most parts of a sequence. More of them take longer to describe to the device than they save.
constexpr size_t kMostParts = 8192;
// The most parts of a sequence of iterations, which the host launches again and again.
constexpr size_t kMostTogether = 64;

// The parts of steps that a device may run as one.
class PartsOfSteps {
 public:
  std::vector<SequencePart> parts;

  // Returns false, and adds nothing, for a step that cannot be in a sequence.
  bool add(const Step& step) {
    const size_t before = parts.size();
    const bool is_added = std::visit([&](const auto& s) { return add_parts(s); }, step);
    if (!is_added) parts.resize(before);
    return is_added;
  }
  bool add(const Body& body) {
    return std::all_of(body.steps.begin(), body.steps.end(),
                       [&](const Step& step) { return add(step); });
  }

 private:
  bool add_parts(const Launch& launch) {
    if (!launch.program->joins_sequences()) return false;
    parts.push_back({launch.program});
    return parts.size() <= kMostParts;
  }
  bool add_parts(const Memory_Transfer& copy) {
    if (copy.bytes) parts.push_back({nullptr, copy.bytes});
    return parts.size() <= kMostParts;
  }
  // Adds the parts of all iterations. The counters of loops around the sequence are unknown, so
  // bounds that depend on them are too.
  bool add_parts(const Repeat& loop) {
    const std::optional<int64_t> start = value_of(loop.start), stop = value_of(loop.stop);
    if (loop.goes_on || !start || !stop) return false;
    bool is_added = true;
    size_t turn = 0;
    for (int64_t i = *start; is_added && (loop.step > 0 ? i < *stop : i > *stop); i += loop.step) {
      counters_[loop.counter] = i;
      is_added = ++iterations_ <= kMostParts && add(turn ? *loop.turns[turn - 1].body : *loop.body);
      turn = turn == loop.turns.size() ? 0 : turn + 1;
    }
    counters_.erase(loop.counter);
    return is_added && (!turn || add(*loop.turns[turn - 1].end));
  }
  template <class Other>
  bool add_parts(const Other&) {
    return false;
  }

  std::optional<int64_t> value_of(const Affine& sum) const {
    int64_t value = sum.offset;
    for (const auto& [variable, factor] : sum.terms) {
      const auto counter = counters_.find(variable);
      if (counter == counters_.end()) return std::nullopt;
      value += factor * counter->second;
    }
    return value;
  }

  std::map<size_t, int64_t> counters_;  // of the loops around the present step
  size_t iterations_ = 0;               // of all loops together
};

// The parts of a body, or nothing if a kernel depends on the loop's counter or a step cannot be a
// part.
std::optional<std::vector<SequencePart>> constant_parts(const Body& body, size_t counter) {
  PartsOfSteps all;
  const bool depends = any_step(body.steps, [&](const Step& step) {
    const auto* launch = std::get_if<Launch>(&step);
    return launch && launch->variables &&
           std::find(launch->variables->begin(), launch->variables->end(), counter) !=
               launch->variables->end();
  });
  if (depends || !all.add(body)) return std::nullopt;
  return std::move(all.parts);
}

// The sequence of a loop whose end the device decides. Null if the device cannot run it.
std::unique_ptr<Sequence> device_loop(const Repeat& repeat, Device& device) {
  if (!device.runs_loops()) return nullptr;
  auto loop = std::make_shared<SequenceLoop>();
  const auto add = [&](const Body& body, const Body& end) {
    auto parts = constant_parts(body, repeat.counter), at_end = constant_parts(end, repeat.counter);
    if (!parts || !at_end) return false;
    loop->turns.push_back({std::move(*parts), std::move(*at_end)});
    return true;
  };
  bool is_added = add(*repeat.body, Body{});
  for (const Repeat::Turn& turn : repeat.turns) is_added = is_added && add(*turn.body, *turn.end);
  if (!is_added) return nullptr;
  const SequencePart part{nullptr, 0, std::move(loop)};
  return device.sequence({&part, 1});
}

// Gives a loop a sequence of its iterations, if the device can run them together.
void join_iterations(Repeat& repeat, Device& device) {
  if (repeat.goes_on) {
    repeat.together = device_loop(repeat, device);
    return;
  }
  const size_t num_turns = repeat.turns.size() + 1;
  PartsOfSteps all;
  int64_t iterations = 0;
  for (;;) {
    const size_t before = all.parts.size();
    bool is_added = all.add(*repeat.body);
    for (const Repeat::Turn& turn : repeat.turns) is_added = is_added && all.add(*turn.body);
    if (!is_added || all.parts.size() == before) return;
    if (all.parts.size() > kMostTogether) {
      all.parts.resize(before);
      break;
    }
    iterations += static_cast<int64_t>(num_turns);
  }
  if (all.parts.size() < kLeastParts) return;
  repeat.together = device.sequence(all.parts);
  repeat.num_together = iterations;
}

}  // namespace

std::vector<Step> join_steps(std::vector<Step> steps, Device& device) {
  std::vector<Step> joined;
  for (size_t i = 0; i < steps.size();) {
    PartsOfSteps all;
    size_t end = i;
    while (end < steps.size() && all.add(steps[end])) ++end;
    std::shared_ptr<Sequence> sequence;
    if (all.parts.size() >= kLeastParts) sequence = device.sequence(all.parts);
    if (sequence) {
      auto body = std::make_shared<Body>();
      std::move(steps.begin() + i, steps.begin() + end, std::back_inserter(body->steps));
      joined.emplace_back(Launch_Sequence{std::move(body), std::move(sequence)});
      i = end;
    }
    for (end = std::min(std::max(end, i + 1), steps.size()); i < end; ++i) {
      if (auto* loop = std::get_if<Repeat>(&steps[i])) {
        join_iterations(*loop, device);
        const auto join = [&](Body& body) {
          body.steps = join_steps(std::move(body.steps), device);
        };
        join(*loop->body);
        for (const Repeat::Turn& turn : loop->turns) join(*turn.body), join(*turn.end);
      }
      joined.push_back(std::move(steps[i]));
    }
  }
  return joined;
}

}  // namespace rune::runtime
