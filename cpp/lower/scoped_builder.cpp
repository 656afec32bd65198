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

Var ScopedBuilder::pure(Payload payload, std::vector<Var> args, Type type, int least_depth) {
  std::string key = key_of(payload, args, type);
  const auto known = numbering_.find(key);
  if (known != numbering_.end()) return known->second;
  int depth = least_depth;
  for (const Var arg : args) depth = std::max(depth, depths_[arg.id]);
  const Var v = emit(depth, std::move(payload), std::move(args), type);
  scopes_[depth].numbered.push_back(key);
  numbering_.emplace(std::move(key), v);
  return v;
}

Var ScopedBuilder::here(Payload payload, std::vector<Var> args, Type type) {
  return emit(depth(), std::move(payload), std::move(args), type);
}

Var ScopedBuilder::open(Payload payload, std::vector<Var> args, Type type) {
  const Var v{static_cast<uint32_t>(types_.size())};
  types_.push_back(type);
  const int fence = scopes_.back().fence;
  Scope& scope = scopes_.emplace_back();
  depths_.push_back(depth());  // a loop's index exists inside only
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
  here(std::move(end), {}, {});
}

Var ScopedBuilder::define_global(DType dtype, int64_t index, int64_t size, bool writable) {
  return pure(Define_Global{index, size, writable}, {}, {dtype, 1, true});
}

Var ScopedBuilder::local(DType dtype, int64_t size) {
  return emit(0, Local{size}, {}, {dtype, 1, true});  // two locals of one size are two memories
}

Var ScopedBuilder::buffer(DType dtype, int64_t size) {
  return emit(0, Buffer{size}, {}, {dtype, 1, true});
}

Var ScopedBuilder::constant(Scalar value, int lanes) {
  return splat(pure(Const{value}, {}, {value.dtype(), 1, false}), lanes);
}

Var ScopedBuilder::vconst(std::vector<Scalar> values) {
  const Type type{values[0].dtype(), static_cast<int>(values.size()), false};
  return pure(Vconst{std::move(values)}, {}, type);
}

Var ScopedBuilder::define_var(const SymVar& var, DType dtype) {
  return pure(Define_Var{var}, {}, {dtype, 1, false});
}

Var ScopedBuilder::special(SpecialKind kind, int dim, int64_t bound, DType dtype) {
  return pure(Special{kind, dim, bound}, {}, {dtype, 1, false});
}

Type ScopedBuilder::alu_type(AluOp op, const std::vector<Var>& args) const {
  std::vector<DType> dtypes;
  for (const Var arg : args) {
    RUNE_CHECK(types_[arg.id].lanes == types_[args[0].id].lanes, name_of(op), ": lanes differ");
    dtypes.push_back(types_[arg.id].dtype);
  }
  return {result_dtype(op, dtypes), types_[args[0].id].lanes, false};
}

Var ScopedBuilder::alu(AluOp op, std::vector<Var> args) {
  const Type type = alu_type(op, args);
  return pure(Alu{op}, std::move(args), type);
}

Var ScopedBuilder::alu_here(AluOp op, std::vector<Var> args) {
  const Type type = alu_type(op, args);
  return here(Alu{op}, std::move(args), type);
}

Var ScopedBuilder::cast(Var x, DType dtype) {
  if (type(x).dtype == dtype) return x;
  return pure(Cast{}, {x}, {dtype, type(x).lanes, false});
}

Var ScopedBuilder::bitcast(Var x, DType dtype) {
  if (type(x).dtype == dtype) return x;
  return pure(Bitcast{}, {x}, {dtype, type(x).lanes, false});
}

Var ScopedBuilder::splat(Var x, int lanes) {
  if (type(x).lanes == lanes) return x;
  RUNE_CHECK(type(x).lanes == 1, "splat of a vector");
  return pure(Vectorize{}, {x}, {type(x).dtype, lanes, false});
}

Var ScopedBuilder::gep(std::vector<Var> xs, Ints indices) {
  const Type type{types_[xs[0].id].dtype, static_cast<int>(indices.size()), false};
  return pure(Gep{std::move(indices)}, std::move(xs), type);
}

Var ScopedBuilder::gep_here(Var x, Ints indices) {
  const Type type{types_[x.id].dtype, static_cast<int>(indices.size()), false};
  return here(Gep{std::move(indices)}, {x}, type);
}

Type ScopedBuilder::load_type(Var memory, int lanes) const {
  return {types_[memory.id].dtype, lanes, false};
}

void ScopedBuilder::prefetch(Var memory, Var index) {
  pure(Prefetch{}, {memory, index}, {});
}
Var ScopedBuilder::load(Var memory, Var index, int lanes, Var valid, int least_depth) {
  std::vector<Var> args{memory, index};
  if (valid.valid()) args.push_back(valid);
  return pure(Load{}, std::move(args), load_type(memory, lanes),
              std::max(least_depth, scopes_.back().fence));
}

Var ScopedBuilder::load_here(Var memory, Var index, int lanes, Var valid) {
  std::vector<Var> args{memory, index};
  if (valid.valid()) args.push_back(valid);
  return here(Load{}, std::move(args), load_type(memory, lanes));
}

Var ScopedBuilder::custom_here(Custom custom, std::vector<Var> args, DType dtype) {
  const int lanes = args.empty() ? 1 : types_[args[0].id].lanes;
  return here(std::move(custom), std::move(args), {dtype, lanes, false});
}

void ScopedBuilder::store(Var memory, Var index, Var value, Var valid, bool nontemporal,
                          std::optional<AluOp> atomic) {
  std::vector<Var> args{memory, index, value};
  if (valid.valid()) args.push_back(valid);
  here(Store{nontemporal, atomic}, std::move(args), {});
}

Var ScopedBuilder::acc(Var initial) {
  return here(Acc{}, {initial}, type(initial));
}
void ScopedBuilder::assign(Var acc, Var value) {
  here(Assign{}, {acc, value}, {});
}
void ScopedBuilder::barrier() {
  here(Barrier{}, {}, {});
}
Var ScopedBuilder::simd_reduce(AluOp op, int64_t width, Var x) {
  return here(Simd_reduce{op, width}, {x}, type(x));
}
Var ScopedBuilder::wmma(Wmma shape, Var a, Var b, Var c) {
  return here(std::move(shape), {a, b, c}, type(c));
}

Kernel ScopedBuilder::finish(std::string name, std::array<int64_t, 3> grid,
                             std::array<int64_t, 3> local) {
  RUNE_CHECK(scopes_.size() == 1, "a scope is still open");
  Kernel kernel;
  kernel.name = std::move(name);
  kernel.grid = grid;
  kernel.local = local;
  std::vector<Var> position(types_.size());
  for (Pending& pending : scopes_[0].instrs) {
    for (Var& arg : pending.instr.args) arg = position[arg.id];
    position[pending.id] = Var{static_cast<uint32_t>(kernel.body.size())};
    kernel.body.push_back(std::move(pending.instr));
  }
  return kernel;
}

}  // namespace rune::lower
