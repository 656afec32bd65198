#include "schedule/analysis/dependencies.h"

#include <algorithm>
#include <map>
#include <set>

namespace rune::schedule {

namespace {

// A synchronization depends on earlier items of its devices, and the next transfer depends on it.
void add_synchronizations(Schedule& schedule) {
  const auto& items = schedule.items;
  for (int64_t to = 0; to < static_cast<int64_t>(items.size()); ++to) {
    const Synchronization* wait = items[to].synchronization();
    if (!wait) continue;
    for (int64_t from = 0; from < to; ++from) {
      const Kernel* kernel = schedule.kernel_of(items[from]);
      if (kernel && std::count(wait->devices.begin(), wait->devices.end(), kernel->device))
        schedule.dependencies.push_back({from, to, {}});
    }
    schedule.dependencies.push_back({to, to + 1, {}});
  }
}

}  // namespace

Schedule find_dependencies(Schedule schedule) {
  std::map<Value, Ints> writers;
  for (int64_t to = 0; to < static_cast<int64_t>(schedule.items.size()); ++to) {
    const ScheduleItem& item = schedule.items[to];
    const auto [reads, writes] = accesses_of(item);
    std::map<int64_t, std::set<Value>> from;
    for (const Value v : reads)
      for (const int64_t writer : writers[v]) from[writer].insert(v);
    for (const auto& [producer, values] : from)
      schedule.dependencies.push_back({producer, to, {values.begin(), values.end()}});
    const Kernel* kernel = schedule.kernel_of(item);
    for (size_t i = 0; i < writes.size(); ++i) {
      if (!kernel || !kernel->part_stored(kernel->outputs[i])) writers[writes[i]].clear();
      writers[writes[i]].push_back(to);
    }
  }
  add_synchronizations(schedule);
  return schedule;
}

}  // namespace rune::schedule
