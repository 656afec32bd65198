#include "lower/passes/combine.h"

#include "alu/eval.h"
#include "base/error.h"

namespace rune::lower {

using sym::Expr;

namespace {

class Combiner : Lowering {
 public:
  explicit Combiner(KernelContext& context)
      : Lowering(context),
        threads_(context.nest.threads()),
        combination_(context.kernel.combination()) {}

  // Combines values in a tree.
  Var combine_copies(std::vector<Var> values, ReduceOp op) {
    while (values.size() > 1) {
      std::vector<Var> next;
      for (size_t i = 0; i + 1 < values.size(); i += 2)
        next.push_back(builder_.alu_here(alu_of(op), {values[i], values[i + 1]}));
      if (values.size() % 2) next.push_back(values.back());
      values = std::move(next);
    }
    return values[0];
  }

  // Combines lanes by halves.
  Var combine_lanes(Var x, ReduceOp op) {
    for (int lanes = builder_.type(x).lanes; lanes > 1; lanes /= 2) {
      Ints low, high;
      for (int i = 0; i < lanes / 2; ++i) low.push_back(i), high.push_back(i + lanes / 2);
      const Var a = builder_.shuffle_here(x, low), b = builder_.shuffle_here(x, high);
      x = builder_.alu_here(alu_of(op), {a, b});
    }
    return x;
  }

  // Combines the values of a workgroup's threads. All threads get the result.
  Var combine_threads(Var x, ReduceOp op) {
    RUNE_CHECK(combination_, "threads share a reduction, and nothing says how they combine");
    return combination_->threads == schedule::ThreadCombination::Shuffles
               ? combine_simd_groups(x, op)
               : combine_through_memory(x, op);
  }

  // Combines values within each SIMD-group. Then each SIMD-group combines the results of all.
  Var combine_simd_groups(Var x, ReduceOp op) {
    const int64_t width = context_.caps.simd_width, groups = threads_ / width;
    const DType dtype = builder_.type(x).dtype;
    x = builder_.simd_reduce(alu_of(op), width, x);
    if (groups == 1) return x;
    const Expr thread = nest_.thread_number(threads_);
    const Var lane = index_.emit(mod(thread, width));
    const Var shared = builder_.local(dtype, groups);
    const Var first = builder_.alu(AluOp::Cmpeq, {lane, index_.constant(0)});
    builder_.store(shared, index_.emit(floordiv(thread, width)), x, first, false);
    builder_.barrier();
    Var valid;
    if (groups < width) valid = builder_.alu(AluOp::Cmplt, {lane, index_.constant(groups)});
    x = builder_.load_here(shared, lane, 1, valid);
    if (valid.valid())
      x = builder_.alu_here(AluOp::Where, {valid, x, builder_.constant(neutral(op, dtype))});
    return builder_.simd_reduce(alu_of(op), width, x);
  }

  // Combines the threads' values in a tree, through shared memory.
  Var combine_through_memory(Var x, ReduceOp op) {
    const Var shared = builder_.local(builder_.type(x).dtype, threads_);
    const Var thread = index_.emit(nest_.thread_number(threads_));
    builder_.store(shared, thread, x, {}, false);
    builder_.barrier();
    for (int64_t half = threads_ / 2; half > 0; half /= 2) {
      builder_.open_if(builder_.alu(AluOp::Cmplt, {thread, index_.constant(half)}));
      const Var mine = builder_.load_here(shared, thread, 1, {});
      const Var other = builder_.load_here(
          shared, index_.emit(nest_.thread_number(threads_) + Expr(half)), 1, {});
      builder_.store(shared, thread, builder_.alu_here(alu_of(op), {mine, other}), {}, false);
      builder_.close_if();
      builder_.barrier();
    }
    return builder_.load_here(shared, index_.constant(0), 1, {});
  }

 private:
  const int64_t threads_;
  const schedule::Combination* const combination_;
};

}  // namespace

Var combine(KernelContext& context, const Partials& partials, ReduceOp op) {
  Combiner combiner(context);
  Var total = combiner.combine_copies(partials.copies, op);
  if (partials.in_lanes) total = combiner.combine_lanes(total, op);
  if (partials.in_threads) total = combiner.combine_threads(total, op);
  return total;
}

}  // namespace rune::lower
