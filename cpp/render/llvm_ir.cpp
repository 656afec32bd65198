#include "render/llvm_ir.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/interrupt.h"
#include "lower/constant.h"
#include "lower/text.h"
#include "render/custom_text.h"
#include "render/identifier.h"
#include "render/llvm_ir_memory.h"
#include "render/llvm_ir_writer.h"
#include "render/llvm_passes.h"

namespace rune::render {

namespace llvm {
namespace {

using lower::Acc;
using lower::Assign;
using lower::Define_Global;
using lower::Define_Var;
using lower::Instr;
using lower::InstrKind;
using lower::Kernel;
using lower::Special;
using lower::Var;

// Whether the kernel may use what the previous workgroup left in scratch memory.
bool asks_for_previous(const Kernel& kernel) {
  const auto asks = [](const Instr& i) {
    const auto* special = i.as<Special>();
    return special && special->kind == lower::SpecialKind::Previous_workgroup_idx;
  };
  return kernel.local_offsets().size() > 1 &&
         std::any_of(kernel.body.begin(), kernel.body.end(), asks);
}

// Writes the function of one kernel. An Acc has no storage. Its current value is known at each
// point of the text. Where control flow joins after an assignment, a phi selects the value.
class KernelRenderer {
 public:
  KernelRenderer(const Kernel& kernel, std::set<std::string>& declarations, int register_bytes)
      : kernel_(kernel),
        asks_for_previous_(asks_for_previous(kernel)),
        w_(declarations, register_bytes),
        values_(kernel.body.size()),
        memories_(kernel.body.size()),
        displaces_(kernel.body.size()) {}

  std::string render();

 private:
  // A block from which control leaves a scope, and the values of the scope's accs there.
  struct Exit {
    std::string block;
    std::vector<std::string> values;
  };

  // An open Range, Unroll or If. The header's phis need values of the body, so the header is
  // completed after the body, and the body's text is then appended to it.
  struct Scope {
    uint32_t id = 0;
    std::string before;       // the text up to the header
    std::string predecessor;  // the block that enters
    std::string bound;
    bool guarded = false;  // the bound may be 0 or less
    std::vector<uint32_t> accs;
    std::vector<std::string> entry_values;  // of the accs
    std::vector<Exit> breaks;
  };

  void find_displacements();
  Value displaced(const Instr& sum) const;
  void prologue();
  void define_memories();
  Value instruction(uint32_t id);
  Value special(const Instr& instr);
  std::optional<int> only_valid_lane(const Instr& store) const;
  Value mask(Var v) const;
  std::vector<uint32_t> assigned_within(uint32_t id) const;
  Scope scope_of(uint32_t id) const;
  Value open_loop(uint32_t id);
  void close_loop();
  void open_if(uint32_t id);
  void close_if();
  void break_if(uint32_t id);
  std::vector<std::string> now(const Scope& scope) const;
  void join_accs(const Scope& scope, const std::string& suffix, const std::vector<Exit>& exits);
  void phi(const std::string& name, const std::string& type, const std::string& a,
           const std::string& block_a, const std::string& b, const std::string& block_b) {
    w_.line(name, " = phi ", type, " [ ", a, ", %", block_a, " ], [ ", b, ", %", block_b, " ]");
  }
  std::string acc_type(uint32_t acc) const {
    return type_text(kernel_.body[acc].type.dtype, kernel_.body[acc].type.lanes);
  }
  const Instr& instr(Var v) const { return kernel_.body[v.id]; }
  const Value& value(Var v) const { return values_[v.id]; }

  const Kernel& kernel_;
  const bool asks_for_previous_;
  Writer w_;
  std::vector<Value> values_;     // by instruction; for an Acc, its current value
  std::vector<Memory> memories_;  // by instruction that defines memory
  std::vector<bool> displaces_;  // by instruction: a sum with a constant that only addresses memory
  std::map<std::string, int64_t> var_slots_;
  std::vector<Scope> scopes_;
};

std::string KernelRenderer::render() {
  RUNE_CHECK(kernel_.local == 1, "llvm_ir: kernel ", kernel_.name,
             " has workgroups of more than one thread");
  find_displacements();
  prologue();
  for (uint32_t id = 0; id < kernel_.body.size(); ++id) {
    try {
      values_[id] = instruction(id);
    } catch (const UserError& e) {
      throw UserError(e.kind(), concat(e.what(), "\n  in kernel ", kernel_.name, ": ",
                                       lower::print_instr(kernel_, {id})));
    }
  }
  RUNE_CHECK(scopes_.empty(), "llvm_ir: kernel ", kernel_.name, " has an open Range or If");
  const std::string body = w_.take();
  const std::string last = w_.block();
  w_.append_text(
      "define void @" + identifier(kernel_.name) +
      "(ptr noalias readonly %buffers, ptr noalias readonly %vars, i64 %begin, i64 %end) #0 {\n");
  w_.append_text(body);
  w_.line("%task.next = add i64 %task, 1");
  w_.line("%task.more = icmp slt i64 %task.next, %end");
  w_.line("br i1 %task.more, label %task.loop, label %return");
  w_.label("return");
  w_.line("ret void");
  w_.append_text("}\n");
  std::string text = w_.take();
  // The task loop's header was written before its last block was known.
  const std::string placeholder = "%task.latch";
  for (size_t at = text.find(placeholder); at != std::string::npos; at = text.find(placeholder))
    text.replace(at, placeholder.size(), '%' + last);
  return text;
}

// Finds indices i + 1, i + 2 ..., which become displacements from the address of i.
void KernelRenderer::find_displacements() {
  for (uint32_t id = 0; id < kernel_.body.size(); ++id) {
    const Instr& i = kernel_.body[id];
    const auto* alu = i.as<lower::Alu>();
    displaces_[id] = alu && alu->op == AluOp::Add && i.type.dtype == DType::Int64 &&
                     i.type.lanes == 1 && instr(i.args[1]).as<lower::Const>();
    const bool accesses = i.kind() == InstrKind::Load || i.kind() == InstrKind::Store ||
                          i.kind() == InstrKind::Prefetch;
    for (size_t k = 0; k < i.args.size(); ++k)
      if (!accesses || k != 1) displaces_[i.args[k].id] = false;
  }
}

Value KernelRenderer::displaced(const Instr& sum) const {
  Value index = value(sum.args[0]);
  index.displacement += instr(sum.args[1]).as<lower::Const>()->value.as_int64();
  return index;
}

// Emits what all tasks share: pointers, symbolic variables and scratch memory.
void KernelRenderer::prologue() {
  w_.label("entry");
  define_memories();
  for (uint32_t id = 0; id < kernel_.body.size(); ++id) {
    const auto* var = kernel_.body[id].as<Define_Var>();
    if (!var) continue;
    const auto [slot, added] = var_slots_.emplace(var->var.name, var_slots_.size());
    const std::string address = w_.emit("getelementptr i64, ptr %vars, i64 ", slot->second);
    const Value raw =
        w_.value(DType::Int64, 1, "load i64, ptr ", address, ", align 8, !invariant.load !0");
    values_[id] = emit_cast(w_, raw, kernel_.body[id].type.dtype);
  }
  w_.line("%task.any = icmp slt i64 %begin, %end");
  w_.line("br i1 %task.any, label %task.loop, label %return");
  w_.label("task.loop");
  w_.line("%task = phi i64 [ %begin, %entry ], [ %task.next, %task.latch ]");
  if (asks_for_previous_)
    w_.line("%task.previous = phi i64 [ %previous, %entry ], [ %task, %task.latch ]");
}

void KernelRenderer::define_memories() {
  const std::vector<int64_t> offsets = kernel_.local_offsets();
  size_t num_locals = 0;
  std::string scratch;
  if (offsets.size() > 1) {
    const std::string slot =
        w_.emit("getelementptr ptr, ptr %buffers, i64 ", std::ssize(kernel_.globals()));
    scratch = w_.emit("load ptr, ptr ", slot, ", align 8, !invariant.load !0");
  }
  if (asks_for_previous_) {
    const std::string slot =
        w_.emit("getelementptr ptr, ptr %buffers, i64 ", std::ssize(kernel_.globals()) + 1);
    const std::string memory = w_.emit("load ptr, ptr ", slot, ", align 8, !invariant.load !0");
    w_.line("%previous = load i64, ptr ", memory, ", align 8, !invariant.load !0");
  }
  for (uint32_t id = 0; id < kernel_.body.size(); ++id) {
    const Instr& i = kernel_.body[id];
    const std::string name = "%m" + std::to_string(id);
    if (const auto* global = i.as<Define_Global>()) {
      const std::string slot = w_.emit("getelementptr ptr, ptr %buffers, i64 ", global->index);
      w_.line(name, " = load ptr, ptr ", slot, ", align 8, !invariant.load !0");
      memories_[id] = {name, global->size, !global->writable};
    } else if (const auto* own = i.as<lower::Private>()) {
      w_.line(name, " = alloca [", own->size * size_of(i.type.dtype), " x i8], align 64");
      memories_[id] = {name, own->size, false};
    } else if (const auto* local = i.as<lower::Local>()) {
      const int64_t offset = offsets[num_locals++];
      if (is_cell(i) && !asks_for_previous_)
        w_.line(name, " = alloca [", local->size * size_of(i.type.dtype), " x i8], align 64");
      else
        w_.line(name, " = getelementptr i8, ptr ", scratch, ", i64 ", offset);
      memories_[id] = {name, local->size, false};
    }
  }
}

Value KernelRenderer::special(const Instr& instr) {
  const auto& special = *instr.as<Special>();
  const DType dtype = instr.type.dtype;
  if (special.kind == lower::SpecialKind::Previous_workgroup_idx)
    return asks_for_previous_ ? emit_cast(w_, {"%task.previous", DType::Int64, 1}, dtype)
                              : constant(dtype, -1, 1);
  if (special.kind == lower::SpecialKind::Local_thread_idx || kernel_.grid == 1)
    return constant(dtype, 0, 1);
  return emit_cast(w_, {"%task", DType::Int64, 1}, dtype);
}

// The only lane of its vector that a store writes, or nothing if there are several or they are not
// known.
std::optional<int> KernelRenderer::only_valid_lane(const Instr& store) const {
  const auto mask = lower::constant_lanes(kernel_, store.args[3]);
  if (!mask || mask->size() < 2) return std::nullopt;
  const auto is_valid = [](const Scalar& lane) { return lane.as_bool(); };
  const auto first = std::find_if(mask->begin(), mask->end(), is_valid);
  if (std::count_if(mask->begin(), mask->end(), is_valid) != 1) return std::nullopt;
  return static_cast<int>(first - mask->begin());
}

// The mask `v`, written as a constant if its lanes are known. If LLVM 22 computes a mask of eight
// lanes from constants, it may leave upper bits of the register set and then access sixteen narrow
// elements.
Value KernelRenderer::mask(Var v) const {
  const auto lanes = lower::constant_lanes(kernel_, v);
  return lanes && lanes->size() > 1 ? vector_constant(*lanes) : value(v);
}

// Writes an instruction; returns its value.
Value KernelRenderer::instruction(uint32_t id) {
  const Instr& i = kernel_.body[id];
  std::vector<Value> args;
  for (const Var arg : i.args)
    if (!instr(arg).type.pointer) args.push_back(value(arg));
  const auto& [dtype, lanes, pointer] = i.type;
  switch (i.kind()) {
    case InstrKind::Local:
    case InstrKind::Private:
    case InstrKind::Define_Global:
    case InstrKind::Define_Var: return values_[id];  // in the prologue
    case InstrKind::Barrier: return {};              // a group has one thread
    case InstrKind::Range:
    case InstrKind::Unroll: return open_loop(id);
    case InstrKind::EndRange: close_loop(); return {};
    case InstrKind::Break: break_if(id); return {};
    case InstrKind::If: open_if(id); return {};
    case InstrKind::EndIf: close_if(); return {};
    case InstrKind::Assign: values_[i.args[0].id] = args[1]; return {};
    case InstrKind::Const: return constant(i.as<lower::Const>()->value, lanes);
    case InstrKind::Vconst: return vector_constant(i.as<lower::Vconst>()->values);
    case InstrKind::Special: return special(i);
    case InstrKind::Acc: return args[0];
    case InstrKind::Load: {
      if (args.size() > 1) args[1] = mask(i.args[2]);
      const Value* valid = args.size() > 1 ? &args[1] : nullptr;
      const Memory& memory = memories_[i.args[0].id];
      const Instr& index = instr(i.args[1]);
      if (index.kind() == InstrKind::Splat)
        return emit_shared_load(w_, memory, dtype, lanes, value(index.args[0]), valid);
      return emit_load(w_, memory, dtype, lanes, args[0], valid);
    }
    case InstrKind::Store: {
      if (i.as<lower::Store>()->atomic)
        user_error(ErrorKind::Unsupported, "store: cannot render atomic ",
                   name_of(*i.as<lower::Store>()->atomic),
                   " for the CPU (its schedules give each core memory of its own)");
      if (args.size() > 2) args[2] = mask(i.args[3]);
      const Value* valid = args.size() > 2 ? &args[2] : nullptr;
      // If a mask selects a single lane of integers that were narrowed, LLVM 22 stores bytes from
      // before they were narrowed. So this lane is stored as a scalar.
      if (const auto lane = valid ? only_valid_lane(i) : std::nullopt) {
        if (args[0].lanes > 1)
          args[0] = w_.extract(args[0], *lane);
        else
          args[0].displacement += *lane;
        args[1] = w_.extract(args[1], *lane);
        valid = nullptr;
      }
      emit_store(w_, memories_[i.args[0].id], args[0], args[1], valid,
                 i.as<lower::Store>()->nontemporal);
      return {};
    }
    case InstrKind::Prefetch:
      emit_prefetch(w_, memories_[i.args[0].id], instr(i.args[0]).type.dtype, args[0]);
      return {};
    case InstrKind::Alu:
      return displaces_[id] ? displaced(i) : emit_alu(w_, i.as<lower::Alu>()->op, std::move(args));
    case InstrKind::Shuffle: return w_.shuffle(args, i.as<lower::Shuffle>()->indices);
    case InstrKind::Splat: return w_.splat(args[0], lanes);
    case InstrKind::Cast: return emit_cast(w_, args[0], dtype);
    case InstrKind::Bitcast: return emit_bitcast(w_, args[0], dtype);
    case InstrKind::Wmma:
      user_error(ErrorKind::Unsupported, "wmma: cannot render for the CPU (it has no matrix unit)");
    case InstrKind::Simd_reduce:
    case InstrKind::Simd_shuffle:
      user_error(ErrorKind::Unsupported, name_of(i.kind()),
                 ": cannot render for the CPU (a group has one thread)");
    case InstrKind::Custom: {
      const CustomParts parts{[&](size_t n) { return args.at(n).text; },
                              [&](size_t n) { return type_text(args.at(n)); },
                              type_text(dtype, lanes), mangled(dtype, lanes)};
      return w_.value(dtype, lanes, expand_custom(*i.as<lower::Custom>(), args.size(), parts));
    }
  }
  RUNE_UNREACHABLE();
}

// The Accs from outside of the body opened at `id` that the body assigns, in order.
std::vector<uint32_t> KernelRenderer::assigned_within(uint32_t id) const {
  std::set<uint32_t> found;
  int depth = 0;
  for (uint32_t at = id; at < kernel_.body.size(); ++at) {
    const Instr& i = kernel_.body[at];
    if (lower::opens_scope(i.kind())) ++depth;
    if (lower::closes_scope(i.kind()) && --depth == 0) break;
    if (i.as<Assign>() && i.args[0].id < id) found.insert(i.args[0].id);
  }
  return {found.begin(), found.end()};
}

KernelRenderer::Scope KernelRenderer::scope_of(uint32_t id) const {
  Scope scope;
  scope.id = id;
  scope.predecessor = w_.block();
  scope.accs = assigned_within(id);
  for (const uint32_t acc : scope.accs) scope.entry_values.push_back(values_[acc].text);
  return scope;
}

Value KernelRenderer::open_loop(uint32_t id) {
  const Instr& i = kernel_.body[id];
  const std::string n = std::to_string(id);
  Scope scope = scope_of(id);
  if (const auto* unroll = i.as<lower::Unroll>()) {
    scope.bound = std::to_string(unroll->iterations);
    scope.guarded = unroll->iterations <= 0;
  } else {
    scope.bound = value(i.args[0]).text;
    const auto* bound = instr(i.args[0]).as<lower::Const>();
    scope.guarded = !bound || bound->value.as_int64() <= 0;
  }
  const std::string type = type_text(i.type.dtype);
  if (scope.guarded) {
    const char* more = is_signed(i.type.dtype) ? "icmp sgt " : "icmp ugt ";
    const std::string any = w_.emit(more, type, ' ', scope.bound, ", 0");
    w_.line("br i1 ", any, ", label %loop", n, ", label %end", n);
  } else {
    w_.line("br label %loop", n);
  }
  for (const uint32_t acc : scope.accs) {
    values_[acc].text = "%a" + std::to_string(acc) + ".loop" + n;
  }
  scope.before = w_.take();
  scopes_.push_back(std::move(scope));
  w_.label("loop" + n);
  w_.take();  // close_loop writes the label, followed by the phis
  return {"%i" + n, i.type.dtype, 1};
}

void KernelRenderer::close_loop() {
  RUNE_CHECK(!scopes_.empty(), "llvm_ir: EndRange without Range in ", kernel_.name);
  const Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  const Instr& i = kernel_.body[scope.id];
  const std::string n = std::to_string(scope.id), type = type_text(i.type.dtype);
  const std::string latch = w_.block();
  const std::string body = w_.take();

  w_.append_text(scope.before);
  w_.label("loop" + n);
  phi("%i" + n, type, "0", scope.predecessor, "%next" + n, latch);
  for (size_t k = 0; k < scope.accs.size(); ++k) {
    const uint32_t acc = scope.accs[k];
    phi("%a" + std::to_string(acc) + ".loop" + n, acc_type(acc), scope.entry_values[k],
        scope.predecessor, values_[acc].text, latch);
  }
  w_.append_text(body);
  w_.line("%next", n, " = add ", type, " %i", n, ", 1");
  const std::string more = w_.emit(is_signed(i.type.dtype) ? "icmp slt " : "icmp ult ", type,
                                   " %next", n, ", ", scope.bound);
  w_.line("br i1 ", more, ", label %loop", n, ", label %end", n);
  w_.label("end" + n);
  std::vector<Exit> exits = scope.breaks;
  exits.push_back({latch, now(scope)});
  if (scope.guarded) exits.push_back({scope.predecessor, scope.entry_values});
  join_accs(scope, ".end" + n, exits);
}

void KernelRenderer::break_if(uint32_t id) {
  RUNE_CHECK(!scopes_.empty(), "llvm_ir: Break without Range in ", kernel_.name);
  Scope& loop = scopes_.back();
  loop.breaks.push_back({w_.block(), now(loop)});
  const std::string n = std::to_string(id);
  w_.line("br i1 ", value(kernel_.body[id].args[0]).text, ", label %end", loop.id, ", label %go",
          n);
  w_.label("go" + n);
}

// The current values of the accs that the scope assigns.
std::vector<std::string> KernelRenderer::now(const Scope& scope) const {
  std::vector<std::string> values;
  for (const uint32_t acc : scope.accs) values.push_back(values_[acc].text);
  return values;
}

// Emits the phis after a scope, which control leaves from several blocks.
void KernelRenderer::join_accs(const Scope& scope, const std::string& suffix,
                               const std::vector<Exit>& exits) {
  if (exits.size() == 1) return;
  for (size_t k = 0; k < scope.accs.size(); ++k) {
    const uint32_t acc = scope.accs[k];
    const std::string name = "%a" + std::to_string(acc) + suffix;
    std::string incoming;
    for (const Exit& exit : exits)
      incoming +=
          concat(incoming.empty() ? " [ " : ", [ ", exit.values[k], ", %", exit.block, " ]");
    w_.line(name, " = phi ", acc_type(acc), incoming);
    values_[acc].text = name;
  }
}

void KernelRenderer::open_if(uint32_t id) {
  const std::string n = std::to_string(id);
  Scope scope = scope_of(id);
  w_.line("br i1 ", value(kernel_.body[id].args[0]).text, ", label %then", n, ", label %endif", n);
  w_.label("then" + n);
  scopes_.push_back(std::move(scope));
}

void KernelRenderer::close_if() {
  RUNE_CHECK(!scopes_.empty(), "llvm_ir: EndIf without If in ", kernel_.name);
  const Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  const std::string n = std::to_string(scope.id), last = w_.block();
  w_.line("br label %endif", n);
  w_.label("endif" + n);
  join_accs(scope, ".endif" + n, {{last, now(scope)}, {scope.predecessor, scope.entry_values}});
}

}  // namespace
}  // namespace llvm

std::string render_llvm_module(std::span<const lower::Kernel> kernels, int register_bytes) {
  std::set<std::string> declarations, symbols;
  std::string text;
  bool optimize = false;
  for (const lower::Kernel& kernel : kernels) {
    check_interrupt();
    const bool is_new = symbols.insert(identifier(kernel.name)).second;
    RUNE_CHECK(is_new, "llvm_ir: two kernels named ", identifier(kernel.name), " in one module");
    text += llvm::KernelRenderer(kernel, declarations, register_bytes).render() + '\n';
    optimize = optimize || llvm::needs_passes(kernel);
  }
  for (const std::string& declaration : declarations) text += declaration + '\n';
  text += concat("\nattributes #0 = { nounwind \"prefer-vector-width\"=\"512\"",
                 optimize ? " \"rune-optimize\"" : "", " }\n!0 = !{}\n!1 = !{i32 1}\n");
  return text;
}

std::vector<std::string> render_llvm_modules(std::span<const lower::Kernel> kernels,
                                             int register_bytes) {
  std::vector<std::string> texts(kernels.size());
  for (size_t begin = 0, end = 0; begin < kernels.size(); begin = end) {
    const bool optimized = llvm::needs_passes(kernels[begin]);
    while (end < kernels.size() && llvm::needs_passes(kernels[end]) == optimized) ++end;
    texts[begin] = render_llvm_module(kernels.subspan(begin, end - begin), register_bytes);
  }
  return texts;
}

std::string render_llvm(const lower::Kernel& kernel) {
  return render_llvm_module({&kernel, 1});
}

}  // namespace rune::render
