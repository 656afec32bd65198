#include "lower/passes/partition_loops.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>

#include "alu/eval.h"
#include "lower/builder.h"

namespace rune::lower {

namespace {

// Larger bodies, and more masks, cost more code than their masks cost time.
constexpr size_t kMostInstructions = 4000;
constexpr size_t kMostConditions = 16;
constexpr int64_t kFewestIterations = 3;
// Coefficients and constants up to here cannot overflow with variables of loops.
constexpr int64_t kMostCoefficient = int64_t{1} << 31;

// The sum of coefficient * variable over scalar instructions, plus a constant a lane.
struct Linear {
  std::map<uint32_t, int64_t> variables;
  std::vector<int64_t> lanes;

  int64_t lane(size_t i) const { return lanes[lanes.size() == 1 ? 0 : i]; }
};

bool fits(int64_t x) {
  return -kMostCoefficient <= x && x <= kMostCoefficient;
}

std::optional<Linear> if_fits(Linear x) {
  for (const auto& [variable, coefficient] : x.variables)
    if (!fits(coefficient)) return std::nullopt;
  if (!std::all_of(x.lanes.begin(), x.lanes.end(), fits)) return std::nullopt;
  return x;
}

// a + sign * b
std::optional<Linear> combine(const Linear& a, const Linear& b, int64_t sign) {
  Linear sum = a;
  for (const auto& [variable, coefficient] : b.variables)
    if ((sum.variables[variable] += sign * coefficient) == 0) sum.variables.erase(variable);
  sum.lanes.assign(std::max(a.lanes.size(), b.lanes.size()), 0);
  for (size_t i = 0; i < sum.lanes.size(); ++i) sum.lanes[i] = a.lane(i) + sign * b.lane(i);
  return if_fits(std::move(sum));
}

std::optional<Linear> scale(Linear a, int64_t factor) {
  if (factor == 0) return Linear{{}, {0}};
  for (auto& [variable, coefficient] : a.variables) coefficient *= factor;
  for (int64_t& x : a.lanes) x *= factor;
  return if_fits(std::move(a));
}

// Holds where the sum of coefficient * variable plus the constant is not negative.
struct Condition {
  std::map<uint32_t, int64_t> variables;
  int64_t constant = 0;
};

// What is known of a kernel's integers and masks.
class Masks {
 public:
  explicit Masks(const Kernel& kernel) : kernel_(kernel), known_(kernel.body.size()) {}

  std::optional<Linear> linear(Var v) {
    if (!known_[v.id]) known_[v.id] = compute(kernel_[v]);
    if (*known_[v.id]) return *known_[v.id];
    const Instr& instr = kernel_[v];
    const InstrKind kind = instr.kind();
    const bool bounded = kind == InstrKind::Range || kind == InstrKind::Special;
    if (bounded && instr.type.dtype == DType::Int64) return Linear{{{v.id, 1}}, {0}};
    return std::nullopt;
  }

  // The comparisons that a mask is the conjunction of, as far as they are linear.
  void collect(Var mask, std::set<uint32_t>& comparisons) {
    const Instr& instr = kernel_[mask];
    if (const auto* alu = instr.as<Alu>(); alu && alu->op == AluOp::And) {
      for (const Var arg : instr.args) collect(arg, comparisons);
    } else if (instr.as<Splat>()) {
      collect(instr.args[0], comparisons);
    } else if (condition(mask)) {
      comparisons.insert(mask.id);
    }
  }

  bool implied(Var mask, const std::set<uint32_t>& comparisons) const {
    if (comparisons.count(mask.id)) return true;
    const Instr& instr = kernel_[mask];
    if (instr.as<Splat>()) return implied(instr.args[0], comparisons);
    const auto* alu = instr.as<Alu>();
    return alu && alu->op == AluOp::And && is_bool(instr.type.dtype) &&
           implied(instr.args[0], comparisons) && implied(instr.args[1], comparisons);
  }

  // Of a comparison, when it holds in all lanes.
  std::optional<Condition> condition(Var mask) {
    const Instr& instr = kernel_[mask];
    const auto* alu = instr.as<Alu>();
    if (!alu || (alu->op != AluOp::Cmplt && alu->op != AluOp::Cmple)) return std::nullopt;
    const auto small = linear(instr.args[0]), large = linear(instr.args[1]);
    if (!small || !large) return std::nullopt;
    const auto difference = combine(*large, *small, -1);
    if (!difference) return std::nullopt;
    const int64_t least = *std::min_element(difference->lanes.begin(), difference->lanes.end());
    return Condition{difference->variables, alu->op == AluOp::Cmplt ? least - 1 : least};
  }

 private:
  std::optional<Linear> compute(const Instr& instr) {
    if (instr.type.dtype != DType::Int64 || instr.type.pointer) return std::nullopt;
    if (const auto* constant = instr.as<Const>())
      return if_fits({{}, {constant->value.as_int64()}});
    if (const auto* vector = instr.as<Vconst>()) {
      Linear result;
      for (const Scalar& x : vector->values) result.lanes.push_back(x.as_int64());
      return if_fits(std::move(result));
    }
    if (instr.as<Splat>()) return linear(instr.args[0]);
    const auto* alu = instr.as<Alu>();
    if (!alu || instr.args.size() != 2) return std::nullopt;
    if (alu->op != AluOp::Add && alu->op != AluOp::Sub && alu->op != AluOp::Mul)
      return std::nullopt;
    const auto a = linear(instr.args[0]), b = linear(instr.args[1]);
    if (!a || !b) return std::nullopt;
    if (alu->op != AluOp::Mul) return combine(*a, *b, alu->op == AluOp::Add ? 1 : -1);
    const auto uniform = [](const Linear& x) { return x.variables.empty() && x.lanes.size() == 1; };
    if (uniform(*b)) return scale(*a, b->lanes[0]);
    if (uniform(*a)) return scale(*b, a->lanes[0]);
    return std::nullopt;
  }

  const Kernel& kernel_;
  std::vector<std::optional<std::optional<Linear>>> known_;
};

// A number of iterations, known now or when the kernel runs.
struct Count {
  int64_t constant = 0;
  Var dynamic;  // if valid, the number instead
};

class Partitioner {
 public:
  explicit Partitioner(const Kernel& kernel)
      : kernel_(kernel), masks_(kernel), moved_(kernel.body.size()) {
    out_ = Builder({kernel.name, kernel.grid, kernel.local, {}});
  }

  Kernel run() {
    for (size_t i = 0; i < kernel_.body.size(); ++i) {
      const size_t end = innermost_loop_end(i);
      if (end && partition(i, end)) {
        i = end;
        continue;
      }
      copy(i, {});
    }
    return out_.take();
  }

 private:
  // The matching EndRange if a Range without loops inside begins here, else 0.
  size_t innermost_loop_end(size_t begin) const {
    if (kernel_.body[begin].kind() != InstrKind::Range) return 0;
    for (size_t i = begin + 1; i < kernel_.body.size(); ++i) {
      const InstrKind kind = kernel_.body[i].kind();
      if (kind == InstrKind::EndRange) return i;
      if (kind == InstrKind::Range || kind == InstrKind::Unroll || kind == InstrKind::Break ||
          is_collective(kernel_.body[i]))
        return 0;
    }
    return 0;
  }

  std::set<uint32_t> comparisons_in(size_t begin, size_t end) {
    std::set<uint32_t> result;
    for (size_t i = begin + 1; i < end; ++i) {
      const Instr& instr = kernel_.body[i];
      const auto* alu = instr.as<Alu>();
      if (instr.kind() == InstrKind::Load && instr.args.size() == 3)
        masks_.collect(instr.args[2], result);
      else if (instr.kind() == InstrKind::Store && instr.args.size() == 4)
        masks_.collect(instr.args[3], result);
      else if (alu && alu->op == AluOp::Where)
        masks_.collect(instr.args[0], result);
    }
    return result;
  }

  // When all comparisons hold, one condition for each set of coefficients; nothing if there are too
  // many or they contradict each other. Those that always hold need none, and those that never do
  // are taken out of the comparisons.
  std::optional<std::vector<Condition>> conditions_of(std::set<uint32_t>& comparisons) {
    std::map<std::map<uint32_t, int64_t>, int64_t> least;
    for (auto it = comparisons.begin(); it != comparisons.end();) {
      const Condition condition = *masks_.condition(Var{*it});
      if (condition.variables.empty() && condition.constant < 0) {
        it = comparisons.erase(it);
        continue;
      }
      ++it;
      if (condition.variables.empty()) continue;
      const auto [known, added] = least.try_emplace(condition.variables, condition.constant);
      if (!added) known->second = std::min(known->second, condition.constant);
    }
    if (least.empty() || least.size() > kMostConditions) return std::nullopt;
    std::vector<Condition> result;
    for (const auto& [variables, constant] : least) {
      std::map<uint32_t, int64_t> opposite = variables;
      for (auto& [variable, coefficient] : opposite) coefficient = -coefficient;
      const auto other = least.find(opposite);
      if (other != least.end() && other->second + constant < 0) return std::nullopt;
      result.push_back({variables, constant});
    }
    return result;
  }

  // Whether an access under a mask reaches beyond its memory where all lanes are valid: there is no
  // such iteration then.
  bool always_masks(size_t begin, size_t end) const {
    for (size_t i = begin + 1; i < end; ++i) {
      const Instr& instr = kernel_.body[i];
      const bool loads = instr.kind() == InstrKind::Load && instr.args.size() == 3;
      const bool stores = instr.kind() == InstrKind::Store && instr.args.size() == 4;
      if (!loads && !stores) continue;
      if (kernel_[instr.args[1]].type.lanes > 1) continue;
      const int lanes = loads ? instr.type.lanes : kernel_[instr.args[2]].type.lanes;
      if (lanes > size_of_memory(kernel_[instr.args[0]])) return true;
    }
    return false;
  }

  bool partition(size_t begin, size_t end) {
    if (end - begin > kMostInstructions || always_masks(begin, end)) return false;
    const Instr* bound = &kernel_[kernel_.body[begin].args[0]];
    const auto* constant = bound->as<Const>();
    if (constant && constant->value.as_int64() < kFewestIterations) return false;
    std::set<uint32_t> comparisons = comparisons_in(begin, end);
    const auto conditions = conditions_of(comparisons);
    if (!conditions) return false;
    const auto loop = static_cast<uint32_t>(begin);
    Count whole{constant ? constant->value.as_int64() : 0,
                constant ? Var{} : moved_[kernel_.body[begin].args[0].id]};
    Count low{}, high = whole;
    // First those that are known now: they may leave nothing.
    const auto is_static = [&](const Condition& condition) {
      return condition.variables.size() == 1 && condition.variables.count(loop);
    };
    for (const Condition& condition : *conditions)
      if (is_static(condition)) narrow(condition, loop, whole, low, high);
    if (!high.dynamic.valid() && low.constant >= high.constant) return false;
    for (const Condition& condition : *conditions)
      if (!is_static(condition)) narrow(condition, loop, whole, low, high);
    low = smaller(larger(low, Count{}), whole);
    high = larger(smaller(high, whole), low);
    copy_loop(begin, end, Count{}, low, {});
    copy_loop(begin, end, low, minus(high, low), comparisons);
    copy_loop(begin, end, high, minus(whole, high), {});
    return true;
  }

  // Iterations from `low` on and below `high` are those in which the condition holds.
  void narrow(const Condition& condition, uint32_t loop, const Count& whole, Count& low,
              Count& high) {
    int64_t step = 0;
    Var rest;
    for (const auto& [variable, coefficient] : condition.variables) {
      if (variable == loop) {
        step = coefficient;
        continue;
      }
      Var term = moved_[variable];
      if (coefficient != 1) term = out_.alu(AluOp::Mul, {term, number(coefficient)});
      rest = rest.valid() ? out_.alu(AluOp::Add, {rest, term}) : term;
    }
    const Count value = rest.valid()
                            ? Count{0, out_.alu(AluOp::Add, {rest, number(condition.constant)})}
                            : Count{condition.constant, {}};
    if (step == 0) {
      const Var holds = out_.alu(AluOp::Cmple, {number(0), var(value)});
      high = smaller(high, Count{0, out_.alu(AluOp::Where, {holds, var(whole), number(0)})});
    } else if (step > 0) {
      low = larger(low, minus(Count{}, divide(value, step)));
    } else {
      high = smaller(high, binary(AluOp::Add, divide(value, -step), {1, {}}));
    }
  }

  Var number(int64_t value) { return out_.constant(Scalar::of(DType::Int64, value)); }
  Var var(const Count& count) {
    return count.dynamic.valid() ? count.dynamic : number(count.constant);
  }

  Count binary(AluOp op, const Count& a, const Count& b) {
    if (a.dynamic.valid() || b.dynamic.valid()) return {0, out_.alu(op, {var(a), var(b)})};
    const Scalar operands[] = {Scalar::of(DType::Int64, a.constant),
                               Scalar::of(DType::Int64, b.constant)};
    return {evaluate(op, operands).as_int64(), {}};
  }
  Count smaller(const Count& a, const Count& b) { return binary(AluOp::Min, a, b); }
  Count larger(const Count& a, const Count& b) { return binary(AluOp::Max, a, b); }
  Count minus(const Count& a, const Count& b) { return binary(AluOp::Sub, a, b); }
  // Rounded down.
  Count divide(const Count& a, int64_t by) {
    if (!std::has_single_bit(static_cast<uint64_t>(by))) return binary(AluOp::Idiv, a, {by, {}});
    return binary(AluOp::Shr, a, {std::countr_zero(static_cast<uint64_t>(by)), {}});
  }

  void copy_loop(size_t begin, size_t end, const Count& from, const Count& count,
                 const std::set<uint32_t>& hold) {
    if (!count.dynamic.valid() && count.constant <= 0) return;
    const Var iteration = out_.range(var(count));
    const bool shifted = from.dynamic.valid() || from.constant != 0;
    moved_[begin] = shifted ? out_.alu(AluOp::Add, {iteration, var(from)}) : iteration;
    for (size_t i = begin + 1; i < end; ++i) copy(i, hold);
    out_.end_range();
  }

  // Copies an instruction, less the masks that are implied by comparisons that hold.
  void copy(size_t i, const std::set<uint32_t>& hold) {
    const Instr& instr = kernel_.body[i];
    std::vector<Var> args;
    for (const Var arg : instr.args) args.push_back(moved_[arg.id]);
    if (!hold.empty()) {
      const auto* alu = instr.as<Alu>();
      const bool masked = (instr.kind() == InstrKind::Load && args.size() == 3) ||
                          (instr.kind() == InstrKind::Store && args.size() == 4);
      if (masked && masks_.implied(instr.args.back(), hold)) args.pop_back();
      if (alu && alu->op == AluOp::Where && masks_.implied(instr.args[0], hold)) {
        moved_[i] = args[1];
        return;
      }
      if (alu && alu->op == AluOp::And && is_bool(instr.type.dtype))
        for (size_t operand = 0; operand < 2; ++operand)
          if (masks_.implied(instr.args[operand], hold)) {
            moved_[i] = args[1 - operand];
            return;
          }
    }
    moved_[i] = out_.add(instr.payload, std::move(args), instr.type);
  }

  const Kernel& kernel_;
  Masks masks_;
  Builder out_;
  std::vector<Var> moved_;
};

}  // namespace

Kernel partition_loops(const Kernel& kernel, const Capabilities& caps) {
  if (caps.model != ExecutionModel::Cores) return kernel;
  return Partitioner(kernel).run();
}

}  // namespace rune::lower
