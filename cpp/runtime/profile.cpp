#include "runtime/profile.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "runtime/caching_allocator.h"

namespace rune::runtime {

namespace {

// The most intervals, and the most points of memory, that are kept: some 50 MB of each.
constexpr size_t kMostKept = 1 << 20;

struct Recorder {
  std::mutex mutex;  // guards the rest
  Profile profile;
  std::unordered_map<const ProgramInfo*, int32_t> programs;
  std::unordered_map<std::string, int32_t> functions;

  ProgramTotals& totals_of(const std::shared_ptr<const ProgramInfo>& info, int32_t& number) {
    const auto [found, is_new] =
        programs.emplace(info.get(), static_cast<int32_t>(profile.programs.size()));
    number = found->second;
    if (is_new)
      profile.programs.push_back({info, 0, 0, std::vector<StepTotals>(info->steps.size())});
    return profile.programs[number];
  }

  void keep(Interval interval) {
    if (profile.intervals.size() == kMostKept) {
      ++profile.left_out;
      return;
    }
    // NOLINTNEXTLINE(google-readability-casting): a number or a pointer, by system
    interval.thread = (uint64_t)pthread_self();
    profile.intervals.push_back(interval);
  }
};

// It is never destroyed, because memory may be freed after everything else.
Recorder& recorder() {
  static Recorder* const instance = [] {
    pthread_atfork([] { recorder().mutex.lock(); }, [] { recorder().mutex.unlock(); },
                   [] { recorder().mutex.unlock(); });
    return new Recorder;
  }();
  return *instance;
}

}  // namespace

int64_t profile_clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void begin_profile() {
  Recorder& r = recorder();
  const int64_t in_use = caching_allocator().bytes_in_use();
  const std::lock_guard<std::mutex> lock(r.mutex);
  if (is_profiling())
    user_error(ErrorKind::Runtime, "profile: cannot begin (another profile is being taken)");
  r.profile = {};
  r.programs.clear();
  r.functions.clear();
  r.profile.memory["cpu"] = {in_use, in_use, in_use, {}};
  r.profile.begin_ns = profile_clock_ns();
  profiling.store(true);
}

Profile end_profile() {
  Recorder& r = recorder();
  const std::lock_guard<std::mutex> lock(r.mutex);
  if (!is_profiling()) user_error(ErrorKind::Runtime, "profile: cannot end (none is being taken)");
  profiling.store(false);
  r.profile.end_ns = profile_clock_ns();
  r.programs.clear();
  r.functions.clear();
  return std::exchange(r.profile, {});
}

void note_call(const std::string& function, int64_t begin_ns) {
  Recorder& r = recorder();
  const auto ns = static_cast<double>(profile_clock_ns() - begin_ns);
  const std::lock_guard<std::mutex> lock(r.mutex);
  if (!is_profiling()) return;
  const auto [found, is_new] =
      r.functions.emplace(function, static_cast<int32_t>(r.profile.functions.size()));
  if (is_new) r.profile.functions.push_back(function);
  r.keep({Interval::Kind::Call, found->second, 0, begin_ns, ns});
}

void note_program(const std::shared_ptr<const ProgramInfo>& info, int64_t begin_ns) {
  Recorder& r = recorder();
  const auto ns = static_cast<double>(profile_clock_ns() - begin_ns);
  const std::lock_guard<std::mutex> lock(r.mutex);
  if (!is_profiling()) return;
  int32_t number = 0;
  ProgramTotals& totals = r.totals_of(info, number);
  ++totals.runs;
  totals.total_ns += ns;
  r.keep({Interval::Kind::Program, number, 0, begin_ns, ns});
}

void note_step(const std::shared_ptr<const ProgramInfo>& info, size_t step, int64_t begin_ns,
               double ns, bool by_device) {
  Recorder& r = recorder();
  const std::lock_guard<std::mutex> lock(r.mutex);
  if (!is_profiling()) return;
  int32_t number = 0;
  StepTotals& totals = r.totals_of(info, number).steps.at(step);
  totals.least_ns = totals.runs == 0 ? ns : std::min(totals.least_ns, ns);
  totals.most_ns = std::max(totals.most_ns, ns);
  ++totals.runs;
  totals.total_ns += ns;
  totals.by_device = by_device;
  r.keep({Interval::Kind::Step, number, static_cast<int32_t>(step), begin_ns, ns});
}

void note_memory(const std::string& device, int64_t change) {
  Recorder& r = recorder();
  const std::lock_guard<std::mutex> lock(r.mutex);
  if (!is_profiling()) return;
  MemoryUse& use = r.profile.memory[device];
  use.now += change;
  use.peak = std::max(use.peak, use.now);
  if (use.points.size() == kMostKept) {
    ++r.profile.left_out;
    return;
  }
  use.points.push_back({profile_clock_ns(), use.now});
}

}  // namespace rune::runtime
