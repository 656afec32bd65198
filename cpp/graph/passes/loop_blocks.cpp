#include "graph/passes/loop_blocks.h"

#include <algorithm>

#include "base/error.h"
#include "graph/attribute_dims.h"
#include "graph/passes/iterations.h"

namespace rune::graph {

std::optional<CarriedRows> carried_rows(const Graph& graph, const LoopTree& tree,
                                        const LoopTree::Loop& loop, const RowAxes& axes,
                                        size_t group) {
  const auto rows = axes.rows_of(group);
  if (!rows) return std::nullopt;
  const Node& end = graph[loop.end];
  CarriedRows result;
  const auto has_all_rows = [&](Value v, size_t axis) {
    const int64_t first = axes.of(v, axis).shift;
    return first == rows->first && first + graph[v].shape()[axis].constant() == rows->second;
  };
  for (size_t k = 0; k < num_carried(end); ++k) {
    const Value last = end.inputs[1 + k];
    const auto axis = axes.is_member(last) ? axes.axis_in(last, group) : std::nullopt;
    if (!axis) {
      result.kinds.push_back(Carried::Common);
      continue;
    }
    const auto values = values_of_updated(graph, tree, loop, k);
    if (!values) {
      if (!has_all_rows(last, *axis)) return std::nullopt;
      result.kinds.push_back(Carried::Block);
      continue;
    }
    // Rows that no Update writes to stay the same.
    for (const Value v : *values) {
      if (!graph[v].as<Update>()) continue;
      const RowAxes::Place part = axes.of_operand(v.id, 1, *axis);
      const Dim& size = graph[graph[v].inputs[1]].shape()[*axis];
      if (part.group != group || part.shift != rows->first ||
          part.shift + size.constant() != rows->second)
        return std::nullopt;
    }
    result.kinds.push_back(Carried::Whole);
    result.whole.insert(values->begin(), values->end());
  }
  const auto has_rows = [](Carried kind) { return kind != Carried::Common; };
  if (std::none_of(result.kinds.begin(), result.kinds.end(), has_rows)) return std::nullopt;
  return result;
}

LoopBlocks::LoopBlocks(const Graph& graph, const LoopTree::Loop& loop, const RowAxes& axes,
                       std::vector<GroupBlocks> groups, CarriedRows carried, Builder& builder,
                       const std::vector<Value>& map)
    : graph_(graph),
      loop_(loop),
      axes_(axes),
      groups_(std::move(groups)),
      carried_(std::move(carried)),
      builder_(builder),
      map_(map) {
  ends_[graph[loop.end].inputs[0]] = loop.end;
  for (const uint32_t id : axes.body()) {
    const Node& node = graph.nodes[id];
    if (node.as<End_Loop>()) ends_[node.inputs[0]] = {id};
    if (const SymVar* variable = declared_variable(node)) {
      variables_.insert(variable->name);
      declarations_[variable->name] = {id};
    }
  }
  for (const Value v : carried_.whole)
    if (const auto* carry = graph[v].as<Carry>())
      whole_carries_.insert({ends_.at(graph[v].inputs[1]), static_cast<size_t>(carry->index)});
}

std::vector<Value> LoopBlocks::run(std::set<std::string>& taken) {
  const Node& end = graph_[loop_.end];
  const size_t count = num_carried(end);
  std::vector<Value> results(count);
  Index with_rows, common;
  for (const size_t k : used_results())
    (carried_.kinds[k] == Carried::Common ? common : with_rows).push_back(k);
  const auto initial_values = [&] {
    std::vector<Value> initial(count);
    for (size_t k = 0; k < count; ++k) initial[k] = map_[end.inputs[1 + count + k].id];
    return initial;
  };

  if (!with_rows.empty()) {
    // The loops over blocks carry every array that blocks change, even if it is not used
    // afterwards.
    for (const GroupBlocks& blocks : groups_) blocks_[blocks.group];
    find_live(with_rows);
    for (const size_t k : live_carries(loop_.end))
      if (carried_.kinds[k] == Carried::Whole && !contains(with_rows, k)) with_rows.push_back(k);
    std::vector<Value> arrays = initial_values();
    run_blocks(0, with_rows, arrays, "", taken);
    for (const size_t k : with_rows) results[k] = arrays[k];
  }
  if (!common.empty()) {
    blocks_.clear();
    find_live(common);
    const std::vector<Value> values = run_loop(
        common, initial_values(), with_rows.empty() ? "" : unused_suffix("_common", taken));
    for (size_t i = 0; i < common.size(); ++i) results[common[i]] = values[i];
  }
  return results;
}

// Runs the loop on all blocks of the groups from number `level` on, and on the chosen blocks of the
// other groups.
void LoopBlocks::run_blocks(size_t level, const Index& wanted, std::vector<Value>& arrays,
                            const std::string& suffix, std::set<std::string>& taken) {
  if (level == groups_.size()) return run_rows(wanted, arrays, suffix);
  const auto [group, size] = groups_[level];
  const auto [first_row, end_row] = *axes_.rows_of(group);
  const int64_t num_blocks = (end_row - first_row) / size;
  const int64_t num_left = (end_row - first_row) % size;
  const std::vector<Value> initial = arrays;
  builder_.set_location(graph_[loop_.end].location);
  const SymVar number{loop_.counter.name + suffix + unused_suffix("_block", taken), 0,
                      num_blocks - 1};
  const Value counter = builder_.add(Loop_Counter{number}, {});
  for (size_t i = 0; i < wanted.size(); ++i)
    arrays[wanted[i]] = builder_.add(Carry{static_cast<int64_t>(i)}, {initial[wanted[i]], counter});
  blocks_[group] = {Dim(number) * size + first_row, size};
  run_blocks(level + 1, wanted, arrays, suffix, taken);
  std::vector<Value> operands{counter};
  for (const size_t k : wanted) operands.push_back(arrays[k]);
  for (const size_t k : wanted) operands.push_back(initial[k]);
  const Value end = builder_.add(End_Loop{0, num_blocks, 1, std::nullopt}, std::move(operands));
  for (size_t i = 0; i < wanted.size(); ++i)
    arrays[wanted[i]] =
        builder_.add(Loop_Result{static_cast<int64_t>(i)}, {end, arrays[wanted[i]]});
  if (num_left == 0) return;
  blocks_[group] = {first_row + num_blocks * size, num_left};
  run_blocks(level + 1, wanted, arrays, suffix + unused_suffix("_rest", taken), taken);
}

// The indices of the results that are used after the loop, ascending.
LoopBlocks::Index LoopBlocks::used_results() const {
  std::set<size_t> used;
  for (uint32_t id = loop_.end.id + 1; id < graph_.size(); ++id) {
    const auto* result = graph_.nodes[id].as<Loop_Result>();
    if (result && graph_.nodes[id].inputs[0] == loop_.end)
      used.insert(static_cast<size_t>(result->index));
  }
  return {used.begin(), used.end()};
}

// Runs the loop on the chosen block, and stores the block's rows to the arrays (by carried index).
void LoopBlocks::run_rows(const Index& wanted, std::vector<Value>& arrays,
                          const std::string& suffix) {
  find_live(wanted);
  const std::vector<Value> results = run_loop(wanted, initials(arrays), suffix);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const size_t k = wanted[i];
    if (carried_.kinds[k] == Carried::Whole) {
      arrays[k] = results[i];
      continue;
    }
    const Value last = graph_[loop_.end].inputs[1 + k];
    arrays[k] = builder_.add(Update{offsets_of(last)}, {arrays[k], results[i]});
  }
}

// The initial values of a block, by carried index.
std::vector<Value> LoopBlocks::initials(const std::vector<Value>& arrays) {
  const Node& end = graph_[loop_.end];
  std::vector<Value> result = arrays;
  for (const size_t k : live_carries(loop_.end)) {
    if (carried_.kinds[k] != Carried::Block) continue;
    // No block has written these rows yet, so they have their initial values. A constant need not
    // be read.
    const Value before = map_[end.inputs[1 + num_carried(end) + k].id];
    const bool is_splat = builder_.splat_root(before).valid();
    result[k] = part(is_splat ? before : arrays[k], places_of(end.inputs[1 + k]));
  }
  return result;
}

// Finds the nodes and carried values that are needed for these values of the outermost loop.
void LoopBlocks::find_live(const Index& wanted) {
  live_.clear();
  live_carries_.clear();
  std::vector<Value> open;
  const auto need_carried = [&](Value end, size_t k) {
    const Node& node = graph_[end];
    if (!live_carries_[end].insert(k).second) return;
    open.push_back(node.inputs[1 + k]);
    open.push_back(node.inputs[1 + num_carried(node) + k]);
  };
  const auto need_size = [&](const Dim& size) {
    for (const Dim::Term& term : size.terms())
      if (const auto known = declarations_.find(term.var.name); known != declarations_.end())
        open.push_back(known->second);
  };
  const auto need_loop = [&](Value end) {
    const auto& range = *graph_[end].as<End_Loop>();
    open.push_back(graph_[end].inputs[0]);
    if (range.goes_on) need_carried(end, static_cast<size_t>(*range.goes_on));
  };
  need_loop(loop_.end);
  for (const size_t k : wanted) need_carried(loop_.end, k);
  while (!open.empty()) {
    const Value v = open.back();
    open.pop_back();
    if (!axes_.is_member(v) || !live_.insert(v.id).second) continue;
    const Node& node = graph_[v];
    for_each_dim(node, need_size);
    if (node.as<End_Loop>()) {
      need_loop(v);
    } else if (const auto* result = node.as<Loop_Result>()) {
      open.push_back(node.inputs[0]);
      need_carried(node.inputs[0], static_cast<size_t>(result->index));
    } else {
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
      if (const auto* carry = node.as<Carry>())
        need_carried(ends_.at(node.inputs[1]), static_cast<size_t>(carry->index));
    }
  }
}

LoopBlocks::Index LoopBlocks::live_carries(Value end) const {
  const auto known = live_carries_.find(end);
  if (known == live_carries_.end()) return {};
  return {known->second.begin(), known->second.end()};
}

// The new number of carried value k in a loop that is built.
int64_t LoopBlocks::number_of(Value end, size_t k) const {
  const Index carries = live_carries(end);
  return std::find(carries.begin(), carries.end(), k) - carries.begin();
}

// Builds the loop on the block, or on all rows, with these initial values. Returns its results.
std::vector<Value> LoopBlocks::run_loop(const Index& wanted, const std::vector<Value>& initial,
                                        const std::string& suffix) {
  suffix_ = suffix;
  built_.clear();
  wholes_.clear();
  initial_.clear();
  for (size_t k = 0; k < initial.size(); ++k) initial_[k] = initial[k];
  for (const uint32_t id : axes_.body())
    if (live_.contains(id)) run_node(id);
  run_end(loop_.end.id);
  const Value end = built_.at(loop_.end.id);
  std::vector<Value> results;
  for (const size_t k : wanted) {
    const int64_t index = number_of(loop_.end, k);
    results.push_back(builder_.add(Loop_Result{index},
                                   {end, builder_[end].inputs[1 + static_cast<size_t>(index)]}));
  }
  return results;
}

void LoopBlocks::run_node(uint32_t id) {
  const Node& node = graph_.nodes[id];
  builder_.set_location(node.location);
  if (node.as<End_Loop>()) return run_end(id);
  std::vector<Value> inputs;
  const auto* result = node.as<Loop_Result>();
  const auto* carry = node.as<Carry>();
  if (result) {
    const int64_t index = number_of(node.inputs[0], static_cast<size_t>(result->index));
    const Value end = built_.at(node.inputs[0].id);
    built_[id] = builder_.add(Loop_Result{index},
                              {end, builder_[end].inputs[1 + static_cast<size_t>(index)]});
  } else if (carry) {
    const Value end = ends_.at(node.inputs[1]);
    const int64_t index = number_of(end, static_cast<size_t>(carry->index));
    const Value initial =
        end == loop_.end ? initial_.at(static_cast<size_t>(carry->index)) : operand(id, 0);
    built_[id] = builder_.add(Carry{index}, {initial, built_.at(node.inputs[1].id)});
  } else {
    for (size_t i = 0; i < node.inputs.size(); ++i) inputs.push_back(operand(id, i));
    built_[id] = builder_.add(payload_of(id), std::move(inputs), node.meta);
  }
  if (!is_whole({id})) return;
  // The block is read here, because later nodes may change the array.
  wholes_[id] = built_[id];
  built_[id] = part(wholes_[id], places_of({id}));
}

// Builds the end of a loop, which carries only live values.
void LoopBlocks::run_end(uint32_t id) {
  const Node& node = graph_.nodes[id];
  builder_.set_location(node.location);
  const Index carries = live_carries({id});
  const size_t count = num_carried(node);
  std::vector<Value> operands{built_.at(node.inputs[0].id)};
  const bool is_outermost = Value{id} == loop_.end;
  for (const size_t k : carries) {
    const Value last = node.inputs[1 + k];
    if (is_whole_carry({id}, k))
      operands.push_back(wholes_.at(last.id));
    else if (is_outermost && !axes_.is_member(last))
      operands.push_back(map_[last.id]);
    else
      operands.push_back(operand(id, 1 + k));
  }
  for (const size_t k : carries) {
    const size_t first = 1 + count + k;
    if (is_outermost)
      operands.push_back(initial_.at(k));
    else if (is_whole_carry({id}, k))
      operands.push_back(wholes_.at(node.inputs[first].id));
    else
      operands.push_back(operand(id, first));
  }
  End_Loop end = *node.as<End_Loop>();
  end.start = renamed(end.start);
  end.stop = renamed(end.stop);
  if (end.goes_on) end.goes_on = number_of({id}, static_cast<size_t>(*end.goes_on));
  built_[id] = builder_.add(std::move(end), std::move(operands));
}

// The node's attributes for the block's rows.
Payload LoopBlocks::payload_of(uint32_t id) const {
  const Node& node = graph_.nodes[id];
  Payload payload = node.payload;
  change_dims(payload, [&](Dim& size) { size = renamed(size); });
  if (auto* counter = std::get_if<Loop_Counter>(&payload)) counter->var = renamed(counter->var);
  if (auto* size = std::get_if<Loop_Size>(&payload)) size->var = renamed(size->var);
  for (size_t d = 0; d < node.shape().size(); ++d) {
    const RowAxes::Place place = axes_.of({id}, d);
    if (!is_row(place)) continue;
    const int64_t size = blocks_.at(place.group).size;
    if (auto* reshape = std::get_if<Reshape>(&payload)) reshape->shape[d] = size;
    if (auto* expand = std::get_if<Expand>(&payload)) expand->shape[d] = size;
    if (auto* pad = std::get_if<Pad>(&payload)) pad->widths[d] = {0, 0};
    if (auto* update = std::get_if<Update>(&payload))
      update->offsets[d] = is_whole({id}) ? first_of(place) : Dim(0);
    if (auto* shrink = std::get_if<Shrink>(&payload)) {
      const Value from = node.inputs[0];
      const bool is_block = axes_.is_member(from) && !is_whole(from);
      const Dim low = is_block ? Dim(0) : shrink->limits[d].first + first_of(place);
      shrink->limits[d] = {low, low + size};
    }
  }
  return payload;
}

Value LoopBlocks::operand(uint32_t user, size_t input) {
  const Node& node = graph_.nodes[user];
  const Value v = node.inputs[input];
  const bool is_shrink = node.as<Shrink>() != nullptr;
  if (axes_.is_member(v)) {
    const bool stays_whole = is_whole(v) && input == 0 && (is_shrink || is_whole({user}));
    return stays_whole ? wholes_.at(v.id) : built_.at(v.id);
  }
  if (is_shrink) return map_[v.id];
  std::vector<RowAxes::Place> places;
  for (size_t d = 0; d < graph_[v].shape().size(); ++d)
    places.push_back(axes_.of_operand(user, input, d));
  return part(map_[v.id], places);
}

std::vector<RowAxes::Place> LoopBlocks::places_of(Value v) const {
  std::vector<RowAxes::Place> places;
  for (size_t d = 0; d < graph_[v].shape().size(); ++d) places.push_back(axes_.of(v, d));
  return places;
}

std::vector<Dim> LoopBlocks::offsets_of(Value v) const {
  std::vector<Dim> offsets;
  for (const RowAxes::Place& place : places_of(v))
    offsets.push_back(is_row(place) ? first_of(place) : Dim(0));
  return offsets;
}

// The block's rows of an array.
Value LoopBlocks::part(Value whole, const std::vector<RowAxes::Place>& places) {
  const Shape shape = builder_.shape(whole);
  DimPairs limits;
  Shape size = shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    limits.emplace_back(0, shape[d]);
    if (!is_row(places[d])) continue;
    size[d] = blocks_.at(places[d].group).size;
    limits[d] = {first_of(places[d]), first_of(places[d]) + size[d]};
  }
  if (size == shape) return whole;
  const Value root = builder_.splat_root(whole);
  return root.valid() ? builder_.full(root, size) : builder_.shrink(whole, std::move(limits));
}

Dim LoopBlocks::renamed(const Dim& size) const {
  if (suffix_.empty()) return size;
  Dim result = size.offset();
  for (const Dim::Term& term : size.terms()) result += Dim(renamed(term.var)) * term.coefficient;
  return result;
}

SymVar LoopBlocks::renamed(SymVar variable) const {
  if (variables_.contains(variable.name)) variable.name += suffix_;
  return variable;
}

// A suffix that makes the names of the loop's variables unique.
std::string LoopBlocks::unused_suffix(const std::string& wanted,
                                      std::set<std::string>& taken) const {
  std::string suffix = wanted;
  const auto is_taken = [&](const std::string& name) { return taken.contains(name + suffix); };
  while (std::any_of(variables_.begin(), variables_.end(), is_taken)) suffix += '_';
  for (const std::string& name : variables_) taken.insert(name + suffix);
  return suffix;
}

}  // namespace rune::graph
