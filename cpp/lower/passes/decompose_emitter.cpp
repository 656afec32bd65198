#include "lower/passes/decompose_emitter.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace rune::lower::decomposition {

Value Emitter::alu(AluOp op, std::span<const Value> operands) {
  const DType dtype = operands.back().dtype();
  const bool moves_bits = op == AluOp::Where && !caps_.has_arithmetic(dtype) && is_float(dtype);
  if (is_native(caps_, op, dtype) || moves_bits) {
    std::vector<Var> args;
    for (const Value& v : operands) args.push_back(v.var);
    return value(builder_.alu(op, std::move(args)));
  }
  const Rule rule = rule_for(op, dtype);
  if (!rule)
    user_error(ErrorKind::Unsupported, info(op).text, ": cannot lower ", numpy_name(dtype), " to ",
               caps_.name, " (the operation is not native and has no decomposition)");
  return rule(operands);
}

Value Emitter::raw(AluOp op, std::span<const Value> operands) {
  std::vector<Var> args;
  for (const Value& v : operands) args.push_back(v.var);
  return value(builder_.alu(op, std::move(args)));
}

Value Emitter::constant(Literal number, DType dtype, int lanes) {
  const Scalar scalar = std::visit([&](auto v) { return Scalar::of(dtype, v); }, number.number);
  const ConstantKey key{dtype, scalar.bits(), lanes};
  for (const auto& scope : scopes_)
    if (const auto found = scope.find(key); found != scope.end()) return value(found->second);
  const Var var = builder_.constant(scalar, lanes);
  scopes_.back().emplace(key, var);
  return value(var);
}

std::optional<Scalar> Emitter::constant_of(Value v) const {
  const Instr& instr = builder_.kernel()[v.var];
  if (const Const* constant = instr.as<Const>()) return constant->value;
  if (instr.as<Splat>()) return constant_of({v.emitter, instr.args[0]});
  if (const Vconst* constants = instr.as<Vconst>()) {
    const Scalar& first = constants->values[0];
    if (std::all_of(constants->values.begin(), constants->values.end(),
                    [&](const Scalar& s) { return s == first; }))
      return first;
  }
  return std::nullopt;
}

void Emitter::if_(Value condition) {
  builder_.if_(condition.var);
  enter_scope();
}
void Emitter::end_if() {
  leave_scope();
  builder_.end_if();
}
void Emitter::range(int64_t iterations) {
  builder_.range(constant(iterations, DType::Int64, 1).var);
  enter_scope();
}
void Emitter::end_range() {
  leave_scope();
  builder_.end_range();
}

void KernelCopy::copy(Var old) {
  const Instr& instr = kernel_[old];
  if (closes_scope(instr.kind())) emitter_.leave_scope();
  std::vector<Var> args;
  for (const Var arg : instr.args) args.push_back(values_[arg.id]);
  values_[old.id] = builder_.add(instr.payload, std::move(args), instr.type);
  if (opens_scope(instr.kind())) emitter_.enter_scope();
}

namespace {

// The operands as values. Literals become constants with the type of the first operand that is a
// value.
std::vector<Value> resolve(std::span<const Operand> operands) {
  const Value* like = nullptr;
  for (const Operand& o : operands)
    if (!like) like = std::get_if<Value>(&o.content);
  RUNE_CHECK(like, "an operation on literals alone");
  std::vector<Value> values;
  for (const Operand& o : operands) {
    const Value* v = std::get_if<Value>(&o.content);
    values.push_back(
        v ? *v
          : like->emitter->constant(std::get<Literal>(o.content), like->dtype(), like->lanes()));
  }
  return values;
}

}  // namespace

Value apply(AluOp op, std::initializer_list<Operand> operands) {
  const std::vector<Value> values = resolve({operands.begin(), operands.size()});
  return values[0].emitter->alu(op, values);
}

Value where(Value condition, Operand a, Operand b) {
  const Operand branches[] = {a, b};
  const std::vector<Value> values = resolve(branches);
  const Value operands[] = {condition, values[0], values[1]};
  return condition.emitter->alu(AluOp::Where, operands);
}

Value operator<<(Value a, Operand amount) {
  const Operand operands[] = {a, amount};
  return a.emitter->raw(AluOp::Shl, {a, resolve(operands)[1]});
}

Value operator>>(Value a, Operand amount) {
  const Operand operands[] = {a, amount};
  return a.emitter->raw(AluOp::Shr, {a, resolve(operands)[1]});
}

Value cast(Value v, DType dtype) {
  return v.emitter->cast(v, dtype);
}

Value constant_like(Value x, Literal number) {
  return x.emitter->constant(number, x.dtype(), x.lanes());
}

Value polynomial(Value x, std::span<const double> coefficients) {
  RUNE_CHECK(coefficients.size() >= 2, coefficients.size());
  Value sum = mulacc(x, coefficients[0], coefficients[1]);
  for (const double c : coefficients.subspan(2)) sum = mulacc(sum, x, c);
  return sum;
}

Value clamp(Value x, double lo, double hi) {
  const Value above = where(less(x, lo), lo, x);
  return where(less(hi, above), hi, above);
}

Value any(Value bools) {
  // LLVM compiles this form to one instruction.
  Emitter& e = *bools.emitter;
  const int lanes = bools.lanes();
  Value found = bools;
  for (int width = lanes; width > 1;) {
    width = (width + 1) / 2;
    Ints others(lanes);
    for (int lane = 0; lane < lanes; ++lane) others[lane] = (lane + width) % lanes;
    found = found | e.shuffle(found, others);
  }
  return lanes == 1 ? found : e.shuffle(found, {0});
}

double Format::smallest_normal() const {
  return std::ldexp(1.0, 1 - bias);
}
double Format::rounder() const {
  return std::ldexp(1.5, mantissa);
}

const Format& format_of(DType dtype) {
  static constexpr Format kFloat32{DType::Float32, DType::Int32, DType::Uint32, 23, 127};
  static constexpr Format kFloat64{DType::Float64, DType::Int64, DType::Uint64, 52, 1023};
  RUNE_CHECK(dtype == DType::Float32 || dtype == DType::Float64, name_of(dtype));
  return dtype == DType::Float32 ? kFloat32 : kFloat64;
}

Sum add(Value a, Value b) {
  const Value high = a + b;
  return {high, b - (high - a)};
}

Sum add_any(Value a, Operand b) {
  const Value high = apply(AluOp::Add, {a, b});
  const Value part = high - a;
  return {high, (a - (high - part)) + apply(AluOp::Sub, {b, part})};
}

Sum product(Value a, Operand b) {
  const Value high = apply(AluOp::Mul, {a, b});
  return {high, mulacc(a, b, 0.0 - high)};
}

Value bits(Value x) {
  return x.emitter->bitcast(x, format_of(x).integer);
}

Value from_bits(Value integer) {
  return integer.emitter->bitcast(integer,
                                  bits_of(integer.dtype()) == 32 ? DType::Float32 : DType::Float64);
}

Value magnitude_bits(Value x) {
  return bits(x) & (format_of(x).sign_mask() - 1);
}
Value magnitude(Value x) {
  return from_bits(magnitude_bits(x));
}

Value flip_sign(Value x, Value integer) {
  return from_bits(bits(x) ^ (integer & format_of(x).sign_mask()));
}

Value power_of_two(Value n, DType dtype) {
  const Format& f = format_of(dtype);
  return from_bits((n << f.mantissa) + (int64_t{f.bias} << f.mantissa));
}

Value scale_by_power_of_two(Value x, Value n) {
  // Only the second product can round, because the first keeps a normal number normal.
  const Value half = n >> 1;
  return x * power_of_two(half, x.dtype()) * power_of_two(n - half, x.dtype());
}

namespace {
Rounded rounded_from(Value shifted) {
  const Format& f = format_of(shifted);
  return {shifted - f.rounder(), bits(shifted)};
}
}  // namespace

Rounded round_number(Value x) {
  return rounded_from(x + format_of(x).rounder());
}
Rounded round_product(Value x, double factor) {
  return rounded_from(mulacc(x, factor, format_of(x).rounder()));
}

Value scale_by_power_of_two(Value x, const Rounded& n) {
  if (is_native(x.emitter->caps(), AluOp::Ldexp, x.dtype()))
    return apply(AluOp::Ldexp, {x, n.number});
  return scale_by_power_of_two(x, n.integer);
}

}  // namespace rune::lower::decomposition
