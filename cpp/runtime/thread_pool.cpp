#include "runtime/thread_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/options.h"
#include "runtime/affinity.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rune::runtime {

namespace {

using Clock = std::chrono::steady_clock;

// The least work for which parked workers are woken, in one job or in several that follow closely.
// A parked worker takes tens of microseconds to wake.
constexpr double kWakeNs = 100'000;
// The least work that is worth another thread.
constexpr double kThreadNs = 7'500;
// The least work that is worth a claim, which moves a cache line between cores.
constexpr double kClaimNs = 2'000;
// Claims per thread: enough to balance the work, and so few that they cost nothing.
constexpr int64_t kClaimsPerThread = 8;
// How long an idle worker spins before it parks.
constexpr auto kSpin = std::chrono::microseconds(60);

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void name_this_thread(const char* name) {
#if defined(__APPLE__)
  pthread_setname_np(name);
#else
  pthread_setname_np(pthread_self(), name);
#endif
}

thread_local bool inside_task = false;

// Tasks per claim when `threads` share work that takes `estimated_ns` on one core.
int64_t grain_of(int64_t tasks, double estimated_ns, int threads) {
  const double worthwhile = std::ceil(static_cast<double>(tasks) * (kClaimNs / estimated_ns));
  const int64_t even = tasks / (kClaimsPerThread * threads);
  return std::clamp<int64_t>(std::max(even, static_cast<int64_t>(worthwhile)), 1, tasks);
}

// Runs one parallel_for at a time. Workers join a job through `gate_`, which counts the workers
// inside. The caller closes it when no work is left, so no worker sees a job that has ended. The
// job's data are written while the gate is closed and nobody is inside.
class Pool {
 public:
  // Starts fewer workers if the system refuses more threads.
  explicit Pool(int workers) : worker_(std::make_unique<Worker[]>(workers)) {
    // Signals belong to the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (; workers_ < workers; ++workers_) {
        Worker& worker = worker_[workers_];
        std::thread thread([this, &worker] { work(worker); });
        worker.thread = thread.native_handle();
        thread.detach();
      }
    } catch (const std::system_error&) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  // Runs the tasks from `first` on. Returns false, and runs nothing, if another thread has the
  // pool.
  bool try_run(int64_t first, int64_t tasks, double estimated_ns,
               FunctionRef<void(NextRange)> body) {
    if (!owner_.try_lock()) return false;
    const std::lock_guard<std::mutex> lock(owner_, std::adopt_lock);
    const int helpers =
        static_cast<int>(std::min<double>(workers_, std::ceil(estimated_ns / kThreadNs) - 1));
    tasks_ = tasks;
    grain_ = grain_of(tasks - first, estimated_ns, helpers + 1);
    body_ = &body;
    error_ = nullptr;
    failed_.store(false, std::memory_order_relaxed);
    next_.store(first, std::memory_order_relaxed);
    announce(helpers, estimated_ns);
    claim();
    ended_ = Clock::now();
    gate_.fetch_or(kClosed, std::memory_order_acq_rel);
    // Waits until the workers inside have finished their ranges. Yielding lets a worker without a
    // core use this one.
    for (int spins = 0; gate_.load(std::memory_order_acquire) & kCount; ++spins)
      spins < 1000 ? pause() : std::this_thread::yield();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return true;
  }

 private:
  struct Worker {
    pthread_t thread;
    std::atomic<int> core{-1};              // where it last looked for a job; -1 if unknown
    std::atomic<bool> is_displaced{false};  // whether it is kept off a caller's core
  };

  static constexpr uint64_t kClosed = uint64_t{1} << 31;
  static constexpr uint64_t kCount = kClosed - 1;

  void announce(int helpers, double estimated_ns) {
    helpers_.store(helpers, std::memory_order_relaxed);
    const uint32_t job = job_.load(std::memory_order_relaxed) + 1;
    gate_.store(static_cast<uint64_t>(job) << 32, std::memory_order_release);
    // Sequentially consistent with the count of parked workers: a worker that is not counted yet
    // sees this job before it sleeps.
    job_.store(job, std::memory_order_seq_cst);
    if (helpers > 0 && estimated_ns >= kWakeNs) move_from_this_core();
    const int parked = parked_.load(std::memory_order_seq_cst);
    const int wanted = helpers - (workers_ - parked);
    if (wanted <= 0) return;
    if (estimated_ns < kWakeNs && Clock::now() - ended_ > kSpin) without_help_ns_ = 0;
    without_help_ns_ += estimated_ns;
    if (without_help_ns_ < kWakeNs) return;
    without_help_ns_ = 0;
    for (int i = 0; i < wanted; ++i) job_.notify_one();
  }

  // Keeps workers off the caller's core. A worker there would get no work, because it waits for the
  // core while the caller runs. If no core is idle, Linux wakes a worker on the core of the thread
  // that wakes it, and leaves it there. The worker may use the core again once it has run
  // elsewhere.
  void move_from_this_core() {
    const int here = current_core();
    if (here < 0) return;
    for (int i = 0; i < workers_; ++i) {
      Worker& worker = worker_[i];
      if (worker.core.load(std::memory_order_relaxed) != here || worker.is_displaced) continue;
      worker.core.store(-1, std::memory_order_relaxed);
      if (keep_off_core(worker.thread, here)) worker.is_displaced = true;
    }
  }

  bool join(uint32_t job) {
    uint64_t gate = gate_.load(std::memory_order_acquire);
    while (static_cast<uint32_t>(gate >> 32) == job && !(gate & kClosed) &&
           static_cast<int>(gate & kCount) < helpers_.load(std::memory_order_relaxed))
      if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel,
                                      std::memory_order_acquire))
        return true;
    return false;
  }

  // Takes part in the present job.
  void claim() {
    const RunAlone inside;  // for calls of parallel_for by tasks
    try {
      (*body_)([this](TaskRange& range) {
        range.begin = next_.fetch_add(grain_, std::memory_order_relaxed);
        range.end = tasks_ - range.begin < grain_ ? tasks_ : range.begin + grain_;
        return range.begin < tasks_;
      });
    } catch (...) {
      if (!failed_.exchange(true)) error_ = std::current_exception();
      next_.store(tasks_, std::memory_order_relaxed);
    }
  }

  // Waits for a job other than the last one seen.
  uint32_t wait_for_job(uint32_t last, Worker& worker) {
    const auto start = Clock::now();
    worker.core.store(current_core(), std::memory_order_relaxed);
    for (int i = 1;; ++i) {
      const uint32_t job = job_.load(std::memory_order_acquire);
      if (job != last) return job;
      pause();
      if (i % 64 != 0) continue;
      worker.core.store(current_core(), std::memory_order_relaxed);
      if (Clock::now() - start > kSpin) break;
    }
    parked_.fetch_add(1, std::memory_order_seq_cst);
    job_.wait(last, std::memory_order_seq_cst);
    parked_.fetch_sub(1, std::memory_order_seq_cst);
    return job_.load(std::memory_order_acquire);
  }

  [[noreturn]] void work(Worker& worker) {
    name_this_thread("rune_jit");
    use_process_cores();  // instead of the cores of the thread that started this one
    uint32_t last = 0;
    for (;;) {
      last = wait_for_job(last, worker);
      if (join(last)) {
        claim();
        gate_.fetch_sub(1, std::memory_order_acq_rel);
      }
      if (worker.is_displaced.exchange(false)) use_process_cores();
    }
  }

  const std::unique_ptr<Worker[]> worker_;
  int workers_ = 0;
  std::mutex owner_;
  // Used by the owner: when the last job ended, and the work since parked workers were last woken.
  Clock::time_point ended_;
  double without_help_ns_ = 0;
  // The present job.
  int64_t tasks_ = 0;
  int64_t grain_ = 1;
  const FunctionRef<void(NextRange)>* body_ = nullptr;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};
  std::atomic<int> helpers_{0};
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<uint64_t> gate_{kClosed};  // job number, closed, workers inside
  alignas(64) std::atomic<uint32_t> job_{0};
  std::atomic<int> parked_{0};
};

std::atomic<Pool*> the_pool{nullptr};
std::mutex creation;

// A child process has none of the parent's threads, so it starts a new pool. The handlers are
// registered when the library is loaded, so that they are in place whenever the lock is held.
[[maybe_unused]] const int fork_handlers =
    pthread_atfork([] { creation.lock(); }, [] { creation.unlock(); },
                   [] {
                     the_pool.store(nullptr);
                     creation.unlock();
                   });

// The pool is never destroyed, because its threads may outlive static destruction.
Pool& pool() {
  if (Pool* known = the_pool.load(std::memory_order_acquire)) return *known;
  const std::lock_guard<std::mutex> lock(creation);
  if (Pool* known = the_pool.load(std::memory_order_acquire)) return *known;
  Pool* made = new Pool(num_threads() - 1);
  the_pool.store(made, std::memory_order_release);
  return *made;
}

}  // namespace

int num_threads() {
  static const int count = options().num_threads > 0 ? options().num_threads : available_cores();
  return count;
}

RunAlone::RunAlone() : before_(std::exchange(inside_task, true)) {}
RunAlone::~RunAlone() {
  inside_task = before_;
}

void parallel_ranges(int64_t tasks, double estimated_ns, FunctionRef<void(NextRange)> body) {
  if (tasks <= 0) return;
  const auto run_alone = [&](TaskRange range) {
    bool is_new = true;
    body([&](TaskRange& next) {
      next = range;
      return std::exchange(is_new, false);
    });
  };
  if (tasks == 1 || !(estimated_ns > kThreadNs) || inside_task || num_threads() == 1)
    return run_alone({0, tasks});
  Pool& shared = pool();
  const double task_ns = estimated_ns / static_cast<double>(tasks);
  const int64_t grain = grain_of(tasks, estimated_ns, 2);
  // While another thread has the pool, this one works alone. It asks again between ranges.
  for (int64_t done = 0; done < tasks;) {
    const int64_t left = tasks - done;
    if (shared.try_run(done, tasks, std::max(2 * kThreadNs, task_ns * static_cast<double>(left)),
                       body))
      return;
    const int64_t end = left < grain ? tasks : done + grain;
    run_alone({done, end});
    done = end;
  }
}

void parallel_for(int64_t tasks, double estimated_ns, FunctionRef<void(int64_t, int64_t)> body) {
  parallel_ranges(tasks, estimated_ns, [&](NextRange next) {
    for (TaskRange range; next(range);) body(range.begin, range.end);
  });
}

}  // namespace rune::runtime
