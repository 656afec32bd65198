// Makes one program for several segments that differ only in sizes.
#pragma once

#include <optional>
#include <vector>

#include "graph/segment.h"

namespace rune::graph {

// The sizes of segments with the same pattern, where some sizes are symbolic. The program can run a
// segment if some values of the variables give exactly the segment's sizes.
struct SegmentSizes {
  std::vector<SymVar> vars;
  std::vector<Dim> sizes;  // as Segment::sizes
  // For each variable, a position in `sizes` where the size is this variable alone.
  std::vector<size_t> places;

  // The values of the variables for a segment of these sizes. Nothing if no values fit.
  std::optional<Ints> values_for(const Ints& of_segment) const;
};

// Sizes that describe all segments of one pattern whose sizes are in `seen`; `segment` is the last
// of them. Sizes that were equal in each segment become one expression: a constant, a variable, or
// a sum or multiple that inference finds.
// Throws UserError if a node cannot have such sizes.
SegmentSizes symbolic_sizes(const Graph& graph, const Segment& segment,
                            const std::vector<Ints>& seen);

// As program_of, with symbolic sizes.
Graph program_of(const Graph& graph, const Segment& segment, const std::vector<int64_t>& arguments,
                 const SegmentSizes& sizes);

}  // namespace rune::graph
