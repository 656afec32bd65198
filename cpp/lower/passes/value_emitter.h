// Computes values of the graph at index tuples. It follows operands down to memory, and emits the
// operations on the way back.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "lower/passes/memory_emitter.h"
#include "schedule/indexing/demand.h"

namespace rune::lower {

class ValueEmitter {
 public:
  ValueEmitter(Launch& launch, const schedule::Kernel& kernel, IndexEmitter& index,
               MemoryEmitter& memory);

  // Computes the wanted values in one sweep over the graph. A value that depends on the lane is a
  // vector. An access's mask says where the value is needed; elsewhere it may be anything, and no
  // memory is accessed.
  std::vector<Var> evaluate(const std::vector<Access>& wanted);
  Var evaluate_one(const Access& wanted) { return evaluate({wanted})[0]; }

  // Records the result of the reduction's element at this position.
  void define(Value reduction, const sym::Expr& position, Var result);

 private:
  // A value that has been computed, while the scope that holds it is open.
  struct Register {
    Var value;
    ScopedBuilder::ScopeName scope;
  };
  struct Hash {
    size_t operator()(const Access& access) const;
  };
  struct Equal {
    bool operator()(const Access& a, const Access& b) const {
      return a.value == b.value && a.index == b.index && a.mask == b.mask;
    }
  };

  const Var* find(const Access& access) const;
  Var known_value(const Access& access);
  // Lets threads exchange the elements that are loaded.
  void fetch(const schedule::Walk& walked);
  Var compute(const Access& access);
  Var compute_constant(Value v);
  Var compute_counted(const graph::Node& node, const sym::Expr& index);
  Var compute_alu(const graph::Node& node, const Access& access);
  Var compute_forward(const Access& access);
  Var compute_select(const Access& access);
  Var compute_reduction(const Access& access);
  // Computes a reduction that no stage computes, by a loop at the place where it is needed.
  Var fold_in_place(const Access& access);
  Var compute_gathered(const Access& access);
  // Prefetches the element that the gather loads for an index `ahead` elements further on in the
  // last dimension.
  void prefetch_gathered(const Access& access, int64_t ahead);
  Var zero_of(DType dtype) { return builder_.constant(Scalar::zero(dtype)); }

  ScopedBuilder& builder_;
  const schedule::Graph& graph_;
  const schedule::Kernel& kernel_;
  const std::vector<schedule::ConstantArgument>& arguments_;  // of the launch
  IndexEmitter& index_;
  MemoryEmitter& memory_;
  std::unordered_map<Access, Register, Hash, Equal> known_;
  std::map<uint32_t, std::vector<std::pair<sym::Expr, Var>>> reduced_;  // by reduction and position
};

}  // namespace rune::lower
