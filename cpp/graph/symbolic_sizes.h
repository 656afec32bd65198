// Sizes that are known when the program runs.
//
// A dimension whose size is the `max` of one of the graph's Define_Vars has that variable as its
// size: what is stored, computed and returned are its first elements, as many as the variable says.
// Memory has the strides that belong to the bounds.
// The bound is a prime that divides no other size, so that no dimension has it by accident and none
// hides it in a product.
#pragma once

#include <string>
#include <vector>

#include "graph/node.h"

namespace rune::graph {

// The variable that a size stands for; null if the size is a number.
const SymVar* symbolic_size(const std::vector<SymVar>& vars, int64_t size);
bool is_symbolic(const std::vector<SymVar>& vars, const Shape& shape);

// Throws UserError(Unsupported), naming the node, where a program cannot have a symbolic size:
// along an axis that is merged with another, shifted, flipped or cut where not every value has
// elements; UserError(Value) for a bound that is no prime or divides another size.
void check_symbolic_sizes(const Graph& graph);
// The same for the nodes from `first` on of a graph under construction with these sizes.
void check_symbolic_sizes(const Graph& graph, const std::vector<SymVar>& sizes, uint32_t first);

}  // namespace rune::graph
