#include "lower/builder.h"

#include "base/error.h"

namespace rune::lower {

Var Builder::add(Payload payload, std::vector<Var> args, Type type) {
  Instr instr{std::move(payload), std::move(args), type};
  if (!has_value(instr.kind())) instr.type = {};
  kernel_.body.push_back(std::move(instr));
  return {static_cast<uint32_t>(kernel_.body.size() - 1)};
}

Var Builder::range(Var bound) {
  return add(Range{}, {bound}, type(bound));
}
void Builder::if_(Var condition) {
  add(If{}, {condition}, {});
}

Var InstrBuilder::define_global(DType dtype, int64_t index, int64_t size, bool writable) {
  return place(Define_Global{index, size, writable}, {}, {dtype, 1, true});
}

Var InstrBuilder::local(DType dtype, int64_t size) {
  return place(Local{size}, {}, {dtype, 1, true});
}

Var InstrBuilder::private_memory(DType dtype, int64_t size) {
  return place(Private{size}, {}, {dtype, 1, true});
}

Var InstrBuilder::acc(Var initial) {
  return place(Acc{}, {initial}, type(initial));
}

void InstrBuilder::assign(Var acc, Var value) {
  place(Assign{}, {acc, value}, {});
}

Var InstrBuilder::constant(Scalar value, int lanes) {
  return place(Const{value}, {}, {value.dtype(), lanes});
}

Var InstrBuilder::vconst(std::vector<Scalar> values) {
  const Type t{values.at(0).dtype(), static_cast<int>(values.size())};
  return place(Vconst{std::move(values)}, {}, t);
}

Var InstrBuilder::special(SpecialKind kind, int64_t bound, DType dtype) {
  return place(Special{kind, bound}, {}, {dtype});
}

Var InstrBuilder::define_var(SymVar var, DType dtype) {
  return place(Define_Var{std::move(var)}, {}, {dtype});
}

void InstrBuilder::barrier() {
  place(Barrier{}, {}, {});
}

Var InstrBuilder::load(Var memory, Var index, int lanes, Var valid) {
  if (lanes == 1) lanes = type(index).lanes;
  std::vector<Var> args{memory, index};
  if (valid.valid()) args.push_back(valid);
  return place(Load{}, std::move(args), {type(memory).dtype, lanes});
}

void InstrBuilder::store(Var memory, Var index, Var value, Var valid, bool nontemporal,
                         std::optional<AluOp> atomic) {
  std::vector<Var> args{memory, index, value};
  if (valid.valid()) args.push_back(valid);
  place(Store{nontemporal, atomic}, std::move(args), {});
}

void InstrBuilder::prefetch(Var memory, Var index) {
  place(Prefetch{}, {memory, index}, {});
}

Var InstrBuilder::alu(AluOp op, std::vector<Var> args) {
  std::vector<DType> dtypes;
  for (const Var arg : args) dtypes.push_back(type(arg).dtype);
  try {
    return place(Alu{op}, args, {result_dtype(op, dtypes), type(args[0]).lanes});
  } catch (const UserError& e) {
    throw InternalError(e.what());
  }
}

Var InstrBuilder::cast(Var x, DType dtype) {
  const Type t = type(x);
  return t.dtype == dtype ? x : place(Cast{}, {x}, {dtype, t.lanes});
}

Var InstrBuilder::bitcast(Var x, DType dtype) {
  const Type t = type(x);
  return t.dtype == dtype ? x : place(Bitcast{}, {x}, {dtype, t.lanes});
}

Var InstrBuilder::splat(Var x, int lanes) {
  const Type t = type(x);
  return t.lanes == lanes ? x : place(Splat{}, {x}, {t.dtype, lanes});
}

Var InstrBuilder::shuffle(std::vector<Var> xs, Ints indices) {
  const Type t{type(xs.at(0)).dtype, static_cast<int>(indices.size())};
  return place(Shuffle{std::move(indices)}, std::move(xs), t);
}

Var InstrBuilder::wmma(Wmma shape, Var a, Var b, Var c) {
  return place(std::move(shape), {a, b, c}, type(c));
}

Var InstrBuilder::simd_reduce(AluOp op, int64_t width, Var x) {
  return place(Simd_reduce{op, width}, {x}, type(x));
}

Var InstrBuilder::simd_shuffle(int64_t width, Var x, Var lane) {
  return place(Simd_shuffle{width}, {x, lane}, type(x));
}

Var InstrBuilder::custom(Custom custom, std::vector<Var> args, Type type) {
  return place(std::move(custom), std::move(args), type);
}

}  // namespace rune::lower
