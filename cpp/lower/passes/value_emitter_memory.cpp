// Loads and stores of the value emitter: the kernel's buffers and its scratch memory.
#include <algorithm>

#include "alu/eval.h"
#include "base/error.h"
#include "lower/passes/value_emitter.h"
#include "schedule/analysis/cost.h"
#include "schedule/mapping/mapping.h"

namespace rune::lower {

using sym::Expr;
using sym::Mask;

namespace {

Ints reversed(int lanes) {
  Ints indices;
  for (int i = lanes - 1; i >= 0; --i) indices.push_back(i);
  return indices;
}

// Row `row` of the transpose of a square of vectors, after the steps that swap halves of up to
// 2 * `half` elements of neighbouring rows.
Var transposed(ScopedBuilder& builder, const std::vector<Var>& rows, int64_t row, int64_t half) {
  if (half == 0) return rows[row];
  const auto lanes = static_cast<int64_t>(rows.size());
  const Var upper = transposed(builder, rows, row & ~half, half / 2);
  const Var lower = transposed(builder, rows, row | half, half / 2);
  Ints indices;
  for (int64_t lane = 0; lane < lanes; ++lane)
    indices.push_back(((lane & ~half) | (row & half)) + (lane & half ? lanes : 0));
  return builder.gep({upper, lower}, std::move(indices));
}

}  // namespace

Expr scratch_position(const schedule::Scratch& layout, const Index& origin, const Index& index) {
  Expr position;
  for (size_t d = 0; d < index.size(); ++d) {
    const Expr at = index[d] - origin[d];
    const bool in_runs = layout.run_axis == static_cast<int64_t>(d);
    position =
        position + (in_runs ? floordiv(at, layout.run) * layout.strides[d] + mod(at, layout.run)
                            : at * layout.strides[d]);
  }
  return position;
}

Var ValueEmitter::load_uniform(Var memory, const Expr& position, const Mask& mask,
                               int least_depth) {
  // One element for all lanes, needed if any lane is: at the end of the vector where a single
  // condition is easiest to meet.
  Mask any;
  std::vector<Expr> by_lane;
  for (const Expr& expr : mask.conditions()) {
    if (depends_on_lane(expr)) {
      by_lane.push_back(expr);
    } else {
      any.require_nonnegative(expr);
    }
  }
  if (by_lane.size() > 1 || (by_lane.size() == 1 && !lane_stride(by_lane[0])))
    return builder_.load(memory, builder_.splat(emit(position), lanes_), lanes_, emit(mask),
                         least_depth);
  if (by_lane.size() == 1) {
    const int64_t at = *lane_stride(by_lane[0]) < 0 ? 0 : lanes_ - 1;
    any.require_nonnegative(with_lane(by_lane[0], Expr(at)));
  }
  return builder_.load(memory, emit(position), 1, emit(any), least_depth);
}

Expr ValueEmitter::position_in_memory(const Access& access) const {
  const Expr position = sym::flatten_index(access.index, graph_[access.value].shape());
  const auto shift = shifts_.find(access.value.id);
  return shift == shifts_.end() ? position : position + shift->second;
}

Var ValueEmitter::load(const Access& access) {
  if (const auto placed = placed_.find(access.value.id); placed != placed_.end()) {
    const auto& [memory, layout, origin, depth] = placed->second;
    return load_from(memory, scratch_position(*layout, origin, access.index), access.mask, depth);
  }
  const Var memory = memory_.at(access.value.id);
  const Expr position = position_in_memory(access);
  const auto along = lane_stride(position);
  prefetch_following(access, position);
  if (along && access.mask.is_true()) {
    if (schedule::interleaves(*along, lanes_) && is_in_runs(access.value, position, *along))
      return load_interleaved(memory, position, *along, 0);
    if (is_of_square(access.value, position, *along)) return load_transposed(memory, position, 0);
  }
  return load_from(memory, position, access.mask, 0);
}

void ValueEmitter::prefetch_for(const schedule::Stage& stage) {
  ahead_.clear();
  for (const schedule::Prefetch& prefetch : kernel_.prefetches)
    if (prefetch.axis && contains(stage.axes, *prefetch.axis))
      ahead_[prefetch.from.id] = prefetch.ahead;
}

void ValueEmitter::prefetch_following(const Access& access, const Expr& position) {
  const auto ahead = ahead_.find(access.value.id);
  if (ahead == ahead_.end()) return;
  const Expr first = depends_on_lane(position) ? with_lane(position, Expr(0)) : position;
  builder_.prefetch(memory_.at(access.value.id), emit(first + Expr(ahead->second)));
}

Var ValueEmitter::load_from(Var memory, const Expr& position, const Mask& mask, int least_depth) {
  if (!depends_on_lane(position)) return load_uniform(memory, position, mask, least_depth);
  const auto along = lane_stride(position);
  const auto full = [&](const Mask& needed) {
    const Var valid = emit(needed);
    return valid.valid() ? builder_.splat(valid, lanes_) : valid;
  };
  if (along && *along == 1)
    return builder_.load(memory, emit(with_lane(position, Expr(0))), lanes_, full(mask),
                         least_depth);
  if (along && *along == -1) {
    const Expr backwards = Expr(lanes_ - 1) - lane(lanes_);
    const Var loaded = builder_.load(memory, emit(with_lane(position, Expr(lanes_ - 1))), lanes_,
                                     full(with_lane(mask, backwards)), least_depth);
    return builder_.gep({loaded}, reversed(lanes_));
  }
  if (along && schedule::loads_whole_vectors(*along, lanes_) && mask.is_true())
    return load_strided(memory, position, *along, least_depth);
  return builder_.load(memory, emit(position), lanes_, full(mask), least_depth);
}

Var ValueEmitter::load_strided(Var memory, const Expr& position, int64_t stride, int least_depth) {
  // Whole vectors between the first and the last lane's element, and not beyond.
  const int64_t span = (lanes_ - 1) * std::abs(stride) + 1;
  const Expr first = with_lane(position, Expr(stride > 0 ? 0 : lanes_ - 1));
  std::vector<Var> vectors;
  for (int64_t start = 0; start < span; start += lanes_)
    vectors.push_back(builder_.load(memory, emit(first + Expr(std::min(start, span - lanes_))),
                                    lanes_, {}, least_depth));
  Ints indices;
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    const int64_t at = (stride > 0 ? lane : lanes_ - 1 - lane) * std::abs(stride);
    const int64_t from = at / lanes_, start = std::min(from * lanes_, span - lanes_);
    indices.push_back(from * lanes_ + at - start);
  }
  return builder_.gep(std::move(vectors), std::move(indices));
}

bool ValueEmitter::is_in_runs(Value v, const Expr& position, int64_t run) const {
  if (!vars_.empty()) return false;
  const Expr start = position - mod(Expr(position.constant()), run);
  return num_elements(graph_[v].shape()) % run == 0 && start.known_divisor() % run == 0;
}

Var ValueEmitter::load_interleaved(Var memory, const Expr& position, int64_t stride,
                                   int least_depth) {
  const int64_t within = mod(Expr(position.constant()), stride).constant();
  const Expr start = with_lane(position, Expr(0)) - within;
  std::vector<Var> vectors;
  for (int64_t i = 0; i < stride; ++i)
    vectors.push_back(
        builder_.load(memory, emit(start + Expr(i * lanes_)), lanes_, {}, least_depth));
  Ints indices;
  for (int64_t lane = 0; lane < lanes_; ++lane) indices.push_back(lane * stride + within);
  return builder_.gep(std::move(vectors), std::move(indices));
}

bool ValueEmitter::is_of_square(Value v, const Expr& position, int64_t stride) const {
  return std::abs(stride) > 1 && stride % lanes_ == 0 && is_in_runs(v, position, lanes_) &&
         schedule::computes_squares(kernel_);
}

Var ValueEmitter::load_transposed(Var memory, const Expr& position, int least_depth) {
  const int64_t within = mod(Expr(position.constant()), lanes_).constant();
  std::vector<Var> rows;
  for (int64_t lane = 0; lane < lanes_; ++lane)
    rows.push_back(builder_.load(memory, emit(with_lane(position, Expr(lane)) - within), lanes_, {},
                                 least_depth));
  return transposed(builder_, rows, within, lanes_ / 2);
}

ValueEmitter::Place ValueEmitter::place_of(const Expr& position, Var valid) {
  if (!depends_on_lane(position)) return {emit(position), 1, valid, false};
  if (valid.valid()) valid = builder_.splat(valid, lanes_);
  const bool contiguous = lane_stride(position) == 1;
  return {emit(contiguous ? with_lane(position, Expr(0)) : position), lanes_, valid, contiguous};
}

void ValueEmitter::store(Value v, const Expr& position, Var value, const Mask& mask,
                         bool nontemporal) {
  if (const auto placed = placed_.find(v.id); placed != placed_.end()) {
    const auto& [memory, layout, origin, depth] = placed->second;
    const Index index = sym::unflatten_index(position, graph_[v].shape());
    return store_to(memory, scratch_position(*layout, origin, index), value, mask, false);
  }
  store_to(memory_.at(v.id), position, value, mask, nontemporal);
}

void ValueEmitter::store(Value v, const std::vector<Element>& elements, bool nontemporal) {
  std::vector<bool> stored(elements.size(), false);
  for (size_t i = 0; i < elements.size(); ++i) {
    if (stored[i]) continue;
    const std::vector<size_t> group =
        placed_.count(v.id) ? std::vector<size_t>{} : interleaved(elements, i);
    if (group.empty()) {
      store(v, elements[i].position, elements[i].value, elements[i].mask, nontemporal);
    } else {
      store_interleaved(memory_.at(v.id), elements, group, nontemporal);
    }
    for (const size_t member : group) stored[member] = true;
  }
}

std::vector<size_t> ValueEmitter::interleaved(const std::vector<Element>& elements,
                                              size_t first) const {
  const Expr& start = elements[first].position;
  const auto stride = lane_stride(start);
  if (!stride || !schedule::interleaves(*stride, lanes_)) return {};
  std::vector<size_t> group;
  for (size_t i = first; i < elements.size(); ++i) {
    const bool is_next = elements[i].position == start + Expr(static_cast<int64_t>(group.size()));
    if (is_next && elements[i].mask.is_true()) group.push_back(i);
    if (static_cast<int64_t>(group.size()) == *stride) return group;
  }
  return {};
}

void ValueEmitter::store_interleaved(Var memory, const std::vector<Element>& elements,
                                     const std::vector<size_t>& group, bool nontemporal) {
  const auto count = static_cast<int64_t>(group.size());
  std::vector<Var> vectors;
  for (const size_t i : group) vectors.push_back(builder_.splat(elements[i].value, lanes_));
  for (int64_t i = 0; i < count; ++i) {
    Ints indices;
    for (int64_t at = i * lanes_; at < (i + 1) * lanes_; ++at)
      indices.push_back(at % count * lanes_ + at / count);
    const Expr position = with_lane(elements[group[0]].position, Expr(0)) + Expr(i * lanes_);
    builder_.store(memory, emit(position), builder_.gep(vectors, std::move(indices)), {},
                   nontemporal && starts_vector(position));
  }
}

bool ValueEmitter::starts_vector(const Expr& position) const {
  return with_lane(position, Expr(0)).known_divisor() % lanes_ == 0;
}

const ValueEmitter::Held* ValueEmitter::held(Value v) const {
  if (std::find(taken_.begin(), taken_.end(), v) == taken_.end()) return nullptr;
  const auto it = held_.find(v.id);
  const bool in_scope = it != held_.end() && it->second.depth <= builder_.depth() &&
                        builder_.scope_id(it->second.depth) == it->second.scope;
  RUNE_CHECK(in_scope, "a value is taken from scratch before it is kept");
  return &it->second;
}

void ValueEmitter::keep(Value v, const Index& origin, const Index& index, Var value,
                        const Mask& mask) {
  store_to(scratch_.at(v.id), scratch_position(scratch_layout(v), origin, index), value, mask,
           false);
}

void ValueEmitter::place_in_scratch(Value v, const ValueEmitter& owner, const Index& origin) {
  placed_[v.id] = {owner.scratch_.at(v.id), &owner.scratch_layout(v), origin, builder_.depth()};
}

void ValueEmitter::hold(Value v, const Index& origin) {
  held_[v.id] = {origin, builder_.depth(), builder_.scope_id(builder_.depth())};
}

void ValueEmitter::store_to(Var memory, const Expr& position, Var value, const Mask& mask,
                            bool nontemporal) {
  const Var valid = emit(mask);
  const Place place = place_of(position, valid);
  RUNE_CHECK(place.lanes > 1 || builder_.type(value).lanes == 1,
             "a vector is stored to one element");
  const bool streams = nontemporal && place.contiguous && !valid.valid() && starts_vector(position);
  builder_.store(memory, place.index, builder_.splat(value, place.lanes), place.valid, streams);
}

void ValueEmitter::update(Value v, const Expr& position, Var value, const Mask& mask, Var valid,
                          Combination by) {
  const Var memory = memory_.at(v.id);
  if (valid.valid()) builder_.open_if(valid);
  const Place place = place_of(position, emit(mask));
  value = builder_.splat(value, place.lanes);
  std::optional<AluOp> atomic;
  if (by.atomic) {
    atomic = alu_of(by.op.value());
  } else if (by.op) {
    const Var old = builder_.load_here(memory, place.index, place.lanes, place.valid);
    value = builder_.alu_here(alu_of(*by.op), {old, value});
  }
  builder_.store(memory, place.index, value, place.valid, false, atomic);
  if (valid.valid()) builder_.close_if();
}

}  // namespace rune::lower
