// Maps contractions to tiles: the tiles of the result that a SIMD-group computes by matrix
// operations, or a thread by multiply-adds, and the panels of the operands that a workgroup shares.
#pragma once

#include <array>
#include <optional>

#include "schedule/analysis/accesses.h"

namespace rune::schedule {

// Maps a kernel with one contraction and any elementwise operations, as map_axes does for other
// kernels. Uses a matrix operation for the kernel's dtypes, or multiply-adds if panels in shared
// memory are worth their cost. If the kernel widens an operand, and the operation supports the
// narrow dtype, it multiplies in that. Returns false and changes nothing if the kernel has no such
// contraction, or a small one.
bool map_matrix_contraction(const Graph& graph, const Capabilities& caps, Kernel& kernel);

// The part of an operand that a workgroup has in shared memory: a matrix whose rows (columns if it
// is `transposed`) are `stride` elements apart. The stride is their length plus one tile, at most 8
// elements along the reduced axis, so that they begin in different memory banks.
struct Panel {
  int64_t rows = 0, columns = 0, stride = 0;
  bool transposed = false;
  int64_t elements() const { return (transposed ? columns : rows) * stride; }
};

// The panels of a plan with a depth: (block of rows) x depth of one operand, depth x (block of
// columns) of the other. The first is transposed if a thread multiplies neighbours in a column, the
// second if a thread holds neighbours in a column.
std::array<Panel, 2> matrix_panels(const MatrixPlan& plan);

// The shared memory for all copies of both panels, each of which begins at a multiple of 16 bytes.
int64_t panel_bytes(const MatrixPlan& plan);

// The value that is multiplied for a contraction's operand: the operand, or the value that the
// kernel widens to it.
Value multiplied_operand(const Graph& graph, Value operand, const MatrixPlan& plan);

// The plan's operation on a tile of a SIMD-group; with m and k of 1, multiply-adds of a thread on n
// adjacent elements of a row. Nothing if the device lacks it.
std::optional<MatrixOp> planned_operation(const MatrixPlan& plan, DType result,
                                          const Capabilities& caps);

// The violations of a kernel's MatrixPlan, whose axes exist.
std::vector<std::string> verify_matrix_plan(const Graph& graph, const Kernel& kernel);

}  // namespace rune::schedule
