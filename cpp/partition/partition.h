// Cuts a program into programs of blocks, for arrays that are in chunks. It does not know who runs
// the blocks.
//
// A pass computes results over a grid of blocks. A block computes every element that it needs
// between the pass's operands and results, so elements at the borders of blocks may be computed
// more than once. Passes belong to levels. A pass reads arguments and arrays of earlier levels.
// Three kinds of operations end a level:
// - A reduction along an axis of several chunks. A pass computes one partial result for each block.
//   They are combined in the order of the blocks.
// - An operation that needs whole axes or arrays, such as a running sum. Its operands or its
// results
//   become arrays.
// - A call to a function of the host. It is a pass of its own, with blocks of whole rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/node.h"
#include "partition/box.h"

namespace rune::partition {

// An array that passes read or that is an output.
struct Array {
  enum class Kind : uint8_t { Argument, Computed, Combined };
  Kind kind = Kind::Argument;
  int64_t number = 0;  // for an argument: its index
  DType dtype = DType::Float32;
  Chunks chunks;
};

// A result of a pass: each block computes a chunk of an array, or a part of a chunk.
struct Result {
  size_t array = 0;
  // For each axis of the array: the axis of the pass's grid that has its chunks, or -1 if the axis
  // is one chunk.
  Ints grid_axes;
  // For partial results: the operation that combines them, and the axes of the grid along which
  // they are combined.
  std::optional<ReduceOp> combine;
  Ints reduced;
};

// A box of an array.
struct Operand {
  size_t array;
  Box box;
};

// A call to a function of the host: the function's name and number, and the numbers of its results
// that the pass has.
struct Call {
  std::string name;
  int64_t number = 0;
  Ints results;
};

struct Pass {
  size_t level = 0;
  Chunks grid;  // the chunks of each axis of the grid, always several
  std::vector<Result> results;
  std::optional<Call> call;                    // made for each block instead of a program
  std::vector<size_t> programs;                // by block, in row-major order of the grid
  std::vector<std::vector<Operand>> operands;  // by block, in the order of the program's arguments
};

struct Plan {
  std::vector<Array> arrays;
  std::vector<graph::Graph> programs;
  std::vector<Pass> passes;     // a pass reads results of earlier ones
  std::vector<size_t> outputs;  // indices in `arrays`
};

// Cuts a graph of core nodes. `arguments` has the chunks of each argument, by index. A chunk is
// empty only if its axis is. Outputs get the chunks of the arguments from which they are computed.
// Throws UserError(Unsupported) for a node that cannot be cut, with the node, its line and a hint.
// The time is proportional to nodes times blocks.
Plan partition(const graph::Graph& graph, const std::vector<Chunks>& arguments);

// Prints the plan as text, for tests and readers.
std::string print(const Plan& plan);

}  // namespace rune::partition
