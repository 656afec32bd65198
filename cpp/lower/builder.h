// Appends instructions to a kernel and infers their types.
#pragma once

#include <initializer_list>

#include "lower/instr.h"

namespace rune::lower {

class Builder {
 public:
  Builder() = default;
  explicit Builder(Kernel kernel) : kernel_(std::move(kernel)) {}

  // Appends an instruction as it is.
  Var add(Payload payload, std::vector<Var> args, Type type);

  // The helpers infer the type. Throw InternalError if operands do not fit. A cast or splat that
  // would change nothing gives its operand.
  Var define_global(DType dtype, int64_t index, int64_t size, bool writable);
  Var local(DType dtype, int64_t size);
  Var acc(Var initial);
  // The value in every lane.
  Var constant(Scalar value, int lanes = 1);
  Var vconst(std::vector<Scalar> values);
  Var special(SpecialKind kind, int dim, int64_t bound, DType dtype);
  Var range(Var bound);
  void end_range();
  void if_(Var condition);
  void end_if();
  void barrier();
  Var load(Var memory, Var index, int lanes = 1, Var valid = {});
  void store(Var memory, Var index, Var value, Var valid = {}, bool nontemporal = false,
             std::optional<AluOp> atomic = std::nullopt);
  void prefetch(Var memory, Var index);
  Var alu(AluOp op, std::vector<Var> args);
  Var cast(Var x, DType dtype);
  Var bitcast(Var x, DType dtype);
  // A scalar in every lane; x itself if it has these lanes.
  Var splat(Var x, int lanes);
  Var gep(Var x, Ints indices);
  Var vectorize(std::vector<Var> scalars);
  void assign(Var acc, Var value);
  Var buffer(DType dtype, int64_t size);
  Var define_var(SymVar var, DType dtype = DType::Int64);
  Var unroll(int64_t iterations, DType dtype = DType::Int64);
  // a, b and c have m*k, k*n and m*n lanes; a and b one dtype, the result that of c.
  Var wmma(Wmma shape, Var a, Var b, Var c);
  Var simd_reduce(AluOp op, int64_t width, Var x);
  Var ptrcat(std::vector<Var> memories);
  Var custom(std::string op_name, std::string text, std::vector<Var> args, Type type,
             bool inlined = true);
  void block(int64_t id, bool start);

  Type type(Var v) const { return kernel_.body[v.id].type; }
  const Kernel& kernel() const { return kernel_; }
  Kernel take() { return std::move(kernel_); }

 private:
  std::optional<Type> mask_type(Var valid) const;

  Kernel kernel_;
};

}  // namespace rune::lower
