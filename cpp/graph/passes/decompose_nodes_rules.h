// The parts of decompose_nodes. Private to graph/passes.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "graph/builder.h"

namespace rune::graph {

Value decompose_threefry(Builder& b, Value counter, Value key);
Value decompose_wmma(Builder& b, Value a, Value bb, Value c);
Value decompose_gep(Builder& b, const Gep& gep, Value x);
Value decompose_multi(Builder& b, const Multi& multi, const std::vector<Value>& shards);
Value decompose_scatter(Builder& b, const Scatter& scatter, Value target, Value indices,
                        Value updates);
Value decompose_scan(Builder& b, const Scan& scan, const std::vector<Value>& in);

// The places that Assign nodes write, and what they hold at a point of the graph's order.
//
// Ids are those of the graph that is decomposed; `map` gives the new value of every node before the
// current one, except of what stands for a place: that is read here.
class Places {
 public:
  Places(const Graph& graph, Builder& builder, const std::vector<Value>& map);

  // Whether a node is movement of a place, so that its value depends on when it is read.
  bool is_alias(uint32_t id) const { return alias_[id]; }
  // The contents of a Buffer, of which nothing is defined.
  Value make_buffer(uint32_t id);
  // The value of a node as its readers see it now. Throws if it is a Buffer not fully assigned.
  Value read(Value v);
  // Runs an Assign; returns its result.
  Value assign(uint32_t id);

 private:
  struct Place {
    Value content;
    bool partial = false;        // a Buffer of which some elements are undefined
    std::vector<bool> assigned;  // of a partial one, those that are not
  };
  // What is written at a node of the path: where `mask` is true, or everywhere if it is absent.
  struct Write {
    Value value;
    std::optional<Value> mask;
  };

  // The nodes from `v` down to its place, which comes last; movement and Assigns between.
  std::vector<uint32_t> path_to_place(uint32_t id) const;
  std::optional<Write> collect(const Node& node, const std::vector<Value>& values);
  void move_down(const Node& through, Write& write);
  Value along(const std::vector<uint32_t>& path, Value content);
  void mark_assigned(Place& place, const Node& node, const std::vector<uint32_t>& path);
  [[noreturn]] void undefined(uint32_t buffer) const;

  const Graph& graph_;
  Builder& b_;
  const std::vector<Value>& map_;
  std::vector<bool> alias_;
  std::map<uint32_t, Place> places_;
  std::map<uint32_t, uint32_t> undefined_;  // an Assign whose result is partial, and its Buffer
};

}  // namespace rune::graph
