// Kernels of equal structure. What is decided about one of them, or made of it, serves the others.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schedule/schedule.h"

namespace rune::schedule {

// For each input of the kernel, the least index by axis that it reads, if it reads the input only
// through Shrink nodes on it; otherwise nothing.
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

// Numbers kernels by structure, from 0 on in the order of their first appearance. Two kernels have
// the same number if they differ only in their names, the values that they compute and read, the
// places of buffers, and the origins of their inputs (origins_of).
class StructureTable {
 public:
  // The kernels' graph must outlive the table.
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

// Copies `like`'s mapping to `kernel`, replacing each value by its counterpart. Both must have had
// the same structure before mapping.
Kernel with_values_of(const Kernel& kernel, Kernel like);

}  // namespace rune::schedule
