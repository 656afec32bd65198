// Segments: parts of a graph under construction that run before the whole graph is known. A front
// end cuts a segment where it needs values; the next segment reads what this one has stored.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "graph/node.h"

namespace rune::graph {

using ValueSet = std::unordered_set<uint32_t>;  // by id

struct Segment {
  std::vector<Value> inputs;     // values in memory that it reads, in the order of their uses
  std::vector<Value> nodes;      // that it computes, in topological order
  std::vector<Value> outputs;    // that it stores: what is wanted and `held`, in order
  std::vector<Value> constants;  // the Const_Scalars among its nodes
  // The values that later segments may read. All are in memory once the segment has run.
  std::vector<Value> held;
  // Segments of one pattern differ in sizes and in the values of their constants only.
  std::string pattern;
  Ints sizes;  // of the shapes of inputs, and among the attributes and of the shapes of nodes
  double numpy_ns = 0, compile_ns = 0;  // of the nodes one by one
};

// An estimate of NumPy's time for a node: that of the call, of memory in the cache or beyond it,
// and of arithmetic.
double numpy_ns(const Graph& graph, Value v);
// A rough estimate of the time that it takes to compile a node that is like no other one.
double compile_ns(const Graph& graph, Value v);

// The segment that stores the `wanted` values, and what later nodes may read of the `live` ones: a
// live movement of a value stays a movement unless it is wanted, and the value is stored.
// `in_memory` are the values that earlier segments have stored, and all Placeholders.
Segment cut_segment(const Graph& graph, const std::vector<Value>& wanted,
                    const std::vector<Value>& live, const ValueSet& in_memory);

// The segment as a program of its own. Its arguments are `segment.inputs`, then the constants at
// these positions of `segment.constants`; the other constants are part of the program.
Graph program_of(const Graph& graph, const Segment& segment, const std::vector<int64_t>& arguments);

}  // namespace rune::graph
