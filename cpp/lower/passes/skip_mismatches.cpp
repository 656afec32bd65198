#include "lower/passes/skip_mismatches.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "alu/eval.h"
#include "lower/constant.h"
#include "lower/passes/decompose_emitter.h"

namespace rune::lower {

namespace decomposition {
namespace {

// The instructions of an innermost loop between its Range and its EndRange.
struct Search {
  uint32_t begin = 0, end = 0;
  std::vector<Var> conditions;
  std::vector<bool> is_asked;  // by instruction: whether it is needed to ask for a match
};

class SearchFinder {
 public:
  explicit SearchFinder(const Kernel& kernel) : kernel_(kernel) {}

  std::vector<Search> find() const {
    std::vector<Search> found;
    uint32_t opener = 0;  // the last instruction that opens a scope
    for (uint32_t id = 0; id < kernel_.body.size(); ++id) {
      const InstrKind kind = kernel_.body[id].kind();
      if (opens_scope(kind)) opener = id;
      if (kind != InstrKind::EndRange || !kernel_.body[opener].as<Range>()) continue;
      if (auto search = search_in(opener + 1, id)) found.push_back(std::move(*search));
      opener = 0;  // the scope around this one is no innermost loop
    }
    return found;
  }

  // Of `x == value or isnan(x)`, the comparison; `condition` itself if it is that.
  const Instr& comparison_of(Var condition) const {
    const Instr& instr = kernel_[condition];
    if (!is(instr, AluOp::Or)) return instr;
    const Instr &equal = kernel_[instr.args[0]], &nan = kernel_[instr.args[1]];
    const bool is_same =
        is(equal, AluOp::Cmpeq) && is(nan, AluOp::Isnan) && equal.args[0] == nan.args[0];
    return is_same ? equal : instr;
  }

  static bool is(const Instr& instr, AluOp op) {
    const auto* alu = instr.as<Alu>();
    return alu && alu->op == op;
  }

  // Max or Min if the condition compares x with a maximum or minimum of x. Then one comparison
  // tells whether it may hold: an element that is not less than the maximum is the maximum or NaN.
  std::optional<AluOp> extremum(Var condition) const {
    const Instr& comparison = comparison_of(condition);
    if (&comparison == &kernel_[condition]) return std::nullopt;
    const Instr& splat = kernel_[comparison.args[1]];
    const Instr& value = splat.as<Splat>() ? kernel_[splat.args[0]] : splat;
    for (const AluOp op : {AluOp::Max, AluOp::Min})
      if (is(value, op)) return op;
    return std::nullopt;
  }

 private:
  std::optional<Search> search_in(uint32_t begin, uint32_t end) const {
    Search search{begin, end, {}, {}};
    for (uint32_t id = begin; id < end; ++id) {
      const Instr& instr = kernel_.body[id];
      switch (instr.kind()) {
        case InstrKind::Alu:
        case InstrKind::Bitcast:
        case InstrKind::Cast:
        case InstrKind::Const:
        case InstrKind::Load:
        case InstrKind::Shuffle:
        case InstrKind::Splat:
        case InstrKind::Vconst: break;
        case InstrKind::Assign: {
          const std::optional<Var> condition = condition_of(instr, begin);
          if (!condition) return std::nullopt;
          search.conditions.push_back(*condition);
          break;
        }
        default: return std::nullopt;
      }
    }
    const auto has_type = [&](Var v) {
      return kernel_[v].type == kernel_[search.conditions[0]].type;
    };
    if (search.conditions.empty() || !std::ranges::all_of(search.conditions, has_type) ||
        !find_asked(search))
      return std::nullopt;
    return search;
  }

  // Returns false if what is asked depends on an accumulator, which the loop may change.
  bool find_asked(Search& search) const {
    search.is_asked.resize(search.end - search.begin);
    std::vector<Var> open;
    for (const Var condition : search.conditions) {
      if (extremum(condition))
        open.insert(open.end(), comparison_of(condition).args.begin(),
                    comparison_of(condition).args.end());
      else
        open.push_back(condition);
    }
    while (!open.empty()) {
      const Var v = open.back();
      open.pop_back();
      if (kernel_[v].as<Acc>()) return false;
      if (v.id < search.begin || search.is_asked[v.id - search.begin]) continue;
      search.is_asked[v.id - search.begin] = true;
      open.insert(open.end(), kernel_[v].args.begin(), kernel_[v].args.end());
    }
    return true;
  }

  // Of an assignment acc = min(acc, where(condition, position, none)); nothing for another one.
  std::optional<Var> condition_of(const Instr& assign, uint32_t begin) const {
    const Var acc = assign.args[0];
    const Instr& least = kernel_[assign.args[1]];
    const bool is_min = is(least, AluOp::Min);
    const DType dtype = least.type.dtype;
    if ((!is_min && !is(least, AluOp::Max)) || !is_integer(dtype) || least.type.lanes == 1 ||
        least.args[0] != acc)
      return std::nullopt;
    const Instr& where = kernel_[least.args[1]];
    if (!is(where, AluOp::Where) || least.args[1].id < begin) return std::nullopt;
    const auto none = constant_lanes(kernel_, where.args[2]);
    const Scalar extreme = neutral(is_min ? ReduceOp::Min : ReduceOp::Max, dtype);
    if (!none || std::ranges::count(*none, extreme) != least.type.lanes) return std::nullopt;
    const Var condition = where.args[0];
    const Instr& comparison = comparison_of(condition);
    const bool is_equality =
        is(comparison, AluOp::Cmpeq) && condition.id >= begin && comparison.args[1].id < begin;
    // Of bools, about every second one matches.
    if (!is_equality || is_bool(kernel_[comparison.args[0]].type.dtype)) return std::nullopt;
    return condition;
  }

  const Kernel& kernel_;
};

class SearchRewriter {
 public:
  SearchRewriter(const Kernel& kernel, const Capabilities& caps)
      : kernel_(kernel), finder_(kernel), copy_(kernel, caps) {}

  Kernel run() {
    uint32_t id = 0;
    for (const Search& search : finder_.find()) {
      while (id < search.begin) copy_.copy({id++});
      rewrite(search);
      id = search.end;
    }
    while (id < kernel_.body.size()) copy_.copy({id++});
    return copy_.take();
  }

 private:
  void rewrite(const Search& search) {
    for (uint32_t id = search.begin; id < search.end; ++id)
      if (search.is_asked[id - search.begin]) copy_.copy({id});
    std::optional<Value> may_match;
    for (const Var condition : search.conditions) {
      const Value may = may_hold(condition);
      may_match = may_match ? *may_match | may : may;
    }
    copy_.emitter().if_(any(*may_match));
    for (uint32_t id = search.begin; id < search.end; ++id)
      if (!search.is_asked[id - search.begin]) copy_.copy({id});
    copy_.emitter().end_if();
  }

  // True in all lanes in which the condition holds, and in few others.
  Value may_hold(Var condition) {
    const std::optional<AluOp> op = finder_.extremum(condition);
    if (!op) return copy_.value(condition);
    const Instr& comparison = finder_.comparison_of(condition);
    const Value x = copy_.value(comparison.args[0]);
    const Value value = copy_.value(comparison.args[1]);
    return !(*op == AluOp::Max ? less(x, value) : less(value, x));
  }

  const Kernel& kernel_;
  const SearchFinder finder_;
  KernelCopy copy_;
};

}  // namespace
}  // namespace decomposition

Kernel skip_mismatches(const Kernel& kernel, const Capabilities& caps) {
  if (caps.model != ExecutionModel::Cores) return kernel;
  return decomposition::SearchRewriter(kernel, caps).run();
}

}  // namespace rune::lower
