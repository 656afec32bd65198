// A contraction by the matrix operation of SIMD-groups (schedule::MatrixPlan).
#pragma once

#include "lower/passes/kernel_context.h"

namespace rune::lower {

// The tiles of one thread's SIMD-group. A thread holds `lanes` neighbours of a row of each tile, by
// the operation's layout.
class MatrixStage {
 public:
  // Throws InternalError if the device has no operation as the kernel's plan wants it.
  explicit MatrixStage(KernelContext& context);

  // The thread's points, row after row of tiles; `group` has the workgroup's axes, of the rows and the
  // columns the number of its block.
  Points points(const Point& group);
  // Computes the stage's contraction at these points, which points() gave last.
  void run(const schedule::Stage& stage, const Points& points);

 private:
  // Where along an axis; it counts only where the mask holds.
  struct Position {
    sym::Expr at;
    sym::Mask mask;
  };
  // The row and the column of the first element that the thread holds of a tile.
  struct Place {
    sym::Expr row, column;
  };

  Place place_in_tile(size_t tile, int64_t columns) const;
  Position position(const sym::Expr& at, int64_t reach, int64_t axis, bool in_lanes);
  std::vector<Position> rows(const sym::Expr& place);
  std::vector<Position> columns(const sym::Expr& place);
  std::vector<Position> along(int64_t axis, size_t side, const sym::Expr& simd,
                              const sym::Expr& place);
  schedule::Access operand(const schedule::Stage& stage, size_t number, int64_t axis,
                           const Position& position, const Position& reduced) const;
  void accumulate(const schedule::Stage& stage, const std::vector<Var>& sums,
                  const sym::Expr& first, int64_t reach);

  KernelContext& context_;
  ScopedBuilder& builder_;
  ValueEmitter& values_;
  const schedule::MatrixPlan& plan_;
  const MatrixOp& op_;
  sym::Expr thread_;  // its number in the SIMD-group
  sym::Expr simd_;    // the SIMD-group's number in the workgroup
  Point group_;
};

}  // namespace rune::lower
