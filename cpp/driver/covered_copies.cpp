#include "driver/covered_copies.h"

#include <algorithm>
#include <optional>
#include <span>
#include <variant>

#include "driver/parallel_iterations.h"
#include "partition/box.h"

namespace rune::driver {

namespace {

using partition::Box;

// The most parts of a cell that are tracked.
constexpr size_t kMostBoxes = 32;

std::optional<Box> box_at(const std::vector<Dim>& offsets, const Shape& shape) {
  Box box;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!offsets[d].is_constant() || !shape[d].is_constant()) return std::nullopt;
    box.emplace_back(offsets[d].constant(), offsets[d].constant() + shape[d].constant());
  }
  return box;
}

bool overlap(const Box& a, const Box& b) {
  for (size_t d = 0; d < a.size(); ++d)
    if (std::max(a[d].first, b[d].first) >= std::min(a[d].second, b[d].second)) return false;
  return true;
}

// Adds boxes for the part of `from` outside of `removed`.
void subtract(Box from, const Box& removed, std::vector<Box>& rest) {
  if (!overlap(from, removed)) {
    rest.push_back(std::move(from));
    return;
  }
  for (size_t d = 0; d < from.size(); ++d) {
    Box below = from, above = from;
    below[d].second = std::max(from[d].first, removed[d].first);
    above[d].first = std::min(from[d].second, removed[d].second);
    for (Box* part : {&below, &above})
      if (!partition::is_empty(*part)) rest.push_back(std::move(*part));
    from[d] = {std::max(from[d].first, removed[d].first),
               std::min(from[d].second, removed[d].second)};
  }
}

// The elements of a cell to which no statement has stored yet.
class Uncovered {
 public:
  Uncovered(const LoopPlan& plan, size_t cell)
      : plan_(plan), cell_(cell), boxes_{partition::whole(to_ints(plan.cells[cell].shape))} {}

  bool is_empty() const { return boxes_.empty(); }

  // Passes the next statement. Returns false if it may read an element without a store.
  bool pass(const Statement& statement) {
    if (const auto* compute = std::get_if<Compute>(&statement.action)) return pass(*compute);
    const CellUse used = cells_of({&statement, 1});
    if (used.read.contains(cell_)) return false;
    const auto* store = std::get_if<Store>(&statement.action);
    if (store && store->target == cell_)
      cover(box_at(store->offsets, plan_.cells[store->part].shape));
    return boxes_.size() <= kMostBoxes;
  }

 private:
  static Ints to_ints(const Shape& shape) {
    Ints sizes;
    for (const Dim& size : shape) sizes.push_back(size.constant());
    return sizes;
  }

  bool pass(const Compute& compute) {
    const graph::Graph& graph = compute.graph;
    const auto is_cell = [&](graph::Value v) {
      const auto* placeholder = graph[v].as<graph::Placeholder>();
      return placeholder && compute.inputs[static_cast<size_t>(placeholder->index)] == cell_;
    };
    if (std::any_of(graph.outputs.begin(), graph.outputs.end(), is_cell)) return false;
    for (const graph::Node& node : graph.nodes)
      if (std::any_of(node.inputs.begin(), node.inputs.end(), is_cell) && !reads_covered(node))
        return false;
    for (const size_t output : compute.outputs) {
      if (output != cell_) continue;
      const Shape& shape = graph[graph.outputs[0]].shape();
      if (compute.offsets)
        cover(box_at(*compute.offsets, shape));
      else
        boxes_.clear();
    }
    return boxes_.size() <= kMostBoxes;
  }

  bool reads_covered(const graph::Node& node) const {
    const auto* shrink = node.as<graph::Shrink>();
    if (!shrink) return false;
    std::vector<Dim> offsets;
    for (const auto& limits : shrink->limits) offsets.push_back(limits.first);
    const std::optional<Box> box = box_at(offsets, node.shape());
    return box && std::none_of(boxes_.begin(), boxes_.end(),
                               [&](const Box& other) { return overlap(*box, other); });
  }

  void cover(const std::optional<Box>& box) {
    if (!box) return;
    std::vector<Box> rest;
    for (Box& other : boxes_) subtract(std::move(other), *box, rest);
    boxes_ = std::move(rest);
  }

  const LoopPlan& plan_;
  const size_t cell_;
  std::vector<Box> boxes_;  // they do not overlap
};

void find(const LoopPlan& plan, std::vector<Statement>& statements) {
  for (size_t s = 0; s < statements.size(); ++s) {
    if (auto* repeat = std::get_if<Repeat>(&statements[s].action)) find(plan, repeat->body);
    auto* store = std::get_if<Store>(&statements[s].action);
    if (!store || !is_whole(plan, *store)) continue;
    Uncovered uncovered(plan, store->target);
    for (size_t next = s + 1; next < statements.size() && !uncovered.is_empty(); ++next)
      if (!uncovered.pass(statements[next])) break;
    store->is_covered = uncovered.is_empty();
  }
}

}  // namespace

void find_covered_copies(LoopPlan& plan) {
  find(plan, plan.statements);
}

}  // namespace rune::driver
