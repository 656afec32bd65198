// Finds the boxes of a node's operands that a box of the node needs.
#pragma once

#include <string>
#include <vector>

#include "graph/node.h"
#include "partition/box.h"

namespace rune::partition {

// What a block of a node needs of its operands.
enum class Cut : uint8_t {
  Given,        // no operands: an argument or a constant
  Elementwise,  // the same box of each operand
  Moved,        // a box of the operand, moved
  Joined,       // boxes of the parts of a Cat
  Reduced,      // the whole reduced axes: Reduce_Axis, Contract
  Prefix,       // all before it along an axis: Scan
  Selected,     // the whole axis that a Gather selects along
  Whole,        // the whole operands
  Called,       // by a function of the host: it is a pass of its own
  Never,        // it cannot be part of a block's program
};
Cut cut_of(const graph::Node& node);

// The node's name in messages: its operation, or the function of the host that it calls.
std::string name_of_node(const graph::Node& node);
// Throws UserError(Unsupported): `<node>: cannot compute blocks of <shape> (<reason>), at <line>`,
// and the hint.
[[noreturn]] void refuse(const graph::Node& node, const std::string& reason,
                         const std::string& hint);

// A box of the operand of this number.
struct Need {
  size_t operand;
  Box box;
};

// The boxes that computing a box of the value needs: one of each operand, in order. A box that lies
// in the border of a Pad, or outside of a part of a Cat, needs nothing of it. An empty box needs
// nothing, unless the node is a call. Sizes are constants.
std::vector<Need> needs_of(const graph::Graph& graph, graph::Value v, const Box& box);

// The same for a part of the sums of a contraction. The axes of `box` are those of the result,
// followed by the pairs of axes that are summed over.
std::vector<Need> needs_of_sum(const graph::Graph& graph, graph::Value v, const Box& box);

}  // namespace rune::partition
