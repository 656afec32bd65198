#include "schedule/analysis/dependencies.h"

#include <algorithm>
#include <map>
#include <set>

namespace rune::schedule {

namespace {

// What an item reads and writes.
std::pair<std::set<Value>, std::set<Value>> accesses_of(const ScheduleItem& item) {
  std::pair<std::set<Value>, std::set<Value>> result;
  with_buffers(item, [&](const auto& inputs, const auto& outputs) {
    for (const BufferInfo& buffer : inputs) result.first.insert(buffer.buf_var);
    for (const BufferInfo& buffer : outputs) result.second.insert(buffer.buf_var);
  });
  if (const auto* transfer = std::get_if<Memory_Transfer>(&item.operation))
    result = {{transfer->src_var}, {transfer->dst_var}};
  return result;
}

// A synchronization waits for what its devices ran before, and the next transfer for it.
void add_control_dependencies(Schedule& schedule) {
  const auto depend = [&](int64_t from, int64_t to) {
    schedule.items[to].depends_on.push_back(from);
    schedule.items[from].dependents.push_back(to);
    schedule.dependencies.push_back({from, to, {}, DependencyKind::Control});
  };
  for (ScheduleItem& item : schedule.items) {
    const auto* wait = std::get_if<Synchronization>(&item.operation);
    if (!wait) continue;
    for (int64_t i = 0; i < item.item_id; ++i) {
      const Kernel* kernel = schedule.items[i].kernel();
      const auto& devices = wait->devices;
      if (kernel && std::count(devices.begin(), devices.end(), kernel->context.device))
        depend(i, item.item_id);
    }
    depend(item.item_id, item.item_id + 1);
  }
}

}  // namespace

Schedule find_dependencies(Schedule schedule) {
  std::map<uint32_t, Ints> writers;
  for (ScheduleItem& item : schedule.items) {
    const auto [reads, writes] = accesses_of(item);
    std::map<int64_t, std::vector<Value>> from;
    for (const Value v : reads) {
      for (const int64_t writer : writers[v.id]) from[writer].push_back(v);
    }
    for (auto& [producer, values] : from) {
      item.depends_on.push_back(producer);
      schedule.items[producer].dependents.push_back(item.item_id);
      schedule.dependencies.push_back(
          {producer, item.item_id, std::move(values), DependencyKind::Data});
    }
    for (const Value v : writes) {
      if (!item.kernel() || !item.kernel()->part_stored(v)) writers[v.id].clear();
      writers[v.id].push_back(item.item_id);
    }
  }
  add_control_dependencies(schedule);
  return schedule;
}

}  // namespace rune::schedule
