#include "gpu_emulator/runner.h"

#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "gpu_emulator/fiber.h"
#include "gpu_emulator/memory_checker.h"

namespace rune::gpu_emulator {

namespace {

constexpr size_t kStackBytes = 128 << 10;

enum class State { Ready, AtBarrier, AtSimd, Done };

struct Thread {
  Fiber fiber;
  Ids ids;
  State state = State::Done;
  int line = 0;       // where it waits
  int flags = 0;      // of the barrier
  unsigned turn = 0;  // SIMD operations so far
  alignas(16) char published[2][16] = {};
};

// Stacks of all fibers, reserved once; pages come when they are touched.
char* stacks() {
  static char* const memory =
      static_cast<char*>(mmap(nullptr, kStackBytes * (kMaxThreads + 1), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  return memory;
}

bool is_on_stack(const char* address) {
  return address >= stacks() && address < stacks() + kStackBytes * (kMaxThreads + 1);
}

std::string text_of(const Id& id) {
  return "(" + std::to_string(id.x) + "," + std::to_string(id.y) + "," + std::to_string(id.z) + ")";
}

class Run {
 public:
  Run(const Kernel& kernel, const Launch& launch)
      : kernel_(kernel),
        launch_(launch),
        count_(launch.local[0] * launch.local[1] * launch.local[2]),
        groups_(uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2]),
        checker_(count_, kernel.threadgroup_begin, kernel.threadgroup_end),
        threads_(new Thread[count_]),
        lanes_(new char[kMaxThreads * 16]) {
    for (const BoundBuffer& buffer : launch.resources)
      checker_.add_buffer(buffer.memory, buffer.bytes, "resource");
    for (size_t i = 0; i < launch.buffers.size(); ++i) {
      buffers_.push_back(launch.buffers[i].memory);
      if (launch.buffers[i].memory)
        checker_.add_buffer(launch.buffers[i].memory, launch.buffers[i].bytes,
                            "buffer " + std::to_string(i));
    }
  }

  std::string run() {
    if (kernel_.signature.blocks) {
      for (uint64_t g = 0; g < groups_ && error_.empty(); ++g) run_group(g);
    } else {
      // Nothing waits: all threads one after another on one stack.
      main_of_all_.prepare(stacks(), kStackBytes, &Run::all_threads);
      Fiber::switch_to(scheduler_, main_of_all_);
    }
    return error_;
  }

  void access(const Access& access) {
    if (is_on_stack(access.address)) return;
    const Thread& thread = threads_[current_];
    const auto group = static_cast<uint32_t>(group_);
    const std::string message = checker_.check(access, {group * count_ + current_ + 1, group});
    if (!message.empty())
      fail("thread " + text_of(thread.ids.thread_position_in_threadgroup) + " of threadgroup " +
           text_of(thread.ids.threadgroup_position_in_grid) + " " + message);
  }

  void declare(char* memory, size_t bytes, const char* name) {
    checker_.add_variable(memory, bytes, name);
  }

  void barrier(int flags, int line) {
    threads_[current_].flags = flags;
    wait(State::AtBarrier, line);
  }

  const char* exchange(const void* value, unsigned bytes, int line, unsigned* lanes,
                       unsigned* lane) {
    Thread& thread = threads_[current_];
    const unsigned self = current_, turn = thread.turn++ % 2;
    std::memcpy(thread.published[turn], value, bytes);
    wait(State::AtSimd, line);
    const unsigned first = self / kSimdWidth * kSimdWidth;
    *lane = self - first;
    *lanes = std::min(count_ - first, kSimdWidth);
    for (unsigned i = 0; i < *lanes; ++i)
      std::memcpy(lanes_.get() + 16 * (first + i), threads_[first + i].published[turn], 16);
    return lanes_.get() + 16 * first;
  }

  // Gives the launch up, from the stack of a kernel's thread.
  [[noreturn]] void fail(const std::string& message) {
    error_ = "kernel " + kernel_.signature.name + ": " + message;
    Fiber abandoned;
    Fiber::switch_to(abandoned, scheduler_);
    __builtin_unreachable();
  }

  static Run* active;

 private:
  static void one_thread() {
    Run& run = *active;
    Thread& thread = run.threads_[run.current_];
    run.kernel_.entry(run.buffers_.data(), thread.ids);
    thread.state = State::Done;
    Fiber::switch_to(thread.fiber, run.scheduler_);
    __builtin_unreachable();
  }

  static void all_threads() {
    Run& run = *active;
    for (uint64_t g = 0; g < run.groups_; ++g) {
      run.enter_group(g);
      for (unsigned i = 0; i < run.count_; ++i) {
        run.current_ = run.in_order(i);
        if (!run.is_in_grid(run.threads_[run.current_].ids.thread_position_in_grid)) continue;
        run.kernel_.entry(run.buffers_.data(), run.threads_[run.current_].ids);
      }
    }
    Fiber::switch_to(run.main_of_all_, run.scheduler_);
    __builtin_unreachable();
  }

  bool is_in_grid(const Id& thread) const {
    const auto& [x, y, z] = launch_.threads;
    return !x || (thread.x < x && thread.y < y && thread.z < z);
  }

  unsigned in_order(unsigned i) const { return launch_.reversed ? count_ - 1 - i : i; }

  // Threadgroup memory starts as NaN, the indices are the group's.
  void enter_group(uint64_t turn) {
    group_ = launch_.reversed ? groups_ - 1 - turn : turn;
    checker_.start_group();
    const size_t bytes = static_cast<size_t>(kernel_.threadgroup_end - kernel_.threadgroup_begin);
    if (bytes) std::memset(kernel_.threadgroup_begin, 0xff, bytes);
    const auto& [gx, gy, gz] = launch_.grid;
    const auto& [lx, ly, lz] = launch_.local;
    const Id group{static_cast<unsigned>(group_ % gx), static_cast<unsigned>(group_ / gx % gy),
                   static_cast<unsigned>(group_ / gx / gy)};
    for (unsigned t = 0; t < count_; ++t) {
      Ids& ids = threads_[t].ids;
      ids.threadgroup_position_in_grid = group;
      ids.thread_position_in_threadgroup = {t % lx, t / lx % ly, t / lx / ly};
      ids.threads_per_threadgroup = {lx, ly, lz};
      ids.threadgroups_per_grid = {gx, gy, gz};
      const Id& local = ids.thread_position_in_threadgroup;
      ids.thread_position_in_grid = {group.x * lx + local.x, group.y * ly + local.y,
                                     group.z * lz + local.z};
      ids.thread_index_in_threadgroup = {t};
      ids.thread_index_in_simdgroup = {t % kSimdWidth};
      ids.simdgroup_index_in_threadgroup = {t / kSimdWidth};
    }
  }

  void run_group(uint64_t turn) {
    enter_group(turn);
    for (unsigned t = 0; t < count_; ++t) {
      threads_[t].fiber.prepare(stacks() + t * kStackBytes, kStackBytes, &Run::one_thread);
      threads_[t].state = State::Ready;
    }
    do {
      for (unsigned i = 0; i < count_; ++i) {
        current_ = in_order(i);
        Thread& thread = threads_[current_];
        if (thread.state != State::Ready) continue;
        Fiber::switch_to(scheduler_, thread.fiber);
        if (!error_.empty()) return;
      }
    } while (release());
  }

  void wait(State state, int line) {
    if (!kernel_.signature.blocks)
      fail("line " + std::to_string(line) + " waits, which the translator did not see");
    Thread& thread = threads_[current_];
    thread.state = state;
    thread.line = line;
    Fiber::switch_to(thread.fiber, scheduler_);
  }

  // With no thread ready: lets those go on that all have come to one place. False when all are done
  // or the launch has failed.
  bool release() {
    bool any = false;
    for (unsigned first = 0; first < count_; first += kSimdWidth) any |= release_simd(first);
    if (any || !error_.empty()) return error_.empty();
    const unsigned waiting = count(State::AtBarrier, 0, count_);
    if (waiting == 0) return false;
    const Thread* at = nullptr;
    for (unsigned t = 0; t < count_; ++t)
      if (threads_[t].state == State::AtBarrier) at = &threads_[t];
    bool together = waiting == count_;
    for (unsigned t = 0; t < count_; ++t) together &= threads_[t].line == at->line;
    if (!together) {
      stuck("the barrier in line " + std::to_string(at->line), *at, 0, count_);
      return false;
    }
    checker_.pass_barrier(at->flags & 1, at->flags & 2);
    for (unsigned t = 0; t < count_; ++t) threads_[t].state = State::Ready;
    return true;
  }

  bool release_simd(unsigned first) {
    const unsigned last = std::min(first + kSimdWidth, count_);
    const unsigned waiting = count(State::AtSimd, first, last);
    if (waiting == 0) return false;
    const Thread* at = nullptr;
    for (unsigned t = first; t < last; ++t)
      if (threads_[t].state == State::AtSimd) at = &threads_[t];
    bool together = waiting == last - first;
    for (unsigned t = first; t < last; ++t) together &= threads_[t].line == at->line;
    if (!together) {
      stuck("the SIMD-group operation in line " + std::to_string(at->line), *at, first, last);
      return false;
    }
    for (unsigned t = first; t < last; ++t) threads_[t].state = State::Ready;
    return true;
  }

  unsigned count(State state, unsigned first, unsigned last) const {
    unsigned n = 0;
    for (unsigned t = first; t < last; ++t) n += threads_[t].state == state;
    return n;
  }

  void stuck(const std::string& where, const Thread& at, unsigned first, unsigned last) {
    unsigned here = 0;
    for (unsigned t = first; t < last; ++t)
      here += threads_[t].state == at.state && threads_[t].line == at.line;
    error_ = "kernel " + kernel_.signature.name + ": " + where + " is reached by " +
             std::to_string(here) + " of " + std::to_string(last - first) +
             " threads of threadgroup " + text_of(at.ids.threadgroup_position_in_grid) +
             " (the others are at another one or have returned)";
  }

  const Kernel& kernel_;
  const Launch& launch_;
  const unsigned count_;
  const uint64_t groups_;
  MemoryChecker checker_;
  std::unique_ptr<Thread[]> threads_;
  std::unique_ptr<char[]> lanes_;
  std::vector<char*> buffers_;
  Fiber scheduler_, main_of_all_;
  unsigned current_ = 0;
  uint64_t group_ = 0;
  std::string error_;
};

Run* Run::active = nullptr;

// A fault of the machine inside of a kernel ends the launch, not the process.
constexpr int kSignals[] = {SIGFPE, SIGSEGV, SIGBUS, SIGILL};

class FaultGuard {
 public:
  explicit FaultGuard(bool keeps_denormals) {
    static char stack[64 << 10];
    stack_t alternative = {};
    alternative.ss_sp = stack;
    alternative.ss_size = sizeof stack;
    sigaltstack(&alternative, &old_stack_);
    struct sigaction action = {};
    action.sa_sigaction = &on_signal;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &action, &old_[i]);
    thread_ = true;
#if defined(__x86_64__)
    mode_ = _mm_getcsr();
    // Denormals are zero, going in and coming out.
    _mm_setcsr(keeps_denormals ? mode_ & ~0x8040u : mode_ | 0x8040u);
#endif
  }
  ~FaultGuard() {
#if defined(__x86_64__)
    _mm_setcsr(mode_);
#endif
    thread_ = false;
    for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &old_[i], nullptr);
    sigaltstack(&old_stack_, nullptr);
  }

 private:
  static void on_signal(int number, siginfo_t*, void*) {
    if (!thread_) {  // not a kernel's: as without this handler
      signal(number, SIG_DFL);
      return;
    }
    Run::active->fail(number == SIGFPE
                          ? "an integer division faults (by zero, or of the lowest number by -1)"
                          : "an access of memory faults");
  }
  static thread_local bool thread_;
  stack_t old_stack_ = {};
  struct sigaction old_[std::size(kSignals)] = {};
  unsigned mode_ = 0;
};
thread_local bool FaultGuard::thread_ = false;

}  // namespace

const Host* host_functions() {
  static const Host host = {
      [](const void* address, unsigned bytes, int kind) {
        Run::active->access({static_cast<const char*>(address), bytes, kind != 0, kind == 2});
      },
      [](const void* address, unsigned long bytes, const char* name) {
        Run::active->declare(static_cast<char*>(const_cast<void*>(address)), bytes, name);
      },
      [](int flags, int line) { Run::active->barrier(flags, line); },
      [](const void* value, unsigned bytes, int line, unsigned* lanes, unsigned* lane) {
        return Run::active->exchange(value, bytes, line, lanes, lane);
      }};
  return &host;
}

std::string run(const Kernel& kernel, const Launch& launch) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  const std::string name = "kernel " + kernel.signature.name + ": ";
  const uint64_t threads = uint64_t{launch.local[0]} * launch.local[1] * launch.local[2];
  if (threads == 0 || threads > kernel.signature.max_threads)
    return name + std::to_string(threads) + " threads per threadgroup (1 to " +
           std::to_string(kernel.signature.max_threads) + " are possible)";
  if (kernel.threadgroup_bytes() > launch.max_threadgroup_bytes)
    return name + std::to_string(kernel.threadgroup_bytes()) +
           " bytes of threadgroup memory (the limit is " +
           std::to_string(launch.max_threadgroup_bytes) + ")";
  for (const int index : kernel.signature.buffers)
    if (static_cast<size_t>(index) >= launch.buffers.size() ||
        !launch.buffers[static_cast<size_t>(index)].memory)
      return name + "nothing is bound at buffer index " + std::to_string(index);
  for (size_t d = 0; d < 3 && kernel.signature.blocks; ++d)
    if (launch.threads[d] % launch.local[d] != 0)
      return name + "threads that wait for one another are not in whole threadgroups";
  Run run(kernel, launch);
  Run::active = &run;
  const FaultGuard guard(launch.keeps_denormals);
  return run.run();
}

}  // namespace rune::gpu_emulator
