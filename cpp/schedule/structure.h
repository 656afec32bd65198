// Kernels of equal structure: what is decided about one of them, or made of it, serves the others.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schedule/schedule.h"

namespace rune::schedule {

// By input of the kernel: the least index, by axis, of what it reads of the input, if it reads that
// through Shrink nodes on the input alone; else nothing.
std::vector<Ints> origins_of(const Graph& graph, const Kernel& kernel);

// Numbers what a kernel is about: what it computes, in order, then what else it reads, in order.
class KernelValues {
 public:
  explicit KernelValues(const Kernel& kernel);
  size_t size() const { return by_id_.size(); }
  // size() if it is not among them.
  size_t number_of(Value v) const;
  std::vector<Value> by_number() const;

 private:
  std::vector<std::pair<Value, size_t>> by_id_;
};

// Numbers kernels by structure, from 0 on in order of appearance. Two have one number if they
// differ in nothing but their numbers and names, which values they are about, where buffers lie,
// what their inputs are computed from, and origins_of these.
class StructureTable {
 public:
  // Of kernels of this graph, which must outlive the table.
  explicit StructureTable(const Graph& graph) : graph_(graph) {}

  size_t add(const Kernel& kernel);

 private:
  struct Entry {
    std::vector<Value> ops;
    Kernel kernel;  // values by number
    KernelValues values;
    std::vector<Ints> origins;
  };
  uint64_t hash_of(const Entry& entry) const;
  bool equal(const Entry& a, const Entry& b) const;
  bool computes_alike(size_t op, const Entry& a, const Entry& b) const;

  const Graph& graph_;
  std::vector<Entry> entries_;
  std::unordered_multimap<uint64_t, size_t> known_;  // by hash
};

// What `like` is for its values, for those of a kernel of the structure that `like` had before it
// was mapped.
Kernel with_values_of(const Kernel& kernel, Kernel like);

}  // namespace rune::schedule
