#include "lower/passes/memory_emitter.h"

#include "base/error.h"
#include "lower/passes/launch.h"
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

// The position of the element at `index` in scratch memory of this layout, which begins at
// `origin`.
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

}  // namespace

Var transposed(ScopedBuilder& builder, const std::vector<Var>& rows, int64_t row, int64_t half) {
  if (half == 0) return rows[row];
  const auto lanes = static_cast<int64_t>(rows.size());
  const Var upper = transposed(builder, rows, row & ~half, half / 2);
  const Var lower = transposed(builder, rows, row | half, half / 2);
  Ints indices;
  for (int64_t lane = 0; lane < lanes; ++lane)
    indices.push_back(((lane & ~half) | (row & half)) + (lane & half ? lanes : 0));
  return builder.shuffle({upper, lower}, std::move(indices));
}

MemoryEmitter::MemoryEmitter(Launch& launch, const schedule::Kernel& kernel, IndexEmitter& index)
    : builder_(launch.builder),
      index_(index),
      graph_(launch.graph),
      kernel_(kernel),
      lanes_(index.lanes()),
      free_shared_bytes_(launch.caps.shared_memory_bytes) {
  std::map<uint32_t, Expr> shifts;  // by input, in elements
  for (const schedule::Shift& shift : launch.kernel.shifts)
    shifts[shift.buffer.id] = index.argument(shift.argument) * shift.scale;
  int64_t number = 0;
  for (const Value v : kernel_arguments(launch.kernel.inputs, launch.kernel.outputs)) {
    bool writable = false;
    for (const Value output : launch.kernel.outputs) writable |= output == v;
    Location& location = arguments_[v.id];
    const auto placement = launch.placements.find(v);
    if (writable && placement != launch.placements.end()) location.placement = &placement->second;
    const Shape& shape = location.placement ? location.placement->array : graph_[v].shape();
    location.memory =
        builder_.define_global(graph_[v].dtype(), number++, max_elements(shape), writable);
    location.shift = shifts[v.id];
  }
  for (const Value input : kernel.inputs) arguments_[input.id].is_input = true;
  for (const schedule::Scratch& buffer : kernel.scratch) {
    Location& location = scratch_[buffer.value.id];
    location.memory = builder_.local(graph_[buffer.value].dtype(), buffer.elements);
    location.layout = &buffer;
    location.scope.id = ~uint64_t{0};  // no scope, until elements are held
  }
}

const Location* MemoryEmitter::find(Value v) const {
  if (takes(v)) {
    const Location& location = scratch_.at(v.id);
    RUNE_CHECK(builder_.is_open(location.scope), "a value is taken from scratch before it is kept");
    return &location;
  }
  return is_input(v) ? &arguments_.at(v.id) : nullptr;
}

Expr MemoryEmitter::position_of(const Location& location, const Access& access) const {
  if (location.layout) return scratch_position(*location.layout, location.origin, access.index);
  return schedule::flatten_index(access.index, graph_[access.value].shape()) + location.shift;
}

Expr MemoryEmitter::placed(const Placement& placement, const Expr& position) const {
  const Index index = schedule::unflatten_index(position, placement.part);
  const Ints strides = contiguous_strides(placement.array);
  Expr result;
  for (size_t d = 0; d < index.size(); ++d)
    result = result + (index[d] + index_.size(placement.offsets[d])) * strides[d];
  return result;
}

Var MemoryEmitter::load(const Access& access) {
  const Location& location = *find(access.value);
  const Expr position = position_of(location, access);
  if (location.layout)
    return load_from(location.memory, position, access.mask, location.scope.depth);
  const auto along = lane_stride(position);
  prefetch_following(access, location.memory, position);
  if (along && access.mask.is_true() && schedule::interleaves(*along, lanes_) &&
      is_in_runs(access.value, position, *along))
    return load_interleaved(location.memory, position, *along);
  if (along && std::abs(*along) >= lanes_ && lanes_ > 1 &&
      is_constant(graph_[access.value].shape()) && schedule::computes_squares(kernel_)) {
    const Var loaded = load_transposed(location.memory, access, position);
    const Var valid = index_.emit(access.mask);
    if (!valid.valid()) return loaded;
    const Scalar zero = Scalar::zero(graph_[access.value].dtype());
    return index_.where(valid, loaded, builder_.constant(zero, lanes_));
  }
  return load_from(location.memory, position, access.mask, 0);
}

Var MemoryEmitter::load_uniform(Var memory, const Expr& position, const Mask& mask,
                                int least_depth) {
  // One element for all lanes is needed if any lane needs it. If a single condition depends on the
  // lane, that is the lane at the end of the vector where the condition's expression is greatest.
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
    return builder_.load(memory, builder_.splat(index_.emit(position), lanes_), lanes_,
                         index_.emit(mask), least_depth);
  if (by_lane.size() == 1) {
    const int64_t at = *lane_stride(by_lane[0]) < 0 ? 0 : lanes_ - 1;
    any.require_nonnegative(with_lane(by_lane[0], Expr(at)));
  }
  return builder_.load(memory, index_.emit(position), 1, index_.emit(any), least_depth);
}

void MemoryEmitter::prefetch_for(const schedule::Stage& stage) {
  ahead_.clear();
  for (const schedule::Prefetch& prefetch : kernel_.prefetches)
    if (prefetch.axis && contains(stage.axes, *prefetch.axis))
      ahead_[prefetch.from.id] = prefetch.ahead;
}

void MemoryEmitter::prefetch(const Access& access) {
  const Location& location = arguments_.at(access.value.id);
  builder_.prefetch(location.memory, index_.emit(position_of(location, access)));
}

void MemoryEmitter::prefetch_following(const Access& access, Var memory, const Expr& position) {
  const auto ahead = ahead_.find(access.value.id);
  if (ahead == ahead_.end()) return;
  const Expr first = depends_on_lane(position) ? with_lane(position, Expr(0)) : position;
  builder_.prefetch(memory, index_.emit(first + Expr(ahead->second)));
}

void MemoryEmitter::prefetch_stores_after(Value v, Var memory, const Expr& position) {
  if (!depends_on_lane(position)) return;
  for (const schedule::Prefetch& prefetch : kernel_.prefetches)
    if (prefetch.from == v)
      builder_.prefetch(memory, index_.emit(with_lane(position, Expr(prefetch.ahead))));
}

Var MemoryEmitter::load_from(Var memory, const Expr& position, const Mask& mask, int least_depth) {
  if (!depends_on_lane(position)) return load_uniform(memory, position, mask, least_depth);
  const auto along = lane_stride(position);
  const auto full = [&](const Mask& needed) {
    const Var valid = index_.emit(needed);
    return valid.valid() ? builder_.splat(valid, lanes_) : valid;
  };
  if (along && *along == 1)
    return builder_.load(memory, index_.emit(with_lane(position, Expr(0))), lanes_, full(mask),
                         least_depth);
  if (along && *along == -1) {
    const Expr backwards = Expr(lanes_ - 1) - index_.lane(lanes_);
    const Var loaded = builder_.load(memory, index_.emit(with_lane(position, Expr(lanes_ - 1))),
                                     lanes_, full(with_lane(mask, backwards)), least_depth);
    return builder_.shuffle({loaded}, reversed(lanes_));
  }
  if (along && schedule::loads_whole_vectors(*along, lanes_))
    if (const auto needed = adjacent_lanes(mask))
      return load_strided(memory, position, *along, *needed, least_depth);
  return builder_.load(memory, index_.emit(position), lanes_, full(mask), least_depth);
}

std::optional<MemoryEmitter::Lanes> MemoryEmitter::adjacent_lanes(const Mask& mask) const {
  Lanes lanes{0, 0};
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    const Mask here = with_lane(mask, Expr(lane));
    if (here.is_false()) continue;
    if (lanes.end == 0) lanes = {lane, lane};
    if (!here.is_true() || lane != lanes.end) return std::nullopt;
    ++lanes.end;
  }
  return lanes;
}

Var MemoryEmitter::load_strided(Var memory, const Expr& position, int64_t stride, Lanes needed,
                                int least_depth) {
  // Loads whole vectors from the first to the last lane's element, and none beyond.
  const int64_t step = std::abs(stride), span = (lanes_ - 1) * step + 1;
  const Expr first = with_lane(position, Expr(stride > 0 ? 0 : lanes_ - 1));
  if (stride < 0) needed = {lanes_ - needed.end, lanes_ - needed.begin};
  const auto exists = [&](int64_t at) {
    return at >= needed.begin * step && at <= (needed.end - 1) * step;
  };
  std::vector<Var> vectors;
  for (int64_t from = 0; from < span; from += lanes_) {
    const int64_t start = std::min(from, span - lanes_);
    Var valid;
    if (!exists(start) || !exists(start + lanes_ - 1)) {
      std::vector<Scalar> elements;
      for (int64_t i = 0; i < lanes_; ++i)
        elements.push_back(Scalar::of(DType::Bool, exists(start + i)));
      valid = builder_.vconst(std::move(elements));
    }
    vectors.push_back(
        builder_.load(memory, index_.emit(first + Expr(start)), lanes_, valid, least_depth));
  }
  Ints indices;
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    const int64_t at = (stride > 0 ? lane : lanes_ - 1 - lane) * step;
    const int64_t from = at / lanes_, start = std::min(from * lanes_, span - lanes_);
    indices.push_back(from * lanes_ + at - start);
  }
  return builder_.shuffle(std::move(vectors), std::move(indices));
}

bool MemoryEmitter::is_in_runs(Value v, const Expr& position, int64_t run) const {
  // The memory of an argument of symbolic size ends at its size in this run.
  if (!is_constant(graph_[v].shape())) return false;
  const Expr start = position - mod(Expr(position.constant()), run);
  return max_elements(graph_[v].shape()) % run == 0 && start.known_divisor() % run == 0;
}

Var MemoryEmitter::load_interleaved(Var memory, const Expr& position, int64_t stride) {
  const int64_t within = mod(Expr(position.constant()), stride).constant();
  const Expr start = with_lane(position, Expr(0)) - within;
  std::vector<Var> vectors;
  for (int64_t i = 0; i < stride; ++i)
    vectors.push_back(builder_.load(memory, index_.emit(start + Expr(i * lanes_)), lanes_, {}));
  Ints indices;
  for (int64_t lane = 0; lane < lanes_; ++lane) indices.push_back(lane * stride + within);
  return builder_.shuffle(std::move(vectors), std::move(indices));
}

Var MemoryEmitter::load_transposed(Var memory, const Access& access, const Expr& position) {
  const int64_t within = mod(Expr(position.constant()), lanes_).constant();
  const int64_t size = max_elements(graph_[access.value].shape());
  std::vector<Var> rows;
  const auto square = square_of(access);
  if (Fetched* known = square ? fetched(*square) : nullptr) {
    for (int64_t row = 0; known->rows.size() < static_cast<size_t>(lanes_); ++row)
      known->rows.push_back(
          builder_.load_here(known->shared, place_in_square(piece_->column, row), lanes_, {}));
    return transposed(builder_, known->rows, within, lanes_ / 2);
  }
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    const Expr start = with_lane(position, Expr(lane)) - within;
    Mask inside;  // because the square may extend beyond the lanes' elements
    if (!access.mask.is_true() || size % lanes_ != 0 || start.known_divisor() % lanes_ != 0)
      inside.require_between(start + index_.lane(lanes_), 0, size);
    rows.push_back(builder_.load(memory, index_.emit(start), lanes_, index_.emit(inside)));
  }
  return transposed(builder_, rows, within, lanes_ / 2);
}

void MemoryEmitter::exchange(std::optional<Piece> piece) {
  piece_ = std::move(piece);
  fetched_.clear();
}

std::optional<MemoryEmitter::Square> MemoryEmitter::square_of(const Access& access) const {
  const Location& location = *find(access.value);
  if (!piece_ || location.layout || !access.mask.is_true()) return std::nullopt;
  const Expr position = position_of(location, access);
  const auto along = lane_stride(position);
  if (!along || std::abs(*along) < lanes_) return std::nullopt;
  const int64_t within = mod(Expr(position.constant()), lanes_).constant();
  const Expr start = with_lane(position, Expr(0)) - within;
  if (start.known_divisor() % lanes_ != 0 || *along % lanes_ != 0) return std::nullopt;
  return Square{location.memory, start, *along};
}

MemoryEmitter::Fetched* MemoryEmitter::fetched(const Square& square) {
  for (Fetched& known : fetched_)
    if (known.square == square) return &known;
  return nullptr;
}

// Rows of pieces are rotated, so that threads of adjacent pieces access different banks.
Var MemoryEmitter::place_in_square(const Expr& row_of_pieces, int64_t row) {
  const int64_t side = piece_->pieces * lanes_;
  return index_.emit((row_of_pieces * lanes_ + row) * side +
                     mod(piece_->row + piece_->column, piece_->pieces) * lanes_);
}

void MemoryEmitter::fetch(const std::vector<Access>& accesses) {
  struct Row {
    Var shared, place, value;
  };
  std::vector<Row> brought;
  for (const Access& access : accesses) {
    const auto square = square_of(access);
    if (!square) {
      load(access);  // before threads wait
      continue;
    }
    if (fetched(*square)) continue;
    const DType dtype = graph_[access.value].dtype();
    const int64_t side = piece_->pieces * lanes_, bytes = side * side * size_of(dtype);
    if (bytes > free_shared_bytes_) continue;
    free_shared_bytes_ -= bytes;
    const Var shared = builder_.local(dtype, side * side);
    fetched_.push_back({*square, shared, {}});
    // The piece at the transposed position.
    const Expr other = (piece_->column - piece_->row) * (lanes_ * (1 - square->stride));
    for (int64_t row = 0; row < lanes_; ++row)
      brought.push_back(
          {shared, place_in_square(piece_->row, row),
           builder_.load(square->memory, index_.emit(square->start + other + square->stride * row),
                         lanes_, {})});
  }
  for (const Row& row : brought) builder_.store(row.shared, row.place, row.value, {}, false);
  if (!brought.empty()) builder_.barrier();
}

MemoryEmitter::Place MemoryEmitter::place_of(const Expr& position, Var valid) {
  if (!depends_on_lane(position)) return {index_.emit(position), 1, valid, false};
  if (valid.valid()) valid = builder_.splat(valid, lanes_);
  const bool contiguous = lane_stride(position) == 1;
  return {index_.emit(contiguous ? with_lane(position, Expr(0)) : position), lanes_, valid,
          contiguous};
}

void MemoryEmitter::store(Value v, const Element& element, bool nontemporal) {
  const Location& location = arguments_.at(v.id);
  if (location.placement) {
    const Expr position = placed(*location.placement, element.position);
    return store_to(location.memory, {position, element.value, element.mask}, false);
  }
  if (!location.layout) {
    const Element shifted{element.position + location.shift, element.value, element.mask};
    prefetch_stores_after(v, location.memory, shifted.position);
    return store_to(location.memory, shifted, nontemporal);
  }
  const Index index = schedule::unflatten_index(element.position, graph_[v].shape());
  const Expr position = scratch_position(*location.layout, location.origin, index);
  store_to(location.memory, {position, element.value, element.mask}, false);
}

void MemoryEmitter::store(Value v, const std::vector<Element>& elements, bool nontemporal) {
  const Location& location = arguments_.at(v.id);
  std::vector<bool> stored(elements.size(), false);
  for (size_t i = 0; i < elements.size(); ++i) {
    if (stored[i]) continue;
    const std::vector<size_t> group =
        location.layout || location.placement ? std::vector<size_t>{} : interleaved(elements, i);
    if (group.empty()) {
      store(v, elements[i], nontemporal);
    } else {
      store_interleaved(location, elements, group, nontemporal);
    }
    for (const size_t member : group) stored[member] = true;
  }
}

std::vector<size_t> MemoryEmitter::interleaved(const std::vector<Element>& elements,
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

void MemoryEmitter::store_interleaved(const Location& location,
                                      const std::vector<Element>& elements,
                                      const std::vector<size_t>& group, bool nontemporal) {
  const auto count = static_cast<int64_t>(group.size());
  std::vector<Var> vectors;
  for (const size_t i : group) vectors.push_back(builder_.splat(elements[i].value, lanes_));
  for (int64_t i = 0; i < count; ++i) {
    Ints indices;
    for (int64_t at = i * lanes_; at < (i + 1) * lanes_; ++at)
      indices.push_back(at % count * lanes_ + at / count);
    const Expr first = elements[group[0]].position + location.shift;
    const Expr position = with_lane(first, Expr(0)) + Expr(i * lanes_);
    builder_.store(location.memory, index_.emit(position),
                   builder_.shuffle(vectors, std::move(indices)), {},
                   nontemporal && starts_vector(position));
  }
}

bool MemoryEmitter::starts_vector(const Expr& position) const {
  return with_lane(position, Expr(0)).known_divisor() % lanes_ == 0;
}

void MemoryEmitter::keep(Value v, const Index& origin, const Index& index, Var value,
                         const Mask& mask) {
  const Location& location = scratch_.at(v.id);
  store_to(location.memory, {scratch_position(*location.layout, origin, index), value, mask},
           false);
}

void MemoryEmitter::hold(Value v, const Index& origin) {
  Location& location = scratch_.at(v.id);
  location.origin = origin;
  location.scope = builder_.scope();
}

void MemoryEmitter::place_in_scratch(Value v, const MemoryEmitter& owner, const Index& origin) {
  Location& location = arguments_[v.id];
  location.memory = owner.scratch_.at(v.id).memory;
  location.layout = owner.scratch_.at(v.id).layout;
  location.origin = origin;
  location.scope = builder_.scope();
}

void MemoryEmitter::store_to(Var memory, const Element& element, bool nontemporal) {
  const Var valid = index_.emit(element.mask);
  const Place place = place_of(element.position, valid);
  RUNE_CHECK(place.lanes > 1 || builder_.type(element.value).lanes == 1,
             "a vector is stored to one element");
  const bool streams =
      nontemporal && place.contiguous && !valid.valid() && starts_vector(element.position);
  builder_.store(memory, place.index, builder_.splat(element.value, place.lanes), place.valid,
                 streams);
}

Var MemoryEmitter::load_stored(Value v, const Expr& position, const Mask& mask) {
  const Location& location = arguments_.at(v.id);
  const Place place = place_of(
      location.placement ? placed(*location.placement, position) : position + location.shift,
      index_.emit(mask));
  return builder_.load_here(location.memory, place.index, place.lanes, place.valid);
}

void MemoryEmitter::update(Value v, const Element& element, Var valid, Combination by) {
  const Var memory = arguments_.at(v.id).memory;
  if (valid.valid()) builder_.open_if(valid);
  const Place place = place_of(element.position, index_.emit(element.mask));
  Var value = builder_.splat(element.value, place.lanes);
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
