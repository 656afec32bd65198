// Shared by the parts of the LLVM IR renderer: values, types, constants and the text of a function.
#pragma once

#include <concepts>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "lower/instr.h"

namespace rune::render::llvm {

// A value in registers: an SSA name or a constant, without its type.
struct Value {
  std::string text;
  DType dtype = DType::Float32;
  int lanes = 1;
  int64_t displacement = 0;  // to be added to the value, an index that only addresses memory
};

// `<lanes x element>`, or the element itself for one lane.
std::string vector_type(const std::string& element, int lanes);
// The type in registers: i1 for bool, i16 for float16 and bfloat16.
std::string type_text(DType dtype, int lanes = 1);
inline std::string type_text(const Value& v) {
  return type_text(v.dtype, v.lanes);
}
// The type in memory: i8 for bool.
std::string memory_type_text(DType dtype, int lanes = 1);
// The suffix of an overloaded intrinsic: v16f32.
std::string mangled(DType dtype, int lanes);

// Constants without their type. Floats are written as exact bits.
std::string constant_text(const Scalar& value);
Value constant(const Scalar& value, int lanes);
template <class T>
Value constant(DType dtype, T value, int lanes) {
  return constant(Scalar::of(dtype, value), lanes);
}
Value vector_constant(const std::vector<Scalar>& values);

// Writes the text of a function, line after line.
class Writer {
 public:
  // `declarations` collects the `declare` lines that the module needs. `register_bytes` is the size
  // of the CPU's vector registers.
  Writer(std::set<std::string>& declarations, int register_bytes)
      : declarations_(declarations), register_bytes_(register_bytes) {}
  int register_bytes() const { return register_bytes_; }

  // Appends an indented line.
  template <class... Args>
  void line(const Args&... args) {
    text_ += "  ";
    (append(args), ...);
    text_ += '\n';
  }
  // Appends `%tN = <args>` and returns %tN.
  template <class... Args>
  std::string emit(const Args&... args) {
    std::string name = "%t" + std::to_string(next_++);
    line(name, " = ", args...);
    return name;
  }
  // As emit, for text without side effects. Within a block, equal text is emitted only once.
  template <class... Args>
  std::string emit_once(const Args&... args) {
    const size_t begin = text_.size();
    (append(args), ...);
    const std::string key = text_.substr(begin);
    text_.resize(begin);
    const auto [known, added] = known_.try_emplace(key);
    if (added) known->second = emit(key);
    return known->second;
  }
  // As emit, but returns a value of this type.
  template <class... Args>
  Value value(DType dtype, int lanes, const Args&... args) {
    return {emit(args...), dtype, lanes};
  }
  // Begins a block.
  void label(const std::string& name) {
    text_ += name + ":\n";
    block_ = name;
    known_.clear();
  }
  // The name of the present block.
  const std::string& block() const { return block_; }

  // Declares an intrinsic or a function of the C library and calls it.
  Value call(const std::string& name, DType dtype, int lanes, const std::vector<Value>& args);
  // As call, with operands as pairs of type and text. There is no result if `result_type` is void.
  std::string call_raw(const std::string& name, const std::string& result_type,
                       const std::vector<std::pair<std::string, std::string>>& args);
  // `%t = <opcode> <type> a, b`. The result has the type of `a`.
  Value binary(const char* opcode, const Value& a, const Value& b) {
    return value(a.dtype, a.lanes, opcode, ' ', type_text(a), ' ', a.text, ", ", b.text);
  }
  // A comparison (`icmp slt`, `fcmp olt` ...). The result is bool.
  Value compare(const char* predicate, const Value& a, const Value& b) {
    return value(DType::Bool, a.lanes, predicate, ' ', type_text(a), ' ', a.text, ", ", b.text);
  }
  Value select(const Value& condition, const Value& a, const Value& b) {
    return value(a.dtype, a.lanes, "select ", type_text(condition), ' ', condition.text, ", ",
                 type_text(a), ' ', a.text, ", ", type_text(b), ' ', b.text);
  }
  // A conversion by this LLVM opcode: sext, fpext, bitcast ...
  Value convert(const char* opcode, const Value& a, DType to) {
    return value(to, a.lanes, opcode, ' ', type_text(a), ' ', a.text, " to ",
                 type_text(to, a.lanes));
  }
  Value extract(const Value& vector, int lane);
  Value insert(const Value& vector, const Value& scalar, int lane);
  Value splat(const Value& scalar, int lanes);
  // The lanes `indices` of the vectors' lanes, which are numbered from the first vector to the
  // last. The vectors have the same type.
  Value shuffle(const std::vector<Value>& vectors, const Ints& indices);

  // Takes the text written so far out of the writer, so that other text can come in between.
  std::string take() { return std::exchange(text_, {}); }
  void append_text(const std::string& text) { text_ += text; }

 private:
  void append(const std::string& s) { text_ += s; }
  void append(const char* s) { text_ += s; }
  void append(char c) { text_ += c; }
  void append(std::integral auto v) { text_ += std::to_string(v); }

  std::set<std::string>& declarations_;
  const int register_bytes_;
  std::string text_;
  std::string block_;
  std::map<std::string, std::string> known_;  // the values that emit_once made in this block
  int next_ = 0;
};

// One scalar operation, lane by lane.
Value emit_alu(Writer& w, AluOp op, std::vector<Value> args);
// As Scalar::cast, lane by lane.
Value emit_cast(Writer& w, const Value& x, DType to);
Value emit_bitcast(Writer& w, const Value& x, DType to);

}  // namespace rune::render::llvm
