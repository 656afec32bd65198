// Which memory a launch may touch, and who touched it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rune::gpu_emulator {

// One access of one thread.
struct Access {
  const char* address = nullptr;
  unsigned bytes = 0;
  bool is_write = false;
  bool is_atomic = false;  // a write that goes with other threads' atomic ones
};

// A thread, numbered from 1 over the whole grid, and its threadgroup.
struct ThreadId {
  uint32_t thread = 0;
  uint32_t group = 0;
};

// Two accesses of one byte, one of them a write, race if they are of different threads and no
// barrier lies between them: of one threadgroup in the same epoch (between two barriers), or of two
// threadgroups.
class MemoryChecker {
 public:
  enum class Space : uint8_t { Device, Threadgroup };

  // `threads` is the number of threads of a group. Buffers that overlap count as one.
  MemoryChecker(uint32_t threads, char* threadgroup_begin, char* threadgroup_end);
  void add_buffer(char* memory, size_t bytes, const std::string& name);
  void add_variable(char* memory, size_t bytes, const char* name);

  void start_group();
  void pass_barrier(bool device, bool threadgroup);

  // "" or what is wrong.
  std::string check(const Access& access, ThreadId id);

 private:
  struct Cell {
    uint32_t writer = 0, write_epoch = 0, reader = 0, read_epoch = 0, read_group = 0;
    bool atomic = false;  // all writes in write_epoch were
  };
  struct Range {
    char* begin;
    char* end;
    std::string name;
    std::vector<Cell> cells;
  };
  std::string check_byte(const Range& range, Cell& cell, const Access& access, ThreadId id,
                         uint32_t epoch) const;
  std::string outside(const Access& access) const;
  uint32_t group_of(uint32_t thread) const { return (thread - 1) / threads_; }

  const uint32_t threads_;
  char* const threadgroup_begin_;
  char* const threadgroup_end_;
  std::vector<Range> buffers_, variables_;
  uint32_t device_epoch_ = 1, threadgroup_epoch_ = 1;
};

}  // namespace rune::gpu_emulator
