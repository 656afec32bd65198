// Emits index expressions and masks.
#pragma once

#include <unordered_map>
#include <vector>

#include "lower/passes/lane_expressions.h"
#include "lower/passes/launch.h"
#include "schedule/indexing/indexing.h"

namespace rune::lower {

class IndexEmitter {
 public:
  // Defines the variables of the graph and the arguments of the launch. Expressions that depend on
  // a lane variable are vectors of `lanes` lanes.
  IndexEmitter(Launch& launch, int lanes);

  // A variable for this value in index expressions.
  sym::Expr bind(Var value, sym::Bounds bounds);
  // The value of an argument of the launch.
  const sym::Expr& argument(int64_t number) const { return arguments_.at(number); }
  // The value of a size, which may be symbolic.
  sym::Expr size(const Dim& dim) const { return schedule::size_expr(graph_, dim); }
  // Emits an expression and returns a variable for it. The caller knows that its value is at least
  // 0 and less than `count`; the expression's own bounds may be wider.
  sym::Expr emit_and_bind(const sym::Expr& expr, int64_t count) {
    return bind(emit(expr), {0, count - 1});
  }
  // The number of the lane. If only the first `used` lanes matter, its bounds are tighter.
  sym::Expr lane(int64_t used) const;
  int lanes() const { return lanes_; }
  DType dtype() const { return dtype_; }

  // An index expression: a scalar, or a vector if it depends on the lane.
  Var emit(const sym::Expr& expr);
  // A condition: no Var if it is always true.
  Var emit(const sym::Mask& mask);
  Var constant(int64_t value) { return builder_.constant(Scalar::of(dtype_, value)); }

  // `value` where the condition holds, else `other`. Scalars are spread over the lanes of vectors.
  Var where(Var condition, Var value, Var other);

  // The position along an axis for an index that is data. A negative index counts from the end. An
  // index that is out of range becomes the nearest position in range.
  sym::Expr wrapped_position(Var index, const Dim& along);
  // The same for a scalar index. `valid` tells whether the index is in range.
  struct Position {
    sym::Expr position;
    Var valid;
  };
  Position checked_position(Var index, const Dim& along);
  // The position for an index that is data and known to be in range.
  sym::Expr position(Var index, const Dim& along) {
    return bind(builder_.cast(index, dtype_), {0, along.bound() - 1});
  }

 private:
  Var emit_atom(const sym::Atom& atom);
  // The quotient or remainder of vectors, without an instruction that divides: CPUs have none for
  // vectors, and LLVM would divide lanes one by one. No Var if the dividend may be too large.
  Var divide_lanes(const sym::Atom& atom);
  Var emit_condition(const sym::Expr& expr);
  Var both(Var a, Var b);

  ScopedBuilder& builder_;
  const schedule::Graph& graph_;
  const DType dtype_;
  const int lanes_;
  Var lane_numbers_;
  std::vector<sym::Expr> arguments_;
  std::unordered_map<uint32_t, Var> variables_;
  uint32_t next_variable_ = 0;
  uint32_t next_vector_variable_ = kFirstVectorVariable;
};

}  // namespace rune::lower
