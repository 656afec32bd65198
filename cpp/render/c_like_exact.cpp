// Which integer operations cannot overflow: interval arithmetic over a kernel's instructions.
#include <algorithm>
#include <limits>
#include <optional>

#include "render/c_like.h"

namespace rune::render::c_like {

namespace {

using lower::Instr;
using lower::InstrKind;
using lower::Kernel;

struct Interval {
  int64_t low, high;
};

Interval all_of(DType dtype) {
  if (is_bool(dtype)) return {0, 1};
  // The upper half of uint64 cannot be represented. Its values count as unknown (see `known`).
  if (dtype == DType::Uint64) return {0, std::numeric_limits<int64_t>::max()};
  return {Scalar::lowest(dtype).as_int64(), Scalar::highest(dtype).as_int64()};
}

bool contains(Interval outer, Interval inner) {
  return outer.low <= inner.low && inner.high <= outer.high;
}

using Maybe = std::optional<Interval>;

// The interval if it fits 64 bits.
Maybe checked(__int128 low, __int128 high) {
  constexpr __int128 kLow = std::numeric_limits<int64_t>::min();
  constexpr __int128 kHigh = std::numeric_limits<int64_t>::max();
  if (low < kLow || high > kHigh) return {};
  return Interval{static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

Maybe add(Interval a, Interval b) {
  return checked(__int128{a.low} + b.low, __int128{a.high} + b.high);
}
Maybe subtract(Interval a, Interval b) {
  return checked(__int128{a.low} - b.high, __int128{a.high} - b.low);
}
Maybe multiply(Interval a, Interval b) {
  const __int128 w = __int128{a.low} * b.low, x = __int128{a.low} * b.high;
  const __int128 y = __int128{a.high} * b.low, z = __int128{a.high} * b.high;
  return checked(std::min({w, x, y, z}), std::max({w, x, y, z}));
}

class Analysis {
 public:
  explicit Analysis(const Kernel& kernel) : kernel_(kernel), intervals_(kernel.body.size()) {}

  std::vector<bool> run() {
    std::vector<bool> exact(kernel_.body.size(), false);
    for (uint32_t id = 0; id < kernel_.body.size(); ++id) {
      const Instr& instr = kernel_.body[id];
      if (!lower::has_value(instr.kind()) || instr.type.pointer || is_float(instr.type.dtype))
        continue;
      const Maybe result = evaluate(instr);
      const Interval range = all_of(instr.type.dtype);
      exact[id] = instr.as<lower::Alu>() && result && contains(range, *result);
      if (result && contains(range, *result)) {
        intervals_[id] = result;
      } else if (instr.type.dtype != DType::Uint64) {
        intervals_[id] = range;
      }
    }
    return exact;
  }

 private:
  const Maybe& arg(const Instr& instr, size_t i) const { return intervals_[instr.args[i].id]; }

  Maybe scalars(std::span<const Scalar> values) const {
    Interval r{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
    for (const Scalar& v : values) {
      const int64_t x = v.as_int64();
      if (v.dtype() == DType::Uint64 && x < 0) return {};
      r = {std::min(r.low, x), std::max(r.high, x)};
    }
    return r;
  }

  Maybe join(const Instr& instr, size_t first) const {
    Maybe r = arg(instr, first);
    for (size_t i = first + 1; i < instr.args.size(); ++i) {
      const Maybe& x = arg(instr, i);
      if (!r || !x) return {};
      r = Interval{std::min(r->low, x->low), std::max(r->high, x->high)};
    }
    return r;
  }

  Maybe evaluate(const Instr& instr) const {
    if (const auto* c = instr.as<lower::Const>()) return scalars({&c->value, 1});
    if (const auto* c = instr.as<lower::Vconst>()) return scalars(c->values);
    if (const auto* s = instr.as<lower::Special>()) return Interval{0, s->bound - 1};
    if (const auto* v = instr.as<lower::Define_Var>())
      return Interval{v->var.min_val, v->var.max_val};
    if (const auto* u = instr.as<lower::Unroll>())
      return Interval{0, std::max<int64_t>(u->iterations - 1, 0)};
    if (const auto* a = instr.as<lower::Alu>()) return operation(instr, a->op);
    switch (instr.kind()) {
      case InstrKind::Range:
        if (!arg(instr, 0)) return {};
        return Interval{0, std::max<int64_t>(arg(instr, 0)->high - 1, 0)};
      case InstrKind::Shuffle:
      case InstrKind::Splat: return join(instr, 0);
      case InstrKind::Cast:
        if (is_float(kernel_[instr.args[0]].type.dtype)) return {};
        return arg(instr, 0);  // if it does not fit, it wraps: the dtype's range replaces it
      default: return {};
    }
  }

  Maybe operation(const Instr& instr, AluOp op) const {
    if (op == AluOp::Where) return join(instr, 1);
    for (size_t i = 0; i < instr.args.size(); ++i)
      if (!arg(instr, i)) return {};
    const Interval a = *arg(instr, 0), b = *arg(instr, instr.args.size() > 1 ? 1 : 0);
    if (op == AluOp::Add) return add(a, b);
    if (op == AluOp::Sub) return subtract(a, b);
    if (op == AluOp::Mul) return multiply(a, b);
    if (op == AluOp::Neg) return subtract({0, 0}, a);
    if (op == AluOp::Mulacc) {
      const Maybe product = multiply(a, b);
      return product ? add(*product, *arg(instr, 2)) : Maybe();
    }
    if (op == AluOp::Max) return Interval{std::max(a.low, b.low), std::max(a.high, b.high)};
    if (op == AluOp::Min) return Interval{std::min(a.low, b.low), std::min(a.high, b.high)};
    if (op == AluOp::Div && b.low > 0)
      return Interval{std::min(a.low, a.low / b.low), std::max(a.high, a.high / b.low)};
    if (op == AluOp::Fmod && b.low > 0)
      return Interval{a.low < 0 ? 1 - b.high : 0, a.high > 0 ? b.high - 1 : 0};
    return {};
  }

  const Kernel& kernel_;
  std::vector<Maybe> intervals_;  // by instruction; nothing if unknown or not an integer
};

}  // namespace

std::vector<bool> exact_integers(const Kernel& kernel) {
  return Analysis(kernel).run();
}

}  // namespace rune::render::c_like
