// Kernels of equal structure. What is decided about one of them, or made of it, serves the others.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schedule/schedule.h"

namespace rune::schedule {

// By input: the least index, by axis, of what the kernel reads of it (see Launch::origins).
std::vector<Ints> origins_of(const Graph& graph, const Kernel& kernel);

// Numbers the values of a kernel: those that it computes, in order, then those that it reads, in
// order.
class KernelValues {
 public:
  explicit KernelValues(const Kernel& kernel);
  size_t size() const { return by_id_.size(); }
  // Returns size() for other values.
  size_t number_of(Value v) const;
  std::vector<Value> by_number() const;

 private:
  std::vector<std::pair<Value, size_t>> by_id_;
};

// Finds kernels of equal structure: those that differ in nothing but which values they are about,
// what their inputs are computed from, and where their inputs' parts begin.
class StructureTable {
 public:
  // The kernels' graph must outlive the table.
  explicit StructureTable(const Graph& graph) : graph_(graph) {}

  // The number of the first kernel of this structure, counted from 0 in order of appearance.
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

// The kernel with the launch's values. Ops, inputs and outputs must correspond.
Kernel instantiate(Kernel kernel, const Launch& launch);

}  // namespace rune::schedule
