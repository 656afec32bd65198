// What the loops of a Loop_Nest do in memory: statements in the order in which they run.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "graph/node.h"

namespace rune::driver {

// Memory for a value of this type, row-major. It holds different values over time.
struct Cell {
  DType dtype = DType::Float32;
  Shape shape;
  // Of the nest, if it is one; else the cell is the kernel's own.
  std::optional<size_t> input = std::nullopt, output = std::nullopt;
  // Of loops around it. It is the memory of an iteration of the innermost of them: what a loop
  // carries lies outside of it.
  size_t depth = 0;
};

// Computes a graph whose Placeholders read cells and whose outputs are stored to other cells. Its
// variables are the counters of the loops around it, and those of Binds before it.
struct Compute {
  graph::Graph graph;
  std::vector<size_t> inputs, outputs;  // cells, by argument and by output
  // If present, the only output is a part of its cell, from these offsets on. If the graph reads
  // the cell, each of the output's elements depends on the element in its place alone.
  std::optional<std::vector<Dim>> offsets = std::nullopt;
};

// Copies all elements of a cell into another one, from these offsets on.
struct Store {
  size_t target = 0;
  std::vector<Dim> offsets;
  size_t part = 0;
};

struct Statement;

// Gives a variable the value of a cell, until the loop around it ends.
struct Bind {
  SymVar variable;
  size_t cell = 0;
};

// When the body of a loop runs.
struct LoopRange {
  SymVar counter;
  Dim start, stop;  // of Python's range, in terms of the variables around the loop
  int64_t step = 1;
  // If present, the number of a bool's memory: where it is false, the loop ends before the next
  // iteration.
  std::optional<size_t> goes_on;
};

// The memory of `goes_on` is a cell.
struct Repeat : LoopRange {
  std::vector<Statement> body;
};

struct Statement {
  std::variant<Compute, Store, Bind, Repeat> action;
};

struct LoopPlan {
  std::vector<Cell> cells;
  std::vector<Statement> statements;
  // Whether the last statement repeats iterations that may run side by side: none touches what
  // another one stores. The statements before it store to cells of the kernel's own only.
  bool is_parallel = false;
  // Outputs that begin as copies of inputs, (output, input): these are made before the statements.
  std::vector<std::pair<size_t, size_t>> copies;
};

// Plans a Loop_Nest's graph. What a loop carries has one cell for all iterations. An Update stores
// to the cell of its target, unless that is read later. What is computed from a cell's value before
// another one takes its place, and read afterwards, is stored before.
LoopPlan plan_loops(const graph::Graph& nest);

}  // namespace rune::driver
