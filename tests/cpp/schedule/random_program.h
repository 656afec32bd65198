// Random programs over small int64 arrays.
#pragma once

#include <random>
#include <vector>

#include "reference.h"
#include "schedule_testing.h"

namespace rune::schedule {

class RandomProgram {
 public:
  explicit RandomProgram(uint32_t seed) : random_(seed) {}

  // Each appends a node (or a few) on values chosen at random.
  void add_input();
  void add_movement();
  void add_elementwise();
  void add_reduction();
  void add_contraction();
  void add_any();

  // One to three values, the last one among them.
  std::vector<Value> pick_outputs();

  const Builder& builder() const { return builder_; }
  const std::vector<Tensor>& inputs() const { return inputs_; }

 private:
  int64_t below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random_); }
  bool chance(int percent) { return below(100) < percent; }
  Value pick();
  // The value, made to have this shape by whatever movement fits.
  Value fit(Value x, const Shape& shape);
  Value view(Value x);

  std::mt19937 random_;
  Builder builder_;
  std::vector<Value> pool_;
  std::vector<Tensor> inputs_;
};

}  // namespace rune::schedule
