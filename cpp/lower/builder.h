// Makes instructions and infers their types.
#pragma once

#include "lower/instr.h"

namespace rune::lower {

// Makes instructions and infers their types. The derived class decides where they go. The verifier
// checks operands. A cast or splat that would change nothing returns its operand.
class InstrBuilder {
 public:
  virtual ~InstrBuilder() = default;
  // Returned by value, so that it outlives the next instruction.
  virtual Type type(Var v) const = 0;

  Var define_global(DType dtype, int64_t index, int64_t size, bool writable);
  Var local(DType dtype, int64_t size);
  Var private_memory(DType dtype, int64_t size);
  // A constant with the value in every lane.
  Var constant(Scalar value, int lanes = 1);
  Var vconst(std::vector<Scalar> values);
  Var define_var(SymVar var, DType dtype = DType::Int64);
  Var special(SpecialKind kind, int64_t bound, DType dtype);
  Var acc(Var initial);
  void assign(Var acc, Var value);
  void barrier();
  Var load(Var memory, Var index, int lanes = 1, Var valid = {});
  void store(Var memory, Var index, Var value, Var valid = {}, bool nontemporal = false,
             std::optional<AluOp> atomic = std::nullopt);
  void prefetch(Var memory, Var index);
  Var alu(AluOp op, std::vector<Var> args);
  Var cast(Var x, DType dtype);
  Var bitcast(Var x, DType dtype);
  // A vector with the scalar in every lane; x itself if it has these lanes.
  Var splat(Var x, int lanes);
  // Lanes of vectors of one type, numbered from the first vector's to the last one's.
  Var shuffle(std::vector<Var> xs, Ints indices);
  Var shuffle(Var x, Ints indices) { return shuffle(std::vector{x}, std::move(indices)); }
  // a and b have one dtype. The result has the dtype of c.
  Var wmma(Wmma shape, Var a, Var b, Var c);
  Var simd_reduce(AluOp op, int64_t width, Var x);
  Var simd_shuffle(int64_t width, Var x, Var lane);
  Var custom(Custom custom, std::vector<Var> args, Type type);

 protected:
  virtual Var place(Payload payload, std::vector<Var> args, Type type) = 0;
};

// Appends instructions to a kernel.
class Builder : public InstrBuilder {
 public:
  Builder() = default;
  explicit Builder(Kernel kernel) : kernel_(std::move(kernel)) {}

  // Appends an instruction unchanged.
  Var add(Payload payload, std::vector<Var> args, Type type);
  Var range(Var bound);
  void end_range() { add(EndRange{}, {}, {}); }
  // Ends the innermost loop if the condition is true.
  void break_if(Var condition) { add(Break{}, {condition}, {}); }
  void if_(Var condition);
  void end_if() { add(EndIf{}, {}, {}); }

  Type type(Var v) const override { return kernel_.body[v.id].type; }
  const Kernel& kernel() const { return kernel_; }
  Kernel take() { return std::move(kernel_); }

 private:
  Var place(Payload payload, std::vector<Var> args, Type type) override {
    return add(std::move(payload), std::move(args), type);
  }

  Kernel kernel_;
};

}  // namespace rune::lower
