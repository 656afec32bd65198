#include "backends/cpu/cpu_calibration.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>

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

// Time for one figure; the best of as many rounds as fit counts.
constexpr auto kTimePerFigure = std::chrono::milliseconds(1);
constexpr int kLeastRounds = 3;
// Measured figures stay within this factor of what is assumed without measuring.
constexpr double kMostDeviation = 4;

template <class F, class Prepare>
double best_ns(F&& run, Prepare&& prepare) {
  double best = 1e30;
  const auto end = Clock::now() + kTimePerFigure;
  for (int round = 0; round < kLeastRounds || Clock::now() < end; ++round) {
    prepare();
    const auto start = Clock::now();
    run();
    const std::chrono::duration<double, std::nano> took = Clock::now() - start;
    best = std::min(best, took.count());
  }
  return best;
}

template <class F>
double best_ns(F&& run) {
  return best_ns(run, [] {});
}

#if defined(__GNUC__)
#define RUNE_INLINE inline __attribute__((always_inline))
#else
#define RUNE_INLINE inline
#endif

// Independent chains, enough to keep a core's vector units busy in spite of their latency.
constexpr int kChains = 10;
constexpr int kSteps = 4096;

template <class T, int kBytes>
RUNE_INLINE T run_chains(T seed) {
#if defined(__GNUC__)
  typedef T Vector __attribute__((vector_size(kBytes)));
#else
  using Vector = T;
#endif
  Vector sums[kChains], factor{}, term{};
  factor = factor + seed;
  term = term + seed;
  for (int c = 0; c < kChains; ++c) sums[c] = factor + static_cast<T>(c);
  for (int step = 0; step < kSteps; ++step)
    for (int c = 0; c < kChains; ++c) {
      if constexpr (std::is_floating_point_v<T>) {
        sums[c] = sums[c] * factor + term;
      } else {
        sums[c] = (sums[c] + factor) ^ term;
      }
    }
  Vector total = sums[0];
  for (int c = 1; c < kChains; ++c) total = total + sums[c];
  T result;
  std::memcpy(&result, &total, sizeof result);
  return result;
}

#if defined(__x86_64__) && defined(__GNUC__)
template <class T>
__attribute__((target("avx512f,avx512dq"))) T run_chains_512(T seed) {
  return run_chains<T, 64>(seed);
}
template <class T>
__attribute__((target("avx2"))) T run_chains_256(T seed) {
  return run_chains<T, 32>(seed);
}
#endif

template <class T>
double operations_per_ns(const Capabilities& caps) {
  volatile T seed = 1, sink;
  const double ns = best_ns([&] {
#if defined(__x86_64__) && defined(__GNUC__)
    if (caps.vector_bits == 512) return void(sink = run_chains_512<T>(seed));
    if (caps.vector_bits == 256) return void(sink = run_chains_256<T>(seed));
#endif
    sink = run_chains<T, 16>(seed);
  });
  const double lanes = caps.vector_bits / (8.0 * sizeof(T));
  return caps.num_cores * 2.0 * kChains * kSteps * lanes / ns;
}

using Word = uint64_t;

// Reads memory as fast as this machine's memcpy does, into the first-level cache.
void read_words(const Word* words, int64_t count) {
  constexpr int64_t kBlock = 1024;
  static thread_local Word block[kBlock];
  for (int64_t i = 0; i + kBlock <= count; i += kBlock) std::memcpy(block, words + i, sizeof block);
  volatile Word sink = block[0];
  (void)sink;
}

struct Memory {
  explicit Memory(int64_t bytes)
      : count(bytes / static_cast<int64_t>(sizeof(Word))),
        bytes(static_cast<size_t>(bytes)),
        words(static_cast<Word*>(caching_allocator().allocate(this->bytes))) {
    std::memset(words, 1, this->bytes);
  }
  ~Memory() { caching_allocator().deallocate(words, bytes); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  const int64_t count;
  const size_t bytes;
  Word* const words;
};

// Of one core that copies within a cache: bytes read and written. A block is copied often enough
// for the clock.
double copied_bytes_per_ns(int64_t block) {
  const Memory from(block), to(block);
  const int64_t times = std::max<int64_t>(1, (1 << 20) / block);
  const double ns = best_ns([&] {
    for (int64_t i = 0; i < times; ++i) std::memcpy(to.words, from.words, from.bytes);
  });
  return 2.0 * static_cast<double>(from.bytes * static_cast<size_t>(times)) / ns;
}

#if defined(__x86_64__)
// Fresh pages take longer than all the rest: a little memory, taken out of the caches, tells as
// much.
constexpr int64_t kLeastMemory = 8 << 20, kMostMemory = kLeastMemory;

void evict(const Memory& memory) {
  constexpr int64_t kLine = 64 / sizeof(Word);
  for (int64_t i = 0; i < memory.count; i += kLine) _mm_clflush(memory.words + i);
  _mm_mfence();
}
#else
constexpr int64_t kLeastMemory = 32 << 20, kMostMemory = 64 << 20;

void evict(const Memory&) {}  // more than the caches hold
#endif

double read_bytes_per_ns(const Memory& memory, int threads) {
  const int64_t parts = threads == 1 ? 1 : 4 * threads;
  const auto read = [&] {
    parallel_for(parts, threads == 1 ? 0 : 1e9, [&](int64_t begin, int64_t end) {
      const int64_t first = memory.count * begin / parts, last = memory.count * end / parts;
      read_words(memory.words + first, last - first);
    });
  };
  const double ns = best_ns(read, [&] { evict(memory); });
  return static_cast<double>(memory.bytes) / ns;
}

double parallel_ns(const Capabilities& caps) {
  if (caps.num_cores == 1) return caps.parallel_ns;
  constexpr int kTimes = 16;
  return best_ns([&] {
           for (int i = 0; i < kTimes; ++i)
             parallel_for(2 * caps.num_cores, 1e9, [](int64_t, int64_t) {});
         }) /
         kTimes;
}

// Of one kernel among others of a program.
double launch_ns() {
  struct Nothing : Program {
    void launch(const LaunchArguments& arguments) override {
      const auto body = [&](int64_t, int64_t) {
        touched = arguments.buffers[0];
      };
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

}  // namespace

CpuFigures figures_of(const Capabilities& caps) {
  CpuFigures figures;
  figures.bandwidth_bytes_per_ns = caps.bandwidth_bytes_per_ns;
  figures.core_bandwidth_bytes_per_ns = caps.core_bandwidth_bytes_per_ns;
  figures.last_level_bytes_per_ns = caps.last_level_bytes_per_ns;
  figures.l2_bytes_per_ns = caps.l2_bytes_per_ns;
  const auto rate = [&](DType dtype) { return caps.operations_per_ns[static_cast<int>(dtype)]; };
  figures.float32_operations_per_ns = rate(DType::Float32);
  figures.float64_operations_per_ns = rate(DType::Float64);
  figures.int32_operations_per_ns = rate(DType::Int32);
  figures.int64_operations_per_ns = rate(DType::Int64);
  figures.launch_ns = caps.launch_ns;
  figures.parallel_ns = caps.parallel_ns;
  return figures;
}

CpuFigures measure_cpu(const Capabilities& caps) {
  CpuFigures measured;
  measured.float32_operations_per_ns = operations_per_ns<float>(caps);
  measured.float64_operations_per_ns = operations_per_ns<double>(caps);
  measured.int32_operations_per_ns = operations_per_ns<int32_t>(caps);
  measured.int64_operations_per_ns = operations_per_ns<int64_t>(caps);
  measured.l2_bytes_per_ns = caps.num_cores * copied_bytes_per_ns(caps.l2_bytes / 4);
  measured.last_level_bytes_per_ns =
      caps.num_cores *
      copied_bytes_per_ns(std::clamp<int64_t>(caps.last_level_bytes / 8, caps.l2_bytes, 4 << 20));
  {
    const Memory memory(std::clamp(3 * caps.last_level_bytes / 2, kLeastMemory, kMostMemory));
    measured.core_bandwidth_bytes_per_ns = read_bytes_per_ns(memory, 1);
    // Of cores that other work takes meanwhile nothing is seen.
    measured.bandwidth_bytes_per_ns =
        std::max(read_bytes_per_ns(memory, caps.num_cores), measured.core_bandwidth_bytes_per_ns);
  }
  measured.launch_ns = launch_ns();
  measured.parallel_ns = parallel_ns(caps);
  CpuFigures assumed = figures_of(caps);
  std::vector<double> bounds;
  assumed.fields([&](const char*, double& figure) { bounds.push_back(figure); });
  size_t i = 0;
  measured.fields([&](const char*, double& figure) {
    const double usual = bounds[i++];
    figure = two_digits(std::clamp(figure, usual / kMostDeviation, usual * kMostDeviation));
  });
  return measured;
}

void set_figures(Capabilities& caps, const CpuFigures& figures) {
  CpuFigures checked = figures;
  checked.fields([](const char* name, double figure) {
    if (!(figure > 0) || !std::isfinite(figure))
      user_error(ErrorKind::Value, "calibration: cannot use ", name, " = ", figure,
                 " (it must be positive and finite)");
  });
  caps.bandwidth_bytes_per_ns = figures.bandwidth_bytes_per_ns;
  caps.core_bandwidth_bytes_per_ns = figures.core_bandwidth_bytes_per_ns;
  caps.last_level_bytes_per_ns = figures.last_level_bytes_per_ns;
  caps.l2_bytes_per_ns = figures.l2_bytes_per_ns;
  for (int d = 0; d < kNumDTypes; ++d) {
    const auto dtype = static_cast<DType>(d);
    const bool wide = size_of(dtype) > 4;
    caps.operations_per_ns[d] =
        is_float(dtype)
            ? (wide ? figures.float64_operations_per_ns : figures.float32_operations_per_ns)
            : (wide ? figures.int64_operations_per_ns : figures.int32_operations_per_ns);
  }
  caps.launch_ns = figures.launch_ns;
  caps.parallel_ns = figures.parallel_ns;
}

}  // namespace rune::runtime
