// Builds a kernel with nested loops. Places each pure instruction in the outermost scope in which
// its operands exist, and reuses its result while that scope is open.
#pragma once

#include <string>
#include <unordered_map>

#include "lower/builder.h"

namespace rune::lower {

class ScopedBuilder : public InstrBuilder {
 public:
  ScopedBuilder() : scopes_(1) {}

  // Opens a loop and returns its index. The instructions of the loop come after all that have been
  // emitted into the enclosing scope. Loads are not hoisted out of a loop that may have no
  // iterations, because their elements may not exist.
  Var open_range(Var bound, bool may_be_empty = false);
  // Opens a loop that the target's compiler should unroll.
  Var open_unroll(int64_t iterations, DType index);
  void close_range() { close(EndRange{}); }
  void open_if(Var condition);
  void close_if() { close(EndIf{}); }
  // The number of open scopes around the innermost; 0 in the kernel's body.
  int depth() const { return static_cast<int>(scopes_.size()) - 1; }
  // The depth of the scope that holds the value.
  int depth_of(Var v) const { return depths_[v.id]; }
  // Identifies an opened scope. No scope that is opened later has the same name.
  struct ScopeName {
    int depth = 0;
    uint64_t id = 0;
  };
  ScopeName scope_at(int depth) const { return {depth, scopes_[depth].id}; }
  ScopeName scope() const { return scope_at(depth()); }
  bool is_open(const ScopeName& scope) const {
    return scope.depth <= depth() && scopes_[scope.depth].id == scope.id;
  }

  // Instructions without effects are hoisted, and emitted once while their scope is open. Memory is
  // defined in the kernel's body. All other instructions, and those of the functions named `_here`,
  // are emitted in the innermost scope.
  Var constant(Scalar value, int lanes = 1) { return splat(InstrBuilder::constant(value), lanes); }
  // Loads from memory that the kernel does not write in scopes at `least_depth` or deeper. The load
  // stays inside the innermost If, and the innermost Range that may be empty.
  Var load(Var memory, Var index, int lanes, Var valid, int least_depth = 0);
  Var load_here(Var memory, Var index, int lanes, Var valid);
  Var alu_here(AluOp op, std::vector<Var> args);
  Var shuffle_here(Var x, Ints indices);

  Type type(Var v) const override { return types_[v.id]; }

  // All scopes must be closed.
  Kernel finish(std::string name, int64_t grid, int64_t local);

 private:
  struct Pending {
    uint32_t id;
    Instr instr;
  };
  struct Scope {
    std::vector<Pending> instrs;
    std::vector<std::string> numbered;  // keys to forget when the scope closes
    std::optional<Pending> opener;      // the Range, Unroll or If; hoisted instructions precede it
    int fence = 0;                      // loads are not hoisted above this depth
    uint64_t id = 0;
  };

  Var emit(int depth, Payload payload, std::vector<Var> args, Type type);
  Var place(Payload payload, std::vector<Var> args, Type type) override;
  // Emits what f() makes in the innermost scope.
  template <class F>
  Var here(F f);
  void close(Payload end);

  // Opens a scope whose first instruction is this one.
  Var open(Payload payload, std::vector<Var> args, Type type);

  std::vector<Scope> scopes_;
  uint64_t num_scopes_ = 0;
  bool stays_here_ = false;  // whether the next instruction stays in the innermost scope
  int least_depth_ = 0;      // of the next instruction, if it is hoisted
  std::vector<Type> types_;  // by id
  std::vector<int> depths_;
  std::unordered_map<std::string, Var> numbering_;
};

}  // namespace rune::lower
