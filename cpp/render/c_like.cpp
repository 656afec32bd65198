#include "render/c_like.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <set>

#include "lower/text.h"
#include "render/c_like_kernel.h"
#include "render/custom_text.h"
#include "render/identifier.h"

namespace rune::render {

namespace c_like {

using lower::Instr;
using lower::InstrKind;
using lower::Var;

namespace {

// The alignment of variables in a workgroup's memory, in bytes. No dtype needs more.
constexpr int64_t kSharedAlignment = 16;

// The most iterations, and the most instructions in all of them, of a loop that is unrolled.
constexpr int64_t kShortLoop = 32;
constexpr int64_t kInstructionsOfLoop = 512;

// The expression without the parentheses that enclose all of it.
std::string_view bare(std::string_view text) {
  if (text.empty() || text.front() != '(') return text;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) {
      // `(int)x` starts with a parenthesis too, but it closes before the last character.
      return i + 1 == text.size() ? bare(text.substr(1, i - 1)) : text;
    }
  }
  return text;
}

}  // namespace

std::string KernelRenderer::render() {
  check_types();
  for (const Instr& instr : kernel_.body)
    if (const auto* var = instr.as<lower::Define_Var>())
      var_slots_.emplace(var->var.name, static_cast<int64_t>(var_slots_.size()));
  const std::string first_line = head();
  line("// ", concat(kernel_.grid, " workgroups of ", kernel_.local, " threads"));
  open(first_line);
  begin();
  memory_declarations();
  for (uint32_t id = 0; id < kernel_.body.size(); ++id) {
    try {
      instruction(id);
    } catch (const UserError& e) {
      throw UserError(e.kind(), concat(e.what(), "\n  at ", lower::print_instr(kernel_, {id})));
    }
  }
  close();
  RUNE_CHECK(depth_ == 0, "c_like: kernel ", kernel_.name, " has an open Range or If");
  return tables_ + text_;
}

void KernelRenderer::begin() {
  if (dialect_.begin.empty() || kernel_.needs_early_loads()) return;
  std::string buffers;
  for (const Var v : kernel_.globals())
    buffers += (buffers.empty() ? "" : ", ") + memories_[v.id].name;
  line(expand(dialect_.begin, {{'a', buffers}}));
}

void KernelRenderer::check_types() {
  for (uint32_t id = 0; id < kernel_.body.size(); ++id) {
    const Instr& instr = kernel_.body[id];
    if (!lower::has_value(instr.kind()) || dialect_.has(instr.type.dtype)) continue;
    user_error(ErrorKind::DType, dialect_.target, ": cannot render ", numpy_name(instr.type.dtype),
               " in kernel ", kernel_.name, " (", dialect_.name, " has no such type; ",
               lower::print_instr(kernel_, {id}), ")\nhint: ", dialect_.float64_hint);
  }
}

std::string KernelRenderer::head() {
  std::vector<std::string> list;
  parameters(list);
  std::string out = expand(dialect_.kernel,
                           {{'n', identifier(kernel_.name)}, {'k', std::to_string(kernel_.local)}});
  const std::string indent(out.size() - (out.rfind('\n') + 1) + 1, ' ');
  out += '(';
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) out += ",\n" + indent;
    out += list[i];
  }
  return out + ')';
}

// Declares a global by the pattern `read` or `write`.
std::string KernelRenderer::declare(const std::string& read, const std::string& write,
                                    Var v) const {
  const auto& global = *kernel_[v].as<lower::Define_Global>();
  return expand(global.writable ? write : read, {{'T', dialect_.memory_type(kernel_[v].type.dtype)},
                                                 {'n', memories_[v.id].name},
                                                 {'i', std::to_string(global.index)}});
}

void KernelRenderer::parameters(std::vector<std::string>& list) {
  const std::vector<Var> globals = kernel_.globals();
  const size_t most = static_cast<size_t>(dialect_.max_parameters);
  const bool spills =
      globals.size() + !var_slots_.empty() > most && !dialect_.members_parameter.empty();
  const size_t direct = spills ? most - 2 : globals.size();
  for (const Var v : globals) {
    const auto& global = *kernel_[v].as<lower::Define_Global>();
    memories_[v.id] = {"b" + std::to_string(global.index), true};
    if (list.size() < direct)
      list.push_back(declare(dialect_.read_parameter, dialect_.write_parameter, v));
    else
      members_.push_back(v);
  }
  if (members_.size() > static_cast<size_t>(dialect_.max_members))
    unsupported(concat("with ", globals.size(), " buffers (", dialect_.name, " allows ",
                       direct + dialect_.max_members, ")"));
  if (spills) {
    const std::string type = identifier(kernel_.name) + "_buffers";
    line("struct ", type, " {");
    for (const Var v : members_)
      line("  ", declare(dialect_.read_member, dialect_.write_member, v), ';');
    line("};");
    list.push_back(
        expand(dialect_.members_parameter, {{'n', type}, {'i', std::to_string(list.size())}}));
  }
  if (!var_slots_.empty())
    list.push_back(expand(dialect_.vars_parameter, {{'i', std::to_string(list.size())},
                                                    {'k', std::to_string(var_slots_.size())}}));
  if (static_cast<int>(list.size()) > dialect_.max_parameters)
    unsupported(concat("with ", list.size(), " arguments (", dialect_.name, " allows ",
                       dialect_.max_parameters, ")"));
  list.insert(list.end(), dialect_.builtin_parameters.begin(), dialect_.builtin_parameters.end());
}

void KernelRenderer::memory_declarations() {
  for (const Var v : members_)
    line(declare(dialect_.read_member, dialect_.write_member, v), " = ",
         expand(dialect_.member, {{'n', memories_[v.id].name}}), ';');
  int64_t bytes = 0;
  for (uint32_t id = 0; id < kernel_.body.size(); ++id) {
    const Instr& i = kernel_.body[id];
    const auto declare_array = [&](const std::string& declaration, int64_t size) {
      const std::string name = "m" + std::to_string(id);
      line(expand(declaration, {{'T', dialect_.memory_type(i.type.dtype)},
                                {'n', name},
                                {'k', std::to_string(size > 0 ? size : 1)}}));
      memories_[id] = {name, false};
    };
    if (const auto* own = i.as<lower::Private>()) declare_array(dialect_.own, own->size);
    if (const auto* local = i.as<lower::Local>()) {
      const int64_t size = local->size;
      bytes = (bytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment +
              size * size_of(i.type.dtype);
      if (bytes > dialect_.shared_bytes)
        unsupported(concat("with ", bytes, " bytes of workgroup memory (", dialect_.name,
                           " allows ", dialect_.shared_bytes, ")"));
      declare_array(dialect_.shared, size);
    }
  }
}

void KernelRenderer::define(uint32_t id, const Lanes& expressions, const char* qualifier) {
  const std::string& type = dialect_.type(kernel_.body[id].type.dtype);
  const std::string name = (*qualifier ? "v" : "a") + std::to_string(id);
  for (size_t i = 0; i < expressions.size(); ++i) {
    const std::string variable = expressions.size() == 1 ? name : name + '_' + std::to_string(i);
    line(qualifier, type, ' ', variable, " = ", bare(expressions[i]), ';');
    values_[id].push_back(variable);
  }
}

void KernelRenderer::vconst(uint32_t id) {
  const Instr& instr = kernel_.body[id];
  Lanes literals;
  for (const Scalar& v : instr.as<lower::Vconst>()->values)
    literals.push_back(c_like::literal(dialect_, v));
  const auto lanes = literals.size();
  // A float that is written by its bits is a call. No table may begin with one.
  const std::string& bits = dialect_.float_bits[static_cast<int>(instr.type.dtype)];
  const bool calls = !bits.empty() && std::any_of(literals.begin(), literals.end(), [&](auto& x) {
    return x.find(bits.substr(0, bits.find('$'))) != std::string::npos;
  });
  if (dialect_.constant_table.empty() || static_cast<int>(lanes) <= dialect_.largest_vector ||
      calls) {
    values_[id] = std::move(literals);
    return;
  }
  const std::string name = concat(identifier(kernel_.name), "_c", id);
  std::string list;
  for (size_t i = 0; i < lanes; ++i) {
    list += (i ? ", " : "") + literals[i];
    values_[id].push_back(concat(name, '[', i, ']'));
  }
  tables_ += expand(dialect_.constant_table, {{'T', dialect_.type(instr.type.dtype)},
                                              {'n', name},
                                              {'k', std::to_string(lanes)},
                                              {'x', list}}) +
             '\n';
}

KernelRenderer::Lanes KernelRenderer::special(const Instr& instr) const {
  const auto& special = *instr.as<lower::Special>();
  const std::string type = '(' + dialect_.type(instr.type.dtype) + ')';
  const auto index = [&](const std::string& word, int64_t extent) {
    return extent == 1 ? "0" : type + word;
  };
  const std::string group = index(dialect_.workgroup_index, kernel_.grid);
  const std::string thread = index(dialect_.thread_index, kernel_.local);
  switch (special.kind) {
    case lower::SpecialKind::Workgroup_idx: return {group};
    case lower::SpecialKind::Previous_workgroup_idx: return {type + "-1"};
    case lower::SpecialKind::Local_thread_idx: return {thread};
    case lower::SpecialKind::Global_task_idx: {
      const int64_t threads = kernel_.grid * kernel_.local;
      if (!dialect_.task_index.empty() && threads <= std::numeric_limits<uint32_t>::max())
        return {index(dialect_.task_index, threads)};
      if (kernel_.local == 1) return {group};
      if (kernel_.grid == 1) return {thread};
      return {group + " * " + std::to_string(kernel_.local) + " + " + thread};
    }
  }
  RUNE_UNREACHABLE();
}

KernelRenderer::Lanes KernelRenderer::operation(uint32_t id) const {
  const Instr& instr = kernel_.body[id];
  const DType from = kernel_[instr.args.back()].type.dtype;
  Lanes result;
  for (int i = 0; i < instr.type.lanes; ++i) {
    Lanes operands;
    for (const Var arg : instr.args) operands.push_back(lane(arg, i));
    if (const auto* alu = instr.as<lower::Alu>()) {
      result.push_back(c_like::alu(dialect_, alu->op, from, operands, exact_[id]));
    } else if (instr.kind() == InstrKind::Cast) {
      result.push_back(c_like::cast(dialect_, operands[0], from, instr.type.dtype));
    } else {
      result.push_back(c_like::bitcast(dialect_, operands[0], from, instr.type.dtype));
    }
  }
  return result;
}

// The threads of a SIMD-group hold the tiles, and its matrix unit multiplies them.
void KernelRenderer::matrix_product(uint32_t id) {
  const Instr& instr = kernel_.body[id];
  const auto& wmma = *instr.as<lower::Wmma>();
  const DType from = kernel_[instr.args[0]].type.dtype, to = instr.type.dtype;
  const auto known = std::find_if(
      dialect_.matrix_products.begin(), dialect_.matrix_products.end(), [&](const auto& product) {
        const MatrixOp& op = product.first;
        return op.m == wmma.m && op.n == wmma.n && op.k == wmma.k && op.operands == from &&
               op.result == to && op.spread == wmma.spread &&
               wmma.threads(instr.type.lanes) == dialect_.simd_width;
      });
  if (known == dialect_.matrix_products.end())
    unsupported(concat("with a tile product of ", wmma.m, " x ", wmma.n, " x ", wmma.k, " of ",
                       name_of(from), " and ", name_of(to), " by the threads of a SIMD-group"));
  std::string list;
  for (const Var arg : instr.args) {
    const lower::Type& type = kernel_[arg].type;
    std::string elements;
    for (int i = 0; i < type.lanes; ++i) elements += (i ? ", " : "") + lane(arg, i);
    list += (list.empty() ? "" : ", ") +
            expand(dialect_.fragment_value, {{'T', dialect_.type(type.dtype)},
                                             {'k', std::to_string(type.lanes)},
                                             {'a', elements}});
  }
  const std::string name = 'w' + std::to_string(id);
  const std::string type = expand(
      dialect_.fragment, {{'T', dialect_.type(to)}, {'k', std::to_string(instr.type.lanes)}});
  line("const ", type, ' ', name, " = ", known->second, '(', list, ");");
  for (int i = 0; i < instr.type.lanes; ++i)
    values_[id].push_back(name + '[' + std::to_string(i) + ']');
}

std::string KernelRenderer::simd_reduction(const Instr& instr) const {
  const auto& reduce = *instr.as<lower::Simd_reduce>();
  const auto text = dialect_.simd_reduce.find({reduce.op, instr.type.dtype});
  if (text == dialect_.simd_reduce.end() || reduce.width != dialect_.simd_width)
    unsupported(concat("with ", name_of(reduce.op), " of ", name_of(instr.type.dtype), " over ",
                       reduce.width, " threads"));
  return expand(text->second, {{'0', lane(instr.args[0], 0)}});
}

std::string KernelRenderer::simd_shuffle(const Instr& instr) const {
  const std::string& text = dialect_.simd_shuffle[static_cast<size_t>(instr.type.dtype)];
  if (text.empty() || instr.as<lower::Simd_shuffle>()->width != dialect_.simd_width)
    unsupported(concat("of ", name_of(instr.type.dtype), " over ",
                       instr.as<lower::Simd_shuffle>()->width, " threads"));
  return expand(text, {{'0', lane(instr.args[0], 0)}, {'1', lane(instr.args[1], 0)}});
}

KernelRenderer::Lanes KernelRenderer::custom(const Instr& instr) const {
  const auto& custom = *instr.as<lower::Custom>();
  Lanes result;
  for (int i = 0; i < instr.type.lanes; ++i) {
    const CustomParts parts{
        [&](size_t operand) {
          const Var arg = instr.args[operand];
          const lower::Type& type = kernel_[arg].type;
          if (!type.pointer) return lane(arg, i);
          return memories_[arg.id].name;
        },
        [&](size_t operand) { return dialect_.type(kernel_[instr.args[operand]].type.dtype); },
        dialect_.type(instr.type.dtype), ""};
    result.push_back('(' + expand_custom(custom, instr.args.size(), parts) + ')');
  }
  return result;
}

void KernelRenderer::assign(const Instr& instr) {
  const Lanes &to = values_[instr.args[0].id], &from = values_[instr.args[1].id];
  for (size_t i = 0; i < to.size(); ++i)
    if (to[i] != lane(instr.args[1], static_cast<int>(i)))
      line(to[i], " = ", from.size() == 1 ? from[0] : from[i], ';');
}

// Whether a loop loads a few elements, one after the other. If it is unrolled, these loads overlap.
bool KernelRenderer::is_short_loop(uint32_t id) const {
  const auto* bound = kernel_[kernel_.body[id].args[0]].as<lower::Const>();
  if (!bound || bound->value.as_int64() > kShortLoop) return false;
  int64_t instructions = 0;
  bool loads = false;
  for (size_t i = id + 1; i < kernel_.body.size(); ++i, ++instructions) {
    switch (kernel_.body[i].kind()) {
      case InstrKind::EndRange:
        return loads && instructions * bound->value.as_int64() <= kInstructionsOfLoop;
      case InstrKind::Load: loads = true; break;
      case InstrKind::Range:
      case InstrKind::Unroll:
      case InstrKind::If:
      case InstrKind::Break:
      case InstrKind::Barrier:
      case InstrKind::Wmma: return false;
      default: break;
    }
  }
  return false;
}

void KernelRenderer::open_loop(uint32_t id) {
  const Instr& instr = kernel_.body[id];
  const std::string name = "i" + std::to_string(id);
  const std::string& type = dialect_.type(instr.type.dtype);
  std::string bound;
  if (const auto* unroll = instr.as<lower::Unroll>()) {
    bound = std::to_string(unroll->iterations);
    if (!dialect_.unroll.empty()) line(dialect_.unroll);
  } else {
    bound = lane(instr.args[0], 0);
    if (kernel_[instr.args[0]].kind() == InstrKind::Acc) {  // the body may change it
      line("const ", type, " n", std::to_string(id), " = ", bound, ';');
      bound = "n" + std::to_string(id);
    }
    if (!dialect_.unroll.empty() && is_short_loop(id)) line(dialect_.unroll);
  }
  values_[id] = {name};
  open("for (" + type + ' ' + name + " = 0; " + name + " < " + bound + "; ++" + name + ')');
}

void KernelRenderer::instruction(uint32_t id) {
  const Instr& i = kernel_.body[id];
  const auto lanes = static_cast<size_t>(i.type.lanes);
  // Uses expressions of the operands for the result, without a variable of its own. This is not
  // possible if an operand is an Acc, which may change later.
  const auto rename = [&](Lanes named) {
    bool mutable_operand = false;
    for (const Var arg : i.args) mutable_operand |= kernel_[arg].kind() == InstrKind::Acc;
    if (mutable_operand) return define(id, named);
    values_[id] = std::move(named);
  };
  switch (i.kind()) {
    case InstrKind::Local:
    case InstrKind::Private:
    case InstrKind::Define_Global: return;  // declared in the kernel's head
    case InstrKind::Const:
      values_[id].assign(lanes, c_like::literal(dialect_, i.as<lower::Const>()->value));
      return;
    case InstrKind::Vconst: return vconst(id);
    case InstrKind::Special: return define(id, special(i));
    case InstrKind::Define_Var: {
      const int64_t slot = var_slots_.at(i.as<lower::Define_Var>()->var.name);
      return define(id, {c_like::cast(dialect_, expand(dialect_.var, {{'i', std::to_string(slot)}}),
                                      DType::Int64, i.type.dtype)});
    }
    case InstrKind::Acc: {
      Lanes initial;
      for (size_t l = 0; l < lanes; ++l) initial.push_back(lane(i.args[0], static_cast<int>(l)));
      return define(id, initial, "");
    }
    case InstrKind::Assign: return assign(i);
    case InstrKind::Range:
    case InstrKind::Unroll: return open_loop(id);
    case InstrKind::If: return open("if (" + lane(i.args[0], 0) + ')');
    case InstrKind::EndRange:
    case InstrKind::EndIf: return close();
    case InstrKind::Break: return line("if (" + lane(i.args[0], 0) + ") break;");
    case InstrKind::Barrier: return line(dialect_.barrier);
    case InstrKind::Load: return load(id);
    case InstrKind::Store: return store(i);
    case InstrKind::Prefetch: return;  // not needed: while threads wait, others run
    case InstrKind::Alu:
    case InstrKind::Cast:
    case InstrKind::Bitcast: return define(id, operation(id));
    case InstrKind::Shuffle: {
      Lanes named;
      const int64_t width = kernel_[i.args[0]].type.lanes;
      for (const int64_t l : i.as<lower::Shuffle>()->indices)
        named.push_back(lane(i.args[l / width], static_cast<int>(l % width)));
      return rename(std::move(named));
    }
    case InstrKind::Splat: return rename(Lanes(lanes, lane(i.args[0], 0)));
    case InstrKind::Wmma: return matrix_product(id);
    case InstrKind::Simd_reduce: return define(id, {simd_reduction(i)});
    case InstrKind::Simd_shuffle: return define(id, {simd_shuffle(i)});
    case InstrKind::Custom: return define(id, custom(i));
  }
}

}  // namespace c_like

namespace {

bool mentions(const std::string& text, const std::string& name) {
  const auto is_word = [](char c) {
    return c == '_' || std::isalnum(static_cast<unsigned char>(c));
  };
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end])))
      return true;
  }
  return false;
}

}  // namespace

std::string render_c_like_library(std::span<const lower::Kernel> kernels, const Dialect& dialect) {
  std::string functions;
  std::set<std::string> names;
  for (const lower::Kernel& kernel : kernels) {
    RUNE_CHECK(names.insert(identifier(kernel.name)).second, "c_like: two kernels are named ",
               identifier(kernel.name));
    functions += '\n' + c_like::KernelRenderer(kernel, dialect).render();
  }
  for (auto helper = dialect.helpers.rbegin(); helper != dialect.helpers.rend(); ++helper)
    if (mentions(functions, helper->name)) functions = '\n' + helper->text + functions;
  return dialect.preamble + functions;
}

}  // namespace rune::render
