#include "driver/explain.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "driver/loop_steps.h"
#include "graph/text.h"
#include "schedule/structure.h"

namespace rune::driver {

namespace {

using schedule::Axis;
using schedule::Kernel;
using schedule::Schedule;
using schedule::ScheduleItem;

class Explanation {
 public:
  explicit Explanation(const Lowered& lowered) : lowered_(lowered), schedule_(lowered.schedule) {
    for (const schedule::Dependency& d : schedule_.dependencies) waits_for_[d.to].push_back(&d);
    for (const schedule::Allocation& a : schedule_.allocations) places_[a.value] = &a;
  }

  std::string run() {
    out_ << lowered_.target->name << ": " << count_launches() << " kernels of "
         << lowered_.kernels.size() << " programs, about " << schedule_.estimated_runtime_ns
         << " ns, peak " << schedule_.total_memory_usage << " bytes, " << schedule_.arena_bytes
         << " of them temporary\n";
    out_ << "  critical path: items " << text::to_text(schedule_.critical_path) << '\n';
    for (size_t i = 0; i < schedule_.items.size(); ++i) add_item(i, schedule_.items[i]);
    for (const schedule::FusionOpportunity& f : schedule_.fusion_opportunities)
      out_ << "  " << (f.taken ? "fused" : "not fused") << " (" << name_of(f.fusion_type) << "): %"
           << f.producer.id << " into %" << f.consumer.id << ", "
           << static_cast<int64_t>(f.benefit_score) << " ns and " << f.memory_saved
           << " B less: " << f.reason << '\n';
    return out_.str();
  }

  std::string run(size_t item) {
    add_item(item, schedule_.items.at(item));
    return out_.str();
  }

 private:
  int64_t count_launches() const {
    return std::count_if(schedule_.items.begin(), schedule_.items.end(),
                         [](const ScheduleItem& item) { return item.launch() != nullptr; });
  }

  std::string name(const ScheduleItem& item) const {
    if (const Kernel* kernel = schedule_.kernel_of(item)) return kernel->name;
    if (item.loops()) return "loops";
    if (const auto* callback = item.callback()) return "host callback " + callback->name;
    if (const auto* transfer = item.transfer())
      return concat("transfer of %", transfer->src.id, " from ", transfer->src_device, " to ",
                    transfer->dst_device);
    return "synchronization";
  }

  void add_item(size_t number, const ScheduleItem& item) {
    out_ << "  item " << number << ": " << name(item);
    const schedule::ItemAnalysis& a = schedule_.analysis.at(number);
    out_ << '\n';
    for (const schedule::Dependency* d : waits_for_[static_cast<int64_t>(number)]) {
      out_ << "    after item " << d->from;
      if (!d->values.empty()) out_ << " for " << text::to_text(d->values);
      out_ << '\n';
    }
    out_ << "    " << a.flops << " flops, reads " << a.bytes_read << " B, writes "
         << a.bytes_written << " B, about " << a.est_ns << " ns (" << a.work_ns
         << " ns of one core), occupancy " << a.occupancy << '\n';
    if (!item.transfer()) {
      const auto [reads, writes] = schedule::accesses_of(item);
      for (const graph::Value v : reads) add_buffer("reads", v);
      for (const graph::Value v : writes) add_buffer("writes", v);
    }
    if (const auto* launch = item.launch())
      add_kernel(schedule::instantiate(schedule_.kernels[launch->kernel], *launch), a);
    if (item.loops())
      if (const auto& loops = lowered_.loops_of(number).steps)
        add_steps(*loops, loops->steps, lowered_.loops_of(number).first_kernel, 4);
  }

  // Describes the steps of loops that the host runs.
  void add_steps(const LoopSteps& loops, const std::vector<LoopStep>& steps, size_t first_kernel,
                 size_t indent) {
    for (const LoopStep& step : steps) {
      out_ << std::string(indent, ' ');
      if (const auto* launch = std::get_if<LoopLaunch>(&step.action)) {
        const lower::Kernel& kernel = lowered_.kernels[first_kernel + launch->kernel];
        out_ << "launch " << kernel.name << ": " << kernel.grid << " workgroups of " << kernel.local
             << " threads\n";
      } else if (const auto* copy = std::get_if<LoopCopy>(&step.action)) {
        out_ << "copy " << loops.memory[copy->from].bytes << " B\n";
      } else if (const auto* read = std::get_if<LoopRead>(&step.action)) {
        out_ << "wait for " << read->variable.name << '\n';
      } else {
        const auto& repeat = std::get<LoopRepeat>(step.action);
        out_ << "for " << repeat.counter.name << " from " << repeat.start << " to " << repeat.stop
             << " by " << repeat.step;
        if (repeat.goes_on) out_ << ", waits for a condition";
        if (!repeat.turns.empty())
          out_ << ", in " << 1 + repeat.turns.size() << " turns that exchange memory";
        out_ << '\n';
        add_steps(loops, repeat.body, first_kernel, indent + 2);
      }
    }
  }

  template <class Sizes>
  void add_value(const char* how, graph::Value v, const Sizes& shape, int64_t elements) {
    const DType dtype = schedule_.graph[v].dtype();
    out_ << "    " << how << " %" << v.id << ": " << name_of(dtype) << shape_text(shape) << ", "
         << elements * size_of(dtype) << " B";
  }

  void add_buffer(const char* how, graph::Value v) {
    const Shape& shape = schedule_.graph[v].shape();
    add_value(how, v, shape, max_elements(shape));
    const schedule::Allocation& place = *places_.at(v);
    out_ << ", items " << place.first << " to " << place.last;
    if (place.offset) out_ << ", arena offset " << *place.offset;
    out_ << '\n';
  }

  // Describes a kernel, or a phase of one.
  void add_kernel(const Kernel& kernel, const schedule::ItemAnalysis& analysis) {
    for (const schedule::Scratch& buffer : kernel.scratch) {
      add_value("keeps", buffer.value, buffer.shape, buffer.elements);
      out_ << '\n';
    }
    const schedule::IterSpace& iter = kernel.iter;
    for (size_t i = 0; i < iter.axes.size(); ++i) add_axis(kernel, static_cast<int64_t>(i));
    for (const schedule::Stage& stage : kernel.stages()) {
      out_ << "    stage " << name_of(stage.kind) << " over [" << axis_names(kernel, stage.axes)
           << "]:";
      for (const schedule::StageValue& value : stage.values) out_ << " %" << value.value.id;
      if (stage.keeps) out_ << " keeps %" << stage.keeps->value.id;
      out_ << '\n';
    }
    if (const Ints reduced = reduced_axes(kernel); !reduced.empty()) {
      out_ << "    reduction over [" << axis_names(kernel, reduced)
           << "]: " << analysis.accumulators << " accumulators";
      if (const schedule::Combination* combination = kernel.combination()) {
        if (combination->threads != schedule::ThreadCombination::None)
          out_ << ", threads combined by " << name_of(combination->threads);
        if (combination->atomic) out_ << ", results combined by atomic operations";
      }
      out_ << '\n';
    }
    if (const schedule::MatrixPlan* plan = kernel.matrix()) add_matrix_plan(kernel, *plan);
    for (const schedule::Prefetch& prefetch : kernel.prefetches)
      out_ << "    prefetches %" << prefetch.from.id << '\n';
    for (const graph::Value v : kernel.nontemporal)
      out_ << "    writes %" << v.id << " past the caches\n";
    if (!kernel.device.empty())  // empty for a phase
      out_ << "    launch " << kernel.workgroups() << " workgroups of "
           << kernel.iter.mapping.threads << " threads on " << kernel.device << '\n';
    for (const Kernel& phase : kernel.phases()) {
      out_ << "   phase " << phase.name << '\n';
      add_kernel(phase, analysis);
    }
    if (kernel.phases().empty()) add_nodes(kernel);
  }

  void add_matrix_plan(const Kernel& kernel, const schedule::MatrixPlan& plan) {
    const bool by_threads = kernel.iter.mapping.threads == plan.groups[0] * plan.groups[1];
    const char* group = by_threads ? "thread" : "SIMD-group";
    const std::vector<Axis>& axes = kernel.iter.axes;
    out_ << "    " << (by_threads ? "multiply-adds of " : "matrix operation ") << plan.m << " x "
         << plan.n << " x " << plan.k << " of " << name_of(plan.operands) << ": rows "
         << axes[plan.rows].name << ", columns " << axes[plan.columns].name << ", "
         << text::to_text(plan.tiles) << " tiles of a " << group << ", "
         << text::to_text(plan.groups) << ' ' << group << "s of a workgroup";
    if (plan.depth > 0)
      out_ << ", " << plan.copies << (plan.copies == 1 ? " copy" : " copies")
           << " of panels of depth " << plan.depth;
    out_ << '\n';
  }

  void add_nodes(const Kernel& kernel) {
    for (const graph::Value v : kernel.ops) {
      out_ << "    " << graph::print_node(schedule_.graph, v);
      const std::string& location = schedule_.graph[v].location;
      if (!location.empty()) out_ << "  ; " << location;
      out_ << '\n';
    }
  }

  static std::string axis_names(const Kernel& kernel, const Ints& axes) {
    std::string names;
    for (const int64_t axis : axes)
      names += (names.empty() ? "" : ",") + kernel.iter.axes[axis].name;
    return names;
  }

  void add_axis(const Kernel& kernel, int64_t number) {
    const schedule::IterSpace& iter = kernel.iter;
    const Axis& axis = iter.axes[number];
    out_ << "    axis " << axis.name << ": ";
    out_ << axis.size;
    if (axis.is_symbolic()) out_ << " in " << axis.size.least() << " to " << axis.size.bound();
    if (contains(reduced_axes(kernel), number)) out_ << " reduced";
    out_ << ", tiles " << text::to_text(iter.tiles[number]);
    const std::pair<const char*, const Ints*> places[] = {{"block", &iter.mapping.block},
                                                          {"thread", &iter.mapping.thread},
                                                          {"vec", &iter.mapping.vec},
                                                          {"serial", &iter.mapping.serial}};
    for (const auto& [place, axes] : places)
      if (std::count(axes->begin(), axes->end(), number)) out_ << ", " << place;
    if (iter.lanes(number) > 1) out_ << ", " << iter.lanes(number) << " lanes";
    if (iter.unroll(number) > 1) out_ << ", unrolled " << iter.unroll(number);
    out_ << '\n';
  }

  const Lowered& lowered_;
  const Schedule& schedule_;
  std::map<int64_t, std::vector<const schedule::Dependency*>> waits_for_;  // by item
  std::map<graph::Value, const schedule::Allocation*> places_;
  std::ostringstream out_;
};

}  // namespace

std::string explain(const Lowered& lowered) {
  return Explanation(lowered).run();
}

std::string explain_item(const Lowered& lowered, size_t item) {
  return Explanation(lowered).run(item);
}

}  // namespace rune::driver
