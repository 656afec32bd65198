// The state that the stages of one kernel share while it is lowered.
#pragma once

#include <optional>
#include <vector>

#include "lower/passes/loop_nest.h"
#include "lower/passes/value_emitter.h"
#include "schedule/analysis/accesses.h"

namespace rune::lower {

// A tile of a reduced axis whose sums are carried from tile to tile in the kernel's output.
struct CarriedTile {
  int64_t axis;
  sym::Expr first;
  int64_t size;
  bool begins, ends;  // whether it is the first tile, and whether it is the last
  // The tile's number, in a loop over all tiles. The loop decides whether it is the first or the
  // last, and the last tile may be shorter.
  std::optional<Tile> of_loop = std::nullopt;
};

struct KernelContext {
  KernelContext(Launch& launch, const schedule::Kernel& kernel);

  // The index at a point of a stage's value.
  Index index_of(const schedule::Stage& stage, const schedule::StageValue& value,
                 const std::vector<sym::Expr>& axes) const;
  // The index of a kept value's element at a point. The point has all axes, including those that
  // the stage reduces.
  Index kept_index(const schedule::StageValue& kept, const std::vector<sym::Expr>& axes) const;
  // Stores the stage's value at these points in scratch memory, whose first element has the index
  // `origin`.
  void keep_points(const schedule::Stage& stage, const Index& origin, const Points& points);
  // Whether the value is stored past the caches.
  bool is_nontemporal(Value v) const;

  const schedule::Graph& graph;
  const schedule::Kernel& kernel;
  const Capabilities& caps;
  const Ints outer;  // the axes that belong to no stage
  ScopedBuilder& builder;
  IndexEmitter index;
  MemoryEmitter memory;
  ValueEmitter values;
  LoopNest nest;
  std::optional<CarriedTile> carried;
};

// The base of classes that lower a part of a kernel: names the parts of its context.
class Lowering {
 protected:
  explicit Lowering(KernelContext& context)
      : context_(context),
        graph_(context.graph),
        builder_(context.builder),
        index_(context.index),
        memory_(context.memory),
        values_(context.values),
        nest_(context.nest) {}

  KernelContext& context_;
  const schedule::Graph& graph_;
  ScopedBuilder& builder_;
  IndexEmitter& index_;
  MemoryEmitter& memory_;
  ValueEmitter& values_;
  LoopNest& nest_;
};

}  // namespace rune::lower
