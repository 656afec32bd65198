// Loads and stores of the C-like renderer: element by element, or by packed vectors where the
// dialect has them.
#include <bit>

#include "render/c_like_kernel.h"

namespace rune::render::c_like {

using lower::Instr;
using lower::Type;
using lower::Var;

namespace {

// The greatest power of two, at most 16, that the operations of an index show to divide it.
int64_t known_divisor(const lower::Kernel& kernel, Var v, int depth = 0) {
  constexpr int64_t kMost = 16;
  constexpr int kDeepest = 8;
  const Instr& instr = kernel[v];
  const auto of = [&](size_t i) { return known_divisor(kernel, instr.args[i], depth + 1); };
  if (const auto* constant = instr.as<lower::Const>()) {
    const auto value = static_cast<uint64_t>(constant->value.as_int64());
    return value == 0 ? kMost : std::min<int64_t>(kMost, int64_t{1} << std::countr_zero(value));
  }
  const auto* alu = instr.as<lower::Alu>();
  if (depth == kDeepest || !alu) return 1;
  if (alu->op == AluOp::Mul) return std::min(kMost, of(0) * of(1));
  constexpr AluOp kKeeping[] = {AluOp::Add, AluOp::Sub, AluOp::Min, AluOp::Max, AluOp::Fmod};
  return contains(kKeeping, alu->op) ? std::min(of(0), of(1)) : 1;
}

}  // namespace

int KernelRenderer::packed_width(const Memory& memory, DType dtype, Var index, int from,
                                 int lanes) const {
  if (kernel_[index].type.lanes > 1 || (!memory.global && !dialect_.access_bytes)) return 1;
  const DType stored = is_bool(dtype) ? DType::Uint8 : dtype;
  if (dialect_.packed[static_cast<int>(stored)].empty()) return 1;
  const int64_t most =
      dialect_.access_bytes ? dialect_.access_bytes / size_of(stored) : dialect_.packed_lanes[0];
  for (const int width : dialect_.packed_lanes) {
    const bool is_aligned =
        !dialect_.access_bytes || (from % width == 0 && known_divisor(kernel_, index) % width == 0);
    if (from + width <= lanes && width <= most && is_aligned) return width;
  }
  return 1;
}

bool KernelRenderer::is_uniform(Var v) const {
  for (int i = 1; i < kernel_[v].type.lanes; ++i)
    if (lane(v, i) != lane(v, 0)) return false;
  return true;
}

std::string KernelRenderer::packed_type(DType dtype, int width) const {
  return expand(dialect_.packed[static_cast<int>(dtype)], {{'k', std::to_string(width)}});
}

void KernelRenderer::load(uint32_t id) {
  const Instr& instr = kernel_.body[id];
  const DType dtype = instr.type.dtype;
  const int lanes = instr.type.lanes;
  const Var index = instr.args[1];
  const bool masked = instr.args.size() > 2;
  const auto& memory = memories_[instr.args[0].id];
  const bool packed = packed_width(memory, dtype, index, 0, lanes) > 1;
  if (!masked || (packed && is_uniform(instr.args[2]))) return load_run(id);
  Lanes result;
  for (int i = 0; i < lanes; ++i) {
    std::string value = element(memory, index_of(index, i));
    if (is_bool(dtype)) value = '(' + value + " != 0)";
    result.push_back(lane(instr.args[2], i) + " ? " + value + " : " + zero(dtype));
  }
  define(id, result);
}

// Loads packed vectors where elements are consecutive. Masked elements are loaded within an If.
void KernelRenderer::load_run(uint32_t id) {
  const Instr& instr = kernel_.body[id];
  const DType dtype = instr.type.dtype, stored = is_bool(dtype) ? DType::Uint8 : dtype;
  const int lanes = instr.type.lanes;
  const auto& memory = memories_[instr.args[0].id];
  const bool masked = instr.args.size() > 2;
  if (masked) {
    define(id, Lanes(static_cast<size_t>(lanes), zero(dtype)), "");
    open("if (" + lane(instr.args[2], 0) + ')');
  }
  Lanes elements;
  for (int from = 0; from < lanes;) {
    const int width = packed_width(memory, dtype, instr.args[1], from, lanes);
    const std::string at = index_of(instr.args[1], from);
    if (width == 1) {
      elements.push_back(element(memory, at));
    } else {
      const std::string type = packed_type(stored, width);
      const std::string name = concat('p', id, '_', from);
      line("const ", type, ' ', name, " = ",
           expand(dialect_.packed_read, {{'V', type}, {'p', memory.name}, {'i', at}}), ';');
      for (int i = 0; i < width; ++i) elements.push_back(name + '[' + std::to_string(i) + ']');
    }
    from += width;
  }
  if (is_bool(dtype))
    for (std::string& e : elements) e = '(' + e + " != 0)";
  if (!masked) return define(id, elements);
  for (int i = 0; i < lanes; ++i) line(lane({id}, i), " = ", elements[static_cast<size_t>(i)], ';');
  close();
}

void KernelRenderer::store_atomic(const Instr& instr) {
  const Type& type = kernel_[instr.args[2]].type;
  const AluOp op = *instr.as<lower::Store>()->atomic;
  const auto text = dialect_.atomics.find({op, type.dtype});
  const auto& memory = memories_[instr.args[0].id];
  if (text == dialect_.atomics.end() || !memory.global)
    unsupported(concat("with atomic ", name_of(op), " of ", name_of(type.dtype)));
  for (int i = 0; i < type.lanes; ++i) {
    if (instr.args.size() > 3) open("if (" + lane(instr.args[3], i) + ')');
    line(expand(text->second, {{'p', element(memory, index_of(instr.args[1], i))},
                               {'0', lane(instr.args[2], i)}}),
         ';');
    if (instr.args.size() > 3) close();
  }
}

void KernelRenderer::store(const Instr& instr) {
  if (instr.as<lower::Store>()->atomic) return store_atomic(instr);
  const Type& type = kernel_[instr.args[2]].type;
  const Var index = instr.args[1];
  const bool masked = instr.args.size() > 3;
  const auto& memory = memories_[instr.args[0].id];
  const bool packed = packed_width(memory, type.dtype, index, 0, type.lanes) > 1;
  if (!masked || (packed && is_uniform(instr.args[3]))) return store_run(instr);
  for (int i = 0; i < type.lanes; ++i) {
    open("if (" + lane(instr.args[3], i) + ')');
    line(element(memory, index_of(index, i)), " = ", lane(instr.args[2], i), ';');
    close();
  }
}

void KernelRenderer::store_run(const Instr& instr) {
  const Type& type = kernel_[instr.args[2]].type;
  const DType stored = is_bool(type.dtype) ? DType::Uint8 : type.dtype;
  const auto& memory = memories_[instr.args[0].id];
  const bool masked = instr.args.size() > 3;
  if (masked) open("if (" + lane(instr.args[3], 0) + ')');
  for (int from = 0; from < type.lanes;) {
    const int width = packed_width(memory, type.dtype, instr.args[1], from, type.lanes);
    const std::string at = index_of(instr.args[1], from);
    if (width == 1) {
      line(element(memory, at), " = ", lane(instr.args[2], from), ';');
    } else {
      const std::string vector = packed_type(stored, width);
      std::string list;
      for (int i = 0; i < width; ++i) {
        if (i) list += ", ";
        if (is_bool(type.dtype)) list += '(' + dialect_.memory_type(type.dtype) + ')';
        list += lane(instr.args[2], from + i);
      }
      line(expand(dialect_.packed_write, {{'V', vector}, {'p', memory.name}, {'i', at}}), " = ",
           expand(dialect_.packed_value, {{'V', vector}, {'a', list}}), ';');
    }
    from += width;
  }
  if (masked) close();
}

}  // namespace rune::render::c_like
