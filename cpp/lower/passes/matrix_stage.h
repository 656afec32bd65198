// A contraction by the matrix operation of SIMD-groups or the multiply-adds of threads
// (schedule::MatrixPlan).
#pragma once

#include <array>

#include "lower/passes/kernel_context.h"
#include "schedule/mapping/matrix_tiles.h"

namespace rune::lower {

// Lowers the tiles of one thread's SIMD-group. The operation's layout determines the elements of a
// tile that a thread holds (Fragment).
class MatrixStage : Lowering {
 public:
  // Throws InternalError if the device lacks the operation of the kernel's plan.
  explicit MatrixStage(KernelContext& context);

  // Returns the thread's points, one row of tiles after the other. `group` is the workgroup's
  // point: along the axes of rows and columns, it has the number of the workgroup's block.
  Points points(const Point& group);
  // Computes the stage's contraction at these points, which points() has returned.
  void run(const schedule::Stage& stage, const Points& points);

 private:
  // A position along an axis, which is valid where the mask holds.
  struct Position {
    sym::Expr at;
    sym::Mask mask;
  };
  // The row and the column in a tile of the first element that the thread holds.
  struct Place {
    sym::Expr row, column;
  };
  // The elements of a tile that a thread holds: pieces of `lanes` neighbours of a row, or of a
  // column. `pieces` has the distance of each piece from the first element, in rows and columns.
  struct Fragment {
    Place first;
    int64_t lanes = 1;
    bool in_column = false;
    std::vector<std::pair<int64_t, int64_t>> pieces;
  };

  // An operand's panels in shared memory. Copies follow each other. Neighbouring threads fill
  // neighbouring elements of a row (by_rows) or of a column, whichever are adjacent in memory.
  struct Panel {
    schedule::Panel shape;
    Var memory;
    bool by_rows = true;
    int64_t neighbours = 1;  // how many a thread copies
  };
  // An element that a thread copies to a position of a side's panel, if the element exists.
  struct Element {
    size_t side;
    sym::Expr position;
    Var value;
    sym::Mask exists;
  };
  using Copied = std::vector<Element>;

  // The elements that the thread holds of tile number `tile` (a, b, c), which has this many
  // columns.
  Fragment fragment(size_t tile, int64_t columns) const;
  Position position(const sym::Expr& at, int64_t reach, int64_t axis, bool in_lanes);
  // Side 0 of the block is along the axis of its rows, side 1 along that of its columns. in_block()
  // gives the places of the SIMD-group's tiles in the block, of_block() the position along the axis
  // of a place in the block, and along() the positions of the SIMD-group's tiles.
  std::vector<sym::Expr> in_block(size_t side, const sym::Expr& place) const;
  Position of_block(size_t side, const sym::Expr& at, bool in_lanes);
  std::vector<Position> along(size_t side, const sym::Expr& place);
  schedule::Access operand(const schedule::Stage& stage, size_t side, const Position& position,
                           const Position& reduced) const;
  Var or_zero(Var value, const sym::Mask& mask);
  void multiply(const std::vector<Var>& a, const std::vector<Var>& b, const std::vector<Var>& sums);

  void accumulate_directly(const schedule::Stage& stage, const std::vector<Var>& sums);
  void accumulate(const schedule::Stage& stage, const std::vector<Var>& sums,
                  const sym::Expr& first, int64_t reach);

  void make_panels();
  int64_t neighbours(size_t side, bool along_reduced) const;
  Copied load_panels(const schedule::Stage& stage, const sym::Expr& step);
  void store_panels(const Copied& copied, const sym::Expr& copy);
  Var load_fragment(size_t side, const sym::Expr& copy, const Place& tile, const Fragment& held);
  void multiply_panels(const std::vector<Var>& sums, const sym::Expr& copy);
  void accumulate_by_panels(const schedule::Stage& stage, const std::vector<Var>& sums);

  const schedule::MatrixPlan& plan_;
  const MatrixOp op_;
  const int64_t width_;  // the number of threads of a SIMD-group
  sym::Expr thread_;     // the thread's number in the SIMD-group
  sym::Expr simd_;       // the SIMD-group's number in the workgroup
  Point group_;
  std::array<Panel, 2> panels_;
};

}  // namespace rune::lower
