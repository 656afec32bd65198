#include "lower/builder.h"

#include <algorithm>

#include "base/error.h"

namespace rune::lower {

Var Builder::add(Payload payload, std::vector<Var> args, Type type) {
  for (const Var arg : args)
    RUNE_CHECK(arg.id < kernel_.body.size(), "an operand of ",
               name_of(static_cast<InstrKind>(payload.index())), " is not defined yet");
  Instr instr{std::move(payload), std::move(args), type};
  if (!has_value(instr.kind())) instr.type = {};
  kernel_.body.push_back(std::move(instr));
  return {static_cast<uint32_t>(kernel_.body.size() - 1)};
}

Var Builder::define_global(DType dtype, int64_t index, int64_t size, bool writable) {
  return add(Define_Global{index, size, writable}, {}, {dtype, 1, true});
}
Var Builder::local(DType dtype, int64_t size) {
  return add(Local{size}, {}, {dtype, 1, true});
}
Var Builder::buffer(DType dtype, int64_t size) {
  return add(Buffer{size}, {}, {dtype, 1, true});
}

Var Builder::acc(Var initial) {
  const Type t = type(initial);
  RUNE_CHECK(!t.pointer, "an Acc holds values, not memory");
  return add(Acc{}, {initial}, t);
}

Var Builder::constant(Scalar value, int lanes) {
  RUNE_CHECK(lanes >= 1, lanes);
  return add(Const{value}, {}, {value.dtype(), lanes});
}

Var Builder::vconst(std::vector<Scalar> values) {
  RUNE_CHECK(!values.empty(), "a Vconst has a value for each lane");
  const Type t{values[0].dtype(), static_cast<int>(values.size())};
  for (const Scalar& v : values) RUNE_CHECK(v.dtype() == t.dtype, "lanes of one dtype");
  return add(Vconst{std::move(values)}, {}, t);
}

Var Builder::special(SpecialKind kind, int dim, int64_t bound, DType dtype) {
  RUNE_CHECK(dim >= 0 && dim < 3 && is_integer(dtype), "dim ", dim, " of ", name_of(dtype));
  return add(Special{kind, dim, bound}, {}, {dtype});
}

Var Builder::define_var(SymVar var, DType dtype) {
  RUNE_CHECK(is_integer(dtype), name_of(dtype));
  return add(Define_Var{std::move(var)}, {}, {dtype});
}

Var Builder::range(Var bound) {
  const Type t = type(bound);
  RUNE_CHECK(is_integer(t.dtype) && t.lanes == 1 && !t.pointer, "a bound is a scalar integer");
  return add(Range{}, {bound}, t);
}
Var Builder::unroll(int64_t iterations, DType dtype) {
  RUNE_CHECK(is_integer(dtype), name_of(dtype));
  return add(Unroll{iterations}, {}, {dtype});
}
void Builder::end_range() {
  add(EndRange{}, {}, {});
}

void Builder::if_(Var condition) {
  RUNE_CHECK(type(condition) == Type{DType::Bool}, "a condition is a scalar bool");
  add(If{}, {condition}, {});
}
void Builder::end_if() {
  add(EndIf{}, {}, {});
}
void Builder::barrier() {
  add(Barrier{}, {}, {});
}
void Builder::block(int64_t id, bool start) {
  add(Block{id, start}, {}, {});
}

namespace {

// Checks what Load and Store have in common.
void check_access(const Type& memory, const Type& index, std::optional<Type> valid, int lanes) {
  RUNE_CHECK(memory.pointer, "the first operand of an access is memory");
  RUNE_CHECK(is_integer(index.dtype) && !index.pointer, "an index is an integer");
  RUNE_CHECK(index.lanes == 1 || index.lanes == lanes, index.lanes, " indices of ", lanes,
             " lanes");
  if (!valid) return;
  RUNE_CHECK(is_bool(valid->dtype) && !valid->pointer, "a mask is bool");
  RUNE_CHECK(valid->lanes == 1 || valid->lanes == lanes, valid->lanes, " masks of ", lanes,
             " lanes");
}

}  // namespace

std::optional<Type> Builder::mask_type(Var valid) const {
  return valid.valid() ? std::optional<Type>(type(valid)) : std::nullopt;
}

Var Builder::load(Var memory, Var index, int lanes, Var valid) {
  if (lanes == 1) lanes = type(index).lanes;
  check_access(type(memory), type(index), mask_type(valid), lanes);
  std::vector<Var> args{memory, index};
  if (valid.valid()) args.push_back(valid);
  return add(Load{}, std::move(args), {type(memory).dtype, lanes});
}

void Builder::store(Var memory, Var index, Var value, Var valid, bool nontemporal,
                    std::optional<AluOp> atomic) {
  check_access(type(memory), type(index), mask_type(valid), type(value).lanes);
  RUNE_CHECK(type(value).dtype == type(memory).dtype && !type(value).pointer, "cannot store ",
             name_of(type(value).dtype), " to memory of ", name_of(type(memory).dtype));
  std::vector<Var> args{memory, index, value};
  if (valid.valid()) args.push_back(valid);
  add(Store{nontemporal, atomic}, std::move(args), {});
}

void Builder::prefetch(Var memory, Var index) {
  RUNE_CHECK(type(memory).pointer && is_integer(type(index).dtype), "prefetch needs an address");
  add(Prefetch{}, {memory, index}, {});
}

Var Builder::alu(AluOp op, std::vector<Var> args) {
  RUNE_CHECK(static_cast<int>(args.size()) == info(op).arity, args.size(), " operands of ",
             name_of(op));
  std::vector<DType> dtypes;
  for (const Var arg : args) {
    const Type t = type(arg);
    RUNE_CHECK(!t.pointer && t.lanes == type(args[0]).lanes, "operands of ", name_of(op), " have ",
               type(args[0]).lanes, " and ", t.lanes, " lanes");
    dtypes.push_back(t.dtype);
  }
  DType result;
  try {
    result = result_dtype(op, dtypes);
  } catch (const UserError& e) {
    throw InternalError(e.what());
  }
  const int lanes = type(args[0]).lanes;
  return add(Alu{op}, std::move(args), {result, lanes});
}

Var Builder::cast(Var x, DType dtype) {
  const Type t = type(x);
  RUNE_CHECK(!t.pointer, "cannot cast memory");
  return t.dtype == dtype ? x : add(Cast{}, {x}, {dtype, t.lanes});
}

Var Builder::bitcast(Var x, DType dtype) {
  const Type t = type(x);
  RUNE_CHECK(!t.pointer && size_of(t.dtype) == size_of(dtype), "cannot bitcast ", name_of(t.dtype),
             " to ", name_of(dtype));
  return t.dtype == dtype ? x : add(Bitcast{}, {x}, {dtype, t.lanes});
}

Var Builder::splat(Var x, int lanes) {
  const Type t = type(x);
  RUNE_CHECK(!t.pointer && lanes >= 1, lanes);
  if (t.lanes == lanes) return x;
  RUNE_CHECK(t.lanes == 1, "cannot splat ", t.lanes, " lanes to ", lanes);
  return add(Vectorize{}, {x}, {t.dtype, lanes});
}

Var Builder::gep(Var x, Ints indices) {
  const Type t = type(x);
  RUNE_CHECK(!indices.empty() && !t.pointer, "gep needs a vector and lanes of it");
  for (const int64_t i : indices) RUNE_CHECK(i >= 0 && i < t.lanes, "lane ", i, " of ", t.lanes);
  const int lanes = static_cast<int>(indices.size());
  return add(Gep{std::move(indices)}, {x}, {t.dtype, lanes});
}

Var Builder::vectorize(std::vector<Var> scalars) {
  RUNE_CHECK(!scalars.empty(), "vectorize needs scalars");
  const Type t = type(scalars[0]);
  for (const Var s : scalars)
    RUNE_CHECK(type(s) == Type{t.dtype}, "vectorize needs scalars of one dtype");
  if (scalars.size() == 1) return scalars[0];
  const int lanes = static_cast<int>(scalars.size());
  return add(Vectorize{}, std::move(scalars), {t.dtype, lanes});
}

void Builder::assign(Var acc, Var value) {
  RUNE_CHECK(kernel_[acc].as<Acc>(), "assign needs an Acc");
  RUNE_CHECK(type(acc) == type(value), "assign needs a value of the Acc's type");
  add(Assign{}, {acc, value}, {});
}

Var Builder::wmma(Wmma shape, Var a, Var b, Var c) {
  const int64_t m = shape.m, n = shape.n, k = shape.k, threads = shape.threads(type(c).lanes);
  RUNE_CHECK(type(a).lanes * threads == m * k && type(b).lanes * threads == k * n &&
                 type(c).lanes * threads == m * n && type(a).dtype == type(b).dtype,
             "tiles of wmma ", m, "x", n, "x", k);
  return add(std::move(shape), {a, b, c}, type(c));
}

Var Builder::simd_reduce(AluOp op, int64_t width, Var x) {
  RUNE_CHECK(type(x).lanes == 1 && !type(x).pointer, "simd_reduce combines scalars");
  return add(Simd_reduce{op, width}, {x}, type(x));
}

Var Builder::ptrcat(std::vector<Var> memories) {
  RUNE_CHECK(!memories.empty(), "ptrcat needs memories");
  const Type t = type(memories[0]);
  for (const Var m : memories)
    RUNE_CHECK(t.pointer && type(m) == t, "ptrcat needs memories of one dtype");
  return add(Ptrcat{}, std::move(memories), t);
}

Var Builder::custom(std::string op_name, std::string text, std::vector<Var> args, Type type,
                    bool inlined) {
  return add(Custom{std::move(op_name), std::move(text), inlined}, std::move(args), type);
}

}  // namespace rune::lower
