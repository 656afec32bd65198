// A contraction by the matrix operation of SIMD-groups or the multiply-adds of threads
// (schedule::MatrixPlan).
#pragma once

#include <array>

#include "lower/passes/kernel_context.h"
#include "schedule/mapping/matrix_tiles.h"

namespace rune::lower {

// Lowers the tiles of one thread's SIMD-group. As the operation's layout says, a thread holds
// `lanes` neighbours of a row of each tile.
class MatrixStage : Lowering {
 public:
  // Throws InternalError if the device has no operation as the kernel's plan wants it.
  explicit MatrixStage(KernelContext& context);

  // Returns the thread's points, row by row of tiles. `group` is the workgroup's point; its axes of
  // rows and columns have the number of its block.
  Points points(const Point& group);
  // Computes the stage's contraction at these points, which points() gave last.
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
  // What a thread holds of a tile: pieces of `lanes` neighbours of a row, or of a column. `pieces`
  // has the distance of each piece from the first element, in rows and in columns.
  struct Fragment {
    Place first;
    int64_t lanes = 1;
    bool in_column = false;
    std::vector<std::pair<int64_t, int64_t>> pieces;
  };

  // An operand's panels in shared memory; copies follow each other. Neighbouring threads fill
  // neighbouring elements of a row if by_rows, else of a column, whichever is adjacent in memory.
  struct Panel {
    schedule::Panel shape;
    Var memory;
    bool by_rows = true;
    int64_t neighbours = 1;  // that a thread copies
  };
  // An element that a thread copies to a position of a side's panel, if the element exists.
  struct Element {
    size_t side;
    sym::Expr position;
    Var value;
    sym::Mask exists;
  };
  using Copied = std::vector<Element>;

  // What the thread holds of tile a, b or c, which has this many columns.
  Fragment fragment(size_t tile, int64_t columns) const;
  Position position(const sym::Expr& at, int64_t reach, int64_t axis, bool in_lanes);
  // Side 0 of the block is along the axis of its rows, side 1 along that of its columns. The first
  // function gives the places of the SIMD-group's tiles in the block, the second the position along
  // the axis of a place, the third the positions of the SIMD-group's tiles.
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
  const int64_t width_;  // threads of a SIMD-group
  sym::Expr thread_;     // its number in the SIMD-group
  sym::Expr simd_;       // the SIMD-group's number in the workgroup
  Point group_;
  std::array<Panel, 2> panels_;
};

}  // namespace rune::lower
