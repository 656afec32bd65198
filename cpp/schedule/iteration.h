// Iteration spaces: from a cluster of values to axes and stages, and what each point accesses.
#pragma once

#include <vector>

#include "schedule/fuse.h"
#include "schedule/indexing.h"
#include "schedule/schedule.h"

namespace rune::schedule {

// An access to memory at a point of a kernel's iteration space. Variable i is axis i.
struct MemoryAccess {
  Value value;
  sym::Expr position;  // row-major
  sym::Mask mask;
  bool is_store = false;
  size_t stage = 0;
  int64_t repeats = 1;  // evaluations per point: extents of reductions folded inside
};

// Axis variables of a kernel, as index expressions.
std::vector<sym::Expr> axis_variables(const IterSpace& iter);
// Row-major position of a stage's value, over the axes that are not the stage's own if it reduces.
sym::Expr value_position(const Stage& stage, const StageValue& value,
                         const std::vector<sym::Expr>& axes);
// Position of a Reduce stage's point among the elements reduced to one.
sym::Expr inner_position(const Stage& stage, const StageValue& value,
                         const std::vector<sym::Expr>& axes);

// Seeds of a walk that computes the stage's values at the point given by `axes`.
std::vector<Seed> stage_seeds(const Graph& graph, const Stage& stage,
                              const std::vector<sym::Expr>& axes);

// All accesses of a kernel whose stages and inputs are set. Also gathers, if asked, the operations:
// the nodes computed in it and, in `operations`, how many simple operations one run takes.
std::vector<MemoryAccess> memory_accesses(const Graph& graph, const Kernel& kernel);

// Axes and stages of a cluster, adjacent axes collapsed where every access allows it; mapping,
// hints and buffers' placement are still to be chosen. Sets ops, inputs and outputs. One kernel;
// two of a Scatter where the cluster does not store the beginning, and of a reduction whose
// workgroups combine atomically: the first stores what it begins with, the second brings the rest
// into that.
std::vector<Kernel> form_kernels(const Graph& graph, const Cluster& cluster, const Fusion& fusion);

// The buffer that holds all of a value, row-major.
BufferInfo whole_buffer(const Graph& graph, Value v, bool is_input);

// Axes in no stage.
Ints outer_axes(const Kernel& kernel);

// Whether a kernel computes a contraction.
bool contracts(const Graph& graph, const Kernel& kernel);

// Whether a stage's points must run in order: a Scan or a Scatter.
bool is_sequential(const Stage& stage);
// The last such stage of a kernel, or null.
const Stage* sequential_stage(const Kernel& kernel);

}  // namespace rune::schedule
