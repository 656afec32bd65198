#include "lower/scoped_builder.h"

#include <algorithm>

#include "base/error.h"

namespace rune::lower {

namespace {

std::string key_of(const Payload& payload, const std::vector<Var>& args, const Type& type) {
  std::string key = std::to_string(payload.index());
  std::visit([&](const auto& p) { text::print_fields(key, p); }, payload);
  for (const Var arg : args) key += '%' + std::to_string(arg.id);
  key += ':' + std::to_string(static_cast<int>(type.dtype)) + 'x' + std::to_string(type.lanes);
  return key;
}

}  // namespace

Var ScopedBuilder::emit(int depth, Payload payload, std::vector<Var> args, Type type) {
  const Var v{static_cast<uint32_t>(types_.size())};
  types_.push_back(type);
  depths_.push_back(depth);
  scopes_[depth].instrs.push_back({v.id, {std::move(payload), std::move(args), type}});
  return v;
}

Var ScopedBuilder::place(Payload payload, std::vector<Var> args, Type type) {
  switch (static_cast<InstrKind>(payload.index())) {
    case InstrKind::Local:  // two Locals of the same size are different memories
    case InstrKind::Private: return emit(0, std::move(payload), std::move(args), type);
    case InstrKind::Acc:
    case InstrKind::Assign:
    case InstrKind::Barrier:
    case InstrKind::Store:
    case InstrKind::Wmma:
    case InstrKind::Simd_reduce:
    case InstrKind::Simd_shuffle:
    case InstrKind::Custom: return emit(depth(), std::move(payload), std::move(args), type);
    default: break;  // the instruction has no effects
  }
  if (stays_here_) return emit(depth(), std::move(payload), std::move(args), type);
  std::string key = key_of(payload, args, type);
  const auto known = numbering_.find(key);
  if (known != numbering_.end()) return known->second;
  int depth = least_depth_;
  for (const Var arg : args) depth = std::max(depth, depths_[arg.id]);
  const Var v = emit(depth, std::move(payload), std::move(args), type);
  scopes_[depth].numbered.push_back(key);
  numbering_.emplace(std::move(key), v);
  return v;
}

template <class F>
Var ScopedBuilder::here(F f) {
  stays_here_ = true;
  const Var v = f();
  stays_here_ = false;
  return v;
}

Var ScopedBuilder::open(Payload payload, std::vector<Var> args, Type type) {
  const Var v{static_cast<uint32_t>(types_.size())};
  types_.push_back(type);
  const int fence = scopes_.back().fence;
  Scope& scope = scopes_.emplace_back();
  depths_.push_back(depth());  // a loop's index exists only inside of it
  scope.opener = Pending{v.id, {std::move(payload), std::move(args), type}};
  scope.fence = fence;
  scope.id = ++num_scopes_;
  return v;
}

Var ScopedBuilder::open_range(Var bound, bool may_be_empty) {
  const Var index = open(Range{}, {bound}, types_[bound.id]);
  if (may_be_empty) scopes_.back().fence = depth();
  return index;
}

Var ScopedBuilder::open_unroll(int64_t iterations, DType index) {
  return open(Unroll{iterations}, {}, {index, 1, false});
}

void ScopedBuilder::open_if(Var condition) {
  open(If{}, {condition}, {});
  scopes_.back().fence = depth();
}

void ScopedBuilder::close(Payload end) {
  RUNE_CHECK(scopes_.size() > 1, "no scope to close");
  Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  for (const std::string& key : scope.numbered) numbering_.erase(key);
  std::vector<Pending>& outer = scopes_.back().instrs;
  outer.push_back(std::move(*scope.opener));
  std::move(scope.instrs.begin(), scope.instrs.end(), std::back_inserter(outer));
  emit(depth(), std::move(end), {}, {});
}

Var ScopedBuilder::load(Var memory, Var index, int lanes, Var valid, int least_depth) {
  least_depth_ = std::max(least_depth, scopes_.back().fence);
  const Var v = InstrBuilder::load(memory, index, lanes, valid);
  least_depth_ = 0;
  return v;
}

Var ScopedBuilder::load_here(Var memory, Var index, int lanes, Var valid) {
  return here([&] { return InstrBuilder::load(memory, index, lanes, valid); });
}
Var ScopedBuilder::alu_here(AluOp op, std::vector<Var> args) {
  return here([&] { return alu(op, std::move(args)); });
}
Var ScopedBuilder::shuffle_here(Var x, Ints indices) {
  return here([&] { return shuffle(x, std::move(indices)); });
}

Kernel ScopedBuilder::finish(std::string name, int64_t grid, int64_t local) {
  RUNE_CHECK(scopes_.size() == 1, "a scope is still open");
  Kernel kernel{std::move(name), grid, local, {}};
  std::vector<Var> position(types_.size());
  for (Pending& pending : scopes_[0].instrs) {
    for (Var& arg : pending.instr.args) arg = position[arg.id];
    position[pending.id] = Var{static_cast<uint32_t>(kernel.body.size())};
    kernel.body.push_back(std::move(pending.instr));
  }
  return kernel;
}

}  // namespace rune::lower
