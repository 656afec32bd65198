// The process-wide pool of threads that runs a kernel's tasks.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace rune::runtime {

// A callable that is not owned: valid while the call that takes it runs.
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

// Threads that a parallel_for may use, the caller included: RUNE_JIT_NUM_THREADS, or
// available_cores() (runtime/affinity.h). At least 1; read once.
int num_threads();

// Calls body(begin, end) for ranges that together cover [0, tasks) once, on the calling thread and,
// if `estimated_ns` (the work of all tasks on one core) is worth it, on others. Ranges are claimed
// one at a time, so a thread that loses its core does not hold up the rest. Returns when all have
// run; rethrows the first exception of a range, after which ranges that have not begun are dropped.
//
// Any number of threads may call it: one of them has the pool, the others work alone until it is
// free. Calls from within a task run inline. After a fork the child starts a pool of its own; a
// task must not fork.
void parallel_for(int64_t tasks, double estimated_ns, FunctionRef<void(int64_t, int64_t)> body);

}  // namespace rune::runtime
