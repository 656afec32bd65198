#include "base/error.h"
#include "lower/interpreter_program.h"
#include "lower/text.h"
#include "lower/verify.h"

namespace rune::lower::interpreter {

namespace {

constexpr uint32_t kNone = ~uint32_t{0};

class Decoder {
 public:
  explicit Decoder(Kernel kernel) {
    const std::vector<std::string> violations = verify_structure(kernel);
    RUNE_CHECK(violations.empty(), "kernel ", kernel.name, ": ", violations.front(),
               violations.size() > 1 ? concat(" (and ", violations.size() - 1, " more)") : "");
    program_.kernel = std::move(kernel);
    slots_.assign(body().size(), kNone);
    memories_.assign(body().size(), kNone);
  }

  Program run() {
    for (id_ = 0; id_ < body().size(); ++id_)
      std::visit([&](const auto& payload) { decode(payload); }, instr().payload);
    emit(Code::End);
    return std::move(program_);
  }

 private:
  const Instrs& body() const { return program_.kernel.body; }
  const Instr& instr() const { return body()[id_]; }
  Var arg(size_t i) const { return instr().args[i]; }
  const Type& type_of(Var v) const { return program_.kernel[v].type; }
  uint32_t slot(Var v) const { return slots_[v.id]; }

  uint32_t registers(int64_t count) {
    const uint32_t first = static_cast<uint32_t>(program_.image.size());
    program_.image.resize(program_.image.size() + count);
    return first;
  }
  uint32_t define() { return slots_[id_] = registers(instr().type.lanes); }
  uint32_t here() const { return static_cast<uint32_t>(program_.ops.size()); }

  Op& emit(Code code) {
    Op op;
    op.code = code;
    op.source = id_;
    program_.ops.push_back(op);
    return program_.ops.back();
  }

  // Emits an op on lanes, which defines this instruction's value.
  Op& emit_lanes(WordFunction fn) {
    const uint32_t dst = define();
    Op& op = emit(Code::Lanes);
    op.fn = fn;
    op.dst = dst;
    op.lanes = static_cast<uint32_t>(instr().type.lanes);
    uint32_t* const operands[] = {&op.a, &op.b, &op.c};
    for (size_t i = 0; i < instr().args.size(); ++i) *operands[i] = slot(arg(i));
    return op;
  }

  void copy(uint32_t dst, uint32_t from, int lanes) {
    Op& op = emit(Code::Copy);
    op.dst = dst;
    op.a = from;
    op.lanes = static_cast<uint32_t>(lanes);
  }

  void define_memory(bool global, int64_t size, int64_t index) {
    memories_[id_] = static_cast<uint32_t>(program_.memories.size());
    const bool is_private = instr().as<Private>() != nullptr;
    program_.memories.push_back({global, is_private, instr().type.dtype, size, index, false, id_});
  }

  void decode(const Local& p) { define_memory(false, p.size, 0); }
  void decode(const Private& p) { define_memory(false, p.size, 0); }
  void decode(const Define_Global& p) { define_memory(true, p.size, p.index); }
  void decode(const Acc&) {
    const uint32_t dst = define();
    copy(dst, slot(arg(0)), instr().type.lanes);
  }
  void decode(const Assign&) { copy(slot(arg(0)), slot(arg(1)), type_of(arg(0)).lanes); }
  void decode(const Const& p) {
    const uint32_t dst = define();
    for (int i = 0; i < instr().type.lanes; ++i) program_.image[dst + i] = p.value.word();
  }
  void decode(const Vconst& p) {
    const uint32_t dst = define();
    for (size_t i = 0; i < p.values.size(); ++i) program_.image[dst + i] = p.values[i].word();
  }
  void decode(const Special& p) {
    const uint32_t dst = define();
    Op& op = emit(Code::Position);
    op.dst = dst;
    op.extra = static_cast<uint32_t>(p.kind);
    program_.asks_for_previous |= p.kind == SpecialKind::Previous_workgroup_idx;
  }
  void decode(const Define_Var& p) {
    const uint32_t dst = define();
    for (VarInfo& known : program_.vars)
      if (known.var.name == p.var.name) return known.registers.push_back(dst);
    program_.vars.push_back({p.var, {dst}});
  }

  void open_loop(uint32_t bound) {
    const uint32_t dst = define(), limit = registers(1);
    Op& op = emit(Code::Range);
    op.dst = dst;
    op.a = bound;
    op.b = limit;
    open_.push_back(here() - 1);
    loops_.push_back(dst);
    breaks_.emplace_back();
  }
  void decode(const Range&) { open_loop(slot(arg(0))); }
  void decode(const Unroll& p) {
    const uint32_t bound = registers(1);
    program_.image[bound] = static_cast<uint64_t>(p.iterations);
    open_loop(bound);
  }
  void decode(const EndRange&) {
    const uint32_t start = open_.back();
    open_.pop_back();
    loops_.pop_back();
    Op& op = emit(Code::EndRange);
    op.dst = program_.ops[start].dst;
    op.b = program_.ops[start].b;
    op.target = start + 1;
    program_.ops[start].target = here();
    for (const uint32_t at : breaks_.back()) program_.ops[at].target = here();
    breaks_.pop_back();
  }
  void decode(const Break&) {
    Op& op = emit(Code::Break);
    op.a = slot(arg(0));
    breaks_.back().push_back(here() - 1);
  }
  void decode(const If&) {
    Op& op = emit(Code::If);
    op.a = slot(arg(0));
    open_.push_back(here() - 1);
  }
  void decode(const EndIf&) {
    program_.ops[open_.back()].target = here();
    open_.pop_back();
  }
  void decode(const Barrier&) {
    program_.has_barrier = true;
    Op& op = emit(Code::Barrier);
    op.extra = static_cast<uint32_t>(program_.barrier_loops.size());
    program_.barrier_loops.push_back(loops_);
  }
  void decode(const Simd_reduce& p) {
    program_.has_barrier = true;
    Op& op = emit_lanes(alu_function(p.op, instr().type.dtype));
    op.code = Code::SimdReduce;
    op.extra = static_cast<uint32_t>(p.width);
  }
  void decode(const Simd_shuffle& p) {
    program_.has_barrier = true;
    const uint32_t dst = define();
    Op& op = emit(Code::SimdShuffle);
    op.dst = dst;
    op.a = slot(arg(0));
    op.b = slot(arg(1));
    op.extra = static_cast<uint32_t>(p.width);
  }
  void decode(const Prefetch&) {}

  void emit_access(Code code, uint32_t dst, int lanes, size_t mask_position) {
    Op& op = emit(code);
    op.dst = dst;
    op.lanes = static_cast<uint32_t>(lanes);
    op.dtype = type_of(arg(0)).dtype;
    op.extra = memories_[arg(0).id];
    op.a = slot(arg(1));
    op.index_stride = type_of(arg(1)).lanes > 1;
    op.masked = instr().args.size() > mask_position;
    if (!op.masked) return;
    op.b = slot(arg(mask_position));
    op.mask_stride = type_of(arg(mask_position)).lanes > 1;
  }
  void decode(const Load&) {
    const uint32_t dst = define();
    emit_access(Code::Load, dst, instr().type.lanes, 2);
  }
  void decode(const Store& p) {
    emit_access(Code::Store, 0, type_of(arg(2)).lanes, 3);
    Op& op = program_.ops.back();
    op.c = slot(arg(2));
    if (p.atomic) op.fn = alu_function(*p.atomic, op.dtype);
    program_.memories[op.extra].written = true;
  }

  void decode(const Alu& p) { emit_lanes(alu_function(p.op, type_of(instr().args.back()).dtype)); }
  void decode(const Cast&) { emit_lanes(cast_function(type_of(arg(0)).dtype, instr().type.dtype)); }
  void decode(const Bitcast&) { emit_lanes(bitcast_function(instr().type.dtype)); }

  void decode(const Shuffle& p) {
    std::vector<uint32_t> from;
    const int64_t lanes = type_of(arg(0)).lanes;
    for (const int64_t i : p.indices)
      from.push_back(slot(arg(i / lanes)) + static_cast<uint32_t>(i % lanes));
    const uint32_t dst = define();
    Op& op = emit(Code::Gather);
    op.dst = dst;
    op.lanes = static_cast<uint32_t>(from.size());
    op.extra = static_cast<uint32_t>(program_.gathers.size());
    program_.gathers.push_back(std::move(from));
  }
  void decode(const Splat&) {
    const uint32_t dst = define();
    Op& op = emit(Code::Splat);
    op.dst = dst;
    op.a = slot(arg(0));
    op.lanes = static_cast<uint32_t>(instr().type.lanes);
  }

  Op cast_of(Var v, DType to) {
    Op op;
    op.code = Code::Lanes;
    op.fn = cast_function(type_of(v).dtype, to);
    op.lanes = static_cast<uint32_t>(type_of(v).lanes);
    op.a = slot(v);
    op.dst = registers(op.lanes);
    return op;
  }
  void decode(const Wmma& p) {
    const DType dtype = instr().type.dtype;
    WmmaInfo wmma{static_cast<uint32_t>(p.m),
                  static_cast<uint32_t>(p.n),
                  static_cast<uint32_t>(p.k),
                  cast_of(arg(0), dtype),
                  cast_of(arg(1), dtype),
                  alu_function(AluOp::Mulacc, dtype),
                  static_cast<uint32_t>(p.threads(instr().type.lanes)),
                  {}};
    for (size_t i = 0; i < 3; ++i)
      for (int64_t number = 0; number < wmma.threads * type_of(arg(i)).lanes; ++number)
        wmma.positions[i].push_back(static_cast<uint32_t>(spread_position(p.spread[i], number)));
    program_.has_barrier = true;
    const uint32_t dst = define();
    Op& op = emit(Code::Wmma);
    op.dst = dst;
    op.c = slot(arg(2));
    op.extra = static_cast<uint32_t>(program_.wmmas.size());
    program_.wmmas.push_back(wmma);
  }

  void decode(const Custom& p) {
    user_error(ErrorKind::Unsupported, "interpreter: cannot run custom operation ", p.op_name,
               " of kernel ", program_.kernel.name, " (its source is for another target)");
  }

  Program program_;
  std::vector<uint32_t> slots_;                // by instruction: first register
  std::vector<uint32_t> memories_;             // by instruction: position in Program::memories
  std::vector<uint32_t> open_;                 // ops that open a Range or If
  std::vector<uint32_t> loops_;                // registers of the open loops' values
  std::vector<std::vector<uint32_t>> breaks_;  // by open loop: the ops that leave it
  uint32_t id_ = 0;
};

}  // namespace

Program decode(Kernel kernel) {
  return Decoder(std::move(kernel)).run();
}

}  // namespace rune::lower::interpreter
