// One program for segments that differ in sizes.
#pragma once

#include <optional>
#include <vector>

#include "graph/segment.h"

namespace rune::graph {

// The sizes of segments of one pattern, of which some are symbolic. A segment that these sizes
// describe, with values for the variables, is the program's segment exactly.
struct SegmentSizes {
  std::vector<SymVar> vars;
  std::vector<Dim> sizes;  // as Segment::sizes
  // By variable, where it alone is a size.
  std::vector<size_t> places;

  // What the variables are for a segment of these sizes; nothing if it is none that they describe.
  std::optional<Ints> values_for(const Ints& of_segment) const;
};

// The sizes of all segments of one pattern that have been `seen`, the last of which is `segment`.
// Those that were equal in each become one expression: a constant, a variable, or a sum or multiple
// that inference finds.
// Throws UserError if a node cannot have such sizes.
SegmentSizes symbolic_sizes(const Graph& graph, const Segment& segment,
                            const std::vector<Ints>& seen);

// As program_of, with symbolic sizes.
Graph program_of(const Graph& graph, const Segment& segment, const std::vector<int64_t>& arguments,
                 const SegmentSizes& sizes);

}  // namespace rune::graph
