// Cuts a program into programs of blocks, for arrays that are in chunks. It does not know who runs
// the blocks.
//
// A pass computes its results in one go over a grid of blocks. A block computes every element that
// it needs between the pass's operands and results, so elements at the borders of blocks may be
// computed more than once. Three things end a level; passes of later levels read what they leave,
// and the arguments again:
// - A reduction along an axis of several chunks. A pass computes partial results, one for each
//   block, which are combined in the order of the blocks.
// - An operation that needs whole axes or arrays, such as a running sum. Its operands or results
//   become arrays.
// - A call to a function of the host. It is a pass of its own, with blocks of whole rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/node.h"
#include "partition/box.h"

namespace rune::partition {

// An array that passes read, or that is an output.
struct Array {
  enum class Kind : uint8_t { Argument, Computed, Combined };
  Kind kind = Kind::Argument;
  int64_t number = 0;  // of an argument: its index
  DType dtype = DType::Float32;
  Chunks chunks;
};

// A result of a pass: each block computes a chunk of an array, or a part of a chunk.
struct Result {
  size_t array = 0;
  // For each axis of the array: the axis of the pass's grid that has its chunks, or -1 if the axis
  // is one chunk.
  Ints grid_axes;
  // For parts: the operation that combines them, and the axes of the grid along which it does.
  std::optional<ReduceOp> combine;
  Ints reduced;
};

// A box of an array.
struct Operand {
  size_t array;
  Box box;
};

// A call to a function of the host: the function's number, and those of its results that a pass
// has.
struct Call {
  std::string name;
  int64_t number = 0;
  Ints results;
};

struct Pass {
  size_t level = 0;
  Chunks grid;  // axes of several chunks only
  std::vector<Result> results;
  std::optional<Call> call;                    // made for each block; then there are no programs
  std::vector<size_t> programs;                // by block, in row-major order of the grid
  std::vector<std::vector<Operand>> operands;  // by block, in the order of the program's arguments
};

struct Plan {
  std::vector<Array> arrays;
  std::vector<graph::Graph> programs;
  std::vector<Pass> passes;     // a pass reads what earlier ones compute
  std::vector<size_t> outputs;  // arrays
};

// Cuts a graph of core nodes. `arguments` has the chunks of each argument, by index; a chunk is
// empty only if its axis is. Outputs get the chunks of the arguments from which they are computed.
// Throws UserError(Unsupported) for a node that cannot be cut; the message has the node, its line
// and what to do. Time: nodes times blocks.
Plan partition(const graph::Graph& graph, const std::vector<Chunks>& arguments);

// The plan as text, for tests and readers.
std::string print(const Plan& plan);

}  // namespace rune::partition
