// Renders kernels as text of a C-like language that a Dialect describes.
//
// Every value is a scalar variable: one of n lanes is n variables, since threads of a grid compute
// scalars; vectors appear in accesses to global memory only, as packed types of element alignment.
//
// What callers guarantee: the kernel is valid (lower/verify.h), and operations without a spelling
// in the dialect are decomposed (InternalError otherwise). Integer Div and Fmod see no zero divisor
// and no INT_MIN / -1, shifts stay within the width.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lower/instr.h"
#include "render/dialect.h"

namespace rune::render {

// Preamble, the helpers in use, and one function a kernel, named identifier(kernel.name), with a
// comment that gives its launch. Parameters are the globals by index, then, if there are symbolic
// variables, one with all of them (int64, by first definition).
//
// Throws UserError(DType) for a dtype that the language lacks; UserError(Unsupported) for more
// parameters or workgroup memory than the dialect allows, and for Custom with lanes; InternalError
// if two kernels have one name.
std::string render_c_like_library(std::span<const lower::Kernel> kernels, const Dialect& dialect);
inline std::string render_c_like(const lower::Kernel& kernel, const Dialect& dialect) {
  return render_c_like_library({&kernel, 1}, dialect);
}

namespace c_like {

// `pattern` with `$` and the first of each pair replaced by the second.
std::string expand(std::string_view pattern,
                   std::initializer_list<std::pair<char, std::string_view>> words);

// The constant as an expression, by its bits where decimal digits would not give it exactly.
std::string literal(const Dialect& dialect, const Scalar& value);

// Expressions on operands of one lane. `fits`: the exact result of an integer operation is known to
// fit its dtype.
std::string alu(const Dialect& dialect, AluOp op, DType dtype,
                std::span<const std::string> operands, bool fits);
std::string cast(const Dialect& dialect, const std::string& operand, DType from, DType to);
std::string bitcast(const Dialect& dialect, const std::string& operand, DType from, DType to);

// By instruction: whether it is an integer operation whose exact result fits its dtype, as index
// arithmetic does. Others wrap, for which C needs unsigned types.
std::vector<bool> exact_integers(const lower::Kernel& kernel);

}  // namespace c_like

}  // namespace rune::render
