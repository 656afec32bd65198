// Finds the boxes of a node's operands that a box of the node needs.
#pragma once

#include <string>
#include <vector>

#include "graph/node.h"
#include "partition/box.h"

namespace rune::partition {

// How a block of a node depends on the operands.
enum class Cut : uint8_t {
  Given,        // there are no operands: an argument or a constant
  Elementwise,  // it needs the same box of each operand
  Moved,        // it needs a box of the operand at another position
  Joined,       // it needs boxes of the parts of a Cat
  Reduced,      // it needs the whole reduced axes: Reduce_Axis, Contract
  Prefix,       // it needs all earlier elements along an axis: Scan
  Selected,     // it needs the whole axis along which a Gather selects
  Whole,        // it needs the whole operands
  Called,       // a function of the host computes it, in a pass of its own
  Never,        // the node cannot be part of a block's program
};
Cut cut_of(const graph::Node& node);

// The node's name in messages: its operation, or the function of the host that it calls.
std::string name_of_node(const graph::Node& node);
// Throws UserError(Unsupported) with the text `<node>: cannot compute blocks of <shape> (<reason>),
// at <line>` and the hint.
[[noreturn]] void refuse(const graph::Node& node, const std::string& reason,
                         const std::string& hint);

// A box of an operand, which is given by its number.
struct Need {
  size_t operand;
  Box box;
};

// The boxes that a box of the value needs: one of each operand, in order. An operand of which
// nothing is needed is missing: that of a Pad if the box lies in the border, and a part of a Cat if
// the box lies outside of it. An empty box needs nothing, unless the node is a call. Sizes are
// constants.
std::vector<Need> needs_of(const graph::Graph& graph, graph::Value v, const Box& box);

// The boxes that a partial sum of a contraction needs. The axes of `box` are those of the result,
// followed by the pairs of axes that are summed over.
std::vector<Need> needs_of_sum(const graph::Graph& graph, graph::Value v, const Box& box);

}  // namespace rune::partition
