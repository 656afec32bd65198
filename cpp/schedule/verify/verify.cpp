#include "schedule/verify/verify.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "graph/verify.h"
#include "schedule/grid_reduction.h"
#include "schedule/verify/verify_kernel.h"

namespace rune::schedule {

namespace {

// What an item reads and writes.
struct Accesses {
  std::vector<Value> reads, writes;
};

Accesses accesses_of(const ScheduleItem& item) {
  Accesses result;
  with_buffers(item, [&](const auto& inputs, const auto& outputs) {
    for (const BufferInfo& buffer : inputs) result.reads.push_back(buffer.buf_var);
    for (const BufferInfo& buffer : outputs) result.writes.push_back(buffer.buf_var);
  });
  if (const auto* transfer = std::get_if<Memory_Transfer>(&item.operation))
    result = {{transfer->src_var}, {transfer->dst_var}};
  return result;
}

// Values that are in memory before the program runs.
bool is_given(const graph::Node& node) {
  return node.kind() == graph::NodeKind::Placeholder || node.kind() == graph::NodeKind::Vconst ||
         node.kind() == graph::NodeKind::Buffer;
}

std::string text(Value v) {
  return text::to_text(v);
}

struct Interval {
  int64_t begin = 0, end = 0;
};

class Verifier {
 public:
  explicit Verifier(const Schedule& schedule) : schedule_(schedule), graph_(schedule.graph) {}

  std::vector<std::string> run() {
    violations_ = graph::verify(graph_);
    if (!violations_.empty()) return std::move(violations_);
    for (const ScheduleItem& item : schedule_.items) accesses_.push_back(accesses_of(item));
    check_items();
    if (!violations_.empty()) return std::move(violations_);
    check_data_flow();
    check_outputs();
    check_grid_reductions();
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
  bool is_item(int64_t id) const { return id >= 0 && id < num_items(); }

  std::string item_text(int64_t id) const {
    const Kernel* kernel = schedule_.items[id].kernel();
    return concat("item ", id, kernel ? " `" + kernel->kernel_name + "`" : "");
  }

  template <class... Args>
  void report(const Args&... args) {
    violations_.push_back(concat(args...));
  }

  void check_items() {
    std::set<std::string> names;
    for (int64_t i = 0; i < num_items(); ++i) {
      const ScheduleItem& item = schedule_.items[i];
      if (item.item_id != i) report(item_text(i), " has the number ", item.item_id);
      for (const auto* values : {&accesses_[i].reads, &accesses_[i].writes})
        for (const Value v : *values)
          if (!item.kernel() && v.id >= graph_.size())
            report(item_text(i), ": ", text(v), " does not exist");
      const Kernel* kernel = item.kernel();
      if (!kernel) continue;
      if (!names.insert(kernel->kernel_name).second)
        report(item_text(i), ": another kernel has this name");
      for (const std::string& violation : detail::verify_kernel(graph_, *kernel))
        report(item_text(i), ": ", violation);
    }
  }

  void check_grid_reductions() {
    const std::vector<std::optional<Value>> completing = completing_reductions(graph_);
    for (int64_t i = 0; i < num_items(); ++i) {
      const Kernel* kernel = schedule_.items[i].kernel();
      if (kernel && kernel->reduce && kernel->reduce->inter_thread == InterThread::GridReduce &&
          !is_completed_elsewhere(*kernel, completing))
        report(item_text(i), ": the reduction plan says GridReduce, but no other kernel completes ",
               "the reductions");
    }
  }

  // Fills writers_.
  void check_data_flow() {
    for (int64_t i = 0; i < num_items(); ++i) {
      for (const Value v : accesses_[i].reads)
        if (!is_given(graph_[v]) && !writers_.count(v))
          report(item_text(i), ": reads ", text(v), " before an earlier item wrote it");
      for (const Value v : accesses_[i].writes) {
        Ints& writers = writers_[v];
        const std::vector<Value>& reads = accesses_[i].reads;
        const bool updates = std::find(reads.begin(), reads.end(), v) != reads.end();
        const Kernel* kernel = schedule_.items[i].kernel();
        const std::optional<int64_t> part = kernel ? kernel->part_stored(v) : std::nullopt;
        if (part) stored_[v] += *part;
        if (!writers.empty() && !updates && !part)
          report(item_text(i), ": writes ", text(v), ", which item ", writers.back(), " wrote");
        writers.push_back(i);
      }
    }
    for (const auto& [v, elements] : stored_)
      if (elements != num_elements(graph_[v].shape()))
        report("the parts of ", text(v), " that kernels store have ", elements, " elements of ",
               num_elements(graph_[v].shape()));
  }

  void check_outputs() {
    if (schedule_.outputs.size() != graph_.outputs.size())
      report("there are ", schedule_.outputs.size(), " outputs, but the graph has ",
             graph_.outputs.size());
    for (size_t i = 0; i < schedule_.outputs.size(); ++i) {
      const Value v = schedule_.outputs[i];
      if (v.id >= graph_.size()) {
        report("output ", i, " is ", text(v), ", which does not exist");
      } else if (!writers_.count(v) && num_elements(graph_[v].shape()) > 0) {
        report("output ", i, ": nothing writes ", text(v));
      }
    }
  }

  // Dependencies.

  bool check_dependency_ends() {
    const size_t before = violations_.size();
    for (const Dependency& d : schedule_.dependencies)
      if (!is_item(d.dep_from) || !is_item(d.dep_to))
        report("a dependency from item ", d.dep_from, " to item ", d.dep_to, ", but there are ",
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
        // The last one before the item, or else the first, which is then too late.
        int64_t writer = writers->second.front();
        for (const int64_t w : writers->second) writer = w < i ? w : writer;
        if (writer != i) needed[{writer, i}].insert(v);
      }
    std::set<std::pair<int64_t, int64_t>> seen;
    std::vector<std::set<int64_t>> producers(num_items()), consumers(num_items());
    for (const Dependency& d : schedule_.dependencies) {
      const std::string name = concat("the dependency of item ", d.dep_to, " on item ", d.dep_from);
      producers[d.dep_to].insert(d.dep_from);
      consumers[d.dep_from].insert(d.dep_to);
      if (!seen.insert({d.dep_from, d.dep_to}).second) report(name, " is doubled");
      if (d.kind != DependencyKind::Data) continue;
      const auto it = needed.find({d.dep_from, d.dep_to});
      const std::set<Value> expected = it == needed.end() ? std::set<Value>{} : it->second;
      const std::set<Value> found(d.dep_vars.begin(), d.dep_vars.end());
      if (expected.empty() || found != expected || d.dep_vars.size() != found.size())
        report(name, " is for ", text::to_text(d.dep_vars), ", but the items share ",
               text::to_text(std::vector<Value>(expected.begin(), expected.end())));
      if (it != needed.end()) needed.erase(it);
    }
    for (const auto& [ends, values] : needed)
      report("the dependency of item ", ends.second, " on item ", ends.first, " is missing (",
             text::to_text(std::vector<Value>(values.begin(), values.end())), ")");
    for (int64_t i = 0; i < num_items(); ++i) {
      check_neighbours(i, "depends_on", schedule_.items[i].depends_on, producers[i]);
      check_neighbours(i, "dependents", schedule_.items[i].dependents, consumers[i]);
    }
  }

  void check_neighbours(int64_t item, const char* what, const Ints& found,
                        const std::set<int64_t>& expected) {
    if (std::set<int64_t>(found.begin(), found.end()) != expected ||
        found.size() != expected.size())
      report(item_text(item), ": ", what, " is ", text::to_text(found),
             ", but the dependencies give ", text::to_text(Ints(expected.begin(), expected.end())));
  }

  // Items are in an order in which they can run; where they are not, says whether any order exists.
  void check_order() {
    std::vector<Ints> consumers(num_items());
    std::vector<int64_t> missing(num_items(), 0);
    for (const Dependency& d : schedule_.dependencies) {
      consumers[d.dep_from].push_back(d.dep_to);
      ++missing[d.dep_to];
      if (d.dep_from >= d.dep_to)
        report(item_text(d.dep_to), ": depends on item ", d.dep_from,
               ", which does not run before it");
    }
    Ints ready;
    for (int64_t i = 0; i < num_items(); ++i)
      if (!missing[i]) ready.push_back(i);
    for (size_t next = 0; next < ready.size(); ++next)
      for (const int64_t consumer : consumers[ready[next]])
        if (--missing[consumer] == 0) ready.push_back(consumer);
    for (int64_t i = 0; i < num_items(); ++i)
      if (missing[i] > 0) report(item_text(i), ": is in, or behind, a cycle of dependencies");
  }

  // Memory.

  void check_allocations() {
    std::map<Value, Interval> uses;
    for (int64_t i = 0; i < num_items(); ++i)
      for (const auto* values : {&accesses_[i].reads, &accesses_[i].writes})
        for (const Value v : *values) uses.insert({v, {i, i}}).first->second.end = i;
    std::map<Value, const BufferInfo*> buffers;
    for (const ScheduleItem& item : schedule_.items) {
      const auto add = [&](const std::vector<BufferInfo>& list) {
        for (const BufferInfo& buffer : list) {
          const auto [known, fresh] = buffers.insert({buffer.buf_var, &buffer});
          if (!fresh && known->second->alloc != buffer.alloc)
            report(item_text(item.item_id), ": ", text(buffer.buf_var),
                   " is allocated differently from before");
        }
      };
      with_buffers(item, [&](const auto& inputs, const auto& outputs) {
        add(inputs);
        add(outputs);
      });
    }
    const std::set<Value> outputs(schedule_.outputs.begin(), schedule_.outputs.end());
    std::vector<const BufferInfo*> temporaries;
    for (const auto& [v, buffer] : buffers) {
      check_lifetime(*buffer, uses.at(v));
      if (check_place(*buffer, is_given(graph_[v]) || outputs.count(v)))
        temporaries.push_back(buffer);
    }
    check_overlaps(std::move(temporaries));
    if (schedule_.total_memory_usage < schedule_.arena_bytes)
      report("the peak of memory is ", schedule_.total_memory_usage,
             " bytes, less than the arena's ", schedule_.arena_bytes);
  }

  void check_lifetime(const BufferInfo& buffer, const Interval& use) {
    const auto [first, last] = buffer.alloc.lifetime;
    if (first > use.begin || last < use.end)
      report(text(buffer.buf_var), " lives from item ", first, " to item ", last,
             ", but is used from item ", use.begin, " to item ", use.end);
  }

  // Whether the buffer has a place in the arena.
  bool check_place(const BufferInfo& buffer, bool lasting) {
    const Allocation& alloc = buffer.alloc;
    if (alloc.scope != MemoryScope::Global) return false;
    if (lasting && alloc.offset)
      report(text(buffer.buf_var), " outlives the program, but is in the arena");
    if (!lasting && !alloc.offset)
      report("the temporary ", text(buffer.buf_var), " has no place in the arena");
    if (lasting || !alloc.offset) return false;
    if (*alloc.offset < 0 || *alloc.offset + alloc.size_bytes > schedule_.arena_bytes)
      report("the temporary ", text(buffer.buf_var), " at ", *alloc.offset, " with ",
             alloc.size_bytes, " bytes leaves the arena of ", schedule_.arena_bytes);
    return true;
  }

  // Sweeps over the items; the live temporaries are ordered by offset and disjoint, so that a new
  // one can only meet its neighbours.
  void check_overlaps(std::vector<const BufferInfo*> temporaries) {
    std::erase_if(temporaries, [](const BufferInfo* t) { return t->alloc.size_bytes == 0; });
    std::sort(temporaries.begin(), temporaries.end(), [](const BufferInfo* a, const BufferInfo* b) {
      return std::pair(a->alloc.lifetime.first, a->buf_var) <
             std::pair(b->alloc.lifetime.first, b->buf_var);
    });
    std::map<int64_t, const BufferInfo*> live;  // by offset
    std::multimap<int64_t, const BufferInfo*> by_end;
    std::map<int64_t, int64_t> group_offset;
    for (const BufferInfo* t : temporaries) {
      const Allocation& alloc = t->alloc;
      while (!by_end.empty() && by_end.begin()->first < alloc.lifetime.first) {
        live.erase(*by_end.begin()->second->alloc.offset);
        by_end.erase(by_end.begin());
      }
      const auto after = live.lower_bound(*alloc.offset);
      const BufferInfo* meets = nullptr;
      if (after != live.end() && after->first < *alloc.offset + alloc.size_bytes)
        meets = after->second;
      if (after != live.begin()) {
        const BufferInfo* before = std::prev(after)->second;
        if (*before->alloc.offset + before->alloc.size_bytes > *alloc.offset) meets = before;
      }
      if (meets) {
        report("the temporaries ", text(meets->buf_var), " and ", text(t->buf_var),
               " overlap in the arena while both live");
      } else {
        live[*alloc.offset] = t;
        by_end.insert({alloc.lifetime.second, t});
      }
      if (alloc.alias_group &&
          group_offset.insert({*alloc.alias_group, *alloc.offset}).first->second != *alloc.offset)
        report(text(t->buf_var), " is in alias group ", *alloc.alias_group,
               ", but not at its place");
    }
  }

  // Analysis.

  void check_analysis() {
    if (schedule_.analysis.size() != schedule_.items.size())
      report("there are analyses of ", schedule_.analysis.size(), " items, not of ", num_items());
    for (size_t i = 0; i < schedule_.analysis.size(); ++i) {
      const ItemAnalysis& a = schedule_.analysis[i];
      if (a.item_id != static_cast<int64_t>(i)) report("analysis ", i, " is of item ", a.item_id);
      const int64_t least = std::min({a.flops, a.bytes_read, a.bytes_written, a.regs_per_thread,
                                      a.smem_bytes, a.work_ns, a.est_ns});
      if (least < 0 || !(a.occupancy >= 0 && a.occupancy <= 1))
        report("analysis ", i, " has figures out of range: ", text::to_text(a));
    }
  }

  void check_critical_path() {
    if (schedule_.analysis.size() != schedule_.items.size()) return;
    std::set<std::pair<int64_t, int64_t>> edges;
    for (const Dependency& d : schedule_.dependencies) edges.insert({d.dep_from, d.dep_to});
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
  std::vector<Accesses> accesses_;   // by item
  std::map<Value, int64_t> stored_;  // by value that is stored in parts: elements
  std::map<Value, Ints> writers_;    // by value: the items that write it, in order
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> verify(const Schedule& schedule) {
  return Verifier(schedule).run();
}

}  // namespace rune::schedule
