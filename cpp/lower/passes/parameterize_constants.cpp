#include "lower/passes/parameterize_constants.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"

namespace rune::lower {

namespace {

// Each argument is loaded when the kernel starts, and takes a register.
constexpr size_t kMostArguments = 64;

// Whether the operation takes less time if an operand is a constant.
bool needs_constant(const Instr& instr) {
  static constexpr AluOp kCheaper[] = {AluOp::Mul,  AluOp::Mulacc, AluOp::Div, AluOp::Idiv,
                                       AluOp::Fmod, AluOp::Mod,    AluOp::Shl, AluOp::Shr};
  const auto* alu = instr.as<Alu>();
  return alu && is_integer(instr.type.dtype) &&
         std::find(std::begin(kCheaper), std::end(kCheaper), alu->op) != std::end(kCheaper);
}

// By instruction: whether it is a constant that may be an argument of the launch.
std::vector<bool> may_be_arguments(const Kernel& kernel) {
  std::vector<bool> result(kernel.body.size());
  for (size_t i = kernel.body.size(); i-- > 0;) {
    const Instr& instr = kernel.body[i];
    const bool spread = instr.as<Splat>();
    const bool constant = instr.as<Const>() && !is_bool(instr.type.dtype);
    // Users have been seen, and say where a constant is needed.
    result[i] = (constant || spread) && !result[i];
    for (const Var arg : instr.args)
      if (needs_constant(instr) || (spread && !result[i])) result[arg.id] = true;
  }
  return result;
}

// What kernels that can share their code have in common.
std::string code_key(const Kernel& kernel) {
  const std::vector<bool> free = may_be_arguments(kernel);
  std::string key = concat(kernel.grid, ' ', kernel.local);
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    const Instr& instr = kernel.body[i];
    key += concat('\n', static_cast<int>(instr.kind()), ':');
    if (!(instr.as<Const>() && free[i]))
      std::visit([&](const auto& payload) { text::print_fields(key, payload); }, instr.payload);
    for (const Var arg : instr.args) key += concat('%', arg.id);
    if (has_value(instr.kind()))
      key += concat(' ', static_cast<int>(instr.type.dtype), 'x', instr.type.lanes);
  }
  return key;
}

// Constants of a group of bodies that differ, but all by the same steps from body to body: an
// argument and, for each constant, what is added to it.
struct Argument {
  std::vector<int64_t> values;  // by body
  DType dtype;
};
struct Use {
  size_t argument;
  int64_t added;
};

int64_t value_of(const Instr& instr) {
  const Scalar& value = instr.as<Const>()->value;
  return static_cast<int64_t>(is_integer(value.dtype()) ? value.as_uint64() : value.bits());
}

// Wraps, as the kernels' integers do.
int64_t difference(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

// The integer dtype of the same size.
DType bits_dtype(DType dtype) {
  switch (size_of(dtype)) {
    case 1: return DType::Int8;
    case 2: return DType::Int16;
    case 4: return DType::Int32;
    default: return DType::Int64;
  }
}

// Kernels that share a body.
using Sharers = std::vector<Kernel*>;

// Bodies of one key.
class Group {
 public:
  void add(Sharers kernels) {
    std::vector<int64_t> constants;
    for (const Instr& instr : kernels[0]->body)
      if (instr.as<Const>()) constants.push_back(value_of(instr));
    const auto [it, added] = known_.insert({std::move(constants), members_.size()});
    if (added) return members_.push_back(std::move(kernels));
    Sharers& equal = members_[it->second];
    for (Kernel* kernel : kernels) {
      kernel->body = equal[0]->body;
      equal.push_back(kernel);
    }
  }

  // Makes it one body, if that takes few arguments.
  void run() {
    if (members_.size() == 1 || !find_arguments()) return;
    const Instrs body = rewritten();
    for (size_t m = 0; m < members_.size(); ++m)
      for (Kernel* kernel : members_[m]) {
        for (const Argument& argument : arguments_) kernel->arguments.push_back(argument.values[m]);
        kernel->body = body;
      }
  }

 private:
  // False if there are too many.
  bool find_arguments() {
    const Instrs& first = members_[0][0]->body;
    uses_.resize(first.size());
    std::map<std::pair<DType, std::vector<int64_t>>, size_t> known;
    for (size_t i = 0; i < first.size(); ++i) {
      if (!first[i].as<Const>()) continue;
      std::vector<int64_t> values;
      for (const Sharers& member : members_) values.push_back(value_of(member[0]->body[i]));
      if (std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == values[0]; }))
        continue;
      const DType dtype = first[i].type.dtype;
      const bool shifts = dtype == DType::Int64 || dtype == DType::Int32;
      std::vector<int64_t> steps = values;
      if (shifts)
        for (int64_t& v : steps) v = difference(v, values[0]);
      const auto [it, added] = known.insert({{dtype, std::move(steps)}, arguments_.size()});
      if (added) arguments_.push_back({values, dtype});
      uses_[i] = Use{it->second, difference(values[0], arguments_[it->second].values[0])};
    }
    const auto integers = std::count_if(arguments_.begin(), arguments_.end(),
                                        [](const Argument& a) { return is_integer(a.dtype); });
    return arguments_.size() <= kMostArguments &&
           integers <= static_cast<std::ptrdiff_t>(kMostIntegerArguments);
  }

  SymVar variable(size_t argument) const {
    const auto [low, high] =
        std::minmax_element(arguments_[argument].values.begin(), arguments_[argument].values.end());
    return {concat("launch.", members_[0][0]->arguments.size() + argument), *low, *high};
  }

  Instrs rewritten() const {
    const Instrs& first = members_[0][0]->body;
    std::vector<Instr> body;
    const auto add = [&](Payload payload, std::vector<Var> args, DType dtype) {
      body.push_back({std::move(payload), std::move(args), {dtype, 1, false}});
      return Var{static_cast<uint32_t>(body.size() - 1)};
    };
    // Kernels take the program's variables first.
    size_t start = 0;
    for (size_t i = 0; i < first.size(); ++i)
      if (first[i].as<Define_Var>()) start = i + 1;
    std::vector<Var> map(first.size()), variables;
    for (size_t i = 0; i < first.size(); ++i) {
      if (i == start)
        for (size_t a = 0; a < arguments_.size(); ++a)
          variables.push_back(add(Define_Var{variable(a)}, {}, DType::Int64));
      Instr instr = first[i];
      for (Var& arg : instr.args) arg = map[arg.id];
      if (!uses_[i]) {
        map[i] = Var{static_cast<uint32_t>(body.size())};
        body.push_back(std::move(instr));
        continue;
      }
      const DType dtype = instr.type.dtype, bits = is_integer(dtype) ? dtype : bits_dtype(dtype);
      Var v = variables[uses_[i]->argument];
      if (bits != DType::Int64) v = add(Cast{}, {v}, bits);
      if (const int64_t added = uses_[i]->added)
        v = add(Alu{AluOp::Add}, {v, add(Const{Scalar::of(bits, added)}, {}, bits)}, bits);
      map[i] = bits == dtype ? v : add(Bitcast{}, {v}, dtype);
    }
    return Instrs(std::move(body));
  }

  std::vector<Sharers> members_;
  std::map<std::vector<int64_t>, size_t> known_;  // by constants
  std::vector<Argument> arguments_;
  std::vector<std::optional<Use>> uses_;  // by instruction: a constant that becomes an argument
};

}  // namespace

void parameterize_constants(std::vector<Kernel>& kernels) {
  if (kernels.size() < 2) return;
  std::map<const void*, Sharers> sharers;
  for (Kernel& kernel : kernels) sharers[kernel.body.identity()].push_back(&kernel);
  std::map<std::string, Group> groups;
  for (const Kernel& kernel : kernels) {
    const auto shared = sharers.find(kernel.body.identity());
    if (shared == sharers.end()) continue;
    groups[code_key(kernel)].add(std::move(shared->second));
    sharers.erase(shared);
  }
  for (auto& [key, group] : groups) group.run();
}

}  // namespace rune::lower
