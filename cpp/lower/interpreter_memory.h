// The interpreter's memory, with bounds and a record of the accesses to each element. Private to
// the interpreter.
#pragma once

#include <span>
#include <vector>

#include "lower/interpreter.h"
#include "lower/interpreter_program.h"

namespace rune::lower::interpreter {

// The accesses to an element. An interval is the time between two barriers. Intervals are numbered
// from 1 over the whole run, so that an interval also identifies the workgroup.
struct Shadow {
  uint32_t written = 0;     // interval of the last write; 0 if there is none
  uint32_t read = 0;        // interval of the last read
  uint32_t first_read = 0;  // interval of the first read
  uint32_t writer = 0;      // thread of the last write
  uint32_t reader = 0;      // thread of the reads in interval `read`, or kSeveral
  bool atomic = false;      // all writes in interval `written` were atomic
};
inline constexpr uint32_t kSeveral = ~uint32_t{0};

// The time and the thread of an access.
struct Moment {
  uint32_t interval = 0;
  uint32_t group_start = 0;  // first interval of the workgroup
  uint32_t thread = 0;       // in its group
};

// Whether an access conflicts with an earlier one: not at all, with one by another thread of the
// group, or with one by another workgroup.
struct Conflict {
  enum class Kind : uint8_t { None, Thread, Group } kind = Kind::None;
  bool other_writes = false;  // whether the earlier access is a write
  uint32_t thread = 0;        // of the earlier access, if Kind::Thread; may be kSeveral
};

struct Region {
  std::byte* data = nullptr;
  int64_t size = 0;  // elements
  int element_bytes = 1;
  DType dtype = DType::Float32;
  bool global = false;       // visible to all workgroups
  bool is_private = false;   // each thread has `size` elements
  Shadow* shadow = nullptr;  // by element; null if accesses are not checked
  uint32_t source = 0;       // the instruction that defines it
  std::byte* at(int64_t index, uint32_t thread) const {
    return data + (index + (is_private ? thread * size : 0)) * element_bytes;
  }
};

// Record an access and return the earlier access with which it conflicts.
Conflict record_read(Region& region, int64_t index, const Moment& moment);
Conflict record_write(Region& region, int64_t index, uint64_t value, const Moment& moment);
Conflict record_atomic(Region& region, int64_t index, const Moment& moment);

// The memories of a run.
class Memories {
 public:
  Memories(const Program& program, std::span<const Memory> globals, bool check_races);
  // Fills workgroup memory with values that reveal reads of undefined elements.
  void start_group();

  std::vector<Region> regions;  // by Program::memories

 private:
  std::vector<std::vector<std::byte>> scratch_;
  std::vector<std::vector<Shadow>> shadows_;
};

}  // namespace rune::lower::interpreter
