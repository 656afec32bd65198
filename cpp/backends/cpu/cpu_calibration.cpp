#include "backends/cpu/cpu_calibration.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>

#include "alu/alu.h"
#include "backends/cpu/cpu_device.h"
#include "base/error.h"
#include "runtime/caching_allocator.h"
#include "runtime/executable.h"
#include "runtime/thread_pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rune::runtime {

namespace {

using Clock = std::chrono::steady_clock;

// The time for measuring one figure. The best of the rounds that fit in this time counts. Rounds in
// which the thread lost its core are repeated, within the limit kMostTime.
constexpr auto kTimePerFigure = std::chrono::milliseconds(1), kMostTime = 6 * kTimePerFigure;
constexpr int kLeastRounds = 3;
constexpr double kLeastShareOfCore = 0.9;
// Measured figures stay within this factor of the assumed ones.
constexpr double kMostDeviation = 4;
// The time of a square root over that of a division.
constexpr double kRootPerDivision = 4.0 / 3;

using Nanoseconds = std::chrono::duration<double, std::nano>;

// The time for which the calling thread has run, in ns.
double thread_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e9 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec);
}

// The shortest time of `run`, which follows `prepare` in each round. If `waits` is set, `run` may
// leave its core to wait for other threads.
template <class F, class Prepare>
double best_ns(F&& run, Prepare&& prepare, bool waits) {
  double best = 1e30;
  Clock::duration measured{};
  const auto end = Clock::now() + kMostTime;
  for (int rounds = 0; rounds < kLeastRounds || measured < kTimePerFigure;) {
    prepare();
    const double before = thread_ns();
    const auto start = Clock::now();
    run();
    const auto took = Clock::now() - start;
    const double ns = Nanoseconds(took).count();
    best = std::min(best, ns);
    if (waits || thread_ns() - before >= kLeastShareOfCore * ns) ++rounds, measured += took;
    if (Clock::now() > end) break;
  }
  return best;
}

template <class F>
double best_ns(F&& run, bool waits = false) {
  return best_ns(run, [] {}, waits);
}

#define RUNE_INLINE inline __attribute__((always_inline))

// The number of independent chains of operations: enough to keep a core's vector units busy in
// spite of their latency.
constexpr int kChains = 10;
using Chains = std::make_index_sequence<kChains>;
constexpr int kSteps = 4096;
// What a step of a chain does. Floats are only added: some cores have separate units for
// multiplication, but kernels seldom keep both busy.
enum class Operation { Add, AddAndXor, Divide };

// The chains are written out, so that they stay in registers at any level of optimisation.
template <Operation kOperation, class T, int kBytes, size_t... kChain>
RUNE_INLINE T run_chains(T seed, std::index_sequence<kChain...>) {
  typedef T Vector __attribute__((vector_size(kBytes)));
  Vector sums[kChains], factor{}, term{};
  factor = factor + seed;
  term = term + seed;
  ((sums[kChain] = factor + static_cast<T>(kChain)), ...);
  for (int step = 0; step < kSteps; ++step) {
    if constexpr (kOperation == Operation::Add) {
      ((sums[kChain] = sums[kChain] + term), ...);
    } else if constexpr (kOperation == Operation::AddAndXor) {
      ((sums[kChain] = (sums[kChain] + factor) ^ term), ...);
    } else {
      ((sums[kChain] = sums[kChain] / term), ...);
    }
  }
  Vector total{};
  ((total = total + sums[kChain]), ...);
  T result;
  std::memcpy(&result, &total, sizeof result);
  return result;
}

#if defined(__x86_64__)
template <Operation kOperation, class T>
__attribute__((target("avx512f,avx512dq"))) T run_chains_512(T seed) {
  return run_chains<kOperation, T, 64>(seed, Chains{});
}
template <Operation kOperation, class T>
__attribute__((target("avx2"))) T run_chains_256(T seed) {
  return run_chains<kOperation, T, 32>(seed, Chains{});
}
#endif

// The steps of all cores together.
template <Operation kOperation, class T>
double steps_per_ns(const Capabilities& caps) {
  // Some cores divide by 1 faster than by other numbers.
  volatile T seed = static_cast<T>(1.0001), sink;
  const double ns = best_ns([&] {
#if defined(__x86_64__)
    if (caps.vector_bits == 512) return void(sink = run_chains_512<kOperation, T>(seed));
    if (caps.vector_bits == 256) return void(sink = run_chains_256<kOperation, T>(seed));
#endif
    sink = run_chains<kOperation, T, 16>(seed, Chains{});
  });
  const double lanes = caps.vector_bits / (8.0 * sizeof(T));
  return caps.num_cores * kChains * kSteps * lanes / ns;
}

using Word = uint64_t;

// Sums words at the rate at which memory delivers them. Their number is a multiple of
// kWordsPerStep.
constexpr int64_t kWordsPerStep = 32;

template <int kBytes>
RUNE_INLINE Word sum_words(const Word* words, int64_t count) {
  typedef Word Vector __attribute__((vector_size(kBytes), aligned(sizeof(Word)), may_alias));
  constexpr int64_t kLanes = kBytes / sizeof(Word);
  Vector even{}, odd{};
  for (int64_t i = 0; i < count; i += 2 * kLanes) {
    even += *reinterpret_cast<const Vector*>(words + i);
    odd += *reinterpret_cast<const Vector*>(words + i + kLanes);
  }
  even += odd;
  Word result;
  std::memcpy(&result, &even, sizeof result);
  return result;
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) Word sum_words_512(const Word* words, int64_t count) {
  return sum_words<64>(words, count);
}
__attribute__((target("avx2"))) Word sum_words_256(const Word* words, int64_t count) {
  return sum_words<32>(words, count);
}
#endif

void read_words(const Capabilities& caps, const Word* words, int64_t count) {
  volatile Word sink;
#if defined(__x86_64__)
  if (caps.vector_bits == 512) return void(sink = sum_words_512(words, count));
  if (caps.vector_bits == 256) return void(sink = sum_words_256(words, count));
#endif
  sink = sum_words<16>(words, count);
  (void)sink;
}

struct Memory {
  explicit Memory(int64_t bytes)
      : count(bytes / static_cast<int64_t>(sizeof(Word))),
        bytes(static_cast<size_t>(bytes)),
        memory(caching_allocator(), this->bytes),
        words(static_cast<Word*>(memory.get())) {
    std::memset(words, 1, this->bytes);
  }

  const int64_t count;
  const size_t bytes;
  const ScopedMemory memory;
  Word* const words;
};

// The rate at which one core copies within a cache: bytes read plus bytes written. The block is
// copied so often that the clock can measure it.
double copied_bytes_per_ns(int64_t block) {
  const Memory from(block), to(block);
  const int64_t times = std::max<int64_t>(1, (1 << 20) / block);
  const double ns = best_ns([&] {
    for (int64_t i = 0; i < times; ++i) std::memcpy(to.words, from.words, from.bytes);
  });
  return 2.0 * static_cast<double>(from.bytes * static_cast<size_t>(times)) / ns;
}

#if defined(__x86_64__)
// Getting fresh pages would take most of the time. A little memory that has been evicted from the
// caches gives the same result.
constexpr int64_t kLeastMemory = 8 << 20, kMostMemory = kLeastMemory;

void evict(const Word* words, int64_t count) {
  constexpr int64_t kLine = 64 / sizeof(Word);
  for (int64_t i = 0; i < count; i += kLine) _mm_clflush(words + i);
  _mm_mfence();
}
#else
constexpr int64_t kLeastMemory = 32 << 20, kMostMemory = 64 << 20;

void evict(const Word*, int64_t) {}  // not needed: the memory exceeds the caches
#endif

// Returns when this many of the pool's threads run at the same time, or after a time limit.
void rally(int threads) {
  std::atomic<int> here{0};
  const auto end = Clock::now() + kTimePerFigure;
  parallel_for(threads, 1e9, [&](int64_t begin, int64_t end_of_range) {
    here += static_cast<int>(end_of_range - begin);
    while (here < threads && Clock::now() < end) {
    }
  });
}

double read_bytes_per_ns(const Capabilities& caps, const Memory& memory, int threads) {
  const int64_t parts = threads == 1 ? 1 : 4 * threads, steps = memory.count / kWordsPerStep;
  const auto for_each_part = [&](auto&& run) {
    parallel_for(parts, threads == 1 ? 0 : 1e9, [&](int64_t begin, int64_t end) {
      const int64_t first = steps * begin / parts, last = steps * end / parts;
      run(memory.words + first * kWordsPerStep, (last - first) * kWordsPerStep);
    });
  };
  const auto prepare = [&] {
    if (threads > 1) rally(threads);
    for_each_part(evict);
  };
  const auto read = [&] {
    for_each_part([&](const Word* words, int64_t count) { read_words(caps, words, count); });
  };
  return static_cast<double>(memory.bytes) / best_ns(read, prepare, threads > 1);
}

double parallel_ns(const Capabilities& caps) {
  if (caps.num_cores == 1) return caps.parallel_ns;
  constexpr int kTimes = 16;
  const auto jobs = [&] {
    for (int i = 0; i < kTimes; ++i) parallel_for(2 * caps.num_cores, 1e9, [](int64_t, int64_t) {});
  };
  return best_ns(jobs, true) / kTimes;
}

// The time of launching one kernel of a program with many kernels.
double launch_ns() {
  struct Nothing : Program {
    void launch(const LaunchArguments& arguments) override {
      const auto body = [&](int64_t, int64_t) { touched = arguments.buffers[0]; };
      parallel_for(1, 0, body);
    }
    const volatile void* touched = nullptr;
  };
  constexpr int kLaunches = 64;
  Executable executable;
  executable.device = cpu_device();
  executable.num_inputs = 2;
  executable.num_outputs = 1;
  const auto program = std::make_shared<Nothing>();
  const std::vector<Slot> arguments{
      {Slot::Kind::Input, 0}, {Slot::Kind::Input, 1}, {Slot::Kind::Output, 0}};
  Launch launch;
  launch.program = program;
  launch.arguments = arguments;
  executable.steps.assign(kLaunches, launch);
  executable.prepare();
  Word word = 0;
  void* const inputs[] = {&word, &word};
  void* const outputs[] = {&word};
  return best_ns([&] { executable.run(inputs, outputs); }) / kLaunches;
}

double two_digits(double x) {
  const double unit = std::pow(10, std::floor(std::log10(x)) - 1);
  return std::round(x / unit) * unit;
}

double& rate(Capabilities& caps, DType dtype) {
  return caps.operations_per_ns[static_cast<size_t>(dtype)];
}
double& division_rate(Capabilities& caps, DType dtype) {
  return caps.divisions_per_ns[static_cast<size_t>(dtype)];
}

// Calls f(name, figure) for each figure. The rates of four dtypes stand for those of all, and those
// of two for divisions.
template <class F>
void for_each_figure(Capabilities& caps, F f) {
  f("bandwidth_bytes_per_ns", caps.bandwidth_bytes_per_ns);
  f("core_bandwidth_bytes_per_ns", caps.core_bandwidth_bytes_per_ns);
  f("last_level_bytes_per_ns", caps.last_level_bytes_per_ns);
  f("l2_bytes_per_ns", caps.l2_bytes_per_ns);
  for (const DType dtype : {DType::Float32, DType::Float64, DType::Int32, DType::Int64})
    f(concat(numpy_name(dtype), "_operations_per_ns"), rate(caps, dtype));
  for (const DType dtype : {DType::Float32, DType::Float64})
    f(concat(numpy_name(dtype), "_divisions_per_ns"), division_rate(caps, dtype));
  f("launch_ns", caps.launch_ns);
  f("parallel_ns", caps.parallel_ns);
}

}  // namespace

CpuFigures figures_of(Capabilities caps) {
  CpuFigures figures;
  for_each_figure(caps, [&](const std::string& name, double figure) { figures[name] = figure; });
  return figures;
}

CpuFigures measure_cpu(const Capabilities& caps) {
  Capabilities measured = caps;
  rate(measured, DType::Float32) = steps_per_ns<Operation::Add, float>(caps);
  rate(measured, DType::Float64) = steps_per_ns<Operation::Add, double>(caps);
  rate(measured, DType::Int32) = 2 * steps_per_ns<Operation::AddAndXor, int32_t>(caps);
  rate(measured, DType::Int64) = 2 * steps_per_ns<Operation::AddAndXor, int64_t>(caps);
  division_rate(measured, DType::Float32) = steps_per_ns<Operation::Divide, float>(caps);
  division_rate(measured, DType::Float64) = steps_per_ns<Operation::Divide, double>(caps);
  measured.l2_bytes_per_ns = caps.num_cores * copied_bytes_per_ns(caps.l2_bytes / 4);
  measured.last_level_bytes_per_ns =
      caps.num_cores *
      copied_bytes_per_ns(std::clamp<int64_t>(caps.last_level_bytes / 8, caps.l2_bytes, 4 << 20));
  {
    const Memory memory(std::clamp(3 * caps.last_level_bytes / 2, kLeastMemory, kMostMemory));
    measured.core_bandwidth_bytes_per_ns = read_bytes_per_ns(caps, memory, 1);
    // If other work takes cores meanwhile, the rate of all cores may come out too small.
    measured.bandwidth_bytes_per_ns = std::max(read_bytes_per_ns(caps, memory, caps.num_cores),
                                               measured.core_bandwidth_bytes_per_ns);
  }
  measured.launch_ns = launch_ns();
  measured.parallel_ns = parallel_ns(caps);
  CpuFigures figures = figures_of(measured);
  for (const auto& [name, usual] : figures_of(caps))
    figures[name] =
        two_digits(std::clamp(figures[name], usual / kMostDeviation, usual * kMostDeviation));
  return figures;
}

void set_figures(Capabilities& caps, const CpuFigures& figures) {
  for_each_figure(caps, [&](const std::string& name, double& figure) {
    const auto found = figures.find(name);
    figure = found == figures.end() ? 0 : found->second;
    if (!(figure > 0) || !std::isfinite(figure))
      user_error(ErrorKind::Value, "calibration: cannot use ", name, " = ", figure,
                 " (it must be positive and finite)");
  });
  for (int d = 0; d < kNumDTypes; ++d) {
    const auto dtype = static_cast<DType>(d);
    const bool wide = size_of(dtype) > 4;
    rate(caps, dtype) = is_float(dtype) ? rate(caps, wide ? DType::Float64 : DType::Float32)
                                        : rate(caps, wide ? DType::Int64 : DType::Int32);
    division_rate(caps, dtype) = division_rate(caps, wide ? DType::Float64 : DType::Float32);
    if (!is_float(dtype)) continue;
    const double division = rate(caps, dtype) / division_rate(caps, dtype);
    set_cost(caps, AluOp::Fdiv, dtype, static_cast<int>(std::lround(std::max(1.0, division))));
    set_cost(caps, AluOp::Sqrt, dtype,
             static_cast<int>(std::lround(std::max(1.0, kRootPerDivision * division))));
  }
}

}  // namespace rune::runtime
