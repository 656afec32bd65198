#include "schedule/memory/memory_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/math.h"
#include "schedule/indexing/indexing.h"

namespace rune::schedule {

namespace {

constexpr int64_t kAlignment = 64;  // bytes; a vector register and a cache line
constexpr size_t kMostPlacedBySize = 1024;

struct Temporary {
  Allocation* allocation = nullptr;
  int64_t bytes = 0;
  int64_t offset = 0;
  int64_t first() const { return allocation->first; }
  int64_t last() const { return allocation->last; }
};

int64_t lowest_free_offset(const Temporary& wanted, const std::vector<Temporary>& placed) {
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (const Temporary& other : placed)
    if (other.first() <= wanted.last() && wanted.first() <= other.last())
      taken.push_back({other.offset, other.offset + other.bytes});
  std::sort(taken.begin(), taken.end());
  int64_t offset = 0;
  for (const auto& [begin, end] : taken) {
    if (offset + wanted.bytes <= begin) break;
    offset = std::max(offset, end);
  }
  return offset;
}

// Places temporaries in the order of decreasing size. The time is quadratic in their number.
void place_by_size(std::vector<Temporary>& temporaries) {
  std::stable_sort(temporaries.begin(), temporaries.end(),
                   [](const Temporary& a, const Temporary& b) { return a.bytes > b.bytes; });
  std::vector<Temporary> placed;
  for (Temporary& temporary : temporaries) {
    temporary.offset = lowest_free_offset(temporary, placed);
    placed.push_back(temporary);
  }
}

// The unused part of an arena, as blocks that are not adjacent, and the arena's end.
class FreeBlocks {
 public:
  int64_t take(int64_t bytes) {
    const auto found = by_size_.lower_bound({bytes, 0});
    if (found == by_size_.end()) {
      // The last block grows.
      int64_t offset = end_;
      if (!by_offset_.empty()) {
        const auto last = std::prev(by_offset_.end());
        if (last->first + last->second == end_) offset = remove(last);
      }
      end_ = offset + bytes;
      return offset;
    }
    const auto [size, offset] = *found;
    remove(by_offset_.find(offset));
    if (size > bytes) add(offset + bytes, size - bytes);
    return offset;
  }

  void give_back(int64_t offset, int64_t bytes) {
    const auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && next->first == offset + bytes) {
      bytes += next->second;
      remove(next);
    }
    const auto after = by_offset_.lower_bound(offset);
    if (after != by_offset_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == offset) {
        bytes += before->second;
        offset = remove(before);
      }
    }
    add(offset, bytes);
  }

 private:
  void add(int64_t offset, int64_t bytes) {
    by_offset_[offset] = bytes;
    by_size_.insert({bytes, offset});
  }
  int64_t remove(std::map<int64_t, int64_t>::iterator block) {
    const int64_t offset = block->first;
    by_size_.erase({block->second, offset});
    by_offset_.erase(block);
    return offset;
  }

  std::map<int64_t, int64_t> by_offset_;           // bytes by offset
  std::set<std::pair<int64_t, int64_t>> by_size_;  // (bytes, offset)
  int64_t end_ = 0;
};

void place_in_order(std::vector<Temporary>& temporaries) {
  std::stable_sort(temporaries.begin(), temporaries.end(),
                   [](const Temporary& a, const Temporary& b) { return a.first() < b.first(); });
  FreeBlocks free;
  std::set<std::pair<int64_t, size_t>> alive;  // (last use, position)
  for (size_t i = 0; i < temporaries.size(); ++i) {
    while (!alive.empty() && alive.begin()->first < temporaries[i].first()) {
      const Temporary& dead = temporaries[alive.begin()->second];
      free.give_back(dead.offset, dead.bytes);
      alive.erase(alive.begin());
    }
    temporaries[i].offset = free.take(temporaries[i].bytes);
    alive.insert({temporaries[i].last(), i});
  }
}

}  // namespace

Schedule plan_memory(Schedule schedule) {
  std::map<Value, Allocation> allocations;
  for (int64_t i = 0; i < static_cast<int64_t>(schedule.items.size()); ++i) {
    const auto [reads, writes] = accesses_of(schedule.items[i]);
    for (const auto* values : {&reads, &writes})
      for (const Value v : *values)
        allocations.insert({v, {v, i, i, std::nullopt}}).first->second.last = i;
  }
  const std::set<Value> outputs(schedule.outputs.begin(), schedule.outputs.end());
  std::vector<Temporary> temporaries;
  int64_t lasting = 0;  // inputs and outputs
  for (auto& [v, allocation] : allocations) {
    const int64_t bytes = bytes_of(schedule.graph[v]);
    const bool in_memory = evaluation_of(schedule.graph[v]) == Evaluation::Memory;
    if (in_memory || outputs.count(v)) {
      lasting += bytes;
    } else {
      temporaries.push_back({&allocation, round_up(bytes, kAlignment), 0});
    }
  }
  (temporaries.size() > kMostPlacedBySize ? place_in_order : place_by_size)(temporaries);
  schedule.arena_bytes = 0;
  for (const Temporary& temporary : temporaries) {
    schedule.arena_bytes = std::max(schedule.arena_bytes, temporary.offset + temporary.bytes);
    temporary.allocation->offset = temporary.offset;
  }
  schedule.total_memory_usage = lasting + schedule.arena_bytes;
  schedule.allocations.clear();
  for (const auto& [v, allocation] : allocations) schedule.allocations.push_back(allocation);
  return schedule;
}

}  // namespace rune::schedule
