#include "schedule/verify/verify_checks.h"

namespace rune::schedule::detail {

namespace {

class StageVerifier : KernelChecks {
 public:
  StageVerifier(const Graph& graph, const Kernel& kernel, std::vector<std::string>& violations)
      : KernelChecks(graph, kernel, violations) {}

  void check_stages() {
    if (kernel_.stages().empty()) report("there are no stages");
    std::set<std::pair<StageKind, Value>> seen;
    std::set<Value> stored;
    for (size_t s = 0; s < kernel_.stages().size(); ++s) {
      const Stage& stage = kernel_.stages()[s];
      if (stage.values.empty() && !stage.keeps) report("stage ", s, " has no values");
      for (const StageValue& value : stage.values) {
        check_stage_value(s, stage, value);
        if (!seen.insert({stage.kind, value.value}).second)
          report(text(value.value),
                 stage.kind == StageKind::Reduce ? " is reduced twice" : " is written twice");
        if (stage.kind == StageKind::Reduce) continue;
        stored.insert(value.value);
        if (!contains(kernel_.outputs, value.value))
          report("stage ", s, " stores ", text(value.value), ", which is missing from the outputs");
      }
    }
    for (const Value v : kernel_.outputs)
      if (!stored.count(v)) report("no stage stores the output ", text(v));
  }

  // Every kept value has a scratch buffer of its own and is read only after it has been kept.
  void check_scratch() {
    std::set<Value> kept;
    const int64_t num_loops = std::ssize(outer_loops(kernel_));
    for (size_t s = 0; s < kernel_.stages().size(); ++s) {
      const Stage& stage = kernel_.stages()[s];
      if (stage.depth && (stage.kind != StageKind::Map || !stage.values.empty() || !stage.keeps))
        report("stage ", s, " has a depth, but does more than keep a value");
      if (stage.depth && (*stage.depth < 0 || *stage.depth > num_loops))
        report("stage ", s, " is inside ", *stage.depth, " of ", num_loops, " loops");
      if (stage.takes)
        for (const Value v : *stage.takes)
          if (!kept.count(v)) report("stage ", s, " takes ", text(v), ", which no stage has kept");
      if (!stage.keeps) continue;
      if (!kept.insert(stage.keeps->value).second)
        report(text(stage.keeps->value), " is kept twice");
      if (!kernel_.scratch_of(stage.keeps->value))
        report("stage ", s, " keeps ", text(stage.keeps->value), ", which has no scratch buffer");
    }
    for (const Scratch& buffer : kernel_.scratch) check_scratch_buffer(buffer, kept);
  }

  // Checks the accesses of every stage.
  void check_accesses() {
    std::set<uint32_t> inputs, all_reductions, done, computed, read, begun;
    for (const Value v : kernel_.inputs) inputs.insert(v.id);
    for (const Stage& stage : kernel_.stages())
      if (stage.kind == StageKind::Reduce)
        for (const StageValue& value : stage.values) all_reductions.insert(value.value.id);
    const std::vector<sym::Expr> axes = axis_variables(iter_);
    for (size_t s = 0; s < kernel_.stages().size(); ++s) {
      const Stage& stage = kernel_.stages()[s];
      const auto use_reduction = [&](Value v) {
        if (!done.count(v.id))
          report("stage ", s, " uses the reduction ", text(v), " before it is complete");
      };
      std::vector<Seed> seeds;
      for (Seed& seed : stage_seeds(graph_, stage, axes)) {
        computed.insert(seed.value.id);
        if (stage.kind == StageKind::Scatter && !begun.count(seed.value.id)) {
          read.insert(seed.value.id);
          if (!inputs.count(seed.value.id))
            report("stage ", s, " updates ", text(seed.value),
                   ", which is missing from the inputs, and no earlier stage stores its initial "
                   "elements");
        }
        if (stage.kind == StageKind::Map) begun.insert(seed.value.id);
        if (stage.kind == StageKind::Map && all_reductions.count(seed.value.id)) {
          use_reduction(seed.value);
          if (inputs.count(seed.value.id)) read.insert(seed.value.id);
        } else if (stage.kind != StageKind::Map ||
                   evaluation_of(graph_[seed.value]) != Evaluation::Reduction) {
          seeds.push_back(std::move(seed));
        }
      }
      walk(graph_, seeds, [&](Value v, const std::vector<Demand>&) {
        if (all_reductions.count(v.id)) return use_reduction(v), true;
        if (inputs.count(v.id)) return read.insert(v.id), true;
        if (evaluation_of(graph_[v]) == Evaluation::Memory)
          return report("stage ", s, " reads ", text(v), ", which is missing from the inputs"),
                 true;
        computed.insert(v.id);
        return false;
      });
      if (stage.kind == StageKind::Reduce)
        for (const StageValue& value : stage.values) done.insert(value.value.id);
    }
    check_lists(computed, read);
  }

 private:
  struct Step {
    int64_t stride, extent;
    auto operator<=>(const Step&) const = default;
  };

  // Checks that sums of strides give each of 0 .. count-1 once: when sorted, each stride must equal
  // the number of positions that the smaller ones reach. Returns "" or a description of the error.
  static std::string coverage(std::vector<Step> steps, int64_t count) {
    std::sort(steps.begin(), steps.end());
    int64_t reached = 1;
    for (const Step& step : steps) {
      if (step.extent == 1) continue;
      if (step.stride < reached) return "reach some elements twice";
      if (step.stride > reached)
        return concat("leave gaps between ", reached, " and ", step.stride);
      reached *= step.extent;
    }
    if (reached > count)
      return concat("leave the value: ", reached, " positions for ", count, " elements");
    if (reached < count) return concat("reach only ", reached, " of ", count, " elements");
    return "";
  }

  void check_coverage(size_t s, const StageValue& value, const Ints& axes, int64_t count,
                      const char* what, std::vector<Step> steps = {}) {
    for (const int64_t axis : axes) steps.push_back({value.strides[axis], extent(axis)});
    const std::string wrong = coverage(std::move(steps), count);
    if (!wrong.empty())
      report("stage ", s, ": the ", what, "strides ", text::to_text(value.strides), " of ",
             text(value.value), " ", wrong);
  }

  // For a part of a value, positions must be distinct and within the value.
  void check_part(size_t s, const StageValue& value, const Ints& axes, int64_t count) {
    std::vector<Step> steps;
    for (const int64_t axis : axes) steps.push_back({value.strides[axis], extent(axis)});
    std::sort(steps.begin(), steps.end());
    int64_t last = 0;
    for (const Step& step : steps) {
      if (step.extent > 1 && step.stride <= last)
        report("stage ", s, ": the strides ", text::to_text(value.strides), " of ",
               text(value.value), " reach some elements twice");
      last += (step.extent - 1) * step.stride;
    }
    if (*value.offset < 0 || *value.offset + last >= count)
      report("stage ", s, ": stores positions ", *value.offset, " to ", *value.offset + last,
             " of ", text(value.value), ", which has ", count, " elements");
  }

  void check_stage_value(size_t s, const Stage& stage, const StageValue& value) {
    const graph::Node& node = graph_[value.value];
    const bool reduces =
        node.kind() == graph::NodeKind::Reduce_Axis || node.kind() == graph::NodeKind::Contract;
    for (int64_t i = 0; i < num_axes(); ++i)
      if (value.strides[i] != 0 && !contains(stage.axes, i) && !contains(outer_, i))
        report("stage ", s, ": ", text(value.value), " has a stride along ", axis_text(i),
               ", which is an axis of another stage");
    const bool scans = stage.kind == StageKind::Scan, scatters = stage.kind == StageKind::Scatter;
    if (scans != (node.kind() == graph::NodeKind::Scan) ||
        (scatters && node.kind() != graph::NodeKind::Scatter))
      return report("stage ", s, " is a ", name_of(stage.kind), ", but ", text(value.value), " a ",
                    graph::name_of(node.kind()));
    if (stage.kind == StageKind::Map || scans) {
      Ints axes = outer_;
      axes.insert(axes.end(), stage.axes.begin(), stage.axes.end());
      if (value.offset) return check_part(s, value, axes, max_elements(node.shape()));
      check_coverage(s, value, axes, max_elements(node.shape()), "");
      const int64_t along = scans ? contiguous_strides(node.shape())[sequential_axis(node)] : 0;
      if (scans && (stage.axes.size() != 1 || value.strides[stage.axes[0]] != along))
        report("stage ", s, " must run along the scanned axis, of stride ", along);
      return;
    }
    if (scatters) {
      const int64_t axis = sequential_axis(node);
      check_coverage(s, value, outer_, max_elements(node.shape()), "outer ",
                     {{contiguous_strides(node.shape())[axis], node.shape()[axis].bound()}});
      check_coverage(s, value, stage.axes, max_elements(reduced_shape(graph_, value.value)),
                     "inner ");
      return;
    }
    if (!reduces)
      return report("stage ", s, " reduces ", text(value.value), ", which is not a reduction");
    check_coverage(s, value, outer_, max_elements(node.shape()), "outer ");
    check_coverage(s, value, stage.axes, max_elements(reduced_shape(graph_, value.value)),
                   "inner ");
  }

  void check_lists(const std::set<uint32_t>& computed, const std::set<uint32_t>& read) {
    std::set<uint32_t> ops;
    for (const Value v : kernel_.ops) {
      if (!ops.insert(v.id).second) report("the op ", text(v), " is listed twice");
      if (!computed.count(v.id)) report("the op ", text(v), " is not computed by any stage");
    }
    for (const uint32_t id : computed)
      if (!ops.count(id)) report(text(Value{id}), " is computed, but missing from the ops");
    for (const Value v : kernel_.inputs)
      if (!read.count(v.id)) report("no stage reads the input ", text(v));
  }
};

}  // namespace

void KernelChecks::check_scratch_buffer(const Scratch& buffer, const std::set<Value>& kept) {
  const std::string name = concat("the scratch buffer ", text(buffer.value));
  const size_t rank = graph_[buffer.value].shape().size();
  if (!kept.count(buffer.value)) report(name, " is kept by no stage");
  if (buffer.shape.size() != rank || buffer.strides.size() != rank)
    return report(name, " has ", buffer.shape.size(), " sizes and ", buffer.strides.size(),
                  " strides for ", rank, " dimensions");
  if (buffer.run < 1) return report(name, " has runs of ", buffer.run);
  for (size_t d = 0; d < rank; ++d) {
    const int64_t width = buffer.run_axis == static_cast<int64_t>(d) ? buffer.run : 1;
    const int64_t last = buffer.shape[d] - 1;
    const int64_t reach = last / width * buffer.strides[d] + std::min(last, width - 1) + 1;
    if (last < 0 || buffer.elements < reach)
      report(name, " has ", buffer.elements, " elements, but reaches over ", reach,
             " along dimension ", d);
  }
}

void verify_stages(const Graph& graph, const Kernel& kernel, std::vector<std::string>& violations) {
  StageVerifier verifier(graph, kernel, violations);
  verifier.check_stages();
  verifier.check_scratch();
}

void verify_accesses(const Graph& graph, const Kernel& kernel,
                     std::vector<std::string>& violations) {
  StageVerifier(graph, kernel, violations).check_accesses();
}

}  // namespace rune::schedule::detail
