// Cuts a program into programs of blocks, for arrays that are in chunks.
//
// What is computed in one go over a grid of blocks is a pass. A reduction along an axis of several
// chunks ends a level: a pass computes partial results, one a block, which are combined in the
// order of the blocks; passes of later levels read the combined results, and the arguments again.
// So does what needs whole axes or arrays, a running sum for one: its operands or results are
// arrays that passes of later levels read. A call to a function of the host is a pass of its own,
// of blocks of whole rows. Between its operands and results a pass computes each element that a
// block needs: at the borders of blocks some are computed more than once. Nothing here knows what
// runs the blocks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/node.h"
#include "partition/box.h"

namespace rune::partition {

// What passes read and outputs are.
struct Array {
  enum class Kind : uint8_t { Argument, Computed, Combined };
  Kind kind = Kind::Argument;
  int64_t number = 0;  // of an argument: its index
  DType dtype = DType::Float32;
  Chunks chunks;
};

// What each block of a pass computes.
struct Result {
  size_t array = 0;  // whose chunk it is, or of whose chunk it is a part
  // By axis of the array: the axis of the pass's grid whose chunks it has, or -1 for one chunk.
  Ints grid_axes;
  // Of a part: how the parts are combined, along which axes of the grid.
  std::optional<ReduceOp> combine;
  Ints reduced;
};

// A box of an array.
struct Operand {
  size_t array;
  Box box;
};

// A call to a function of the host, by its number, and which of the function's results a pass has.
struct Call {
  std::string name;
  int64_t number = 0;
  Ints results;
};

struct Pass {
  size_t level = 0;
  Chunks grid;  // axes of several chunks only
  std::vector<Result> results;
  std::optional<Call> call;                    // for each block; then there are no programs
  std::vector<size_t> programs;                // by block, in row-major order of the grid
  std::vector<std::vector<Operand>> operands;  // by block, in the order of the program's arguments
};

struct Plan {
  std::vector<Array> arrays;
  std::vector<graph::Graph> programs;
  std::vector<Pass> passes;     // a pass reads what earlier ones compute
  std::vector<size_t> outputs;  // arrays
};

// Cuts a graph of core nodes whose arguments are in these chunks (by index; none is empty unless
// the axis is). Outputs are divided as the arguments that they are computed from. Throws
// UserError(Unsupported) that names the node and its line for what cannot be cut, with what to do
// about it. Time: nodes times blocks.
Plan partition(const graph::Graph& graph, const std::vector<Chunks>& arguments);

// The plan as text, for tests and readers.
std::string print(const Plan& plan);

}  // namespace rune::partition
