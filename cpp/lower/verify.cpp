#include "lower/verify.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "lower/constant.h"
#include "lower/text.h"

namespace rune::lower {

namespace {

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel), scope_of_(kernel.body.size()) {}

  std::vector<std::string> take() { return std::move(errors_); }
  // Whether all operands and scopes are valid, apart from types.
  bool sound() const { return sound_; }

  void structure() {
    if (kernel_.grid < 1 || kernel_.local < 1)
      errors_.push_back(concat("kernel ", kernel_.name, ": the launch has ", kernel_.grid,
                               " workgroups of ", kernel_.local, " threads"));
    for (id_ = 0; id_ < kernel_.body.size(); ++id_) visit();
    for (const Scope& scope : open_) {
      id_ = scope.opener;
      fail("is not closed");
    }
    sound_ &= open_.empty();
    globals();
  }

  // Call it after structure(), and only if sound().
  void hazards() {
    const ThreadDependence dependence = thread_dependence(kernel_);
    int ifs = 0;
    for (id_ = 0; id_ < kernel_.body.size(); ++id_) {
      const InstrKind kind = instr().kind();
      if (kind == InstrKind::If) ++ifs;
      if (kind == InstrKind::EndIf) --ifs;
      if (is_collective(instr()) && dependence.execution[id_])
        fail("is inside of an If or Range whose condition or bound depends on the thread");
      if ((kind == InstrKind::Load || kind == InstrKind::Store) && ifs == 0) constant_index();
    }
  }

 private:
  struct Scope {
    uint32_t opener;
    uint32_t number;
  };

  const Instr& instr() const { return kernel_.body[id_]; }
  const Type& type() const { return instr().type; }
  const Type& arg(size_t i) const { return kernel_[instr().args[i]].type; }

  template <class... Args>
  void fail(const Args&... args) {
    errors_.push_back(concat("`", print_instr(kernel_, Var{id_}), "`: ", args...));
  }
  template <class... Args>
  void expect(bool condition, const Args&... args) {
    if (!condition) fail(args...);
  }

  static bool is_value(const Type& t) { return !t.pointer; }
  static bool is_index(const Type& t) { return is_integer(t.dtype) && !t.pointer; }
  static bool is_scalar(const Type& t) { return t.lanes == 1 && !t.pointer; }

  void visit() {
    if (instr().kind() == InstrKind::EndRange) return close(true);
    if (instr().kind() == InstrKind::EndIf) return close(false);
    scope_of_[id_] = open_.empty() ? 0 : open_.back().number;
    const InstrKind kind = instr().kind();
    if (operands() && well_formed())
      std::visit([&](const auto& payload) { check(payload); }, instr().payload);
    if (opens_scope(kind)) {
      open_.push_back({id_, ++scopes_});
      // The loop's own value is visible only inside of it.
      scope_of_[id_] = scopes_;
    }
  }

  void close(bool range) {
    operands();
    const char* opener = range ? "a Range or Unroll" : "an If";
    if (open_.empty()) {
      sound_ = false;
      return fail("closes nothing");
    }
    const InstrKind kind = kernel_.body[open_.back().opener].kind();
    if ((kind == InstrKind::If) == range)
      fail("closes `", print_instr(kernel_, Var{open_.back().opener}), "`, which is not ", opener);
    open_.pop_back();
  }

  bool visible(uint32_t scope) const {
    return scope == 0 || std::any_of(open_.begin(), open_.end(),
                                     [&](const Scope& s) { return s.number == scope; });
  }

  bool operands() {
    const int count = static_cast<int>(instr().args.size());
    const int least = info(instr().kind()).fewest_args, most = info(instr().kind()).most_args;
    if (count < least || (most >= 0 && count > most)) {
      const std::string limit = most < 0 ? "more" : std::to_string(most);
      fail("has ", count, " operands, not ", least, most == least ? "" : " to ",
           most == least ? "" : limit);
      sound_ = false;
      return false;
    }
    bool good = true;
    for (const Var v : instr().args) {
      const char* problem = nullptr;
      if (v.id >= id_) {
        problem = " is not defined before its use";
      } else if (!has_value(kernel_[v].kind())) {
        problem = " has no value";
      } else if (!visible(scope_of_[v.id])) {
        problem = " is defined inside a Range or If that has ended";
      }
      if (!problem) continue;
      fail("%", v.id, problem);
      good = sound_ = false;
    }
    return good;
  }

  // Checks the type by itself, and the dtypes on which payloads rely.
  bool well_formed() {
    if (!has_value(instr().kind())) return true;
    const bool good = type().lanes >= 1 && !(type().pointer && type().lanes != 1);
    expect(good, "has ", type().lanes, " lanes");
    return good;
  }

  void same_type(const Type& expected) {
    expect(type() == expected, "has type ", type_text(type()), ", not ", type_text(expected));
  }

  void memory(int64_t size) {
    expect(type().pointer, "is memory: its type is a pointer");
    expect(size >= 0, "has size ", size);
    expect(open_.empty(), "is memory defined inside a Range or If");
  }

  void check(const Local& p) { memory(p.size); }
  void check(const Private& p) { memory(p.size); }
  void check(const Define_Global& p) { memory(p.size); }
  void check(const Acc&) {
    expect(is_value(arg(0)), "holds memory");
    same_type(arg(0));
  }
  void check(const Const& p) { same_type({p.value.dtype(), type().lanes}); }
  void check(const Vconst& p) {
    if (p.values.empty()) return fail("has no values");
    for (const Scalar& v : p.values)
      if (v.dtype() != p.values[0].dtype()) return fail("has values of several dtypes");
    same_type({p.values[0].dtype(), static_cast<int>(p.values.size())});
  }
  void check(const Special& p) {
    expect(is_index(type()) && is_scalar(type()), "is no scalar integer");
    const bool is_previous = p.kind == SpecialKind::Previous_workgroup_idx;
    expect(!is_previous || kernel_.local == 1,
           "asks for the previous workgroup, but a workgroup has ", kernel_.local, " threads");
    int64_t extent = kernel_.grid * kernel_.local;
    if (p.kind == SpecialKind::Workgroup_idx || is_previous) extent = kernel_.grid;
    if (p.kind == SpecialKind::Local_thread_idx) extent = kernel_.local;
    expect(p.bound >= extent, "has bound ", p.bound, ", but the launch has ", extent);
  }
  void check(const Define_Var& p) {
    expect(is_index(type()) && is_scalar(type()), "is no scalar integer");
    expect(p.var.min_val <= p.var.max_val, "has bounds ", p.var.min_val, " to ", p.var.max_val);
    const auto [known, added] = vars_.emplace(p.var.name, p.var);
    expect(added || known->second == p.var, "has other bounds than the same variable before");
  }
  void check(const Range&) {
    expect(is_index(arg(0)) && is_scalar(arg(0)), "the bound is no scalar integer");
    same_type(arg(0));
  }
  void check(const Unroll& p) {
    expect(is_index(type()) && is_scalar(type()), "is no scalar integer");
    expect(p.iterations >= 0, "has ", p.iterations, " iterations");
  }
  void check(const If&) {
    expect(arg(0) == Type{DType::Bool}, "the condition is ", type_text(arg(0)), ", not bool");
  }
  void check(const EndRange&) {}
  void check(const Break&) {
    expect(arg(0) == Type{DType::Bool}, "the condition is ", type_text(arg(0)), ", not bool");
    expect(!open_.empty() && kernel_.body[open_.back().opener].kind() == InstrKind::Range,
           "does not stand in a Range");
  }
  void check(const EndIf&) {}
  void check(const Barrier&) {}
  void check(const Custom&) {}

  void access(const Type& value, size_t mask_position) {
    if (!arg(0).pointer) return fail("%", instr().args[0].id, " is not memory");
    expect(value.dtype == arg(0).dtype && is_value(value), "moves ", type_text(value),
           " but the memory holds ", name_of(arg(0).dtype));
    expect(is_index(arg(1)), "the index is ", type_text(arg(1)), ", no integer");
    expect(arg(1).lanes == 1 || arg(1).lanes == value.lanes, "has ", arg(1).lanes, " indices for ",
           value.lanes, " lanes");
    if (instr().args.size() <= mask_position) return;
    const Type& mask = arg(mask_position);
    expect(is_bool(mask.dtype) && is_value(mask), "the mask is ", type_text(mask), ", not bool");
    expect(mask.lanes == 1 || mask.lanes == value.lanes, "has ", mask.lanes, " masks for ",
           value.lanes, " lanes");
  }
  void check(const Load&) { access(type(), 2); }
  void check(const Store& p) {
    access(arg(2), 3);
    read_only(instr().args[0]);
    if (!p.atomic) return;
    combines(*p.atomic, arg(2).dtype);
    expect(!p.nontemporal, "is atomic and past the caches");
    expect(kernel_[instr().args[0]].as<Define_Global>(), "is atomic, but %", instr().args[0].id,
           " is no global memory");
  }
  void check(const Prefetch&) {
    expect(arg(0).pointer, "needs memory first");
    expect(is_integer(arg(1).dtype) && !arg(1).pointer, "needs an integer index, not ",
           type_text(arg(1)));
  }
  void combines(AluOp op, DType dtype) {
    expect(info(op).arity == 2 && info(op).accepts(dtype) && info(op).result != AluResult::Bool,
           "cannot combine ", name_of(dtype), " by ", name_of(op));
  }
  void read_only(Var v) {
    const Define_Global* global = kernel_[v].as<Define_Global>();
    expect(!global || global->writable, "%", v.id, " is read-only");
  }

  void check(const Alu& p) {
    const AluInfo& row = info(p.op);
    if (static_cast<int>(instr().args.size()) != row.arity)
      return fail("has ", instr().args.size(), " operands, not ", row.arity);
    std::vector<DType> dtypes;
    for (size_t i = 0; i < instr().args.size(); ++i) {
      if (!is_value(arg(i))) return fail("%", instr().args[i].id, " is memory");
      if (arg(i).lanes != arg(0).lanes)
        return fail("has operands of ", arg(0).lanes, " and ", arg(i).lanes, " lanes");
      dtypes.push_back(arg(i).dtype);
    }
    try {
      same_type({result_dtype(p.op, dtypes), arg(0).lanes});
    } catch (const UserError& e) {
      fail(e.what());
    }
  }
  void check(const Shuffle& p) {
    expect(is_value(arg(0)), "takes lanes of memory");
    expect(!p.indices.empty(), "takes no lanes");
    for (size_t i = 1; i < instr().args.size(); ++i)
      expect(arg(i) == arg(0), "takes lanes of ", type_text(arg(0)), " and ", type_text(arg(i)));
    const auto count = static_cast<int64_t>(instr().args.size()) * arg(0).lanes;
    for (const int64_t i : p.indices) expect(i >= 0 && i < count, "takes lane ", i, " of ", count);
    same_type({arg(0).dtype, static_cast<int>(p.indices.size())});
  }
  void check(const Splat&) {
    expect(is_scalar(arg(0)), "%", instr().args[0].id, " is ", type_text(arg(0)), ", not a scalar");
    same_type({arg(0).dtype, type().lanes});
  }
  void check(const Wmma& p) {
    const int64_t sizes[] = {p.m * p.k, p.k * p.n, p.m * p.n};
    const int64_t threads = p.threads(arg(2).lanes);
    expect(p.m > 0 && p.n > 0 && p.k > 0, "has an empty tile");
    for (size_t i = 0; i < 3; ++i)
      expect(arg(i).lanes * threads == sizes[i] && is_value(arg(i)), "operand ", i, " is ",
             type_text(arg(i)), ", not a tile of ", sizes[i] / std::max<int64_t>(threads, 1),
             " lanes");
    check_spread(p.spread, sizes, threads);
    expect(arg(0).dtype == arg(1).dtype, "multiplies ", name_of(arg(0).dtype), " and ",
           name_of(arg(1).dtype));
    expect(!is_bool(arg(2).dtype), "adds bool");
    same_type(arg(2));
  }
  // Every element of each tile must be in exactly one lane of one thread.
  void check_spread(const std::vector<Ints>& spread, const int64_t (&sizes)[3], int64_t threads) {
    check_groups(threads);
    expect(spread.size() == 3, "spreads ", spread.size(), " tiles, not 3");
    for (size_t i = 0; i < std::min<size_t>(spread.size(), 3); ++i) {
      const size_t bits = spread[i].size();
      const bool fits = bits < 32 && int64_t{1} << bits == sizes[i];
      expect(fits, "spreads tile ", i, " of ", sizes[i], " elements by ", bits, " strides");
      if (!fits) continue;
      std::set<int64_t> positions;
      for (int64_t number = 0; number < sizes[i]; ++number)
        positions.insert(spread_position(spread[i], number));
      expect(static_cast<int64_t>(positions.size()) == sizes[i] && *positions.begin() == 0 &&
                 *positions.rbegin() == sizes[i] - 1,
             "does not spread all elements of tile ", i);
    }
  }
  void check_groups(int64_t width) {
    expect(width > 0 && kernel_.local % std::max<int64_t>(width, 1) == 0, "has SIMD-groups of ",
           width, " threads in a workgroup of ", kernel_.local);
  }
  void check(const Simd_reduce& p) {
    check_groups(p.width);
    combines(p.op, arg(0).dtype);
    expect(arg(0) == Type{arg(0).dtype}, "%", instr().args[0].id, " is ", type_text(arg(0)),
           ", not a scalar");
    same_type(arg(0));
  }
  void check(const Simd_shuffle& p) {
    check_groups(p.width);
    expect(arg(0) == Type{arg(0).dtype}, "%", instr().args[0].id, " is ", type_text(arg(0)),
           ", not a scalar");
    expect(is_index(arg(1)) && is_scalar(arg(1)), "the lane is no scalar integer");
    same_type(arg(0));
  }
  void check(const Cast&) {
    expect(is_value(arg(0)), "casts memory");
    same_type({type().dtype, arg(0).lanes});
  }
  void check(const Bitcast&) {
    expect(is_value(arg(0)), "casts memory");
    expect(size_of(type().dtype) == size_of(arg(0).dtype), "cannot give the bits of ",
           name_of(arg(0).dtype), " as ", name_of(type().dtype));
    same_type({type().dtype, arg(0).lanes});
  }
  void check(const Assign&) {
    expect(kernel_[instr().args[0]].as<Acc>(), "%", instr().args[0].id, " is no Acc");
    expect(arg(0) == arg(1), "gives ", type_text(arg(1)), " to an Acc of ", type_text(arg(0)));
  }

  void globals() {
    const std::vector<Var> found = kernel_.globals();
    for (size_t i = 0; i < found.size(); ++i) {
      id_ = found[i].id;
      expect(kernel_[found[i]].as<Define_Global>()->index == static_cast<int64_t>(i),
             "is global number ", i, " by order: globals are numbered 0 to ", found.size() - 1);
    }
  }

  void constant_index() {
    const bool store = instr().kind() == InstrKind::Store;
    if (instr().args.size() > (store ? 3u : 2u) || !arg(0).pointer) return;
    const int lanes = store ? arg(2).lanes : type().lanes;
    const Instr& index = kernel_[instr().args[1]];
    if (!index.as<Const>() && !index.as<Vconst>()) return;
    const auto indices = constant_lanes(kernel_, instr().args[1]);
    const int64_t size = size_of_memory(kernel_[instr().args[0]]);
    const int64_t adjacent = indices->size() == 1 ? lanes - 1 : 0;
    for (const Scalar& first : *indices)
      for (const int64_t i : {first.as_int64(), first.as_int64() + adjacent})
        if (i < 0 || i >= size) return fail("accesses element ", i, " of ", size);
  }

  const Kernel& kernel_;
  std::vector<uint32_t>
      scope_of_;  // by instruction: number of the innermost open Range or If, or 0
  std::vector<Scope> open_;
  uint32_t scopes_ = 0;
  uint32_t id_ = 0;
  bool sound_ = true;
  std::map<std::string, SymVar> vars_;
  std::vector<std::string> errors_;
};

}  // namespace

std::vector<std::string> verify_structure(const Kernel& kernel) {
  Verifier verifier(kernel);
  verifier.structure();
  return verifier.take();
}

std::vector<std::string> verify(const Kernel& kernel) {
  Verifier verifier(kernel);
  verifier.structure();
  if (verifier.sound()) verifier.hazards();
  return verifier.take();
}

}  // namespace rune::lower
