// Renders kernels as text in a C-like language, which a Dialect describes.
//
// A value of n lanes becomes n scalar variables, because threads of a grid compute scalars. Vectors
// appear only in accesses to memory.
//
// Callers guarantee that the kernel is valid (lower/verify.h), that operations without a spelling
// in the dialect have been decomposed (otherwise InternalError), that integer Div and Fmod have no
// zero divisor and no INT_MIN / -1, and that shifts stay within the width.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lower/instr.h"
#include "render/dialect.h"

namespace rune::render {

// Returns the preamble, the helpers in use, and one function for each kernel, named
// identifier(kernel.name), with a comment that gives its launch. The parameters are the globals in
// the order of their index. If there are symbolic variables, one more parameter holds them all
// (int64, in the order of their first definitions).
//
// Throws UserError(DType) for a dtype that the language lacks, and UserError(Unsupported) for more
// parameters or workgroup memory than the dialect allows and for Custom with lanes. Throws
// InternalError if two kernels have the same name.
std::string render_c_like_library(std::span<const lower::Kernel> kernels, const Dialect& dialect);
inline std::string render_c_like(const lower::Kernel& kernel, const Dialect& dialect) {
  return render_c_like_library({&kernel, 1}, dialect);
}

namespace c_like {

// Returns `pattern` with each `$c` replaced by the text that `words` pairs with c.
std::string expand(std::string_view pattern,
                   std::initializer_list<std::pair<char, std::string_view>> words);

// The constant as an expression. It is written as bits if decimal digits are not exact.
std::string literal(const Dialect& dialect, const Scalar& value);

// Expressions on operands of one lane. `fits` means that the exact result of an integer operation
// is known to fit its dtype.
std::string alu(const Dialect& dialect, AluOp op, DType dtype,
                std::span<const std::string> operands, bool fits);
std::string cast(const Dialect& dialect, const std::string& operand, DType from, DType to);
std::string bitcast(const Dialect& dialect, const std::string& operand, DType from, DType to);

// For each instruction, whether it is an integer operation whose exact result fits its dtype, as in
// index arithmetic. Other integer operations may wrap, for which C needs unsigned types.
std::vector<bool> exact_integers(const lower::Kernel& kernel);

}  // namespace c_like

}  // namespace rune::render
