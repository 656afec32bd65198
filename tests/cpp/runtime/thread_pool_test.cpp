#include "runtime/thread_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/options.h"

namespace rune::runtime {
namespace {

constexpr double kMuch = 1e6;  // ns: worth waking parked workers for
constexpr double kLittle = 100;

// More threads than most test machines have cores, so that workers lose theirs now and then. Read
// before the first parallel_for.
const bool four_threads = [] {
  if (options().num_threads == 0) options().num_threads = 4;
  return true;
}();

// How often each task ran.
std::vector<int> runs_of_each(int64_t tasks, double estimated_ns) {
  std::vector<std::atomic<int>> runs(tasks);
  parallel_for(tasks, estimated_ns, [&](int64_t begin, int64_t end) {
    EXPECT_LT(begin, end);
    for (int64_t i = begin; i < end; ++i) runs[i].fetch_add(1, std::memory_order_relaxed);
  });
  return {runs.begin(), runs.end()};
}

int64_t parallel_sum(int64_t tasks, double estimated_ns) {
  std::atomic<int64_t> sum{0};
  parallel_for(tasks, estimated_ns, [&](int64_t begin, int64_t end) {
    int64_t part = 0;
    for (int64_t i = begin; i < end; ++i) part += i;
    sum.fetch_add(part, std::memory_order_relaxed);
  });
  return sum.load();
}

// True once `count` threads are inside it at the same time; false after seconds of waiting.
class Meeting {
 public:
  explicit Meeting(int count) : count_(count) {}
  bool arrive() {
    arrived_.fetch_add(1);
    const auto start = std::chrono::steady_clock::now();
    while (arrived_.load() < count_) {
      if (std::chrono::steady_clock::now() - start > std::chrono::seconds(20)) return false;
      sched_yield();
    }
    return true;
  }

 private:
  const int count_;
  std::atomic<int> arrived_{0};
};

TEST(ThreadPool, ReadsTheNumberOfThreads) {
  EXPECT_EQ(num_threads(), options().num_threads);
}

TEST(ThreadPool, RunsEachTaskOnce) {
  for (const int64_t tasks : {1, 2, 3, 5, 7, 16, 31, 32, 33, 1000, 4099})
    for (const double ns : {0.0, kLittle, 15'000.0, 30'000.0, kMuch, 1e12})
      EXPECT_EQ(runs_of_each(tasks, ns), std::vector<int>(tasks, 1))
          << tasks << " tasks, " << ns << " ns";
}

TEST(ThreadPool, RunsNothingOfNoTasks) {
  const auto fail = [](int64_t, int64_t) { FAIL() << "called"; };
  parallel_for(0, kMuch, fail);
  parallel_for(-3, kMuch, fail);
}

TEST(ThreadPool, RunsLittleWorkInOneCallOfTheCaller) {
  int calls = 0;
  parallel_for(1000, kLittle, [&](int64_t begin, int64_t end) {
    ++calls;
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 1000);
  });
  EXPECT_EQ(calls, 1);
}

TEST(ThreadPool, RunsAloneWhereItIsToldTo) {
  const auto count_calls = [] {
    int calls = 0;
    const std::thread::id caller = std::this_thread::get_id();
    parallel_for(100, kMuch, [&](int64_t, int64_t) {
      calls += std::this_thread::get_id() == caller ? 1 : 1000;
    });
    return calls;
  };
  const RunAlone outer;
  {
    const RunAlone inner;
    EXPECT_EQ(count_calls(), 1);
  }
  EXPECT_EQ(count_calls(), 1);
}

TEST(ThreadPool, AnUnknownEstimateRunsInline) {
  const std::thread::id caller = std::this_thread::get_id();
  parallel_for(100, std::numeric_limits<double>::quiet_NaN(),
               [&](int64_t, int64_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

TEST(ThreadPool, WakesParkedWorkersForMuchWork) {
  if (num_threads() < 2) GTEST_SKIP() << "needs two threads";
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // workers park
    Meeting meeting(num_threads());
    std::atomic<int> met{0};
    // As many tasks as threads: each task waits until every thread holds one.
    parallel_for(num_threads(), kMuch, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(end, begin + 1);
      met += meeting.arrive();
    });
    EXPECT_EQ(met, num_threads());
  }
}

#if defined(__linux__)
// A worker that parked on the caller's core must leave that core for the next job, and be free
// to run on all of the process's cores afterwards.
TEST(ThreadPool, WorkersLeaveTheCallersCoreForOneJob) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(getpid(), sizeof allowed, &allowed), 0);
  if (num_threads() < 2 || CPU_COUNT(&allowed) < 2)
    GTEST_SKIP() << "needs two threads and two cores";
  const auto only = [](int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    return set;
  };
  // The caller is a thread that stays on its core. The process's own mask, which decides where
  // workers may run, is that of the main thread.
  std::thread([&] {
    const cpu_set_t here = only(sched_getcpu());
    ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof here, &here), 0);
    std::atomic<pthread_t> worker{pthread_self()};
    // Each thread runs a task of the job.
    const auto on_all_threads = [](auto task) {
      Meeting meeting(num_threads());
      parallel_for(num_threads(), kMuch, [&](int64_t, int64_t) {
        task();
        meeting.arrive();
      });
    };
    on_all_threads([&, caller = pthread_self()] {
      if (pthread_self() != caller) worker = pthread_self();
    });
    // The worker runs a job here and parks here. Then it may run on all cores again.
    ASSERT_EQ(pthread_setaffinity_np(worker, sizeof here, &here), 0);
    on_all_threads([] {});
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ASSERT_EQ(pthread_setaffinity_np(worker, sizeof allowed, &allowed), 0);
    cpu_set_t during = allowed, after;
    on_all_threads([&] {
      if (pthread_self() == worker) pthread_getaffinity_np(worker, sizeof during, &during);
    });
    const int core = sched_getcpu();
    EXPECT_FALSE(CPU_ISSET(core, &during));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the worker waits for the next job
    ASSERT_EQ(pthread_getaffinity_np(worker, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&after, &allowed));
  }).join();
}
#endif

// The pool is started by a thread that may run on one core only.
TEST(ThreadPool, WorkersMayUseTheCoresOfTheProcess) {
#if defined(__linux__)
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(getpid(), sizeof allowed, &allowed), 0);
  if (num_threads() < 2 || CPU_COUNT(&allowed) < 2)
    GTEST_SKIP() << "needs two threads and two cores";
  const pid_t child = fork();  // has no pool yet
  if (child == 0) {
    bool are_all = true;
    std::thread([&] {
      cpu_set_t here;
      CPU_ZERO(&here);
      CPU_SET(sched_getcpu(), &here);
      pthread_setaffinity_np(pthread_self(), sizeof here, &here);
      const pthread_t caller = pthread_self();
      Meeting meeting(num_threads());
      parallel_for(num_threads(), kMuch, [&](int64_t, int64_t) {
        cpu_set_t mine;
        pthread_getaffinity_np(pthread_self(), sizeof mine, &mine);
        // One that is kept off the caller's core for this job has all of them but that.
        if (pthread_self() != caller && CPU_COUNT(&mine) < CPU_COUNT(&allowed) - 1) are_all = false;
        if (pthread_self() != caller && CPU_EQUAL(&mine, &here)) are_all = false;
        meeting.arrive();
      });
    }).join();
    _exit(are_all ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
#endif
}

TEST(ThreadPool, WakesParkedWorkersForManyJobsInARow) {
  if (num_threads() < 2) GTEST_SKIP() << "needs two threads";
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // workers park
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> helped{false};
  // Each is worth helpers, but none is worth waking them.
  for (int i = 0; i < 1'000'000 && !helped; ++i)
    parallel_for(64, 60'000, [&](int64_t, int64_t) {
      if (std::this_thread::get_id() != caller) helped = true;
    });
  EXPECT_TRUE(helped);
}

TEST(ThreadPool, UsesNoMoreThreadsThanTheWorkIsWorth) {
  // 15 microseconds are worth two threads.
  for (int i = 0; i < 200; ++i) {
    std::atomic<int> inside{0}, most{0};
    parallel_for(64, 15'000, [&](int64_t, int64_t) {
      const int now = ++inside;
      int seen = most.load();
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
      for (const auto start = std::chrono::steady_clock::now();
           std::chrono::steady_clock::now() - start < std::chrono::microseconds(2);) {
      }
      --inside;
    });
    EXPECT_LE(most, 2);
  }
}

TEST(ThreadPool, SplitsMoreTasksThanRangesEvenly) {
  std::atomic<int> ranges{0};
  parallel_for(1'000'000, 1e9, [&](int64_t begin, int64_t end) {
    ++ranges;
    EXPECT_LE(end - begin, 1'000'000 / num_threads());
  });
  EXPECT_GE(ranges, num_threads());
  EXPECT_LE(ranges, 64 * num_threads());
}

TEST(ThreadPool, RangesOfLittleWorkAreJoined) {
  // 20 ns a task: a range holds at least 2 microseconds of work.
  parallel_for(10'000, 200'000, [&](int64_t begin, int64_t end) {
    if (end != 10'000) {
      EXPECT_GE(end - begin, 100);
    }
  });
}

TEST(ThreadPool, AThreadRunsItsRangesInOneCall) {
  for (const double estimated_ns : {kLittle, 1e9}) {
    std::vector<std::atomic<int>> runs(1000);
    std::atomic<int> calls{0};
    parallel_ranges(1000, estimated_ns, [&](NextRange next) {
      ++calls;
      int64_t before = -1;
      for (TaskRange range; next(range);) {
        EXPECT_LT(before, range.begin);
        before = range.end - 1;
        for (int64_t t = range.begin; t < range.end; ++t) ++runs[t];
      }
    });
    for (const auto& count : runs) EXPECT_EQ(count, 1);
    EXPECT_LE(calls, estimated_ns == kLittle ? 1 : num_threads());
  }
}

TEST(ThreadPool, RethrowsTheExceptionOfATask) {
  for (const int64_t bad : {0, 17, 63}) {
    try {
      parallel_for(64, kMuch, [&](int64_t begin, int64_t end) {
        if (begin <= bad && bad < end) throw std::runtime_error("task " + std::to_string(bad));
      });
      FAIL() << "nothing thrown";
    } catch (const std::runtime_error& e) {
      EXPECT_EQ(e.what(), "task " + std::to_string(bad));
    }
    EXPECT_EQ(parallel_sum(1000, kMuch), 499'500);  // the pool still works
  }
}

TEST(ThreadPool, RethrowsOneExceptionOfMany) {
  for (int i = 0; i < 50; ++i)
    EXPECT_THROW(parallel_for(64, kMuch, [](int64_t, int64_t) { throw std::runtime_error("all"); }),
                 std::runtime_error);
}

TEST(ThreadPool, RethrowsFromWorkThatRunsInline) {
  EXPECT_THROW(
      parallel_for(4, kLittle, [](int64_t, int64_t) { throw std::runtime_error("inline"); }),
      std::runtime_error);
}

TEST(ThreadPool, DropsRangesAfterAnException) {
  if (num_threads() < 2) GTEST_SKIP() << "needs two threads";
  std::atomic<int64_t> ran{0};
  EXPECT_THROW(parallel_for(1 << 20, 1e9,
                            [&](int64_t begin, int64_t end) {
                              ran += end - begin;
                              throw std::runtime_error("first");
                            }),
               std::runtime_error);
  EXPECT_LT(ran, 1 << 20);
}

TEST(ThreadPool, RunsNestedCallsInline) {
  std::atomic<int64_t> sum{0};
  parallel_for(16, kMuch, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const std::thread::id outer = std::this_thread::get_id();
      parallel_for(100, kMuch, [&](int64_t inner_begin, int64_t inner_end) {
        EXPECT_EQ(std::this_thread::get_id(), outer);
        sum += inner_end - inner_begin;
      });
    }
  });
  EXPECT_EQ(sum, 1600);
}

TEST(ThreadPool, ServesSeveralCallersAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 6; ++c)
    callers.emplace_back([&, c] {
      for (int i = 0; i < 200; ++i) {
        const int64_t tasks = 1 + (i * 37 + c * 11) % 500;
        wrong += parallel_sum(tasks, i % 3 ? kMuch : 20'000) != tasks * (tasks - 1) / 2;
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// A second caller cannot have the pool, and must neither wait for it nor lose tasks.
TEST(ThreadPool, DoesNotWaitForAnotherCaller) {
  Meeting meeting(2);
  std::atomic<bool> done{false}, met{false};
  std::thread other([&] {
    if (meeting.arrive()) met = true;
    EXPECT_EQ(parallel_sum(100, kMuch), 4950);
    done = true;
  });
  parallel_for(2, kMuch, [&](int64_t begin, int64_t) {
    if (begin != 0) return;
    meeting.arrive();
    for (const auto start = std::chrono::steady_clock::now();
         !done && std::chrono::steady_clock::now() - start < std::chrono::seconds(20);)
      sched_yield();
    EXPECT_TRUE(done);
  });
  other.join();
  EXPECT_TRUE(met);
}

TEST(ThreadPool, ManyShortJobsInARow) {
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(parallel_sum(64, 20'000), 2016) << "job " << i;
}

TEST(ThreadPool, JobsAfterPausesOfEveryLength) {
  for (int us = 0; us < 400; us += 3) {
    std::this_thread::sleep_for(std::chrono::microseconds(us));
    ASSERT_EQ(parallel_sum(64, us % 2 ? 20'000 : kMuch), 2016) << us;
  }
}

#if !defined(__SANITIZE_THREAD__)
TEST(ThreadPool, AChildOfAForkHasAPoolOfItsOwn) {
  if (num_threads() < 2) GTEST_SKIP() << "needs two threads";
  EXPECT_EQ(parallel_sum(1000, kMuch), 499'500);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Meeting meeting(num_threads());
    std::atomic<int> met{0};
    parallel_for(num_threads(), kMuch, [&](int64_t, int64_t) { met += meeting.arrive(); });
    _exit(met == num_threads() && parallel_sum(1000, kMuch) == 499'500 ? 7 : 8);
  }
  EXPECT_EQ(parallel_sum(1000, kMuch), 499'500);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(ThreadPool, ForksWhileOtherThreadsWork) {
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    while (!stop) EXPECT_EQ(parallel_sum(64, kMuch), 2016);
  });
  for (int i = 0; i < 10; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(parallel_sum(100, kMuch) == 4950 ? 7 : 8);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  }
  stop = true;
  worker.join();
}
#endif

TEST(FunctionRef, CallsConstAndMutableCallables) {
  int count = 0;
  auto mutable_callable = [count](int by) mutable { return count += by; };
  const FunctionRef<int(int)> ref(mutable_callable);
  EXPECT_EQ(ref(2), 2);
  EXPECT_EQ(ref(3), 5);
  const auto twice = [](int x) { return 2 * x; };
  EXPECT_EQ(FunctionRef<int(int)>(twice)(21), 42);
}

}  // namespace
}  // namespace rune::runtime
