#include "schedule/fusion/split_kernels.h"

#include <algorithm>

#include "schedule/indexing/indexing.h"

namespace rune::schedule {

namespace {

using graph::Graph;
using graph::Node;
using graph::NodeKind;
using graph::Value;

constexpr uint32_t kNoNode = ~uint32_t{0};

// The dominator tree of the nodes below each root. A node's parent is the nearest node on all paths
// from it to the root. Users have larger ids, so parents are found before children.
class Dominators {
 public:
  Dominators(const Graph& graph, const std::vector<bool>& is_root)
      : parent_(graph.size(), kNoNode), jump_(graph.size(), kNoNode), depth_(graph.size(), 0) {
    std::vector<bool> used(graph.size(), false);
    for (uint32_t id = static_cast<uint32_t>(graph.size()); id-- > 0;) {
      if (!is_root[id]) {
        if (!used[id]) continue;
        place(id);
      }
      for (const Value input : graph.nodes[id].inputs) {
        if (is_root[input.id]) continue;
        uint32_t& parent = parent_[input.id];
        parent = used[input.id] ? common(parent, id) : id;
        used[input.id] = true;
      }
    }
  }

  // kNoNode for roots and for nodes that several roots need.
  uint32_t parent(uint32_t id) const { return parent_[id]; }

 private:
  // Jump pointers make walks to ancestors logarithmic (Myers 1983).
  void place(uint32_t id) {
    const uint32_t parent = parent_[id];
    if (parent == kNoNode) return;
    depth_[id] = depth_[parent] + 1;
    const uint32_t jump = jump_[parent];
    const bool doubles = jump != kNoNode && jump_[jump] != kNoNode &&
                         depth_[parent] - depth_[jump] == depth_[jump] - depth_[jump_[jump]];
    jump_[id] = doubles ? jump_[jump] : parent;
  }

  uint32_t common(uint32_t a, uint32_t b) const {
    if (a == kNoNode) return kNoNode;
    if (depth_[a] < depth_[b]) std::swap(a, b);
    while (depth_[a] > depth_[b]) a = depth_[jump_[a]] >= depth_[b] ? jump_[a] : parent_[a];
    while (a != b) {
      if (parent_[a] == kNoNode || parent_[b] == kNoNode) return kNoNode;
      const bool far = jump_[a] != jump_[b];
      a = far ? jump_[a] : parent_[a];
      b = far ? jump_[b] : parent_[b];
    }
    return a;
  }

  std::vector<uint32_t> parent_, jump_, depth_;
};

// The node that is best stored for a value: its operand if the value only moves or repeats it.
uint32_t stored_part(const Graph& graph, uint32_t id) {
  while (true) {
    const Node& node = graph.nodes[id];
    const NodeKind kind = node.kind();
    if (kind != NodeKind::Reshape && kind != NodeKind::Expand && kind != NodeKind::Permute &&
        kind != NodeKind::Flip && kind != NodeKind::Pad)
      return id;
    id = node.inputs[0].id;
  }
}

class Splitter {
 public:
  Splitter(const Graph& graph, std::vector<bool>& is_root)
      : graph_(graph),
        is_root_(is_root),
        tree_(graph, is_root),
        size_(graph.size(), 1),
        first_child_(graph.size(), kNoNode),
        next_sibling_(graph.size(), kNoNode) {}

  // Visits operands first, so that the tree below a node is as small as possible when it is
  // reached.
  void run() {
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      for (uint32_t child = first_child_[id]; child != kNoNode; child = next_sibling_[child])
        size_[id] += size_[child];
      if (size_[id] > kMostNodes && graph_.nodes[id].kind() != NodeKind::Cat) split(id);
      const uint32_t parent = tree_.parent(id);
      if (parent == kNoNode) continue;
      next_sibling_[id] = first_child_[parent];
      first_child_[parent] = id;
    }
  }

 private:
  // Stores the largest parts below the node, so that other kernels compute them.
  void split(uint32_t id) {
    std::vector<uint32_t> parts;
    for (uint32_t child = first_child_[id]; child != kNoNode; child = next_sibling_[child])
      parts.push_back(child);
    std::sort(parts.begin(), parts.end(),
              [&](uint32_t a, uint32_t b) { return size_[a] > size_[b]; });
    for (const uint32_t part : parts) {
      if (size_[id] <= kMostNodes) return;
      const uint32_t stored = stored_part(graph_, part);
      if (is_root_[stored] || !is_computed(graph_.nodes[stored])) continue;
      is_root_[stored] = true;
      size_[id] -= size_[part];
    }
  }

  const Graph& graph_;
  std::vector<bool>& is_root_;
  const Dominators tree_;
  std::vector<int64_t> size_;  // of the tree below a node, without parts that are stored
  std::vector<uint32_t> first_child_, next_sibling_;
};

}  // namespace

void split_long_kernels(const Graph& graph, std::vector<bool>& is_root) {
  if (static_cast<int64_t>(graph.size()) > kMostNodes) Splitter(graph, is_root).run();
}

}  // namespace rune::schedule
