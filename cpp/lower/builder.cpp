#include "lower/builder.h"

#include <algorithm>

#include "base/error.h"

namespace rune::lower {

Var Builder::add(Payload payload, std::vector<Var> args, Type type) {
  for (const Var arg : args)
    RUNE_CHECK(arg.id < kernel_.body.size(), "an operand of ",
               name_of(static_cast<InstrKind>(payload.index())), " is not defined yet");
  Instr instr{std::move(payload), std::move(args), type};
  RUNE_CHECK(!instr.as<Assign>() || kernel_[instr.args.at(0)].as<Acc>(), "assign needs an Acc");
  if (!has_value(instr.kind())) instr.type = {};
  kernel_.body.push_back(std::move(instr));
  return {static_cast<uint32_t>(kernel_.body.size() - 1)};
}

Var InstrBuilder::define_global(DType dtype, int64_t index, int64_t size, bool writable) {
  return place(Define_Global{index, size, writable}, {}, {dtype, 1, true});
}
Var InstrBuilder::local(DType dtype, int64_t size) {
  return place(Local{size}, {}, {dtype, 1, true});
}
Var InstrBuilder::buffer(DType dtype, int64_t size) {
  return place(Buffer{size}, {}, {dtype, 1, true});
}

Var InstrBuilder::acc(Var initial) {
  const Type t = type(initial);
  RUNE_CHECK(!t.pointer, "an Acc holds values, not memory");
  return place(Acc{}, {initial}, t);
}

Var InstrBuilder::constant(Scalar value, int lanes) {
  RUNE_CHECK(lanes >= 1, lanes);
  return place(Const{value}, {}, {value.dtype(), lanes});
}

Var InstrBuilder::vconst(std::vector<Scalar> values) {
  RUNE_CHECK(!values.empty(), "a Vconst has a value for each lane");
  const Type t{values[0].dtype(), static_cast<int>(values.size())};
  for (const Scalar& v : values) RUNE_CHECK(v.dtype() == t.dtype, "lanes of one dtype");
  return place(Vconst{std::move(values)}, {}, t);
}

Var InstrBuilder::special(SpecialKind kind, int dim, int64_t bound, DType dtype) {
  RUNE_CHECK(dim >= 0 && dim < 3 && is_integer(dtype), "dim ", dim, " of ", name_of(dtype));
  return place(Special{kind, dim, bound}, {}, {dtype});
}

Var InstrBuilder::define_var(SymVar var, DType dtype) {
  RUNE_CHECK(is_integer(dtype), name_of(dtype));
  return place(Define_Var{std::move(var)}, {}, {dtype});
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
void Builder::if_(Var condition) {
  RUNE_CHECK(type(condition) == Type{DType::Bool}, "a condition is a scalar bool");
  add(If{}, {condition}, {});
}
void InstrBuilder::barrier() {
  place(Barrier{}, {}, {});
}
// What Load and Store have in common.
void InstrBuilder::check_access(Var memory, Var index, Var valid, int lanes) const {
  const Type at = type(index);
  RUNE_CHECK(type(memory).pointer, "the first operand of an access is memory");
  RUNE_CHECK(is_integer(at.dtype) && !at.pointer, "an index is an integer");
  RUNE_CHECK(at.lanes == 1 || at.lanes == lanes, at.lanes, " indices of ", lanes, " lanes");
  if (!valid.valid()) return;
  const Type mask = type(valid);
  RUNE_CHECK(is_bool(mask.dtype) && !mask.pointer, "a mask is bool");
  RUNE_CHECK(mask.lanes == 1 || mask.lanes == lanes, mask.lanes, " masks of ", lanes, " lanes");
}

Var InstrBuilder::load(Var memory, Var index, int lanes, Var valid) {
  if (lanes == 1) lanes = type(index).lanes;
  check_access(memory, index, valid, lanes);
  std::vector<Var> args{memory, index};
  if (valid.valid()) args.push_back(valid);
  return place(Load{}, std::move(args), {type(memory).dtype, lanes});
}

void InstrBuilder::store(Var memory, Var index, Var value, Var valid, bool nontemporal,
                         std::optional<AluOp> atomic) {
  check_access(memory, index, valid, type(value).lanes);
  RUNE_CHECK(type(value).dtype == type(memory).dtype && !type(value).pointer, "cannot store ",
             name_of(type(value).dtype), " to memory of ", name_of(type(memory).dtype));
  std::vector<Var> args{memory, index, value};
  if (valid.valid()) args.push_back(valid);
  place(Store{nontemporal, atomic}, std::move(args), {});
}

void InstrBuilder::prefetch(Var memory, Var index) {
  RUNE_CHECK(type(memory).pointer && is_integer(type(index).dtype), "prefetch needs an address");
  place(Prefetch{}, {memory, index}, {});
}

Var InstrBuilder::alu(AluOp op, std::vector<Var> args) {
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
  return place(Alu{op}, std::move(args), {result, lanes});
}

Var InstrBuilder::cast(Var x, DType dtype) {
  const Type t = type(x);
  RUNE_CHECK(!t.pointer, "cannot cast memory");
  return t.dtype == dtype ? x : place(Cast{}, {x}, {dtype, t.lanes});
}

Var InstrBuilder::bitcast(Var x, DType dtype) {
  const Type t = type(x);
  RUNE_CHECK(!t.pointer && size_of(t.dtype) == size_of(dtype), "cannot bitcast ", name_of(t.dtype),
             " to ", name_of(dtype));
  return t.dtype == dtype ? x : place(Bitcast{}, {x}, {dtype, t.lanes});
}

Var InstrBuilder::splat(Var x, int lanes) {
  const Type t = type(x);
  RUNE_CHECK(!t.pointer && lanes >= 1, lanes);
  if (t.lanes == lanes) return x;
  RUNE_CHECK(t.lanes == 1, "cannot splat ", t.lanes, " lanes to ", lanes);
  return place(Vectorize{}, {x}, {t.dtype, lanes});
}

Var InstrBuilder::shuffle(std::vector<Var> xs, Ints indices) {
  const Type t = type(xs.at(0));
  RUNE_CHECK(!indices.empty() && !t.pointer, "shuffle needs a vector and lanes of it");
  for (const Var x : xs) RUNE_CHECK(type(x) == t, "shuffle needs vectors of one type");
  const auto count = static_cast<int64_t>(xs.size()) * t.lanes;
  for (const int64_t i : indices) RUNE_CHECK(i >= 0 && i < count, "lane ", i, " of ", count);
  const int lanes = static_cast<int>(indices.size());
  return place(Shuffle{std::move(indices)}, std::move(xs), {t.dtype, lanes});
}

Var InstrBuilder::vectorize(std::vector<Var> scalars) {
  RUNE_CHECK(!scalars.empty(), "vectorize needs scalars");
  const Type t = type(scalars[0]);
  for (const Var s : scalars)
    RUNE_CHECK(type(s) == Type{t.dtype}, "vectorize needs scalars of one dtype");
  if (scalars.size() == 1) return scalars[0];
  const int lanes = static_cast<int>(scalars.size());
  return place(Vectorize{}, std::move(scalars), {t.dtype, lanes});
}

void InstrBuilder::assign(Var acc, Var value) {
  RUNE_CHECK(type(acc) == type(value), "assign needs a value of the Acc's type");
  place(Assign{}, {acc, value}, {});
}

Var InstrBuilder::wmma(Wmma shape, Var a, Var b, Var c) {
  const int64_t m = shape.m, n = shape.n, k = shape.k, threads = shape.threads(type(c).lanes);
  RUNE_CHECK(type(a).lanes * threads == m * k && type(b).lanes * threads == k * n &&
                 type(c).lanes * threads == m * n && type(a).dtype == type(b).dtype,
             "tiles of wmma ", m, "x", n, "x", k);
  return place(std::move(shape), {a, b, c}, type(c));
}

Var InstrBuilder::simd_reduce(AluOp op, int64_t width, Var x) {
  RUNE_CHECK(type(x).lanes == 1 && !type(x).pointer, "simd_reduce combines scalars");
  return place(Simd_reduce{op, width}, {x}, type(x));
}

Var InstrBuilder::custom(Custom custom, std::vector<Var> args, Type type) {
  return place(std::move(custom), std::move(args), type);
}

}  // namespace rune::lower
