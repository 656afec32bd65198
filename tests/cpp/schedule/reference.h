// Two definitions of what a program computes, on int64 with wrapping: the graph's, node by node,
// and the schedule's, item by item as the comments in schedule.h say, with temporaries in the
// arena.
#pragma once

#include <vector>

#include "schedule/schedule.h"

namespace rune::schedule {

struct Tensor {
  Ints shape;
  std::vector<int64_t> data;
  bool operator==(const Tensor&) const = default;
};

// Distinct values from `start` on, in both signs.
Tensor arange(const Ints& shape, int64_t start);

// Every node's value, by id. `inputs` are the arguments by number.
std::vector<Tensor> evaluate_graph(const graph::Graph& graph, const std::vector<Tensor>& inputs);

// The outputs. Fails the test if an element is stored twice, or an input or output leaves its
// buffer.
std::vector<Tensor> run_schedule(const Schedule& schedule, const std::vector<Tensor>& inputs);

// Calls f(index) for every index of the shape, in row-major order.
template <class F>
void for_each_index(const Ints& shape, F&& f) {
  for (const int64_t size : shape)
    if (size == 0) return;
  Ints index(shape.size(), 0);
  for (;;) {
    f(index);
    size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace rune::schedule
