#include "schedule/verify/verify_kernel.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/math.h"
#include "schedule/grid_reduction.h"
#include "schedule/mapping/matrix_tiles.h"
#include "schedule/verify/verify_checks.h"

namespace rune::schedule::detail {

namespace {

class KernelVerifier : KernelChecks {
 public:
  KernelVerifier(const Graph& graph, const Kernel& kernel)
      : KernelChecks(graph, kernel, violations_) {}

  std::vector<std::string> run() {
    if (!check_references()) return std::move(violations_);
    check_axes();
    check_buffers();
    if (violations_.empty() && kernel_.matrix) violations_ = verify_matrix_plan(graph_, kernel_);
    if (!violations_.empty()) return std::move(violations_);
    check_mapping();
    check_hints();
    check_reduction_plan();
    if (!kernel_.phases.empty()) {
      check_phases();
    } else {
      verify_stages(graph_, kernel_, violations_);
    }
    if (violations_.empty()) check_tiles();
    if (violations_.empty()) check_launch();
    if (violations_.empty() && kernel_.phases.empty())
      verify_accesses(graph_, kernel_, violations_);
    return std::move(violations_);
  }

 private:
  // References.

  void check_value(Value v, const char* what) {
    if (v.id >= graph_.size()) report("the ", what, " ", text(v), " does not exist");
  }

  void check_axis_list(const Ints& axes, const char* what, bool may_repeat = false) {
    std::set<int64_t> seen;
    for (const int64_t axis : axes) {
      if (!is_axis(axis)) {
        report("the ", what, " names axis ", axis, ", which does not exist (there are ", num_axes(),
               ")");
      } else if (!seen.insert(axis).second && !may_repeat) {
        report("the ", what, " names ", axis_text(axis), " twice");
      }
    }
  }

  // That all values and axes exist. The other checks rely on it.
  bool check_references() {
    for (const Value v : kernel_.ops) check_value(v, "op");
    for (const BufferInfo& buffer : kernel_.inputs) check_value(buffer.buf_var, "input");
    for (const BufferInfo& buffer : kernel_.outputs) check_value(buffer.buf_var, "output");
    check_axis_list(mapping_.block, "block mapping");
    check_axis_list(mapping_.thread, "thread mapping");
    check_axis_list(mapping_.vec, "vec mapping");
    check_axis_list(mapping_.serial, "serial mapping", true);
    if (kernel_.reduce) check_axis_list(kernel_.reduce->axes, "reduction plan");
    if (const auto& plan = kernel_.matrix)
      check_axis_list({plan->rows, plan->columns, plan->reduced}, "matrix plan");
    for (const LoopHint& hint : kernel_.hints) {
      if (hint.axis && !is_axis(*hint.axis))
        report("the ", name_of(hint.kind), " hint names axis ", *hint.axis,
               ", which does not exist (there are ", num_axes(), ")");
      if (hint.var) check_value(*hint.var, "hint's value");
    }
    for (size_t s = 0; s < kernel_.stages.size(); ++s) {
      const std::string what = concat("stage ", s);
      check_axis_list(kernel_.stages[s].axes, what.c_str());
      std::vector<StageValue> values = kernel_.stages[s].values;
      if (kernel_.stages[s].keeps) values.push_back(*kernel_.stages[s].keeps);
      for (const StageValue& value : values) {
        check_value(value.value, "stage value");
        if (value.strides.size() != iter_.axes.size())
          report(what, " gives ", text(value.value), " ", value.strides.size(), " strides for ",
                 num_axes(), " axes");
      }
    }
    return violations_.empty();
  }

  // Axes, mapping, tiles.

  void check_axes() {
    std::set<int64_t> reduced;
    for (const Stage& stage : kernel_.stages)
      if (stage.kind != StageKind::Map) reduced.insert(stage.axes.begin(), stage.axes.end());
    for (int64_t i = 0; i < num_axes(); ++i) {
      const Axis& axis = iter_.axes[i];
      if (!axis.size && !axis.sym) {
        report(axis_text(i), " has no size");
        continue;
      }
      if (axis.extent() < 1) report(axis_text(i), " has size ", axis.extent());
      const AxisRole role = reduced.count(i) ? AxisRole::Reduction : AxisRole::Normal;
      if (axis.role != role)
        report(axis_text(i), " has the role ", name_of(axis.role), ", but ",
               reduced.count(i) ? "a stage reduces it" : "no stage reduces it");
    }
  }

  // Whether workgroups share the axis of a Scatter's updates or of a reduction.
  bool is_atomic(int64_t axis) const {
    return kernel_.reduce && kernel_.reduce->inter_thread == InterThread::Atomic &&
           std::any_of(kernel_.stages.begin(), kernel_.stages.end(), [&](const Stage& stage) {
             return (stage.kind == StageKind::Scatter || stage.kind == StageKind::Reduce) &&
                    contains(stage.axes, axis);
           });
  }

  void check_mapping() {
    for (int64_t i = 0; i < num_axes(); ++i) {
      const bool block = contains(mapping_.block, i), thread = contains(mapping_.thread, i);
      const bool vec = contains(mapping_.vec, i), serial = contains(mapping_.serial, i);
      if (!block && !thread && !serial) report(axis_text(i), " is mapped nowhere");
      if (thread && (serial || vec))
        report(axis_text(i), " is mapped twice: to threads and to loops");
      if (vec && !serial) report(axis_text(i), " has vectors but no loop");
      if (block && !contains(outer_, i) && !is_atomic(i))
        report(axis_text(i), " is a block axis, but a stage's own");
      if (thread && contains(outer_, i) && !block)
        report(axis_text(i), " is an outer thread axis, but no block axis");
    }
    const bool grid_threads =
        std::any_of(mapping_.thread.begin(), mapping_.thread.end(),
                    [&](int64_t axis) { return contains(mapping_.block, axis); });
    if (grid_threads && mapping_.thread != mapping_.block && !kernel_.matrix)
      report("threads over outer axes must run over all block axes, in their order");
  }

  void check_tiles() {
    if (iter_.tiles.size() != iter_.axes.size())
      return report("there are tiles for ", iter_.tiles.size(), " axes, not for ", num_axes());
    for (int64_t i = 0; i < num_axes(); ++i) {
      const Ints& tiles = iter_.tiles[i];
      if (tiles.empty() || *std::min_element(tiles.begin(), tiles.end()) < 1) {
        report(axis_text(i), " has the tiles ", text::to_text(tiles));
        continue;
      }
      for (size_t t = 1; t < tiles.size(); ++t)
        if (tiles[t - 1] % tiles[t] != 0)
          report(axis_text(i), " has a tile of ", tiles[t - 1], ", not a multiple of the next, ",
                 tiles[t]);
      if (is_of_matrix(i)) continue;
      const int64_t lanes = contains(mapping_.vec, i) ? kernel_.lanes() : 1;
      if (kernel_.phases.empty() && tiles.back() != kernel_.unroll(i) * lanes)
        report(axis_text(i), " has an innermost tile of ", tiles.back(),
               ", not unroll factor times lanes, ", kernel_.unroll(i) * lanes);
      if (tiles.front() > round_up(extent(i), tiles[tiles.size() > 1]))
        report(axis_text(i), " has a tile of ", tiles.front(), " for a size of ", extent(i));
      const bool looped = contains(mapping_.serial, i) || contains(mapping_.thread, i);
      if (!looped && tiles.front() != 1)
        report(axis_text(i), " has no loop, but tiles of ", tiles.front(), " for a workgroup");
      const auto loops = std::count(mapping_.serial.begin(), mapping_.serial.end(), i);
      const auto sizes = static_cast<int64_t>(tiles.size()) - contains(mapping_.block, i);
      if (contains(outer_, i) && contains(mapping_.serial, i) && loops != sizes)
        report(axis_text(i), " has ", loops, " loops for ", sizes, " tiles within a workgroup");
      if (!contains(outer_, i) && loops > 1) report(axis_text(i), " has ", loops, " loops");
    }
  }

  void check_launch() {
    const ScheduleContext& context = kernel_.context;
    for (const Ints* dims : {&context.global_dims, &context.local_dims})
      if (dims->size() != 3 || *std::min_element(dims->begin(), dims->end()) < 1)
        return report("launch dimensions are ", text::to_text(*dims));
    const bool outer_threads =
        !kernel_.matrix && !mapping_.thread.empty() && contains(mapping_.block, mapping_.thread[0]);
    const int64_t threads = num_elements(context.local_dims);
    int64_t groups = 1;
    for (const int64_t axis : mapping_.block)
      groups *= outer_threads ? extent(axis)
                              : round_up(extent(axis), iter_.tiles[axis][0]) / iter_.tiles[axis][0];
    if (outer_threads) groups = round_up(groups, threads) / threads;
    if (num_elements(context.global_dims) != groups)
      report("the launch has ", num_elements(context.global_dims),
             " workgroups, but the block axes need ", groups);
    if (threads > 1 && mapping_.thread.empty())
      report("workgroups have ", threads, " threads, but no axis is mapped to threads");
  }

  // Plans and hints.

  bool is_of_matrix(int64_t axis) const {
    const auto& plan = kernel_.matrix;
    return plan && (axis == plan->rows || axis == plan->columns || axis == plan->reduced);
  }

  void check_hints() {
    std::set<std::pair<HintKind, int64_t>> seen;
    std::set<int64_t> vectorized;
    for (const LoopHint& hint : kernel_.hints) {
      const char* name = name_of(hint.kind);
      const bool of_axis = hint.kind == HintKind::Vectorize || hint.kind == HintKind::Unroll ||
                           hint.kind == HintKind::Pipeline;
      if (hint.amount < 1) report("a ", name, " hint has the amount ", hint.amount);
      if (hint.kind == HintKind::Prefetch && hint.axis && hint.var) {
        check_row_prefetch(hint);
        continue;
      }
      if (of_axis != hint.axis.has_value() || of_axis == hint.var.has_value()) {
        report("a ", name, " hint needs ", of_axis ? "an axis" : "a value", " and nothing else");
        continue;
      }
      if (of_axis && !seen.insert({hint.kind, *hint.axis}).second)
        report(axis_text(*hint.axis), " has two ", name, " hints");
      if (hint.kind == HintKind::Pipeline) check_pipeline(hint);
      if (hint.kind == HintKind::Vectorize) {
        vectorized.insert(*hint.axis);
        if (hint.amount != kernel_.lanes())
          report(axis_text(*hint.axis), " has vectors of ", hint.amount, " lanes, others of ",
                 kernel_.lanes());
      }
      if (hint.var && !is_buffer(kernel_.outputs, *hint.var) &&
          (hint.kind == HintKind::Nontemporal || !is_buffer(kernel_.inputs, *hint.var)))
        report("a ", name, " hint names ", text(*hint.var),
               ", which is no buffer that it could be for");
    }
    if (vectorized != std::set<int64_t>(mapping_.vec.begin(), mapping_.vec.end()))
      report("the vec mapping ", text::to_text(mapping_.vec),
             " does not match the Vectorize hints");
  }

  void check_row_prefetch(const LoopHint& hint) {
    if (!is_buffer(kernel_.inputs, *hint.var))
      report("a Prefetch hint names ", text(*hint.var), ", which is no input");
    const auto reduces = [&](const Stage& stage) { return contains(stage.axes, *hint.axis); };
    if (std::none_of(kernel_.stages.begin(), kernel_.stages.end(), reduces))
      report("a Prefetch hint names ", axis_text(*hint.axis), ", which is no stage's");
  }

  // What is pipelined are the steps through the panels of a matrix plan.
  void check_pipeline(const LoopHint& hint) {
    if (!kernel_.matrix || kernel_.scratch.empty())
      report(axis_text(*hint.axis), " has a Pipeline hint, but the kernel no panels");
    else if (*hint.axis != kernel_.matrix->reduced || hint.amount > 2)
      report(axis_text(*hint.axis), " has a Pipeline hint of ", hint.amount,
             ", not 1 or 2 on the reduced axis of the matrix plan");
  }

  void check_reduction_plan() {
    std::set<int64_t> reduced;
    for (const Stage& stage : kernel_.stages)
      if (stage.kind != StageKind::Map) reduced.insert(stage.axes.begin(), stage.axes.end());
    if (!kernel_.reduce) {
      if (!reduced.empty()) report("stages reduce, but there is no reduction plan");
      return;
    }
    const ReductionPlan& plan = *kernel_.reduce;
    if (std::set<int64_t>(plan.axes.begin(), plan.axes.end()) != reduced)
      report("the reduction plan is for the axes ", text::to_text(plan.axes),
             ", but the stages reduce ", text::to_text(Ints(reduced.begin(), reduced.end())));
    const bool across = std::any_of(plan.axes.begin(), plan.axes.end(),
                                    [&](int64_t axis) { return contains(mapping_.thread, axis); });
    const bool combines = plan.inter_thread != InterThread::None;
    if (across != combines && plan.inter_thread != InterThread::GridReduce)
      report("the reduction plan combines threads by ", name_of(plan.inter_thread), ", but ",
             across ? "threads share a reduction" : "each thread has reductions of its own");
    if (plan.intra_thread == IntraThread::Shfl && (!across || scatters()))
      report("the reduction plan has shuffles, but threads are combined by ",
             name_of(plan.inter_thread));
    if (plan.intra_thread == IntraThread::Welford && !reduces_moments(graph_, kernel_))
      report("the reduction plan says Welford, but no stage reduces deviations and their squares");
    if (plan.inter_thread == InterThread::Atomic) check_atomic_reductions();
  }

  bool scatters() const {
    return std::any_of(kernel_.stages.begin(), kernel_.stages.end(),
                       [](const Stage& stage) { return stage.kind == StageKind::Scatter; });
  }

  // Workgroups combine nothing but what they store, in a buffer that has been begun.
  void check_atomic_reductions() {
    for (const Stage& stage : kernel_.stages)
      for (const StageValue& value : stage.values) {
        const bool begun = is_buffer(kernel_.inputs, value.value);
        if (stage.kind == StageKind::Reduce && (!begun || !is_buffer(kernel_.outputs, value.value)))
          report("workgroups combine ", text(value.value),
                 ", which is not both an input, that an earlier kernel began, and an output");
        if (stage.kind == StageKind::Map && !scatters() && !begun)
          report("a kernel whose workgroups combine atomically stores ", text(value.value),
                 ", which it does not reduce");
      }
  }
  // Phases.

  static bool begins_with(const Ints& list, const Ints& start) {
    return list.size() >= start.size() && std::equal(start.begin(), start.end(), list.begin());
  }

  void check_phases() {
    if (!kernel_.stages.empty()) report("there are phases and stages");
    std::set<Value> given, stored, scratch;
    for (const BufferInfo& buffer : kernel_.inputs) given.insert(buffer.buf_var);
    for (const BufferInfo& buffer : kernel_.scratch) scratch.insert(buffer.buf_var);
    std::set<Value> unread = given;
    for (size_t p = 0; p < kernel_.phases.size(); ++p) {
      const Kernel& phase = kernel_.phases[p];
      for (const std::string& violation : verify_kernel(graph_, phase))
        report("phase ", p, ": ", violation);
      check_shared_loops(p, phase);
      for (const BufferInfo& buffer : phase.inputs) {
        unread.erase(buffer.buf_var);
        if (!given.count(buffer.buf_var) && !stored.count(buffer.buf_var))
          report("phase ", p, " reads ", text(buffer.buf_var),
                 ", which is no input and which no phase before it stores");
      }
      for (const BufferInfo& buffer : phase.outputs) {
        stored.insert(buffer.buf_var);
        if (scratch.count(buffer.buf_var) == is_buffer(kernel_.outputs, buffer.buf_var))
          report("phase ", p, " stores ", text(buffer.buf_var),
                 ", which must be either an output or in a scratch buffer");
      }
    }
    for (const Value v : unread) report("no phase reads the input ", text(v));
    for (const BufferInfo& buffer : kernel_.outputs)
      if (!stored.count(buffer.buf_var))
        report("no phase stores the output ", text(buffer.buf_var));
    for (const BufferInfo& buffer : kernel_.scratch) check_scratch_buffer(buffer, stored);
  }

  void check_shared_loops(size_t p, const Kernel& phase) {
    const IterSpace& iter = phase.iter;
    if (!phase.phases.empty()) report("phase ", p, " has phases itself");
    if (iter.mapping.block != mapping_.block ||
        phase.context.global_dims != kernel_.context.global_dims ||
        !begins_with(iter.mapping.serial, mapping_.serial))
      report("phase ", p, " has other workgroups or first loops than the kernel");
    for (int64_t i = 0; i < num_axes(); ++i)
      if (i >= static_cast<int64_t>(iter.axes.size()) ||
          i >= static_cast<int64_t>(iter.tiles.size()) || iter.axes[i].extent() != extent(i) ||
          !begins_with(iter.tiles[i], iter_.tiles[i]))
        report("phase ", p, " has another axis ", i, " than the kernel, or other tiles of it");
  }

  // Buffers.

  void check_buffers() {
    for (const auto* buffers : {&kernel_.inputs, &kernel_.outputs}) {
      const bool input = buffers == &kernel_.inputs;
      std::set<Value> seen;
      for (const BufferInfo& buffer : *buffers) {
        const std::string name = concat(input ? "the input " : "the output ", text(buffer.buf_var));
        const graph::Metadata& meta = graph_[buffer.buf_var].meta;
        if (!seen.insert(buffer.buf_var).second) report(name, " is listed twice");
        if (!(input ? buffer.is_input : buffer.is_output)) report(name, " is not marked as such");
        if (buffer.dtype != meta.dtype)
          report(name, " is ", name_of(buffer.dtype), ", but the graph has ", name_of(meta.dtype));
        if (buffer.layout.shape != meta.shape)
          report(name, " has the shape ", shape_text(buffer.layout.shape), ", but the graph has ",
                 shape_text(meta.shape));
        if (buffer.layout.strides.size() != buffer.layout.shape.size())
          report(name, " has ", buffer.layout.strides.size(), " strides for ",
                 buffer.layout.shape.size(), " dimensions");
        if (buffer.alloc.size_bytes < num_elements(meta.shape) * size_of(meta.dtype))
          report(name, " has ", buffer.alloc.size_bytes, " bytes, but needs ",
                 num_elements(meta.shape) * size_of(meta.dtype));
      }
    }
  }

  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> verify_kernel(const Graph& graph, const Kernel& kernel) {
  return KernelVerifier(graph, kernel).run();
}

}  // namespace rune::schedule::detail
