#include "runtime/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

#include "base/options.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rune::runtime {

namespace {

// Less work than this runs on the caller alone: handing it over costs more.
constexpr double kParallelNs = 20'000;
// A parked worker takes tens of microseconds to wake; only this much work is worth that.
constexpr double kWakeNs = 100'000;
// How long an idle worker spins before it parks.
constexpr auto kSpin = std::chrono::microseconds(60);
// Claims per thread: enough to even out, few enough to be free.
constexpr int64_t kClaimsPerThread = 8;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

thread_local bool inside_task = false;

// One parallel_for at a time. Workers join a job through `gate_`, which counts those inside and closes
// when the caller has no more work, so that no worker sees a job that has ended.
class Pool {
 public:
  explicit Pool(int workers) : workers_(workers) {
    for (int i = 0; i < workers; ++i) std::thread([this] { work(); }).detach();
  }

  // False if another thread has the pool.
  bool try_run(int64_t tasks, double estimated_ns, FunctionRef<void(int64_t, int64_t)> body) {
    if (!owner_.try_lock()) return false;
    const std::lock_guard<std::mutex> lock(owner_, std::adopt_lock);
    tasks_ = tasks;
    grain_ = std::max<int64_t>(1, tasks / (kClaimsPerThread * (workers_ + 1)));
    body_ = &body;
    error_ = nullptr;
    failed_.store(false, std::memory_order_relaxed);
    next_.store(0, std::memory_order_relaxed);
    const uint32_t job = job_.load(std::memory_order_relaxed) + 1;
    gate_.store(static_cast<uint64_t>(job) << 32, std::memory_order_release);
    job_.store(job, std::memory_order_seq_cst);
    if (estimated_ns >= kWakeNs && parked_.load(std::memory_order_seq_cst) > 0) job_.notify_all();
    claim();
    gate_.fetch_or(kClosed, std::memory_order_acq_rel);
    // Workers inside finish the range that they hold; one without a core is waited for politely.
    for (int spins = 0; gate_.load(std::memory_order_acquire) & kCount; ++spins)
      spins < 1000 ? pause() : std::this_thread::yield();
    if (error_) std::rethrow_exception(error_);
    return true;
  }

 private:
  static constexpr uint64_t kClosed = uint64_t{1} << 31;
  static constexpr uint64_t kCount = kClosed - 1;

  bool join(uint32_t job) {
    uint64_t gate = gate_.load(std::memory_order_acquire);
    while (static_cast<uint32_t>(gate >> 32) == job && !(gate & kClosed))
      if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel)) return true;
    return false;
  }

  void claim() {
    inside_task = true;
    for (;;) {
      const int64_t begin = next_.fetch_add(grain_, std::memory_order_relaxed);
      if (begin >= tasks_) break;
      try {
        (*body_)(begin, std::min(tasks_, begin + grain_));
      } catch (...) {
        if (!failed_.exchange(true)) error_ = std::current_exception();
        next_.store(tasks_, std::memory_order_relaxed);
      }
    }
    inside_task = false;
  }

  // Waits for a job other than the last one seen.
  uint32_t wait_for_job(uint32_t last) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 1;; ++i) {
      const uint32_t job = job_.load(std::memory_order_acquire);
      if (job != last) return job;
      pause();
      if (i % 64 == 0 && std::chrono::steady_clock::now() - start > kSpin) break;
    }
    parked_.fetch_add(1, std::memory_order_seq_cst);
    job_.wait(last, std::memory_order_seq_cst);
    parked_.fetch_sub(1, std::memory_order_seq_cst);
    return job_.load(std::memory_order_acquire);
  }

  void work() {
    uint32_t last = 0;
    for (;;) {
      last = wait_for_job(last);
      if (!join(last)) continue;
      claim();
      gate_.fetch_sub(1, std::memory_order_acq_rel);
    }
  }

  const int workers_;
  std::mutex owner_;
  // The job; written by the owner while no worker is inside.
  int64_t tasks_ = 0;
  int64_t grain_ = 1;
  const FunctionRef<void(int64_t, int64_t)>* body_ = nullptr;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<uint64_t> gate_{kClosed};  // job number, closed, workers inside
  alignas(64) std::atomic<uint32_t> job_{0};
  std::atomic<int> parked_{0};
};

std::atomic<Pool*> the_pool{nullptr};
std::mutex creation;

// The pool lives as long as the process: its threads may outlive static destruction.
Pool& pool() {
  if (Pool* known = the_pool.load(std::memory_order_acquire)) return *known;
  const std::lock_guard<std::mutex> lock(creation);
  if (Pool* known = the_pool.load(std::memory_order_acquire)) return *known;
  static const bool registered = [] {
    // The child has none of the parent's threads.
    pthread_atfork([] { creation.lock(); }, [] { creation.unlock(); },
                   [] {
                     the_pool.store(nullptr);
                     creation.unlock();
                   });
    return true;
  }();
  (void)registered;
  Pool* made = new Pool(num_threads() - 1);
  the_pool.store(made, std::memory_order_release);
  return *made;
}

int available_cores() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

int num_threads() {
  static const int count = options().num_threads > 0 ? options().num_threads : available_cores();
  return count;
}

void parallel_for(int64_t tasks, double estimated_ns, FunctionRef<void(int64_t, int64_t)> body) {
  if (tasks <= 0) return;
  const bool alone = tasks == 1 || estimated_ns < kParallelNs || inside_task || num_threads() == 1;
  if (alone || !pool().try_run(tasks, estimated_ns, body)) body(0, tasks);
}

}  // namespace rune::runtime
