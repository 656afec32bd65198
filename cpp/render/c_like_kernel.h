// The renderer of one kernel, which c_like.cpp and c_like_memory.cpp implement.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "render/c_like.h"

namespace rune::render::c_like {

// Writes the function of one kernel.
class KernelRenderer {
 public:
  KernelRenderer(const lower::Kernel& kernel, const Dialect& dialect)
      : kernel_(kernel),
        dialect_(dialect),
        exact_(c_like::exact_integers(kernel)),
        values_(kernel.body.size()),
        memories_(kernel.body.size()) {}

  std::string render();

 private:
  struct Memory {
    std::string name;
    bool global = false;
  };
  using Lanes = std::vector<std::string>;  // of each lane: a variable's name or a literal

  void begin();
  void check_types();
  std::string head();
  void parameters(std::vector<std::string>& list);
  std::string declare(const std::string& read, const std::string& write, lower::Var global) const;
  void memory_declarations();
  void instruction(uint32_t id);
  void define(uint32_t id, const Lanes& expressions, const char* qualifier = "const ");
  void vconst(uint32_t id);
  Lanes special(const lower::Instr& instr) const;
  Lanes operation(uint32_t id) const;
  void matrix_product(uint32_t id);
  std::string simd_reduction(const lower::Instr& instr) const;
  std::string simd_shuffle(const lower::Instr& instr) const;
  Lanes custom(const lower::Instr& instr) const;
  void load(uint32_t id);
  void load_run(uint32_t id);
  void store(const lower::Instr& instr);
  void store_atomic(const lower::Instr& instr);
  void store_run(const lower::Instr& instr);
  void assign(const lower::Instr& instr);
  bool is_short_loop(uint32_t id) const;
  void open_loop(uint32_t id);
  void open(const std::string& text) {
    line(text, " {");
    ++depth_;
  }
  void close() {
    --depth_;
    line("}");
  }

  static std::string element(const Memory& memory, const std::string& index) {
    return memory.name + '[' + index + ']';
  }
  std::string zero(DType dtype) const { return c_like::literal(dialect_, Scalar::zero(dtype)); }
  // Lane i of an operand. An operand of one lane has the same value in all lanes.
  const std::string& lane(lower::Var v, int i) const {
    const Lanes& lanes = values_[v.id];
    return lanes.size() == 1 ? lanes[0] : lanes[static_cast<size_t>(i)];
  }
  // The index of lane i. An index of one lane is that of the first element; the others follow it.
  std::string index_of(lower::Var index, int i) const {
    if (kernel_[index].type.lanes > 1 || i == 0) return lane(index, i);
    return lane(index, 0) + " + " + std::to_string(i);
  }
  // The number of lanes, beginning with lane `from`, that one access may read or write; at least 1.
  int packed_width(const Memory& memory, DType dtype, lower::Var index, int from, int lanes) const;
  // Whether all lanes are the same expression.
  bool is_uniform(lower::Var v) const;
  std::string packed_type(DType dtype, int width) const;

  template <class... Args>
  void line(const Args&... args) {
    text_.append(2 * static_cast<size_t>(depth_), ' ');
    ((text_ += args), ...);
    text_ += '\n';
  }
  [[noreturn]] void unsupported(const std::string& what) const {
    user_error(ErrorKind::Unsupported, dialect_.target, ": cannot render kernel ", kernel_.name,
               ' ', what);
  }

  const lower::Kernel& kernel_;
  const Dialect& dialect_;
  const std::vector<bool> exact_;
  std::vector<Lanes> values_;     // by instruction
  std::vector<Memory> memories_;  // by instruction that defines memory
  std::map<std::string, int64_t> var_slots_;
  std::vector<lower::Var> members_;  // globals that are not parameters
  std::string tables_;               // declarations in front of the kernel
  std::string text_;
  int depth_ = 0;
};

}  // namespace rune::render::c_like
