#include "driver/explain.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "graph/text.h"

namespace rune::driver {

namespace {

using schedule::Axis;
using schedule::BufferInfo;
using schedule::InterThread;
using schedule::IntraThread;
using schedule::Kernel;
using schedule::Schedule;
using schedule::ScheduleItem;

class Explanation {
 public:
  explicit Explanation(const Lowered& lowered) : lowered_(lowered), schedule_(lowered.schedule) {
    for (const schedule::Dependency& d : schedule_.dependencies) waits_for_[d.dep_to].push_back(&d);
  }

  std::string run() {
    out_ << lowered_.target->name << ": " << lowered_.kernels.size() << " kernels of "
         << count_programs(lowered_) << " programs, about " << schedule_.estimated_runtime_ns
         << " ns, peak " << schedule_.total_memory_usage << " bytes, " << schedule_.arena_bytes
         << " of them temporary\n";
    out_ << "  critical path: items " << text::to_text(schedule_.critical_path) << '\n';
    for (const ScheduleItem& item : schedule_.items) add_item(item);
    for (const schedule::FusionOpportunity& f : schedule_.fusion_opportunities)
      out_ << "  " << (f.taken ? "fused" : "not fused") << " (" << name_of(f.fusion_type) << "): %"
           << f.producer.id << " into %" << f.consumer.id << ", "
           << static_cast<int64_t>(f.benefit_score) << " ns and " << f.memory_saved
           << " B less: " << f.reason << '\n';
    return out_.str();
  }

 private:
  static std::string name(const ScheduleItem& item) {
    if (const Kernel* kernel = item.kernel()) return kernel->kernel_name;
    if (const auto* callback = item.callback()) return "host callback " + callback->callback_name;
    if (const auto* transfer = std::get_if<schedule::Memory_Transfer>(&item.operation))
      return concat("transfer of %", transfer->src_var.id, " from ", transfer->src_device, " to ",
                    transfer->dst_device);
    return "synchronization";
  }

  void add_item(const ScheduleItem& item) {
    out_ << "  item " << item.item_id << ": " << name(item);
    const schedule::ItemAnalysis& a = schedule_.analysis.at(item.item_id);
    out_ << '\n';
    add_dependencies(item);
    out_ << "    " << a.flops << " flops, reads " << a.bytes_read << " B, writes "
         << a.bytes_written << " B, about " << a.est_ns << " ns (" << a.work_ns
         << " ns of one core), occupancy " << a.occupancy << '\n';
    schedule::with_buffers(item, [&](const auto& inputs, const auto& outputs) {
      for (const BufferInfo& buffer : inputs) add_buffer("reads", buffer);
      for (const BufferInfo& buffer : outputs) add_buffer("writes", buffer);
    });
    if (const Kernel* kernel = item.kernel()) add_kernel(*kernel, a);
  }

  void add_dependencies(const ScheduleItem& item) {
    for (const schedule::Dependency* d : waits_for_[item.item_id]) {
      out_ << "    after item " << d->dep_from << ": " << name_of(d->kind);
      if (!d->dep_vars.empty()) out_ << ' ' << text::to_text(d->dep_vars);
      out_ << '\n';
    }
  }

  void add_buffer(const char* how, const BufferInfo& buffer) {
    out_ << "    " << how << " %" << buffer.buf_var.id << ": " << name_of(buffer.dtype)
         << shape_text(buffer.layout.shape) << ", " << name_of(buffer.alloc.scope) << ", "
         << buffer.alloc.size_bytes << " B, items " << buffer.alloc.lifetime.first << " to "
         << buffer.alloc.lifetime.second;
    if (buffer.alloc.offset) out_ << ", arena offset " << *buffer.alloc.offset;
    if (buffer.alloc.alias_group) out_ << ", alias group " << *buffer.alloc.alias_group;
    out_ << '\n';
  }

  // A kernel, or a phase of one.
  void add_kernel(const Kernel& kernel, const schedule::ItemAnalysis& analysis) {
    for (const BufferInfo& buffer : kernel.scratch) add_buffer("keeps", buffer);
    const schedule::IterSpace& iter = kernel.iter;
    for (size_t i = 0; i < iter.axes.size(); ++i) add_axis(kernel, static_cast<int64_t>(i));
    for (const schedule::Stage& stage : kernel.stages) {
      out_ << "    stage " << name_of(stage.kind) << " over [" << axis_names(kernel, stage.axes)
           << "]:";
      for (const schedule::StageValue& value : stage.values) out_ << " %" << value.value.id;
      if (stage.keeps) out_ << " keeps %" << stage.keeps->value.id;
      out_ << '\n';
    }
    if (const auto& plan = kernel.reduce)
      out_ << "    reduction over [" << axis_names(kernel, plan->axes)
           << "]: " << name_of(plan->intra_thread) << " in a thread, "
           << name_of(plan->inter_thread) << " between threads, " << analysis.regs_per_thread
           << " accumulators\n";
    if (kernel.matrix) add_matrix_plan(kernel, *kernel.matrix);
    for (const schedule::LoopHint& hint : kernel.hints)
      if (hint.var) out_ << "    hint " << name_of(hint.kind) << " %" << hint.var->id << '\n';
    out_ << "    launch " << text::to_text(kernel.context.global_dims) << " of "
         << text::to_text(kernel.context.local_dims) << " on " << kernel.context.device << '\n';
    for (const Kernel& phase : kernel.phases) {
      out_ << "   phase " << phase.kernel_name << '\n';
      add_kernel(phase, analysis);
    }
    if (kernel.phases.empty()) add_nodes(kernel);
  }

  void add_matrix_plan(const Kernel& kernel, const schedule::MatrixPlan& plan) {
    const bool by_threads = kernel.context.local_dims[0] == plan.groups[0] * plan.groups[1];
    const char* group = by_threads ? "thread" : "SIMD-group";
    const std::vector<Axis>& axes = kernel.iter.axes;
    out_ << "    " << (by_threads ? "multiply-adds of " : "matrix operation ") << plan.m << " x "
         << plan.n << " x " << plan.k << " of " << name_of(plan.operands) << ": rows "
         << axes[plan.rows].name << ", columns " << axes[plan.columns].name << ", "
         << text::to_text(plan.tiles) << " tiles of a " << group << ", "
         << text::to_text(plan.groups) << ' ' << group << "s of a workgroup\n";
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
    if (axis.size)
      out_ << *axis.size;
    else
      out_ << axis.sym->name << " in " << axis.sym->min_val << " to " << axis.sym->max_val;
    out_ << ' ' << name_of(axis.role) << ", tiles " << text::to_text(iter.tiles[number]);
    const std::pair<const char*, const Ints*> places[] = {{"block", &iter.mapping.block},
                                                          {"thread", &iter.mapping.thread},
                                                          {"vec", &iter.mapping.vec},
                                                          {"serial", &iter.mapping.serial}};
    for (const auto& [place, axes] : places)
      if (std::count(axes->begin(), axes->end(), number)) out_ << ", " << place;
    for (const schedule::LoopHint& hint : kernel.hints)
      if (hint.axis == number) out_ << ", " << name_of(hint.kind) << ' ' << hint.amount;
    out_ << '\n';
  }

  const Lowered& lowered_;
  const Schedule& schedule_;
  std::map<int64_t, std::vector<const schedule::Dependency*>> waits_for_;  // by item
  std::ostringstream out_;
};

}  // namespace

std::string explain(const Lowered& lowered) {
  return Explanation(lowered).run();
}

}  // namespace rune::driver
