// Segments: parts of a graph under construction that run before the whole graph is known. The front
// end cuts a segment when it needs a value. Later segments read the values that earlier ones have
// stored.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "graph/node.h"

namespace rune::graph {

// Values, by id: a bit for each, because a cut asks for all values that later segments may read.
class ValueSet {
 public:
  ValueSet(std::initializer_list<uint32_t> ids = {}) {
    for (const uint32_t id : ids) insert(id);
  }
  // Returns whether the value is new.
  bool insert(uint32_t id) {
    if (id >= bits_.size()) bits_.resize(std::max<size_t>(id + 1, 2 * bits_.size()));
    const bool is_new = !bits_[id];
    bits_[id] = true;
    return is_new;
  }
  bool contains(uint32_t id) const { return id < bits_.size() && bits_[id]; }

 private:
  std::vector<bool> bits_;
};

struct Segment {
  std::vector<Value> inputs;     // values in memory that it reads, in the order of their uses
  std::vector<Value> nodes;      // the values that it computes, in topological order
  std::vector<Value> outputs;    // the values that it stores: the wanted ones and `held`, by id
  std::vector<Value> constants;  // the Const_Scalars among its nodes
  // The values that later segments may read, in the order of `live`. All are in memory once the
  // segment has run.
  std::vector<Value> held;
  // Segments with the same pattern differ only in sizes and in the values of their constants.
  std::string pattern;
  Ints sizes;  // in the shapes of the inputs, and in the attributes and shapes of the nodes
  double numpy_ns = 0, compile_ns = 0;  // the sums of these estimates for the nodes
  double stored = 0;                    // elements of the outputs
};

// Estimates NumPy's time for a node: the call, the accesses to memory or caches, and the
// arithmetic.
double numpy_ns(const Graph& graph, Value v);
// A rough estimate of the time to compile a node that is like no other node.
double compile_ns(const Graph& graph, Value v);
// The sizes of a reduction with many results. The first reduction of these sizes takes `kKernelNs`
// more to compile: each of them becomes a kernel, and equal kernels are compiled once. Empty for
// other nodes.
Ints kernel_sizes(const Graph& graph, Value v);
constexpr double kKernelNs = 10e6;

// The segment that stores the `wanted` values, and the `live` values that later nodes may read. For
// a live movement it stores the moved value, unless the movement itself is wanted. `in_memory` are
// the values that earlier segments have stored, and all Placeholders.
Segment cut_segment(const Graph& graph, const std::vector<Value>& wanted,
                    const std::vector<Value>& live, const ValueSet& in_memory);

// The segment as a program of its own. Its arguments are `segment.inputs`, followed by the
// constants at the positions `arguments` of `segment.constants`. The other constants are part of
// the program.
Graph program_of(const Graph& graph, const Segment& segment, const std::vector<int64_t>& arguments);

}  // namespace rune::graph
