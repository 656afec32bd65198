// Records profiles: the times of programs, their steps and calls, and the memory in use. While no
// profile is taken, nothing is recorded, and the check costs the load of a flag.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace rune::runtime {

// The description of a program's step for readers of a profile, with the cost model's figures for
// one run of it.
struct StepInfo {
  std::string kind;      // "kernel", "library", "loops", "callback", "transfer", "wait"
  std::string name;      // of the kernel or function
  std::string location;  // the user's line, "file.py:12"; empty if it is unknown
  std::string device;
  double flops = 0;
  double bytes_read = 0, bytes_written = 0;  // each element once
  double estimated_ns = 0;
  double peak_flops_per_ns = 0, peak_bytes_per_ns = 0;  // of the device, for the step's dtype
};

struct ProgramInfo {
  std::string name;             // of the function
  bool is_dynamic = false;      // the figures are those of the largest sizes
  std::vector<StepInfo> steps;  // in order; each launch of a sequence counts as a step
};

// Many runs of a step.
struct StepTotals {
  int64_t runs = 0;
  double total_ns = 0, least_ns = 0, most_ns = 0;
  bool by_device = false;  // whether the device measured the times, not the host
};

struct ProgramTotals {
  std::shared_ptr<const ProgramInfo> info;
  int64_t runs = 0;
  double total_ns = 0;
  std::vector<StepTotals> steps;
};

// An interval on a thread.
struct Interval {
  enum class Kind : uint8_t { Call, Program, Step } kind = Kind::Call;
  int32_t number = 0;  // of the function or program
  int32_t step = 0;    // of a Step
  int64_t begin_ns = 0;
  double ns = 0;
  uint64_t thread = 0;  // Python's threading.get_ident()
};

// The memory of a device that arrays and programs use.
struct MemoryUse {
  struct Point {
    int64_t at_ns = 0;
    int64_t bytes = 0;
  };
  int64_t at_begin = 0, now = 0, peak = 0;
  std::vector<Point> points;  // after each change
};

struct Profile {
  int64_t begin_ns = 0, end_ns = 0;  // profile_clock_ns()
  std::vector<ProgramTotals> programs;
  std::vector<std::string> functions;
  std::vector<Interval> intervals;
  std::map<std::string, MemoryUse> memory;  // by device; that of all host devices is "cpu"
  int64_t left_out = 0;  // intervals and points that were not kept; totals include them
};

// Nanoseconds of a steady clock.
int64_t profile_clock_ns();

inline std::atomic<bool> profiling{false};
inline bool is_profiling() {
  return profiling.load(std::memory_order_relaxed);
}

// Begins to record a profile in all threads. Throws UserError(Runtime) while another one is taken.
void begin_profile();
// Throws UserError(Runtime) if none is taken.
Profile end_profile();

// Any thread may call the functions that follow. They do nothing while no profile is taken.
void note_call(const std::string& function, int64_t begin_ns);
void note_program(const std::shared_ptr<const ProgramInfo>& info, int64_t begin_ns);
void note_step(const std::shared_ptr<const ProgramInfo>& info, size_t step, int64_t begin_ns,
               double ns, bool by_device);
// Notes a change of the bytes that are in use in a device's memory.
void note_memory(const std::string& device, int64_t change);

}  // namespace rune::runtime
