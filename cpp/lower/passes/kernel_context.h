// What the stages of one kernel share while it is lowered.
#pragma once

#include <vector>

#include "lower/passes/loop_nest.h"

namespace rune::lower {

struct KernelContext {
  KernelContext(Launch& launch, const schedule::Kernel& kernel);

  // The index at a point of a stage's value.
  Index index_of(const schedule::Stage& stage, const schedule::StageValue& value,
                 const std::vector<sym::Expr>& axes) const;
  // Where a kept value's element at a point is, over all axes, those that the stage reduces too.
  Index kept_index(const schedule::StageValue& kept, const std::vector<sym::Expr>& axes) const;
  // Keeps the stage's value at these points in scratch memory that counts from `origin`.
  void keep_points(const schedule::Stage& stage, const Index& origin, const Points& points);
  // Whether the value is stored past the caches.
  bool is_nontemporal(Value v) const;

  const schedule::Graph& graph;
  const schedule::Kernel& kernel;
  const Capabilities& caps;
  const DType index_dtype;
  const Ints outer;  // axes in no stage
  ScopedBuilder& builder;
  ValueEmitter values;
  LoopNest nest;
};

}  // namespace rune::lower
