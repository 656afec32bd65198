#include "schedule/verify/verify.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "graph/verify.h"
#include "schedule/structure.h"
#include "schedule/verify/verify_kernel.h"

namespace rune::schedule {

namespace {

// Values that are in memory before the program runs.
bool is_given(const graph::Node& node) {
  return node.kind() == graph::NodeKind::Placeholder || node.kind() == graph::NodeKind::Vconst ||
         node.kind() == graph::NodeKind::Buffer;
}

std::string text(Value v) {
  return text::to_text(v);
}

class Verifier {
 public:
  explicit Verifier(const Schedule& schedule) : schedule_(schedule), graph_(schedule.graph) {}

  std::vector<std::string> run() {
    violations_ = graph::verify(graph_, graph::Dialect::Core);
    if (!violations_.empty()) return std::move(violations_);
    for (const ScheduleItem& item : schedule_.items) accesses_.push_back(accesses_of(item));
    check_items();
    if (!violations_.empty()) return std::move(violations_);
    check_sharing();
    check_data_flow();
    check_outputs();
    if (check_dependency_ends()) {
      check_dependencies();
      check_order();
      check_critical_path();
    }
    check_allocations();
    check_analysis();
    return std::move(violations_);
  }

 private:
  int64_t num_items() const { return static_cast<int64_t>(schedule_.items.size()); }
  int64_t num_kernels() const { return static_cast<int64_t>(schedule_.kernels.size()); }
  bool is_item(int64_t id) const { return id >= 0 && id < num_items(); }

  std::string item_text(int64_t id) const {
    const Kernel* kernel = schedule_.kernel_of(schedule_.items[id]);
    return concat("item ", id, kernel ? " `" + kernel->name + "`" : "");
  }

  template <class... Args>
  void report(const Args&... args) {
    violations_.push_back(concat(args...));
  }

  void check_items() {
    for (size_t k = 0; k < schedule_.kernels.size(); ++k)
      for (const std::string& violation : detail::verify_kernel(graph_, schedule_.kernels[k]))
        report("kernel ", k, " `", schedule_.kernels[k].name, "`: ", violation);
    for (int64_t i = 0; i < num_items(); ++i) {
      const auto* launch = schedule_.items[i].launch();
      if (launch && (launch->kernel < 0 || launch->kernel >= num_kernels())) {
        report("item ", i, " launches kernel ", launch->kernel, ", but there are ", num_kernels());
        continue;
      }
      const std::vector<Value> ops = launch ? launch->ops : std::vector<Value>{};
      for (const std::vector<Value>& values : {ops, accesses_[i].reads, accesses_[i].writes})
        for (const Value v : values)
          if (v.id >= graph_.size()) report(item_text(i), ": ", text(v), " does not exist");
    }
    if (violations_.empty()) check_launches();
  }

  // Launches must have as many values and arguments as their kernels.
  void check_launches() {
    for (size_t k = 0; k < schedule_.kernels.size(); ++k) {
      const Kernel& kernel = schedule_.kernels[k];
      const auto check = [&](const auto& use) {
        if (use.argument < 0 || use.argument >= std::ssize(kernel.arguments))
          report("kernel ", k, " `", kernel.name, "`: uses argument ", use.argument,
                 ", but its launches have ", kernel.arguments.size());
      };
      std::for_each(kernel.shifts.begin(), kernel.shifts.end(), check);
      std::for_each(kernel.constants.begin(), kernel.constants.end(), check);
    }
    for (int64_t i = 0; i < num_items(); ++i) {
      const Launch* launch = schedule_.items[i].launch();
      if (!launch) continue;
      const Kernel& kernel = schedule_.kernels[launch->kernel];
      if (launch->ops.size() != kernel.ops.size() ||
          launch->inputs.size() != kernel.inputs.size() ||
          launch->outputs.size() != kernel.outputs.size() ||
          launch->arguments.size() != kernel.arguments.size())
        report(item_text(i), ": has ", launch->ops.size(), " ops, ", launch->inputs.size(),
               " inputs, ", launch->outputs.size(), " outputs and ", launch->arguments.size(),
               " arguments, but its kernel ", kernel.ops.size(), ", ", kernel.inputs.size(), ", ",
               kernel.outputs.size(), " and ", kernel.arguments.size());
    }
  }

  // Sharing the kernels of all launches must give the schedule's kernels again.
  void check_sharing() {
    std::vector<Kernel> own;
    std::vector<int64_t> launches;
    for (int64_t i = 0; i < num_items(); ++i) {
      const Launch* launch = schedule_.items[i].launch();
      if (!launch) continue;
      own.push_back(instantiate(schedule_.kernels[launch->kernel], *launch));
      launches.push_back(i);
    }
    const SharedKernels again = share_kernels(graph_, own);
    for (size_t i = 0; i < launches.size(); ++i) {
      const Launch& launch = *schedule_.items[launches[i]].launch();
      const Launch& expected = again.launches[i];
      if (launch.kernel > expected.kernel)
        return report("kernel ", launch.kernel, " is the same as kernel ", expected.kernel);
      if (launch.kernel < expected.kernel)
        return report(item_text(launches[i]), ": does not compute the same as its kernel");
      if (launch.arguments != expected.arguments)
        return report(item_text(launches[i]), ": has the arguments ",
                      text::to_text(launch.arguments), ", but differs from its kernel by ",
                      text::to_text(expected.arguments));
    }
    if (again.kernels.size() != schedule_.kernels.size())
      return report("nothing launches kernel ", again.kernels.size());
    for (size_t k = 0; k < again.kernels.size(); ++k)
      if (!(again.kernels[k] == schedule_.kernels[k]))
        report("kernel ", k, " `", schedule_.kernels[k].name,
               "`: differs from the kernel that its launches have in common");
  }

  // Arrays without elements are never computed or read.
  bool is_empty(Value v) const { return max_elements(graph_[v].shape()) == 0; }

  // Fills writers_.
  void check_data_flow() {
    for (int64_t i = 0; i < num_items(); ++i) {
      for (const Value v : accesses_[i].reads)
        if (!is_given(graph_[v]) && !writers_.count(v) && !is_empty(v))
          report(item_text(i), ": reads ", text(v), " before an earlier item wrote it");
      for (size_t w = 0; w < accesses_[i].writes.size(); ++w) {
        const Value v = accesses_[i].writes[w];
        Ints& writers = writers_[v];
        const std::vector<Value>& reads = accesses_[i].reads;
        const bool updates = contains(reads, v);
        const Kernel* kernel = schedule_.kernel_of(schedule_.items[i]);
        const std::optional<int64_t> part =
            kernel ? kernel->part_stored(kernel->outputs[w]) : std::nullopt;
        if (part) stored_[v] += *part;
        if (!writers.empty() && !updates && !part)
          report(item_text(i), ": writes ", text(v), ", which item ", writers.back(), " wrote");
        writers.push_back(i);
      }
    }
    for (const auto& [v, elements] : stored_)
      if (elements != max_elements(graph_[v].shape()))
        report("the parts of ", text(v), " that kernels store have ", elements, " elements of ",
               max_elements(graph_[v].shape()));
  }

  void check_outputs() {
    if (schedule_.outputs.size() != graph_.outputs.size())
      report("there are ", schedule_.outputs.size(), " outputs, but the graph has ",
             graph_.outputs.size());
    for (size_t i = 0; i < schedule_.outputs.size(); ++i) {
      const Value v = schedule_.outputs[i];
      if (v.id >= graph_.size()) {
        report("output ", i, " is ", text(v), ", which does not exist");
      } else if (!writers_.count(v) && !is_empty(v)) {
        report("output ", i, ": nothing writes ", text(v));
      }
    }
  }

  // Dependencies.

  bool check_dependency_ends() {
    const size_t before = violations_.size();
    for (const Dependency& d : schedule_.dependencies)
      if (!is_item(d.from) || !is_item(d.to))
        report("a dependency from item ", d.from, " to item ", d.to, ", but there are ",
               num_items(), " items");
    return violations_.size() == before;
  }

  void check_dependencies() {
    std::map<std::pair<int64_t, int64_t>, std::set<Value>> needed;
    for (int64_t i = 0; i < num_items(); ++i)
      for (const Value v : accesses_[i].reads) {
        const auto writers = writers_.find(v);
        if (writers == writers_.end()) continue;
        if (stored_.count(v)) {
          for (const int64_t w : writers->second)
            if (w != i) needed[{w, i}].insert(v);
          continue;
        }
        // The last writer before the item. If there is none, the first one, which is too late.
        int64_t writer = writers->second.front();
        for (const int64_t w : writers->second) writer = w < i ? w : writer;
        if (writer != i) needed[{writer, i}].insert(v);
      }
    std::set<std::pair<int64_t, int64_t>> seen;
    for (const Dependency& d : schedule_.dependencies) {
      const std::string name = concat("the dependency of item ", d.to, " on item ", d.from);
      if (!seen.insert({d.from, d.to}).second) report(name, " is listed twice");
      if (is_for_order(d)) continue;
      const auto it = needed.find({d.from, d.to});
      const std::set<Value> expected = it == needed.end() ? std::set<Value>{} : it->second;
      const std::set<Value> found(d.values.begin(), d.values.end());
      if (expected.empty() || found != expected || d.values.size() != found.size())
        report(name, " is for ", text::to_text(d.values), ", but the items share ",
               text::to_text(std::vector<Value>(expected.begin(), expected.end())));
      if (it != needed.end()) needed.erase(it);
    }
    for (const auto& [ends, values] : needed)
      report("the dependency of item ", ends.second, " on item ", ends.first, " is missing (",
             text::to_text(std::vector<Value>(values.begin(), values.end())), ")");
  }

  // Whether one of the two items is a synchronization.
  bool is_for_order(const Dependency& d) const {
    return schedule_.items[d.from].synchronization() || schedule_.items[d.to].synchronization();
  }

  // Items must be in an order in which they can run. If they are not, the error says whether any
  // such order exists.
  void check_order() {
    std::vector<Ints> consumers(num_items());
    std::vector<int64_t> missing(num_items(), 0);
    for (const Dependency& d : schedule_.dependencies) {
      consumers[d.from].push_back(d.to);
      ++missing[d.to];
      if (d.from >= d.to)
        report(item_text(d.to), ": depends on item ", d.from, ", which does not run before it");
    }
    Ints ready;
    for (int64_t i = 0; i < num_items(); ++i)
      if (!missing[i]) ready.push_back(i);
    for (size_t next = 0; next < ready.size(); ++next)
      for (const int64_t consumer : consumers[ready[next]])
        if (--missing[consumer] == 0) ready.push_back(consumer);
    for (int64_t i = 0; i < num_items(); ++i)
      if (missing[i] > 0)
        report(item_text(i), ": is in a cycle of dependencies, or depends on one");
  }

  // Memory.

  void check_allocations() {
    std::map<Value, Allocation> used;
    for (int64_t i = 0; i < num_items(); ++i)
      for (const auto* values : {&accesses_[i].reads, &accesses_[i].writes})
        for (const Value v : *values)
          used.insert({v, {v, i, i, std::nullopt}}).first->second.last = i;
    const std::set<Value> outputs(schedule_.outputs.begin(), schedule_.outputs.end());
    std::vector<const Allocation*> temporaries;
    for (const Allocation& allocation : schedule_.allocations) {
      const auto use = used.find(allocation.value);
      if (use == used.end()) {
        report("there is an allocation of ", text(allocation.value),
               ", which no item uses, or two of it");
        continue;
      }
      check_lifetime(allocation, use->second);
      used.erase(use);
      const Value v = allocation.value;
      if (check_place(allocation, is_given(graph_[v]) || outputs.count(v)))
        temporaries.push_back(&allocation);
    }
    for (const auto& [v, allocation] : used) report(text(v), " has no allocation");
    check_overlaps(std::move(temporaries));
    if (schedule_.total_memory_usage < schedule_.arena_bytes)
      report("the peak of memory is ", schedule_.total_memory_usage,
             " bytes, less than the arena's ", schedule_.arena_bytes);
  }

  void check_lifetime(const Allocation& allocation, const Allocation& use) {
    if (allocation.first > use.first || allocation.last < use.last)
      report(text(allocation.value), " lives from item ", allocation.first, " to item ",
             allocation.last, ", but is used from item ", use.first, " to item ", use.last);
  }

  // Whether the value has a place in the arena.
  bool check_place(const Allocation& allocation, bool lasting) {
    const std::string name = text(allocation.value);
    if (lasting && allocation.offset) report(name, " outlives the program, but is in the arena");
    if (!lasting && !allocation.offset)
      report("the temporary ", name, " has no place in the arena");
    if (lasting || !allocation.offset) return false;
    if (*allocation.offset < 0 || end_of(allocation) > schedule_.arena_bytes)
      report("the temporary ", name, " at ", *allocation.offset, " with ",
             bytes_of(graph_[allocation.value]), " bytes leaves the arena of ",
             schedule_.arena_bytes);
    return true;
  }

  // The end of a temporary in the arena.
  int64_t end_of(const Allocation& allocation) const {
    return *allocation.offset + bytes_of(graph_[allocation.value]);
  }

  // Sweeps over the items. The live temporaries are ordered by offset and disjoint, so a new one
  // can only overlap the ones before and after it.
  void check_overlaps(std::vector<const Allocation*> temporaries) {
    std::erase_if(temporaries, [&](const Allocation* t) { return end_of(*t) == *t->offset; });
    std::sort(temporaries.begin(), temporaries.end(), [](const Allocation* a, const Allocation* b) {
      return std::pair(a->first, a->value) < std::pair(b->first, b->value);
    });
    std::map<int64_t, const Allocation*> live;  // by offset
    std::multimap<int64_t, const Allocation*> by_end;
    for (const Allocation* t : temporaries) {
      while (!by_end.empty() && by_end.begin()->first < t->first) {
        live.erase(*by_end.begin()->second->offset);
        by_end.erase(by_end.begin());
      }
      const auto after = live.lower_bound(*t->offset);
      const Allocation* meets = nullptr;
      if (after != live.end() && after->first < end_of(*t)) meets = after->second;
      if (after != live.begin() && end_of(*std::prev(after)->second) > *t->offset)
        meets = std::prev(after)->second;
      if (meets) {
        report("the temporaries ", text(meets->value), " and ", text(t->value),
               " overlap in the arena while both live");
      } else {
        live[*t->offset] = t;
        by_end.insert({t->last, t});
      }
    }
  }

  // Analysis.

  void check_analysis() {
    if (schedule_.analysis.size() != schedule_.items.size())
      report("there are analyses of ", schedule_.analysis.size(), " items, not of ", num_items());
    for (size_t i = 0; i < schedule_.analysis.size(); ++i) {
      const ItemAnalysis& a = schedule_.analysis[i];
      const int64_t least =
          std::min({a.flops, a.bytes_read, a.bytes_written, a.accumulators, a.work_ns, a.est_ns});
      if (least < 0 || !(a.occupancy >= 0 && a.occupancy <= 1))
        report("analysis ", i, " has figures out of range: ", text::to_text(a));
    }
  }

  void check_critical_path() {
    if (schedule_.analysis.size() != schedule_.items.size()) return;
    std::set<std::pair<int64_t, int64_t>> edges;
    for (const Dependency& d : schedule_.dependencies) edges.insert({d.from, d.to});
    int64_t total = 0;
    const Ints& path = schedule_.critical_path;
    for (size_t i = 0; i < path.size(); ++i) {
      if (!is_item(path[i]))
        return report("the critical path names item ", path[i], ", which does not exist");
      if (i > 0 && !edges.count({path[i - 1], path[i]}))
        report("the critical path goes from item ", path[i - 1], " to item ", path[i],
               ", which does not depend on it");
      total += schedule_.analysis[path[i]].est_ns;
    }
    if (path.empty() && num_items() > 0) report("there is no critical path");
    if (total != schedule_.estimated_runtime_ns)
      report("the estimated time is ", schedule_.estimated_runtime_ns,
             " ns, but the critical path takes ", total);
  }

  const Schedule& schedule_;
  const Graph& graph_;
  std::vector<ItemAccesses> accesses_;  // by item
  std::map<Value, int64_t> stored_;     // by value that is stored in parts: elements
  std::map<Value, Ints> writers_;       // by value: the items that write it, in order
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> verify(const Schedule& schedule) {
  return Verifier(schedule).run();
}

}  // namespace rune::schedule
