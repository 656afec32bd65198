#include "lower/passes/value_emitter.h"

#include <algorithm>
#include <bit>

#include "alu/eval.h"
#include "base/error.h"
#include "base/hash.h"

namespace rune::lower {

using schedule::Evaluation;
using schedule::evaluation_of;
using sym::Expr;
using sym::Mask;

size_t ValueEmitter::Hash::operator()(const Access& access) const {
  uint64_t h = hash_combine(access.value.id, access.mask.hash());
  for (const Expr& expr : access.index) h = hash_combine(h, expr.hash());
  return h;
}

ValueEmitter::ValueEmitter(Launch& launch, const schedule::Kernel& kernel, IndexEmitter& index,
                           MemoryEmitter& memory)
    : builder_(launch.builder),
      graph_(launch.graph),
      kernel_(kernel),
      arguments_(launch.kernel.constants),
      index_(index),
      memory_(memory) {}

const Var* ValueEmitter::find(const Access& access) const {
  const auto it = known_.find(access);
  return it != known_.end() && builder_.is_open(it->second.scope) ? &it->second.value : nullptr;
}

Var ValueEmitter::known_value(const Access& access) {
  if (access.mask.is_false()) return zero_of(graph_[access.value].dtype());
  const Var* known = find(access);
  RUNE_CHECK(known, "a value was not computed before its use");
  return *known;
}

std::vector<Var> ValueEmitter::evaluate(const std::vector<Access>& wanted) {
  const auto stop = [this](Value v, const std::vector<schedule::Demand>& demands) {
    const Evaluation evaluation = evaluation_of(graph_[v]);
    if (memory_.find(v) || evaluation == Evaluation::Reduction ||
        evaluation == Evaluation::Gathered)
      return true;
    return std::all_of(demands.begin(), demands.end(), [&](const schedule::Demand& demand) {
      return find({v, demand.index, demand.mask}) != nullptr;
    });
  };
  const schedule::Walk walked = schedule::walk(graph_, wanted, stop);
  if (memory_.exchanges()) fetch(walked);
  for (auto it = walked.demands.rbegin(); it != walked.demands.rend(); ++it)
    for (const schedule::Demand& demand : it->second) {
      const Access access{Value{it->first}, demand.index, demand.mask};
      if (find(access)) continue;
      const Var result = compute(access);
      known_[access] = {result, builder_.scope_at(builder_.depth_of(result))};
    }
  std::vector<Var> values;
  for (const Access& access : wanted) values.push_back(known_value(access));
  return values;
}

void ValueEmitter::fetch(const schedule::Walk& walked) {
  std::vector<Access> loaded;
  for (const auto& [id, demands] : walked.demands)
    for (const schedule::Demand& demand : demands)
      if (memory_.find(Value{id}) && !demand.mask.is_false())
        loaded.push_back({Value{id}, demand.index, demand.mask});
  memory_.fetch(loaded);
}

Var ValueEmitter::compute(const Access& access) {
  const graph::Node& node = graph_[access.value];
  // The result of a reduction is in registers, even if it is an argument, too.
  const bool in_memory = memory_.takes(access.value) || !reduced_.count(access.value.id);
  if (memory_.find(access.value) && in_memory) return memory_.load(access);
  switch (evaluation_of(node)) {
    case Evaluation::Alu: return compute_alu(node, access);
    case Evaluation::Forward: return compute_forward(access);
    case Evaluation::Select: return compute_select(access);
    case Evaluation::Constant: return compute_constant(access.value);
    case Evaluation::Counted: return compute_counted(node, access.index[0]);
    case Evaluation::Variable:
      return builder_.cast(index_.emit(index_.size(Dim(node.as<graph::Define_Var>()->var))),
                           node.dtype());
    case Evaluation::Reduction: return compute_reduction(access);
    case Evaluation::Gathered: return compute_gathered(access);
    case Evaluation::Scattered:  // its initial element
      return known_value({node.inputs[0], access.index, access.mask});
    case Evaluation::Scanned:
    case Evaluation::Moved:
    case Evaluation::Called:
    case Evaluation::Memory:
      // The schedule, which knows more about the axes, found that the mask holds at no point.
      RUNE_CHECK(!access.mask.is_true(), graph::name_of(node.kind()), " is not an input of ",
                 kernel_.name);
      return zero_of(node.dtype());
  }
  RUNE_UNREACHABLE();
}

Var ValueEmitter::compute_constant(Value v) {
  const Scalar& value = graph_[v].as<graph::Const_Scalar>()->value;
  for (const schedule::ConstantArgument& argument : arguments_) {
    if (argument.constant != v) continue;
    constexpr DType kIntegers[] = {DType::Int8, DType::Int16, DType::Int32, DType::Int64};
    const DType dtype = value.dtype();
    const DType bits = is_integer(dtype)
                           ? dtype
                           : kIntegers[std::countr_zero(static_cast<uint64_t>(size_of(dtype)))];
    const Var raw = index_.emit(index_.argument(argument.argument));
    return builder_.bitcast(builder_.cast(raw, bits), dtype);
  }
  return builder_.constant(value);
}

// A vector of indices is the sum of a constant vector and a scalar. The constant vector has the
// lanes' numbers and the constant part of the index. The scalar is the rest of the index, which the
// vectors of an iteration share. The sum is in the dtype, which may be narrower than an index.
Var ValueEmitter::compute_counted(const graph::Node& node, const Expr& index) {
  const DType dtype = node.dtype();
  const std::optional<int64_t> stride = lane_stride(index);
  if (!depends_on_lane(index) || !stride) return builder_.cast(index_.emit(index), dtype);
  const Expr first = with_lane(index, Expr(0));
  std::vector<Scalar> numbers;
  for (int64_t lane = 0; lane < index_.lanes(); ++lane)
    numbers.push_back(Scalar::of(dtype, first.constant() + *stride * lane));
  const Var constants = builder_.vconst(std::move(numbers));
  const Expr rest = first - Expr(first.constant());
  if (rest == Expr(0)) return constants;
  const Var shared = builder_.splat(builder_.cast(index_.emit(rest), dtype), index_.lanes());
  return builder_.alu(AluOp::Add, {shared, constants});
}

Var ValueEmitter::compute_alu(const graph::Node& node, const Access& access) {
  std::vector<Var> args;
  int lanes = 1;
  for (const Value input : node.inputs) {
    args.push_back(known_value({input, access.index, access.mask}));
    lanes = std::max(lanes, builder_.type(args.back()).lanes);
  }
  if (node.kind() == graph::NodeKind::Cast) return builder_.cast(args[0], node.dtype());
  if (node.kind() == graph::NodeKind::Bitcast) return builder_.bitcast(args[0], node.dtype());
  for (Var& arg : args) arg = builder_.splat(arg, lanes);
  if (const auto* custom = node.as<graph::Custom>())
    return builder_.custom({custom->op_name, *graph::custom_source(*custom, "text")},
                           std::move(args), {node.dtype(), lanes});
  const AluOp op = node.as<graph::Binop>()   ? node.as<graph::Binop>()->op
                   : node.as<graph::Unary>() ? node.as<graph::Unary>()->op
                                             : node.as<graph::Ternary>()->op;
  return builder_.alu(op, std::move(args));
}

Var ValueEmitter::compute_forward(const Access& access) {
  Access inner = schedule::operand_accesses(graph_, access.value, access.index)[0];
  const Mask own = inner.mask;
  inner.mask.require(access.mask);
  const Var value = known_value(inner);
  if (own.is_true() || inner.mask.is_false()) return value;
  // Masked loads already give zero, except if all lanes share one element and only some need it.
  const auto& conditions = own.conditions();
  const bool shared = builder_.type(value).lanes == 1 &&
                      std::any_of(conditions.begin(), conditions.end(), depends_on_lane);
  if (memory_.is_input(inner.value) && !shared) return value;
  return index_.where(index_.emit(own), value, zero_of(builder_.type(value).dtype));
}

Var ValueEmitter::compute_select(const Access& access) {
  std::vector<std::pair<Mask, Var>> parts;
  for (Access& part : schedule::operand_accesses(graph_, access.value, access.index)) {
    const Mask own = part.mask;
    part.mask.require(access.mask);
    if (!part.mask.is_false()) parts.push_back({own, known_value(part)});
  }
  if (parts.empty()) return zero_of(graph_[access.value].dtype());
  Var result = parts.back().second;
  for (size_t i = parts.size() - 1; i-- > 0;) {
    const Var condition = index_.emit(parts[i].first);
    result = condition.valid() ? index_.where(condition, parts[i].second, result) : parts[i].second;
  }
  return result;
}

void ValueEmitter::define(Value reduction, const Expr& position, Var result) {
  reduced_[reduction.id].push_back({position, result});
}

Var ValueEmitter::compute_reduction(const Access& access) {
  const auto known = reduced_.find(access.value.id);
  if (known != reduced_.end()) {
    const Expr position = schedule::flatten_index(access.index, graph_[access.value].shape());
    for (const auto& [at, value] : known->second)
      if (at == position) return value;
  }
  return fold_in_place(access);
}

Var ValueEmitter::fold_in_place(const Access& access) {
  const graph::Node& node = graph_[access.value];
  const auto* reduce = node.as<graph::Reduce_Axis>();
  const ReduceOp op = reduce ? reduce->op : ReduceOp::Add;
  const std::vector<Expr>& conditions = access.mask.conditions();
  const bool by_lane = std::any_of(access.index.begin(), access.index.end(), depends_on_lane) ||
                       std::any_of(conditions.begin(), conditions.end(), depends_on_lane);
  const Var acc =
      builder_.acc(builder_.constant(identity(op, node.dtype()), by_lane ? index_.lanes() : 1));
  const Shape sizes = schedule::reduced_shape(graph_, access.value);
  Index inner;
  for (const Dim& size : sizes) {
    const Var i = builder_.open_range(index_.emit(index_.size(size)), !size.is_constant());
    inner.push_back(index_.bind(i, {0, size.bound() - 1}));
  }
  std::vector<Access> operands =
      schedule::reduction_accesses(graph_, access.value, access.index, inner);
  for (Access& operand : operands) operand.mask.require(access.mask);
  const std::vector<Var> values = evaluate(operands);
  const auto match = [&](Var v) { return builder_.splat(v, builder_.type(acc).lanes); };
  const Var next =
      reduce ? builder_.alu_here(alu_of(op), {acc, match(values[0])})
             : builder_.alu_here(AluOp::Mulacc, {match(values[0]), match(values[1]), acc});
  builder_.assign(acc, next);
  for (size_t i = 0; i < sizes.size(); ++i) builder_.close_range();
  return acc;
}

Var ValueEmitter::compute_gathered(const Access& access) {
  const auto with_mask = [&](std::vector<Access> accesses) {
    for (Access& a : accesses) a.mask.require(access.mask);
    return accesses;
  };
  std::vector<Access> first =
      with_mask(schedule::gathered_accesses(graph_, access.value, access.index, Expr(0)));
  first.pop_back();
  const std::vector<Var> loaded = evaluate(first);
  const Expr position =
      index_.wrapped_position(loaded[0], schedule::gathered_extent(graph_, access.value));
  const Access source =
      with_mask(schedule::gathered_accesses(graph_, access.value, access.index, position)).back();
  for (const schedule::Prefetch& prefetch : kernel_.prefetches)
    if (prefetch.from == source.value && !memory_.takes(source.value))
      prefetch_gathered(access, prefetch.ahead);
  const Var value = evaluate_one(source);
  if (loaded.size() == 1) return value;
  return index_.where(loaded[1], value, zero_of(builder_.type(value).dtype));
}

// Negative positions are not wrapped, so prefetches for them have no effect.
void ValueEmitter::prefetch_gathered(const Access& access, int64_t ahead) {
  Index later = access.index;
  later.back() = later.back() + ahead;
  Access place = schedule::gathered_accesses(graph_, access.value, later, Expr(0)).front();
  place.mask.require(access.mask);
  place.mask.require_nonnegative(index_.size(graph_[access.value].shape().back()) - 1 -
                                 later.back());
  const Expr position =
      index_.position(evaluate_one(place), schedule::gathered_extent(graph_, access.value));
  memory_.prefetch(schedule::gathered_accesses(graph_, access.value, later, position).back());
}

}  // namespace rune::lower
