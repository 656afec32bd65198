// Builds a kernel with nested loops, placing each pure instruction in the outermost scope in which
// its operands exist, and never computing the same twice while the first result is in scope.
#pragma once

#include <string>
#include <unordered_map>

#include "lower/instr.h"

namespace rune::lower {

class ScopedBuilder {
 public:
  ScopedBuilder() : scopes_(1) {}

  // Scopes. A scope's instructions come after everything emitted into the enclosing scope so far.
  // Returns the loop's index. If the loop may have no iterations, no load leaves it: its element
  // may not exist.
  Var open_range(Var bound, bool may_be_empty = false);
  // A loop of this many iterations that is copied out.
  Var open_unroll(int64_t iterations, DType index);
  void close_range() { close(EndRange{}); }
  void open_if(Var condition);
  void close_if() { close(EndIf{}); }
  // Number of open scopes around the innermost; 0 is the kernel's body.
  int depth() const { return static_cast<int>(scopes_.size()) - 1; }
  // Unique to an opened scope.
  uint64_t scope_id(int depth) const { return scopes_[depth].id; }
  // The depth of the scope that holds the value.
  int depth_of(Var v) const { return depths_[v.id]; }

  // Pure values: hoisted and numbered.
  Var define_global(DType dtype, int64_t index, int64_t size, bool writable);
  Var local(DType dtype, int64_t size);
  Var buffer(DType dtype, int64_t size);
  Var constant(Scalar value, int lanes = 1);
  Var vconst(std::vector<Scalar> values);
  Var define_var(const SymVar& var, DType dtype);
  Var special(SpecialKind kind, int dim, int64_t bound, DType dtype);
  Var alu(AluOp op, std::vector<Var> args);
  Var cast(Var x, DType dtype);
  Var bitcast(Var x, DType dtype);
  Var splat(Var x, int lanes);
  Var gep(std::vector<Var> xs, Ints indices);
  // Of memory that the kernel does not write in scopes at `least_depth` or deeper; not above the
  // innermost If or Range that may be empty.
  Var load(Var memory, Var index, int lanes, Var valid, int least_depth = 0);

  // Once for each address.
  void prefetch(Var memory, Var index);

  // In the innermost scope, in order, each time anew.
  Var acc(Var initial);
  void assign(Var acc, Var value);
  Var alu_here(AluOp op, std::vector<Var> args);
  Var gep_here(Var x, Ints indices);
  Var custom_here(Custom custom, std::vector<Var> args, DType dtype);
  Var load_here(Var memory, Var index, int lanes, Var valid);
  void store(Var memory, Var index, Var value, Var valid, bool nontemporal,
             std::optional<AluOp> atomic = std::nullopt);
  void barrier();
  Var simd_reduce(AluOp op, int64_t width, Var x);
  Var wmma(Wmma shape, Var a, Var b, Var c);

  // By value: it outlives the next instruction.
  Type type(Var v) const { return types_[v.id]; }

  // All scopes must be closed.
  Kernel finish(std::string name, std::array<int64_t, 3> grid, std::array<int64_t, 3> local);

 private:
  struct Pending {
    uint32_t id;
    Instr instr;
  };
  struct Scope {
    std::vector<Pending> instrs;
    std::vector<std::string> numbered;  // keys to forget when the scope closes
    std::optional<Pending> opener;      // the Range, Unroll or If; hoisted instructions precede it
    int fence = 0;                      // loads stay at this depth or deeper
    uint64_t id = 0;
  };

  Var emit(int depth, Payload payload, std::vector<Var> args, Type type);
  Var pure(Payload payload, std::vector<Var> args, Type type, int least_depth = 0);
  Var here(Payload payload, std::vector<Var> args, Type type);
  void close(Payload end);
  Type alu_type(AluOp op, const std::vector<Var>& args) const;
  Type load_type(Var memory, int lanes) const;

  // Opens a scope whose first instruction is this one.
  Var open(Payload payload, std::vector<Var> args, Type type);

  std::vector<Scope> scopes_;
  uint64_t num_scopes_ = 0;
  std::vector<Type> types_;  // by id
  std::vector<int> depths_;
  std::unordered_map<std::string, Var> numbering_;
};

}  // namespace rune::lower
