#include "lower/passes/divide_by_reciprocals.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "lower/passes/decompose_emitter.h"

namespace rune::lower {

namespace decomposition {
namespace {

// The times of a division by a known reciprocal and of computing the reciprocal, in additions of
// vectors. The divisions in the loop wait for the reciprocal. Measured on two CPUs with AVX-512.
constexpr double kByReciprocal = 5, kReciprocal = 75;
// The assumed number of iterations of a loop whose bound is not a constant.
constexpr int64_t kUnknownIterations = 64;

// A loop, by the position of its opener, and a divisor that is known before it.
struct Divisor {
  uint32_t loop = 0;
  Var value;
  auto operator<=>(const Divisor&) const = default;
};

// 1 / c and 0 for a divisor c. Both are NaN if c is outside of the limits, so that every division
// by c takes the branch.
struct Reciprocal {
  Var factor, zero;
};

// The greatest magnitudes of the exponents of divisors and of quotients. Within them, every step is
// exact or rounds a normal number. The remainder x - q c is a multiple of ulp(q) ulp(c), which must
// not be too small.
struct Limits {
  int divisor, quotient;
};
Limits limits_of(DType dtype) {
  return dtype == DType::Float32 ? Limits{40, 60} : Limits{400, 400};
}

int64_t iterations_of(const Kernel& kernel, uint32_t opener) {
  const Instr& instr = kernel.body[opener];
  if (const auto* unroll = instr.as<Unroll>()) return unroll->iterations;
  if (!instr.as<Range>()) return 1;
  const auto* bound = kernel[instr.args[0]].as<Const>();
  return bound ? bound->value.as_int64() : kUnknownIterations;
}

// Whether the reciprocal of a divisor saves time if so many vectors are divided by it.
bool reciprocal_pays(const Capabilities& caps, DType dtype, int64_t vectors) {
  const auto d = static_cast<size_t>(dtype);
  const double division = caps.operations_per_ns[d] / caps.divisions_per_ns[d];
  return (division - kByReciprocal) * static_cast<double>(vectors) > kReciprocal;
}

// The divisor of each division that a reciprocal should replace, by the division's position.
std::map<uint32_t, Divisor> find_divisions(const Kernel& kernel, const Capabilities& caps) {
  std::map<uint32_t, Divisor> found;
  std::map<Divisor, int64_t> times;
  std::vector<uint32_t> open;
  for (uint32_t id = 0; id < kernel.body.size(); ++id) {
    const Instr& instr = kernel.body[id];
    if (closes_scope(instr.kind())) open.pop_back();
    if (opens_scope(instr.kind())) open.push_back(id);
    const auto* alu = instr.as<Alu>();
    const DType dtype = instr.type.dtype;
    if (!alu || alu->op != AluOp::Fdiv || instr.type.lanes == 1 ||
        (dtype != DType::Float32 && dtype != DType::Float64))
      continue;
    const auto [x, c] = std::pair(instr.args[0], instr.args[1]);
    if (kernel[c].as<Acc>()) continue;
    const auto loop = std::find_if(open.begin(), open.end(), [&](uint32_t opener) {
      return c.id < opener && kernel.body[opener].kind() != InstrKind::If;
    });
    if (loop == open.end() || x.id < *loop) continue;
    int64_t count = 1;
    for (auto at = loop; at != open.end(); ++at) count *= iterations_of(kernel, *at);
    found[id] = {*loop, c};
    times[found[id]] += count;
  }
  std::erase_if(found, [&](const auto& entry) {
    const Divisor& divisor = entry.second;
    return !reciprocal_pays(caps, kernel[divisor.value].type.dtype, times[divisor]);
  });
  return found;
}

class Rewriter {
 public:
  Rewriter(const Kernel& kernel, const Capabilities& caps)
      : kernel_(kernel),
        divisions_(find_divisions(kernel, caps)),
        most_at_once_(static_cast<size_t>(caps.num_vector_registers / 4)),
        copy_(kernel, caps) {
    for (const auto& [at, divisor] : divisions_) divisors_[divisor.loop].insert(divisor.value);
  }

  Kernel run() {
    for (uint32_t id = 0; id < kernel_.body.size();) {
      const uint32_t end = end_of_group(id);
      if (end > id) {
        divide(id, end);
        id = end;
      } else {
        find_reciprocals(id);
        copy_.copy({id++});
      }
    }
    return copy_.take();
  }

 private:
  // Before a loop, computes the reciprocals of the divisors in it.
  void find_reciprocals(uint32_t opener) {
    const auto divisors = divisors_.find(opener);
    if (divisors == divisors_.end()) return;
    for (const Var c : divisors->second) reciprocals_[{opener, c}] = reciprocal_of(c);
  }

  // The end of a group of consecutive divisions, which share a branch. None of them divides the
  // quotient of another one.
  uint32_t end_of_group(uint32_t begin) const {
    uint32_t end = begin;
    while (divisions_.contains(end) && end - begin < most_at_once_ &&
           kernel_.body[end].args[0].id < begin &&
           kernel_.body[end].type == kernel_.body[begin].type)
      ++end;
    return end;
  }

  Reciprocal reciprocal_of(Var divisor) {
    const Instr& instr = kernel_[divisor];
    const bool is_splat = instr.as<Splat>() != nullptr;
    const Value c = copy_.value(is_splat ? instr.args[0] : divisor);
    const int exponent = limits_of(c.dtype()).divisor;
    const Value is_usable =
        less_equal(std::ldexp(1.0, -exponent), c) & less_equal(c, std::ldexp(1.0, exponent));
    const Value factor = where(is_usable, 1.0 / c, kNan);
    const Value zero = factor - factor;
    const int lanes = instr.type.lanes;
    Builder& builder = copy_.builder();
    return {builder.splat(factor.var, lanes), builder.splat(zero.var, lanes)};
  }

  // The quotient by one step of Newton's method from the product with the rounded reciprocal. It
  // is correctly rounded (Brisebarre, Muller and Raina, "Accelerating correctly rounded
  // floating-point division when the divisor is known in advance", 2004) unless a step underflows
  // or overflows. `fails` gets the lanes where one does. Signs of zeros are right, because the
  // divisor is positive.
  Value quotient(Value x, Value c, const Reciprocal& reciprocal, std::optional<Value>& fails) {
    Emitter& emitter = copy_.emitter();
    const Value factor = emitter.value(reciprocal.factor);
    const Value zero = emitter.value(reciprocal.zero);
    const Value product = x * factor;
    // Doubling the bits drops the sign. The subtraction makes numbers below the least one wrap to
    // the greatest.
    const auto doubled_bits = [&](int exponent) {
      return 2 * Scalar::of(x.dtype(), std::ldexp(1.0, exponent)).bits();
    };
    const int exponent = limits_of(x.dtype()).quotient;
    const Value number = emitter.bitcast(product, format_of(x).unsigned_integer);
    const Value above_least = number + number - doubled_bits(-exponent);
    const Value is_far = less_equal(doubled_bits(exponent) - doubled_bits(-exponent), above_least);
    const Value is_bad = is_far & not_equal(x, zero);
    fails = fails ? *fails | is_bad : is_bad;
    const Value excess = mulacc(product, c, apply(AluOp::Neg, {x}));
    return mulacc(apply(AluOp::Neg, {excess}), factor, product);
  }

  void divide(uint32_t begin, uint32_t end) {
    const auto operand = [&](uint32_t id, size_t k) {
      return copy_.value(kernel_.body[id].args[k]);
    };
    Emitter& emitter = copy_.emitter();
    std::vector<Value> quotients;
    std::optional<Value> fails;
    for (uint32_t id = begin; id < end; ++id)
      quotients.push_back(
          quotient(operand(id, 0), operand(id, 1), reciprocals_.at(divisions_.at(id)), fails));
    for (uint32_t id = begin; id < end; ++id) {
      Value& q = quotients[id - begin];
      q = emitter.acc(q);
      copy_.replace({id}, q);
    }
    emitter.if_(any(*fails));
    for (uint32_t id = begin; id < end; ++id)
      emitter.assign(quotients[id - begin], operand(id, 0) / operand(id, 1));
    emitter.end_if();
  }

  const Kernel& kernel_;
  const std::map<uint32_t, Divisor> divisions_;
  std::map<uint32_t, std::set<Var>> divisors_;  // by loop
  const size_t most_at_once_;                   // the most divisions that share a branch
  KernelCopy copy_;
  std::map<Divisor, Reciprocal> reciprocals_;
};

}  // namespace
}  // namespace decomposition

Kernel divide_by_reciprocals(const Kernel& kernel, const Capabilities& caps) {
  if (caps.model != ExecutionModel::Cores || caps.vector_bits < 256) return kernel;
  return decomposition::Rewriter(kernel, caps).run();
}

}  // namespace rune::lower
