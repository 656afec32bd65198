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
  uint32_t id = 0;
  int64_t bytes = 0;
  int64_t first = 0, last = 0;
  int64_t offset = 0;
};

template <class F>
void for_each_buffer(Schedule& schedule, F&& f) {
  for (ScheduleItem& item : schedule.items)
    with_buffers(item, [&](std::vector<BufferInfo>& inputs, std::vector<BufferInfo>& outputs) {
      for (BufferInfo& buffer : inputs) f(item.item_id, buffer);
      for (BufferInfo& buffer : outputs) f(item.item_id, buffer);
    });
}

int64_t lowest_free_offset(const Temporary& wanted, const std::vector<Temporary>& placed) {
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (const Temporary& other : placed)
    if (other.first <= wanted.last && wanted.first <= other.last)
      taken.push_back({other.offset, other.offset + other.bytes});
  std::sort(taken.begin(), taken.end());
  int64_t offset = 0;
  for (const auto& [begin, end] : taken) {
    if (offset + wanted.bytes <= begin) break;
    offset = std::max(offset, end);
  }
  return offset;
}

// By decreasing size. Quadratic in their number.
void place_by_size(std::vector<Temporary>& temporaries) {
  std::stable_sort(temporaries.begin(), temporaries.end(),
                   [](const Temporary& a, const Temporary& b) { return a.bytes > b.bytes; });
  std::vector<Temporary> placed;
  for (Temporary& temporary : temporaries) {
    temporary.offset = lowest_free_offset(temporary, placed);
    placed.push_back(temporary);
  }
}

// The part of an arena that nothing uses now, as blocks that do not touch, and its end.
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

  std::map<int64_t, int64_t> by_offset_;           // bytes
  std::set<std::pair<int64_t, int64_t>> by_size_;  // (bytes, offset)
  int64_t end_ = 0;
};

void place_in_order(std::vector<Temporary>& temporaries) {
  std::stable_sort(temporaries.begin(), temporaries.end(),
                   [](const Temporary& a, const Temporary& b) { return a.first < b.first; });
  FreeBlocks free;
  std::set<std::pair<int64_t, size_t>> alive;  // (last use, position)
  for (size_t i = 0; i < temporaries.size(); ++i) {
    while (!alive.empty() && alive.begin()->first < temporaries[i].first) {
      const Temporary& dead = temporaries[alive.begin()->second];
      free.give_back(dead.offset, dead.bytes);
      alive.erase(alive.begin());
    }
    temporaries[i].offset = free.take(temporaries[i].bytes);
    alive.insert({temporaries[i].last, i});
  }
}

}  // namespace

Schedule plan_memory(Schedule schedule) {
  std::map<uint32_t, std::pair<int64_t, int64_t>> lifetimes;
  std::map<uint32_t, int64_t> bytes;
  for_each_buffer(schedule, [&](int64_t item, BufferInfo& buffer) {
    auto [it, is_new] = lifetimes.insert({buffer.buf_var.id, {item, item}});
    it->second.second = item;
    bytes[buffer.buf_var.id] = buffer.alloc.size_bytes;
  });
  for (const ScheduleItem& item : schedule.items) {
    const auto* transfer = std::get_if<Memory_Transfer>(&item.operation);
    if (!transfer) continue;
    for (const Value v : {transfer->src_var, transfer->dst_var}) {
      bytes[v.id] = transfer->size_bytes;
      auto& [first, last] = lifetimes.insert({v.id, {item.item_id, item.item_id}}).first->second;
      first = std::min(first, item.item_id);
      last = std::max(last, item.item_id);
    }
  }
  std::set<uint32_t> outputs;
  for (const Value v : schedule.outputs) outputs.insert(v.id);

  std::vector<Temporary> temporaries;
  int64_t lasting = 0;  // inputs and outputs
  for (const auto& [id, lifetime] : lifetimes) {
    const bool in_memory = evaluation_of(schedule.graph.nodes[id]) == Evaluation::Memory;
    if (in_memory || outputs.count(id)) {
      lasting += bytes[id];
    } else {
      const int64_t size = round_up(bytes[id], kAlignment);
      temporaries.push_back({id, size, lifetime.first, lifetime.second, 0});
    }
  }
  (temporaries.size() > kMostPlacedBySize ? place_in_order : place_by_size)(temporaries);
  std::map<uint32_t, int64_t> offsets;
  schedule.arena_bytes = 0;
  for (const Temporary& temporary : temporaries) {
    schedule.arena_bytes = std::max(schedule.arena_bytes, temporary.offset + temporary.bytes);
    offsets[temporary.id] = temporary.offset;
  }
  schedule.total_memory_usage = lasting + schedule.arena_bytes;

  // Temporaries that begin at one offset share memory: an alias group.
  std::map<int64_t, int64_t> groups;
  for (const auto& [id, offset] : offsets)
    groups.insert({offset, static_cast<int64_t>(groups.size())});
  for_each_buffer(schedule, [&](int64_t, BufferInfo& buffer) {
    buffer.alloc.lifetime = lifetimes[buffer.buf_var.id];
    const auto offset = offsets.find(buffer.buf_var.id);
    if (offset == offsets.end()) return;
    buffer.alloc.offset = offset->second;
    buffer.alloc.alias_group = groups[offset->second];
  });
  return schedule;
}

}  // namespace rune::schedule
