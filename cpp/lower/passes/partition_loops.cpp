#include "lower/passes/partition_loops.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>

#include "alu/eval.h"
#include "lower/builder.h"
#include "lower/passes/linear_masks.h"

namespace rune::lower {

namespace {

// The largest body, and the most masks, of a loop that is partitioned. Beyond these, the code costs
// more than the masks.
constexpr size_t kMostInstructions = 4000;
constexpr size_t kMostConditions = 16;
constexpr int64_t kFewestIterations = 3;

// A number of iterations, which is known now or only when the kernel runs.
struct Count {
  int64_t constant = 0;
  Var dynamic{};  // if valid, the number instead
};

// The iterations from `first` up to `last`, not included.
struct Iterations {
  Count first, last;
};

// Comparisons of the same sum L of coefficient * variable with different constants: L is at least,
// or at most, a constant. The innermost loop among the variables has a positive coefficient.
struct Family {
  std::map<uint32_t, int64_t> variables;
  std::map<uint32_t, Condition> at_least, at_most;  // by comparison: L + c >= 0, and -L + c >= 0

  // Whether there are two comparisons that never both hold in all lanes of an iteration.
  bool excludes() const {
    for (const auto& [i, low] : at_least)
      for (const auto& [j, high] : at_most)
        if (low.least + high.least < 0) return true;
    return false;
  }

  // Values of L at which the outcome of a comparison may change.
  std::set<int64_t> thresholds() const {
    std::set<int64_t> result;
    for (const auto& [i, c] : at_least) result.insert({-c.greatest, -c.least});
    for (const auto& [i, c] : at_most) result.insert({c.least + 1, c.greatest + 1});
    return result;
  }

  // Adds the known outcomes for L at least `low` and below `high`. A bound may be absent.
  void add_outcomes(std::optional<int64_t> low, std::optional<int64_t> high, Outcomes& out) const {
    for (const auto& [i, c] : at_least) {
      if (low && *low >= -c.least) out.hold.insert(i);
      if (high && *high <= -c.greatest) out.fail.insert(i);
    }
    for (const auto& [i, c] : at_most) {
      if (high && *high <= c.least + 1) out.hold.insert(i);
      if (low && *low >= c.greatest + 1) out.fail.insert(i);
    }
  }
};

class Partitioner {
 public:
  explicit Partitioner(const Kernel& kernel)
      : kernel_(kernel), masks_(kernel), moved_(kernel.body.size()) {
    out_ = Builder({kernel.name, kernel.grid, kernel.local, {}});
  }

  Kernel run() {
    emit(0, kernel_.body.size());
    return out_.take();
  }

 private:
  void emit(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (kernel_.body[i].kind() == InstrKind::Range) {
        const size_t close = end_of_loop(i);
        if (split_loop(i, close, {{}, iterations_of(i)})) {
          i = close;
          continue;
        }
      }
      copy(i);
    }
  }

  Count iterations_of(size_t range) const {
    const Var bound = kernel_.body[range].args[0];
    const auto* constant = kernel_[bound].as<Const>();
    return constant ? Count{constant->value.as_int64()} : Count{0, moved_[bound.id]};
  }

  // The EndRange of the Range at `begin`.
  size_t end_of_loop(size_t begin) const {
    int depth = 0;
    for (size_t i = begin;; ++i) {
      const InstrKind kind = kernel_.body[i].kind();
      if (opens_scope(kind)) ++depth;
      if (closes_scope(kind) && --depth == 0) return i;
    }
  }

  // Emits several loops for these iterations of a loop, or emits nothing and returns false.
  bool split_loop(size_t begin, size_t end, const Iterations& iterations) {
    return may_split(begin, end) && !are_fewer(iterations, kFewestIterations) &&
           (split(begin, end, iterations) || partition(begin, end, iterations));
  }

  // Whether several loops may replace the loop, and are worth their code.
  bool may_split(size_t begin, size_t end) const {
    if (end - begin > kMostInstructions || out_.kernel().body.size() > 4 * kMostInstructions)
      return false;
    for (size_t i = begin + 1; i < end; ++i)
      if (kernel_.body[i].kind() == InstrKind::Break || is_collective(kernel_.body[i]))
        return false;
    return true;
  }

  bool is_innermost(size_t begin, size_t end) const {
    for (size_t i = begin + 1; i < end; ++i) {
      const InstrKind kind = kernel_.body[i].kind();
      if (kind == InstrKind::Range || kind == InstrKind::Unroll) return false;
    }
    return true;
  }

  // The comparisons of masks in a loop with unknown outcomes.
  std::set<uint32_t> comparisons_in(size_t begin, size_t end) {
    std::set<uint32_t> result;
    for (size_t i = begin + 1; i < end; ++i) masks_.collect(kernel_.body[i], result);
    for (const auto* known : {&outcomes_.hold, &outcomes_.fail})
      for (const uint32_t comparison : *known) result.erase(comparison);
    return result;
  }

  // A family of comparisons that exclude each other. This loop must be the innermost of their
  // variables.
  std::optional<Family> family_in(size_t begin, size_t end) {
    std::map<std::map<uint32_t, int64_t>, Family> families;
    const auto loop = static_cast<uint32_t>(begin);
    for (const uint32_t comparison : comparisons_in(begin, end)) {
      const Condition condition = *masks_.condition(Var{comparison});
      const auto at = condition.variables.find(loop);
      // The variables are in order, and an inner loop comes after this one.
      if (at == condition.variables.end() || condition.variables.rbegin()->first != loop) continue;
      std::map<uint32_t, int64_t> variables = condition.variables;
      if (at->second < 0)
        for (auto& [variable, coefficient] : variables) coefficient = -coefficient;
      if (split_by_.count(variables)) continue;
      Family& family = families[variables];
      (at->second > 0 ? family.at_least : family.at_most)[comparison] = condition;
      family.variables = std::move(variables);
    }
    for (auto& [variables, family] : families)
      if (family.excludes()) return std::move(family);
    return std::nullopt;
  }

  // Emits a loop for each range of iterations in which the outcomes of a family are known.
  bool split(size_t begin, size_t end, const Iterations& iterations) {
    const std::optional<Family> family = family_in(begin, end);
    if (!family) return false;
    const auto loop = static_cast<uint32_t>(begin);
    const int64_t step = family->variables.at(loop);
    const std::vector<int64_t> limits = limits_of(*family, step);
    if ((limits.size() + 1) * (end - begin) > kMostInstructions) return false;
    std::vector<Count> bounds{iterations.first};
    const Count rest = sum_without(loop, family->variables);
    // The first iteration in which L is at least the limit.
    for (const int64_t limit : limits) {
      const Count first = minus({}, divide(minus(rest, {limit}), step));
      bounds.push_back(smaller(larger(first, iterations.first), iterations.last));
    }
    bounds.push_back(iterations.last);
    split_by_.insert(family->variables);
    const Outcomes before = outcomes_;
    for (size_t i = 0; i + 1 < bounds.size(); ++i) {
      const bool from = i > 0, to = i < limits.size();
      family->add_outcomes(from ? std::optional(limits[i - 1]) : std::nullopt,
                           to ? std::optional(limits[i]) : std::nullopt, outcomes_);
      const Iterations part{bounds[i], bounds[i + 1]};
      if (!split_loop(begin, end, part)) copy_loop(begin, end, part);
      outcomes_ = before;
    }
    split_by_.erase(family->variables);
    return true;
  }

  // The thresholds of a family, without those that would separate ranges of few iterations.
  static std::vector<int64_t> limits_of(const Family& family, int64_t step) {
    std::vector<int64_t> result;
    const std::set<int64_t> thresholds = family.thresholds();
    for (auto it = thresholds.begin(); it != thresholds.end(); ++it) {
      const auto near = [&](int64_t other) {
        return std::abs(*it - other) < kFewestIterations * step;
      };
      const bool after_near = it != thresholds.begin() && near(*std::prev(it));
      const bool before_near = std::next(it) != thresholds.end() && near(*std::next(it));
      if (!after_near || !before_near) result.push_back(*it);
    }
    return result;
  }

  // The conditions for which all comparisons hold, one for each set of coefficients. Nothing if
  // there are too many or they exclude each other. Comparisons that always hold need no condition.
  // Comparisons that never hold are removed from the set.
  std::optional<std::vector<Condition>> conditions_of(std::set<uint32_t>& comparisons) {
    std::map<std::map<uint32_t, int64_t>, int64_t> least;
    for (auto it = comparisons.begin(); it != comparisons.end();) {
      const Condition condition = *masks_.condition(Var{*it});
      if (condition.variables.empty() && condition.least < 0) {
        it = comparisons.erase(it);
        continue;
      }
      ++it;
      if (condition.variables.empty()) continue;
      const auto [known, added] = least.try_emplace(condition.variables, condition.least);
      if (!added) known->second = std::min(known->second, condition.least);
    }
    if (least.empty() || least.size() > kMostConditions) return std::nullopt;
    std::vector<Condition> result;
    for (const auto& [variables, constant] : least) {
      std::map<uint32_t, int64_t> opposite = variables;
      for (auto& [variable, coefficient] : opposite) coefficient = -coefficient;
      const auto other = least.find(opposite);
      if (other != least.end() && other->second + constant < 0) return std::nullopt;
      result.push_back({variables, constant, constant});
    }
    return result;
  }

  // Whether an access under a mask would exceed its memory if all lanes were valid. So there is no
  // iteration in which they are.
  bool always_masks(size_t begin, size_t end) const {
    for (size_t i = begin + 1; i < end; ++i) {
      const Instr& instr = kernel_.body[i];
      if (!mask_of(instr) || kernel_[instr.args[1]].type.lanes > 1) continue;
      const bool loads = instr.kind() == InstrKind::Load;
      const int lanes = loads ? instr.type.lanes : kernel_[instr.args[2]].type.lanes;
      if (lanes > size_of_memory(kernel_[instr.args[0]])) return true;
    }
    return false;
  }

  // Emits three loops. In the middle one, all comparisons hold.
  bool partition(size_t begin, size_t end, const Iterations& iterations) {
    if (!is_innermost(begin, end) || always_masks(begin, end)) return false;
    const auto& [first, last] = iterations;
    std::set<uint32_t> comparisons = comparisons_in(begin, end);
    const auto conditions = conditions_of(comparisons);
    if (!conditions) return false;
    const auto loop = static_cast<uint32_t>(begin);
    Iterations middle = iterations;
    // Conditions that are known now come first, because they may leave no iterations.
    const auto is_static = [&](const Condition& condition) {
      return condition.variables.size() == 1 && condition.variables.count(loop);
    };
    for (const Condition& condition : *conditions)
      if (is_static(condition)) narrow(condition, loop, iterations, middle);
    if (is_empty(middle)) return false;
    for (const Condition& condition : *conditions)
      if (!is_static(condition)) narrow(condition, loop, iterations, middle);
    middle.first = smaller(larger(middle.first, first), last);
    middle.last = larger(smaller(middle.last, last), middle.first);
    copy_loop(begin, end, {first, middle.first});
    const Outcomes before = outcomes_;
    outcomes_.hold.insert(comparisons.begin(), comparisons.end());
    copy_loop(begin, end, middle);
    outcomes_ = before;
    copy_loop(begin, end, {middle.last, last});
    return true;
  }

  // Narrows the range to the iterations in which the condition holds.
  void narrow(const Condition& condition, uint32_t loop, const Iterations& whole,
              Iterations& middle) {
    const auto at = condition.variables.find(loop);
    const int64_t step = at == condition.variables.end() ? 0 : at->second;
    const Count value =
        binary(AluOp::Add, sum_without(loop, condition.variables), {condition.least});
    if (step == 0) {
      const Var holds = out_.alu(AluOp::Cmple, {number(0), var(value)});
      const Count end{0, out_.alu(AluOp::Where, {holds, var(whole.last), number(0)})};
      middle.last = smaller(middle.last, end);
    } else if (step > 0) {
      middle.first = larger(middle.first, minus({}, divide(value, step)));
    } else {
      middle.last = smaller(middle.last, binary(AluOp::Add, divide(value, -step), {1}));
    }
  }

  // The sum of coefficient * variable over all variables except the loop's.
  Count sum_without(uint32_t loop, const std::map<uint32_t, int64_t>& variables) {
    Count sum;
    for (const auto& [variable, coefficient] : variables) {
      if (variable == loop) continue;
      Var term = moved_[variable];
      if (coefficient != 1) term = out_.alu(AluOp::Mul, {term, number(coefficient)});
      sum = {0, sum.dynamic.valid() ? out_.alu(AluOp::Add, {sum.dynamic, term}) : term};
    }
    return sum;
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
  // Divides and rounds down.
  Count divide(const Count& a, int64_t by) {
    if (!std::has_single_bit(static_cast<uint64_t>(by))) return binary(AluOp::Idiv, a, {by});
    return binary(AluOp::Shr, a, {std::countr_zero(static_cast<uint64_t>(by))});
  }

  // Whether there are certainly fewer iterations than this.
  static bool are_fewer(const Iterations& iterations, int64_t count) {
    const auto& [first, last] = iterations;
    return !first.dynamic.valid() && !last.dynamic.valid() &&
           last.constant - first.constant < count;
  }
  static bool is_empty(const Iterations& iterations) { return are_fewer(iterations, 1); }

  void copy_loop(size_t begin, size_t end, const Iterations& iterations) {
    if (is_empty(iterations)) return;
    const Count& first = iterations.first;
    const bool shifted = first.dynamic.valid() || first.constant != 0;
    const Var iteration =
        out_.range(var(shifted ? minus(iterations.last, first) : iterations.last));
    moved_[begin] = shifted ? out_.alu(AluOp::Add, {iteration, var(first)}) : iteration;
    emit(begin + 1, end);
    out_.end_range();
  }

  // Copies an instruction without the masks whose outcome is known.
  void copy(size_t i) {
    const Instr& instr = kernel_.body[i];
    std::vector<Var> args;
    for (const Var arg : instr.args) args.push_back(moved_[arg.id]);
    if (const auto mask = mask_of(instr); mask && masks_.value(*mask, outcomes_) == true)
      args.pop_back();
    const auto* alu = instr.as<Alu>();
    if (alu && alu->op == AluOp::Where)
      if (const auto holds = masks_.value(instr.args[0], outcomes_)) {
        moved_[i] = args[*holds ? 1 : 2];
        return;
      }
    if (alu && alu->op == AluOp::And && is_bool(instr.type.dtype))
      for (size_t operand = 0; operand < 2; ++operand)
        if (masks_.value(instr.args[operand], outcomes_) == true) {
          moved_[i] = args[1 - operand];
          return;
        }
    moved_[i] = out_.add(instr.payload, std::move(args), instr.type);
  }

  const Kernel& kernel_;
  LinearMasks masks_;
  Builder out_;
  std::vector<Var> moved_;
  Outcomes outcomes_;                               // known outcomes at the present position
  std::set<std::map<uint32_t, int64_t>> split_by_;  // families of the loops around
};

}  // namespace

Kernel partition_loops(const Kernel& kernel, const Capabilities& caps) {
  if (caps.model != ExecutionModel::Cores) return kernel;
  return Partitioner(kernel).run();
}

}  // namespace rune::lower
