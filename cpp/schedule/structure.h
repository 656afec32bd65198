// Kernels of equal structure: what is decided about one of them, or made of it, serves the others.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "schedule/schedule.h"

namespace rune::schedule {

// By input of the kernel: the least index, by axis, of what it reads of the input, if it reads that
// through Shrink nodes on the input alone; else nothing.
std::vector<Ints> origins_of(const Graph& graph, const Kernel& kernel);

// Numbers kernels by structure, from 0 on in order of appearance. Two have one number if they differ
// in nothing but their numbers and names, which values they are about, where buffers lie, and
// origins_of their inputs.
class StructureTable {
 public:
  // Of kernels of this graph, which must outlive the table.
  explicit StructureTable(const Graph& graph) : graph_(graph) {}

  size_t add(const Kernel& kernel);

 private:
  struct Entry {
    Kernel kernel;              // its values by rank
    std::vector<Value> values;  // ascending
    std::vector<Ints> origins;
  };
  uint64_t hash_of(const Entry& entry) const;
  bool equal(const Entry& a, const Entry& b) const;

  const Graph& graph_;
  std::vector<Entry> entries_;
  std::unordered_multimap<uint64_t, size_t> known_;  // by hash
};

// What `like` is for its values, for those of a kernel of the structure that `like` had before it
// was mapped.
Kernel with_values_of(const Kernel& kernel, Kernel like);

}  // namespace rune::schedule
