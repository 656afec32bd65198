// Plans how the loops of a Loop_Nest run in memory: as statements on cells, in order.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "graph/node.h"

namespace rune::driver {

// Memory for a value of this type, in row-major order. It holds different values over time.
struct Cell {
  DType dtype = DType::Float32;
  Shape shape;
  // Set if the cell is an input or output of the nest. Otherwise it belongs to the kernel.
  std::optional<size_t> input = std::nullopt, output = std::nullopt;
  // The number of loops around it. The cell is memory of an iteration of the innermost of them.
  // Values that a loop carries are in cells outside of that loop.
  size_t depth = 0;
};

// Computes a graph. Its Placeholders read cells, and its outputs are stored to other cells. Its
// variables are the counters of the loops around it, and the variables of Binds before it.
struct Compute {
  graph::Graph graph;
  std::vector<size_t> inputs, outputs;  // cells, by argument and by output
  // If present, the only output is a part of its cell that begins at these offsets. If the graph
  // also reads the cell, each element of the output depends only on the element in its place.
  std::optional<std::vector<Dim>> offsets = std::nullopt;
};

// Copies all elements of the cell `part` into the cell `target`, from these offsets on.
struct Store {
  size_t target = 0;
  std::vector<Dim> offsets;
  size_t part = 0;
  // Whether nothing needs to be copied, since all elements are replaced before they are read.
  bool is_covered = false;
};

struct Statement;

// Gives a variable the value of a cell, until the loop around it ends.
struct Bind {
  SymVar variable;
  size_t cell = 0;
};

// The iterations of a loop.
struct LoopRange {
  SymVar counter;
  Dim start, stop;  // of Python's range, in terms of the variables around the loop
  int64_t step = 1;
  // If present, the number of a bool's memory. If the bool is false, the loop ends before the next
  // iteration.
  std::optional<size_t> goes_on;
};

// Runs the body in each iteration. The memory of `goes_on` is a cell.
struct Repeat : LoopRange {
  std::vector<Statement> body;
};

struct Statement {
  std::variant<Compute, Store, Bind, Repeat> action;
};

struct LoopPlan {
  std::vector<Cell> cells;
  std::vector<Statement> statements;
  // Whether the last statement is a loop whose iterations may run side by side: none accesses the
  // elements that another one stores, if they read the cells of `as_before` from the inputs. The
  // statements before it then store only to the kernel's own cells.
  bool is_parallel = false;
  // By cell: the input that is its initial value. Has the cells that an iteration reads in their
  // state before the loop, although later iterations store to them.
  std::map<size_t, size_t> as_before;
  // (output, input) of outputs that begin as copies of inputs. The copies come before the
  // statements.
  std::vector<std::pair<size_t, size_t>> copies;
};

// Whether a store copies a whole cell, of a size that is known and not 0.
bool is_whole(const LoopPlan& plan, const Store& store);

// Plans a Loop_Nest's graph. A carried value has one cell for all iterations. An Update stores to
// the cell of its target, unless the target is read later. A value that is computed from a cell,
// and read after another value has taken the cell's place, is stored before.
LoopPlan plan_loops(const graph::Graph& nest);

}  // namespace rune::driver
