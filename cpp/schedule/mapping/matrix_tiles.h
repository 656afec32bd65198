// Contractions in tiles: which tiles of the result a SIMD-group computes by matrix operations, or a
// thread by multiply-adds, and which panels of the operands a workgroup shares.
#pragma once

#include <array>
#include <optional>

#include "schedule/analysis/accesses.h"

namespace rune::schedule {

// Chooses everything that map_axes does, for a kernel of one contraction with any elementwise
// operations around it, on a device with a matrix operation for its dtypes, or for multiply-adds
// where panels in shared memory pay. Operands that the kernel widens are multiplied as they are
// where the operation does that. Returns false, changing nothing, if the kernel is no such
// contraction or too small.
bool map_matrix_contraction(const Graph& graph, const Capabilities& caps, Kernel& kernel);

// What a workgroup holds in shared memory of an operand at a time: a matrix whose rows are `stride`
// elements apart, a tile more than they are long, so that they begin in different memory banks.
struct Panel {
  int64_t rows = 0, columns = 0, stride = 0;
  int64_t elements() const { return rows * stride; }
};

// The panels of a plan with a depth: block of rows x depth of one operand, depth x block of columns
// of the other.
std::array<Panel, 2> matrix_panels(const MatrixPlan& plan);

// Shared memory for all copies of both.
int64_t panel_bytes(const MatrixPlan& plan);

// What is multiplied of a contraction's operand: itself, or what the kernel widens it from.
Value multiplied_operand(const Graph& graph, Value operand, const MatrixPlan& plan);

// The operation that the plan runs by, on a tile by its SIMD-group; with m and k of 1,
// multiply-adds of one thread on n neighbours of a row. Nothing if the device has none.
std::optional<MatrixOp> planned_operation(const MatrixPlan& plan, DType result,
                                          const Capabilities& caps);

// What is wrong with a kernel's MatrixPlan. The axes exist.
std::vector<std::string> verify_matrix_plan(const Graph& graph, const Kernel& kernel);

}  // namespace rune::schedule
