#include "lower/passes/value_emitter.h"

#include <algorithm>

#include "alu/eval.h"
#include "base/error.h"
#include "base/hash.h"
#include "graph/symbolic_sizes.h"
#include "lower/passes/lower_kernel.h"

namespace rune::lower {

using schedule::Evaluation;
using schedule::evaluation_of;
using sym::Expr;
using sym::Mask;

namespace {

DType index_dtype_of(const schedule::Graph& graph, const schedule::Kernel& kernel,
                     const Capabilities& caps) {
  if (caps.model == ExecutionModel::Cores) return DType::Int64;
  // Less what the last workgroups reach beyond the end.
  constexpr int64_t kNarrow = (int64_t{1} << 31) - (int64_t{1} << 20);
  const auto is_large = [&](Value v) { return num_elements(graph[v].shape()) > kNarrow; };
  // Of what is computed and not stored, too, positions are counted.
  const std::vector<Value> arguments = kernel_arguments(kernel);
  const bool wide = std::any_of(arguments.begin(), arguments.end(), is_large) ||
                    std::any_of(kernel.ops.begin(), kernel.ops.end(), is_large);
  return wide ? DType::Int64 : DType::Int32;
}

}  // namespace

size_t ValueEmitter::Hash::operator()(const Access& access) const {
  uint64_t h = hash_combine(access.value.id, access.mask.hash());
  for (const Expr& expr : access.index) h = hash_combine(h, expr.hash());
  return h;
}

Launch::Launch(const schedule::Graph& graph, const schedule::Kernel& kernel,
               const std::vector<SymVar>& vars, const Capabilities& caps)
    : graph(graph),
      kernel(kernel),
      vars(vars),
      caps(caps),
      index_dtype(index_dtype_of(graph, kernel, caps)) {}

ValueEmitter::ValueEmitter(Launch& launch, const schedule::Kernel& kernel)
    : builder_(launch.builder),
      graph_(launch.graph),
      kernel_(kernel),
      vars_(launch.vars),
      index_dtype_(launch.index_dtype),
      lanes_(static_cast<int>(kernel.lanes())) {
  if (lanes_ > 1) {
    std::vector<Scalar> numbers;
    for (int i = 0; i < lanes_; ++i) numbers.push_back(Scalar::of(index_dtype_, i));
    lane_numbers_ = builder_.vconst(std::move(numbers));
  }
  // All kernels take all variables, in the graph's order.
  for (const SymVar& var : vars_)
    symbols_[var.name] = bind(builder_.define_var(var, index_dtype_), {var.min_val, var.max_val});
  std::vector<Expr> arguments;
  for (const SymVar& var : launch.arguments)
    arguments.push_back(bind(builder_.define_var(var, index_dtype_), {var.min_val, var.max_val}));
  for (const Shift& shift : launch.shifts) {
    const int64_t stride = contiguous_strides(graph_[shift.input].shape())[shift.axis];
    Expr& total = shifts_[shift.input.id];
    total = total + arguments[shift.argument] * stride;
  }
  int64_t index = 0;
  for (const Value v : kernel_arguments(launch.kernel)) {
    bool writable = false;
    for (const Value output : launch.kernel.outputs) writable |= output == v;
    memory_[v.id] = builder_.define_global(graph_[v].dtype(), index++,
                                           num_elements(graph_[v].shape()), writable);
  }
  for (const Value input : kernel.inputs) inputs_[input.id] = true;
  for (const schedule::Scratch& buffer : kernel.scratch)
    scratch_[buffer.value.id] = builder_.buffer(graph_[buffer.value].dtype(), buffer.elements);
}

Expr ValueEmitter::lane(int64_t used) const {
  // One lane from 0 to 0 would be a constant, and what depends on it no vector. A single lane is
  // that of an axis's last position: the one before exists, the one behind does not.
  const sym::Bounds bounds = used == 1 ? sym::Bounds{-1, 0} : sym::Bounds{0, used - 1};
  return Expr::variable(kFirstLaneVariable + static_cast<uint32_t>(used), bounds);
}

Expr ValueEmitter::bind(Var value, sym::Bounds bounds) {
  const bool is_vector = builder_.type(value).lanes > 1;
  const uint32_t id = is_vector ? next_vector_variable_++ : next_variable_++;
  variables_[id] = value;
  return Expr::variable(id, bounds);
}

Var ValueEmitter::emit_atom(const sym::Atom& atom) {
  if (atom.kind == sym::Atom::Kind::Variable)
    return is_lane(atom.variable) ? lane_numbers_ : variables_.at(atom.variable);
  const Var inner = emit(atom.inner);
  const Var divisor = builder_.splat(index_constant(atom.divisor), builder_.type(inner).lanes);
  // Truncation equals rounding down where nothing is negative, and is cheaper.
  const bool nonnegative = atom.inner.bounds().low >= 0;
  const bool is_div = atom.kind == sym::Atom::Kind::Div;
  const AluOp op =
      is_div ? (nonnegative ? AluOp::Div : AluOp::Idiv) : (nonnegative ? AluOp::Fmod : AluOp::Mod);
  return builder_.alu(op, {inner, divisor});
}

Var ValueEmitter::emit(const Expr& expr) {
  struct Part {
    Var value;
    int64_t coefficient;
    int rank;
  };
  // What is known in outer scopes is added first, and so hoisted; the constant after all scalars,
  // so that neighbouring elements share a base; vectors last.
  constexpr int kConstant = 1 << 16, kVectors = 1 << 17;
  std::vector<Part> parts;
  for (const Expr::Term& term : expr.terms()) {
    const Var value = emit_atom(*term.atom);
    const bool vector = builder_.type(value).lanes > 1;
    parts.push_back({value, term.coefficient, builder_.depth_of(value) + (vector ? kVectors : 0)});
  }
  if (expr.constant() != 0 || parts.empty())
    parts.push_back({index_constant(expr.constant()), 1, kConstant});
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.rank < b.rank; });
  Var sum;
  for (const Part& part : parts) {
    Var value = part.value;
    const int lanes = builder_.type(value).lanes;
    const bool subtract = part.coefficient == -1 && sum.valid();
    if (part.coefficient != 1 && !subtract)
      value = builder_.alu(AluOp::Mul,
                           {value, builder_.splat(index_constant(part.coefficient), lanes)});
    if (!sum.valid()) {
      sum = value;
    } else {
      const Var left = builder_.type(sum).lanes == lanes ? sum : builder_.splat(sum, lanes);
      sum = builder_.alu(subtract ? AluOp::Sub : AluOp::Add, {left, value});
    }
  }
  return sum;
}

Var ValueEmitter::emit_condition(const Expr& expr) {
  // rest - lane >= 0 and rest + lane >= 0 compare the lane numbers themselves.
  const auto stride = lane_stride(expr);
  if (stride && (*stride == 1 || *stride == -1)) {
    const Expr rest = with_lane(expr, Expr(0));
    if (*stride == -1)
      return builder_.alu(AluOp::Cmple, {lane_numbers_, builder_.splat(emit(rest), lanes_)});
    return builder_.alu(AluOp::Cmple, {builder_.splat(emit(rest * -1), lanes_), lane_numbers_});
  }
  const Var value = emit(expr);
  const Var zero = builder_.splat(index_constant(0), builder_.type(value).lanes);
  return builder_.alu(AluOp::Cmple, {zero, value});
}

Var ValueEmitter::emit(const Mask& mask) {
  if (mask.is_false()) return builder_.constant(Scalar::of(DType::Bool, false));
  std::vector<Var> conditions;
  for (const Expr& expr : mask.conditions()) conditions.push_back(emit_condition(expr));
  // Conditions of outer loops first, so that their conjunction is hoisted.
  std::stable_sort(conditions.begin(), conditions.end(),
                   [&](Var a, Var b) { return builder_.depth_of(a) < builder_.depth_of(b); });
  Var all;
  for (const Var condition : conditions) all = both(all, condition);
  return all;
}

Var ValueEmitter::both(Var a, Var b) {
  if (!a.valid() || !b.valid()) return a.valid() ? a : b;
  const int lanes = std::max(builder_.type(a).lanes, builder_.type(b).lanes);
  return builder_.alu(AluOp::And, {builder_.splat(a, lanes), builder_.splat(b, lanes)});
}

Var ValueEmitter::where(Var condition, Var value, Var other) {
  int lanes = 1;
  for (const Var v : {condition, value, other}) lanes = std::max(lanes, builder_.type(v).lanes);
  return builder_.alu(AluOp::Where, {builder_.splat(condition, lanes), builder_.splat(value, lanes),
                                     builder_.splat(other, lanes)});
}

const Var* ValueEmitter::find(const Access& access) const {
  const auto it = known_.find(access);
  if (it == known_.end()) return nullptr;
  const int depth = builder_.depth_of(it->second.value);
  const bool in_scope = depth <= builder_.depth() && builder_.scope_id(depth) == it->second.scope;
  return in_scope ? &it->second.value : nullptr;
}

Var ValueEmitter::known_value(const Access& access) {
  if (access.mask.is_false()) return builder_.constant(Scalar::zero(graph_[access.value].dtype()));
  const Var* known = find(access);
  RUNE_CHECK(known, "a value was not computed before its use");
  return *known;
}

std::vector<Var> ValueEmitter::evaluate(const std::vector<Access>& wanted) {
  const auto stop = [this](Value v, const std::vector<schedule::Demand>& demands) {
    const Evaluation evaluation = evaluation_of(graph_[v]);
    if (is_input(v) || held(v) || evaluation == Evaluation::Reduction ||
        evaluation == Evaluation::Gathered)
      return true;
    return std::all_of(demands.begin(), demands.end(), [&](const schedule::Demand& demand) {
      return find({v, demand.index, demand.mask}) != nullptr;
    });
  };
  const schedule::Walk walked = schedule::walk(graph_, wanted, stop);
  for (auto it = walked.demands.rbegin(); it != walked.demands.rend(); ++it)
    for (const schedule::Demand& demand : it->second) {
      const Access access{Value{it->first}, demand.index, demand.mask};
      if (!find(access)) compute(access);
    }
  std::vector<Var> values;
  for (const Access& access : wanted) values.push_back(known_value(access));
  return values;
}

void ValueEmitter::compute(const Access& access) {
  const graph::Node& node = graph_[access.value];
  Var result;
  if (const Held* from = held(access.value)) {
    const Expr position =
        scratch_position(scratch_layout(access.value), from->origin, access.index);
    result = load_from(scratch_.at(access.value.id), position, access.mask, from->depth);
  } else if (is_input(access.value) && !reduced_.count(access.value.id)) {
    result = load(access);
  } else {
    switch (evaluation_of(node)) {
      case Evaluation::Alu: result = compute_alu(node, access); break;
      case Evaluation::Forward: result = compute_forward(access); break;
      case Evaluation::Select: result = compute_select(access); break;
      case Evaluation::Constant:
        result = builder_.constant(node.as<graph::Const_Scalar>()->value);
        break;
      case Evaluation::Variable:
        result = builder_.cast(emit(symbol(node.as<graph::Define_Var>()->var)), node.dtype());
        break;
      case Evaluation::Reduction: result = compute_reduction(access); break;
      case Evaluation::Mask: {
        result = emit(schedule::tracker_mask(node.as<graph::Valid>()->tracker, access.index));
        if (!result.valid()) result = builder_.constant(Scalar::of(DType::Bool, true));
        break;
      }
      case Evaluation::Gathered: result = compute_gathered(access); break;
      case Evaluation::Scattered:  // its beginning
        result = known_value({node.inputs[0], access.index, access.mask});
        break;
      case Evaluation::Scanned:
      case Evaluation::Moved:
      case Evaluation::Called:
      case Evaluation::Memory:
        // The schedule, which knows more of the axes, found no point at which the mask holds.
        RUNE_CHECK(!access.mask.is_true(), graph::name_of(node.kind()), " is not an input of ",
                   kernel_.name);
        result = builder_.constant(Scalar::zero(node.dtype()));
    }
  }
  known_[access] = {result, builder_.scope_id(builder_.depth_of(result))};
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
    return builder_.custom_here({custom->op_name, *graph::custom_source(*custom, "text"), true},
                                std::move(args), node.dtype());
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
  // Masked loads give zero already, but for one element that all lanes share and only some need.
  const auto& conditions = own.conditions();
  const bool shared = builder_.type(value).lanes == 1 &&
                      std::any_of(conditions.begin(), conditions.end(), depends_on_lane);
  if (is_input(inner.value) && !shared) return value;
  return where(emit(own), value, builder_.constant(Scalar::zero(builder_.type(value).dtype)));
}

Var ValueEmitter::compute_select(const Access& access) {
  std::vector<std::pair<Mask, Var>> parts;
  for (Access& part : schedule::operand_accesses(graph_, access.value, access.index)) {
    const Mask own = part.mask;
    part.mask.require(access.mask);
    if (!part.mask.is_false()) parts.push_back({own, known_value(part)});
  }
  if (parts.empty()) return builder_.constant(Scalar::zero(graph_[access.value].dtype()));
  Var result = parts.back().second;
  for (size_t i = parts.size() - 1; i-- > 0;) {
    const Var condition = emit(parts[i].first);
    result = condition.valid() ? where(condition, parts[i].second, result) : parts[i].second;
  }
  return result;
}

void ValueEmitter::define(Value reduction, const Expr& position, Var result) {
  reduced_[reduction.id].push_back({position, result});
}

Var ValueEmitter::compute_reduction(const Access& access) {
  const auto known = reduced_.find(access.value.id);
  if (known != reduced_.end()) {
    const Expr position = sym::flatten_index(access.index, graph_[access.value].shape());
    for (const auto& [at, value] : known->second)
      if (at == position) return value;
  }
  return fold_in_place(access);
}

// A reduction that no stage computes: a loop where its value is needed.
Var ValueEmitter::fold_in_place(const Access& access) {
  const graph::Node& node = graph_[access.value];
  const auto* reduce = node.as<graph::Reduce_Axis>();
  const ReduceOp op = reduce ? reduce->op : ReduceOp::Add;
  const std::vector<Expr>& conditions = access.mask.conditions();
  const bool by_lane = std::any_of(access.index.begin(), access.index.end(), depends_on_lane) ||
                       std::any_of(conditions.begin(), conditions.end(), depends_on_lane);
  const Var acc = builder_.acc(builder_.constant(identity(op, node.dtype()), by_lane ? lanes_ : 1));
  const Shape sizes = schedule::reduced_shape(graph_, access.value);
  Index inner;
  for (const int64_t size : sizes) {
    const Expr extent = extent_of(size);
    const Var i = builder_.open_range(emit(extent), !extent.is_constant());
    inner.push_back(bind(i, {0, size - 1}));
  }
  std::vector<Access> operands =
      schedule::reduction_accesses(graph_, access.value, access.index, inner);
  for (Access& operand : operands) operand.mask.require(access.mask);
  const std::vector<Var> values = evaluate(operands);
  const Type type = builder_.type(acc);
  const Var next =
      reduce
          ? builder_.alu_here(alu_of(op), {acc, match(values[0], type)})
          : builder_.alu_here(AluOp::Mulacc, {match(values[0], type), match(values[1], type), acc});
  builder_.assign(acc, next);
  for (size_t i = 0; i < sizes.size(); ++i) builder_.close_range();
  return acc;
}

Expr ValueEmitter::extent_of(int64_t size) {
  const SymVar* var = graph::symbolic_size(vars_, size);
  return var ? symbol(*var) : Expr(size);
}

// Negative positions count from the end. What lies outside even so is brought inside, so that no
// memory but the source's is read; raising IndexError for it is the front end's part.
Expr ValueEmitter::wrapped_position(Var index, int64_t extent) {
  const int lanes = builder_.type(index).lanes;
  const auto number = [&](const Expr& e) { return builder_.splat(emit(e), lanes); };
  const Expr size = extent_of(extent);
  index = builder_.cast(index, index_dtype_);
  const Var negative = builder_.alu(AluOp::Cmplt, {index, number(0)});
  index = where(negative, builder_.alu(AluOp::Add, {index, number(size)}), index);
  index =
      builder_.alu(AluOp::Max, {builder_.alu(AluOp::Min, {index, number(size - 1)}), number(0)});
  return bind(index, {0, extent - 1});
}

ValueEmitter::Position ValueEmitter::checked_position(Var index, int64_t extent) {
  const DType from = builder_.type(index).dtype;
  RUNE_CHECK(builder_.type(index).lanes == 1, "a vector of positions");
  // A uint64 beyond int64, and a uint32 beyond int32, is negative here and no position.
  const DType dtype = size_of(from) == 8 ? DType::Int64 : index_dtype_;
  const auto number = [&](int64_t n) { return builder_.constant(Scalar::of(dtype, n)); };
  const Var size = builder_.cast(emit(extent_of(extent)), dtype);
  Var at = builder_.cast(index, dtype);
  if (is_signed(from)) {
    const Var wrapped = builder_.alu(AluOp::Add, {at, size});
    at = where(builder_.alu(AluOp::Cmplt, {at, number(0)}), wrapped, at);
  }
  // What is negative even so is large without a sign.
  const DType no_sign = size_of(dtype) == 8 ? DType::Uint64 : DType::Uint32;
  const Var valid =
      builder_.alu(AluOp::Cmplt, {builder_.cast(at, no_sign), builder_.cast(size, no_sign)});
  return {bind(builder_.cast(at, index_dtype_), {0, extent - 1}), valid};
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
      wrapped_position(loaded[0], schedule::gathered_extent(graph_, access.value));
  const Access source =
      with_mask(schedule::gathered_accesses(graph_, access.value, access.index, position)).back();
  for (const schedule::Prefetch& prefetch : kernel_.prefetches)
    if (prefetch.from == source.value && !held(source.value))
      prefetch_gathered(access, prefetch.ahead);
  const Var value = evaluate_one(source);
  if (loaded.size() == 1) return value;
  return where(loaded[1], value, builder_.constant(Scalar::zero(builder_.type(value).dtype)));
}

// Negative positions are not wrapped: what they would announce is outside of the memory.
void ValueEmitter::prefetch_gathered(const Access& access, int64_t ahead) {
  Index later = access.index;
  later.back() = later.back() + ahead;
  Access place = schedule::gathered_accesses(graph_, access.value, later, Expr(0)).front();
  place.mask.require(access.mask);
  place.mask.require_between(later.back(), 0, graph_[access.value].shape().back());
  const Expr position = bind(builder_.cast(evaluate_one(place), index_dtype_),
                             {0, schedule::gathered_extent(graph_, access.value) - 1});
  const Access source = schedule::gathered_accesses(graph_, access.value, later, position).back();
  builder_.prefetch(memory_.at(source.value.id), emit(position_in_memory(source)));
}

}  // namespace rune::lower
