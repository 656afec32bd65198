#include "lower/interpreter_memory.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include "base/error.h"

namespace rune::lower::interpreter {

namespace {

// Calls f with a value of the unsigned or signed integer type of the dtype's size. A word is
// truncated to this type in memory, and extended from it.
template <class F>
void with_stored_type(DType dtype, F f) {
  const bool is_signed = kind(dtype) == Kind::Int;
  switch (size_of(dtype)) {
    case 1: return is_signed ? f(int8_t{}) : f(uint8_t{});
    case 2: return is_signed ? f(int16_t{}) : f(uint16_t{});
    case 4: return is_signed ? f(int32_t{}) : f(uint32_t{});
    case 8: return f(uint64_t{});
  }
  RUNE_UNREACHABLE();
}

}  // namespace

void read_elements(DType dtype, const std::byte* from, uint64_t* to, uint32_t count) {
  with_stored_type(dtype, [&]<class T>(T value) {
    for (uint32_t i = 0; i < count; ++i) {
      std::memcpy(&value, from + i * sizeof(T), sizeof(T));
      to[i] = static_cast<uint64_t>(static_cast<int64_t>(value));
    }
  });
  // A bool is a byte. It is true if it is not 0.
  if (is_bool(dtype))
    for (uint32_t i = 0; i < count; ++i) to[i] = to[i] != 0;
}

void write_elements(DType dtype, const uint64_t* from, std::byte* to, uint32_t count) {
  with_stored_type(dtype, [&]<class T>(T value) {
    for (uint32_t i = 0; i < count; ++i) {
      value = static_cast<T>(from[i]);
      std::memcpy(to + i * sizeof(T), &value, sizeof(T));
    }
  });
}

Conflict record_read(Region& region, int64_t index, const Moment& moment) {
  Shadow& s = region.shadow[index];
  Conflict conflict;
  if (s.written == moment.interval) {
    if (s.writer != moment.thread) conflict = {Conflict::Kind::Thread, true, s.writer};
  } else if (region.global && s.written != 0 && s.written < moment.group_start) {
    conflict = {Conflict::Kind::Group, true, 0};
  }
  if (s.read != moment.interval) {
    s.read = moment.interval;
    s.reader = moment.thread;
    if (s.first_read == 0) s.first_read = moment.interval;
  } else if (s.reader != moment.thread) {
    s.reader = kSeveral;
  }
  return conflict;
}

namespace {

// The conflict of a write with earlier reads and writes of other threads, if there is one.
Conflict any_write(const Region& region, const Shadow& s, const Moment& moment) {
  Conflict conflict;
  if (s.read == moment.interval && s.reader != moment.thread) {
    conflict = {Conflict::Kind::Thread, false, s.reader};
  } else if (region.global && s.first_read != 0 && s.first_read < moment.group_start) {
    conflict = {Conflict::Kind::Group, false, 0};
  } else if (s.written == moment.interval && s.writer != moment.thread) {
    conflict = {Conflict::Kind::Thread, true, s.writer};
  } else if (region.global && s.written != 0 && s.written < moment.group_start) {
    conflict = {Conflict::Kind::Group, true, 0};
  }
  return conflict;
}

}  // namespace

Conflict record_write(Region& region, int64_t index, uint64_t value, const Moment& moment) {
  Shadow& s = region.shadow[index];
  Conflict conflict = any_write(region, s, moment);
  if (conflict.other_writes) {
    std::byte fresh[8];
    write_elements(region.dtype, &value, fresh, 1);
    const std::byte* const old = region.data + index * region.element_bytes;
    if (std::memcmp(fresh, old, region.element_bytes) == 0) conflict = {};
  }
  s.written = moment.interval;
  s.writer = moment.thread;
  s.atomic = false;
  return conflict;
}

Conflict record_atomic(Region& region, int64_t index, const Moment& moment) {
  Shadow& s = region.shadow[index];
  Conflict conflict = any_write(region, s, moment);
  if (conflict.other_writes && s.atomic) conflict = {};
  s.atomic = s.written != moment.interval || s.atomic;
  s.written = moment.interval;
  s.writer = moment.thread;
  return conflict;
}

Memories::Memories(const Program& program, std::span<const Memory> globals, bool check_races)
    : scratch_(program.memories.size()) {
  std::map<const void*, std::pair<bool, size_t>> by_address;  // written, bytes
  for (size_t i = 0; i < program.memories.size(); ++i) {
    const MemoryInfo& info = program.memories[i];
    Region region;
    region.dtype = info.dtype;
    region.element_bytes = size_of(info.dtype);
    region.size = info.size;
    region.source = info.source;
    region.global = info.global;
    if (region.global) {
      const Memory& memory = globals[info.index];
      region.data = static_cast<std::byte*>(memory.data);
      region.size = std::min(info.size, memory.size);
    } else {
      region.is_private = info.is_private;
      const int64_t copies = info.is_private ? program.kernel.local : 1;
      scratch_[i].resize(info.size * copies * region.element_bytes);
      region.data = scratch_[i].data();
    }
    auto& [written, bytes] = by_address[region.data];
    written |= info.written;
    bytes = std::max(bytes, static_cast<size_t>(region.size) * region.element_bytes);
    regions.push_back(region);
  }
  if (!check_races) return;
  // Arguments with the same memory share a record. Memory that is never written needs none.
  std::map<std::pair<const void*, int>, Shadow*> records;
  for (Region& region : regions) {
    const auto& [written, bytes] = by_address[region.data];
    if (!written || region.size == 0 || region.is_private) continue;
    Shadow*& record = records[{region.data, region.element_bytes}];
    if (!record) {
      shadows_.emplace_back(bytes / region.element_bytes);
      record = shadows_.back().data();
    }
    region.shadow = record;
  }
}

void Memories::start_group() {
  for (size_t i = 0; i < regions.size(); ++i) {
    if (regions[i].global) continue;
    std::vector<std::byte>& bytes = scratch_[i];
    const DType dtype = regions[i].dtype;
    if (!is_float(dtype)) {
      std::fill(bytes.begin(), bytes.end(), std::byte{0xa5});
      continue;
    }
    const Scalar nan = Scalar::of(dtype, std::numeric_limits<double>::quiet_NaN());
    for (size_t at = 0; at < bytes.size(); at += regions[i].element_bytes)
      nan.store(bytes.data() + at);
  }
}

}  // namespace rune::lower::interpreter
