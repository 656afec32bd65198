// Builds a loop over blocks of rows around a loop whose iterations do not mix rows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/builder.h"
#include "graph/passes/row_axes.h"

namespace rune::graph {

// How the loop of a block carries a carried value of the original loop.
enum class Carried {
  Common,  // it has no rows: each block computes it
  Block,   // an iteration replaces it: the loop of a block carries the rows of the block
  Whole,   // only Updates change it: the loop of a block carries all of it, and changes its rows
};

// The arrays that an outermost loop carries, if their rows are those of a group. `whole` are the
// values that arrays of kind Whole have in the body.
struct CarriedRows {
  std::vector<Carried> kinds;  // by index
  std::set<Value> whole;
};

// How to carry the values if the rows of this group become blocks. Nothing if a block would change
// rows of other blocks, or no rows.
std::optional<CarriedRows> carried_rows(const Graph& graph, const LoopTree& tree,
                                        const LoopTree::Loop& loop, const RowAxes& axes,
                                        size_t group);

// Blocks of `size` rows of a group.
struct GroupBlocks {
  size_t group = 0;
  int64_t size = 0;
};

// Builds the loops over blocks, and loops for the rows that fill no block.
class LoopBlocks {
 public:
  // Builds a loop over the blocks of each of these groups, the outermost first. `carried` is equal
  // for all of them. `map` has the values in the builder's graph of the nodes outside of the loop.
  LoopBlocks(const Graph& graph, const LoopTree::Loop& loop, const RowAxes& axes,
             std::vector<GroupBlocks> groups, CarriedRows carried, Builder& builder,
             const std::vector<Value>& map);

  // Builds the loops. Returns the values that the original loop carries at its end, by index, with
  // no value for those that are unused. `taken` are the names of variables. Adds new names to it.
  std::vector<Value> run(std::set<std::string>& taken);

 private:
  struct Block {
    Dim first;  // row
    int64_t size = 0;
  };
  using Index = std::vector<size_t>;

  void find_live(const Index& wanted);
  Index live_carries(Value end) const;
  int64_t number_of(Value end, size_t k) const;
  Index used_results() const;
  void run_blocks(size_t level, const Index& wanted, std::vector<Value>& arrays,
                  const std::string& suffix, std::set<std::string>& taken);
  void run_rows(const Index& wanted, std::vector<Value>& arrays, const std::string& suffix);
  std::vector<Value> initials(const std::vector<Value>& arrays);
  std::vector<Value> run_loop(const Index& wanted, const std::vector<Value>& initial,
                              const std::string& suffix);
  void run_node(uint32_t id);
  void run_end(uint32_t id);
  Payload payload_of(uint32_t id) const;
  Value operand(uint32_t user, size_t input);
  Value part(Value whole, const std::vector<RowAxes::Place>& places);
  std::vector<RowAxes::Place> places_of(Value v) const;
  std::vector<Dim> offsets_of(Value v) const;
  bool is_row(const RowAxes::Place& place) const { return blocks_.contains(place.group); }
  bool is_whole(Value v) const { return !blocks_.empty() && carried_.whole.contains(v); }
  // Whether carried value number k of the loop with this end is a whole array.
  bool is_whole_carry(Value end, size_t k) const {
    return !blocks_.empty() && whole_carries_.contains({end, k});
  }
  // The first row of a block in terms of an axis.
  Dim first_of(const RowAxes::Place& place) const {
    return blocks_.at(place.group).first - place.shift;
  }
  Dim renamed(const Dim& size) const;
  SymVar renamed(SymVar variable) const;
  std::string unused_suffix(const std::string& wanted, std::set<std::string>& taken) const;

  const Graph& graph_;
  const LoopTree::Loop& loop_;
  const RowAxes& axes_;
  const std::vector<GroupBlocks> groups_;
  const CarriedRows carried_;
  Builder& builder_;
  const std::vector<Value>& map_;
  std::map<Value, Value> ends_;  // the End_Loop of each loop, by counter
  std::set<std::pair<Value, size_t>> whole_carries_;
  std::set<std::string> variables_;  // the variables that the body declares
  std::map<std::string, Value> declarations_;

  // The state of the loop that is built now.
  std::set<uint32_t> live_;
  std::map<Value, std::set<size_t>> live_carries_;  // by End_Loop
  std::map<size_t, Block> blocks_;                  // by group; empty if it has all rows
  std::string suffix_;                              // of its variables
  std::map<uint32_t, Value> built_, wholes_;  // whole arrays are in wholes_, their blocks in built_
  std::map<size_t, Value> initial_;           // of the outermost loop
};

}  // namespace rune::graph
