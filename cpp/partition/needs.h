// Which boxes of its operands a box of a node needs.
#pragma once

#include <string>
#include <vector>

#include "graph/node.h"
#include "partition/box.h"

namespace rune::partition {

// How blocks of a node follow from its operands.
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

// What messages call the node: its operation, or the function of the host that it calls.
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

// What computing a box of the value needs: one box of each operand, in order; none of what a Pad
// only surrounds and of parts of a Cat that lie outside. Nothing but the operands of a call is
// needed for an empty box. Sizes are constants.
std::vector<Need> needs_of(const graph::Graph& graph, graph::Value v, const Box& box);

// A contraction of which a part of the sums is wanted: the axes of `box` are those of the result,
// then the pairs that it sums over.
std::vector<Need> needs_of_sum(const graph::Graph& graph, graph::Value v, const Box& box);

}  // namespace rune::partition
