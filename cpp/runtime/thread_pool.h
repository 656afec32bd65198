// The process's pool of threads, which runs a kernel's tasks.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace rune::runtime {

// A reference to a callable. It is valid while the call that takes it runs.
template <class Signature>
class FunctionRef;

template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>>>
  FunctionRef(F&& f)  // NOLINT: implicit, as std::function
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(args...);
        }) {}
  R operator()(Args... args) const { return call_(object_, args...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

// The number of threads that a parallel_for may use, including the caller: RUNE_JIT_NUM_THREADS, or
// available_cores() (runtime/affinity.h). It is at least 1 and never changes.
int num_threads();

// Numbers of tasks, from `begin` to `end` - 1.
struct TaskRange {
  int64_t begin = 0, end = 0;
};
// Claims a range of tasks and returns true, or false if none is left.
using NextRange = FunctionRef<bool(TaskRange&)>;

// Runs tasks 0 to tasks - 1, each once. Each thread that takes part calls body(next) once. The body
// runs all ranges that `next` gives to it, one after the other. The calling thread takes part.
// Other threads do if `estimated_ns`, the time of all tasks on one core, makes that worthwhile.
// Threads claim one range at a time, so a thread that loses its core does not delay the others.
// Returns when all ranges have run. After an exception, ranges that have not begun are dropped and
// the first exception is rethrown.
//
// Any number of threads may call it. One of them gets the pool, and the others work alone. A call
// from within a task runs inline. After a fork, the child starts a pool of its own. A task must not
// fork.
void parallel_ranges(int64_t tasks, double estimated_ns, FunctionRef<void(NextRange)> body);

// The same with a body(begin, end) that runs one range.
void parallel_for(int64_t tasks, double estimated_ns, FunctionRef<void(int64_t, int64_t)> body);

// While this object exists, calls of these functions by this thread run on this thread alone. It is
// for programs that run at the same time on threads of a caller's pool.
class RunAlone {
 public:
  RunAlone();
  ~RunAlone();
  RunAlone(const RunAlone&) = delete;
  RunAlone& operator=(const RunAlone&) = delete;

 private:
  bool before_;
};

}  // namespace rune::runtime
