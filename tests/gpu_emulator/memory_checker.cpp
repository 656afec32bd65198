#include "gpu_emulator/memory_checker.h"

#include <algorithm>

namespace rune::gpu_emulator {

namespace {

// In Cell::reader: several threads of one epoch; threads of several threadgroups.
constexpr uint32_t kSeveral = 0xfffffffe;
constexpr uint32_t kSeveralGroups = 0xffffffff;

std::string describe(const Access& access) {
  return std::string(access.is_write ? "writes " : "reads ") + std::to_string(access.bytes) +
         " bytes at byte ";
}

}  // namespace

MemoryChecker::MemoryChecker(uint32_t threads, char* threadgroup_begin, char* threadgroup_end)
    : threads_(threads), threadgroup_begin_(threadgroup_begin), threadgroup_end_(threadgroup_end) {}

void MemoryChecker::add_buffer(char* memory, size_t bytes, const std::string& name) {
  Range range{memory, memory + bytes, name, {}};
  for (size_t i = 0; i < buffers_.size();) {
    if (buffers_[i].begin < range.end && range.begin < buffers_[i].end) {
      range.begin = std::min(range.begin, buffers_[i].begin);
      range.end = std::max(range.end, buffers_[i].end);
      range.name = buffers_[i].name + " and " + range.name;
      buffers_.erase(buffers_.begin() + static_cast<long>(i));
    } else {
      ++i;
    }
  }
  range.cells.resize(static_cast<size_t>(range.end - range.begin));
  buffers_.push_back(std::move(range));
}

void MemoryChecker::add_variable(char* memory, size_t bytes, const char* name) {
  for (const Range& variable : variables_)
    if (variable.begin == memory) return;
  variables_.push_back({memory, memory + bytes, std::string("threadgroup variable ") + name,
                        std::vector<Cell>(bytes)});
}

void MemoryChecker::start_group() {
  pass_barrier(true, true);
  variables_.clear();
}

void MemoryChecker::pass_barrier(bool device, bool threadgroup) {
  device_epoch_ += device;
  threadgroup_epoch_ += threadgroup;
}

std::string MemoryChecker::check(const Access& access, ThreadId id) {
  const bool is_threadgroup =
      access.address >= threadgroup_begin_ && access.address < threadgroup_end_;
  std::vector<Range>& ranges = is_threadgroup ? variables_ : buffers_;
  for (Range& range : ranges) {
    if (access.address < range.begin || access.address + access.bytes > range.end) continue;
    const uint32_t epoch = is_threadgroup ? threadgroup_epoch_ : device_epoch_;
    Cell* cell = &range.cells[static_cast<size_t>(access.address - range.begin)];
    for (unsigned i = 0; i < access.bytes; ++i) {
      if (is_threadgroup && !access.is_write && cell[i].writer == 0)
        return describe(access) + std::to_string(access.address - range.begin) + " of " +
               range.name + ", which nothing has written";
      const std::string message = check_byte(range, cell[i], access, id, epoch);
      if (!message.empty()) return message;
    }
    return "";
  }
  return outside(access);
}

std::string MemoryChecker::check_byte(const Range& range, Cell& cell, const Access& access,
                                      ThreadId id, uint32_t epoch) const {
  const auto race = [&](const char* verb, uint32_t other) {
    std::string text = describe(access) + std::to_string(access.address - range.begin) + " of " +
                       range.name + ", which ";
    text += other >= kSeveral ? "other threads"
                              : "thread " + std::to_string((other - 1) % threads_) +
                                    " of threadgroup " + std::to_string(group_of(other));
    return text + " " + verb + " with no barrier between (data race)";
  };
  const bool atomic = access.is_atomic && cell.atomic;
  if (cell.writer != 0 && cell.writer != id.thread && !atomic &&
      (group_of(cell.writer) != id.group || cell.write_epoch == epoch))
    return race("wrote", cell.writer);
  if (access.is_write) {
    if (cell.reader != 0 && (cell.reader == kSeveralGroups || cell.read_group != id.group ||
                             (cell.reader != id.thread && cell.read_epoch == epoch)))
      return race("read", cell.reader);
    cell.atomic = access.is_atomic && (cell.atomic || cell.write_epoch != epoch);
    cell.writer = id.thread;
    cell.write_epoch = epoch;
    return "";
  }
  if (cell.reader == kSeveralGroups) return "";
  // Of one group, only the readers since the last barrier can still race.
  if (cell.reader != 0 && cell.read_group != id.group)
    cell.reader = kSeveralGroups;
  else if (cell.reader == 0 || cell.read_epoch != epoch)
    cell.reader = id.thread;
  else if (cell.reader != id.thread)
    cell.reader = kSeveral;
  cell.read_group = id.group;
  cell.read_epoch = epoch;
  return "";
}

std::string MemoryChecker::outside(const Access& access) const {
  const Range* nearest = nullptr;
  uint64_t least = UINT64_MAX;
  for (const std::vector<Range>* ranges : {&buffers_, &variables_})
    for (const Range& range : *ranges) {
      const uint64_t distance =
          static_cast<uint64_t>(access.address < range.begin ? range.begin - access.address
                                                             : access.address - range.end + 1);
      if (distance >= least) continue;
      least = distance;
      nearest = &range;
    }
  if (!nearest) return describe(access) + "an address where nothing is bound";
  return describe(access) + std::to_string(access.address - nearest->begin) + " of " +
         nearest->name + ", which has " + std::to_string(nearest->end - nearest->begin) +
         " bytes (out of bounds)";
}

}  // namespace rune::gpu_emulator
