// Renders kernels in the Metal Shading Language, version 3.1 or later.
//
// A kernel becomes a kernel function `<name>(b0 [[buffer(0)]], ..., vars [[buffer(n)]], gid, lid)`:
// its n globals by index, then, if it has symbolic variables, all of them as one array `constant
// long*` (int64, by first definition). Where these are more than 31, globals from number 29 on are
// given as their 64-bit addresses in one array `constant <name>_buffers* more [[buffer(29)]]`, in
// order, and the variables at index 30. It is to be dispatched with exactly `grid` threadgroups of
// `local` threads.
//
// Compile with the safe math mode (never fast math): results follow the float contract then, but
// for denormal float32, which Apple's GPUs flush to zero.
//
// The text keeps to a small part of the language: scalars, packed vectors `packed_T2` and
// `packed_T4` that are loaded from and stored to device memory and indexed by [], if, for, plain
// functions, `as_type`, `precise::` and common math functions, `simd_sum` and its like,
// `simd_shuffle_xor`, one threadgroup barrier or SIMD-group operation a line;
// kernels have no return.
#pragma once

#include <string>

#include "render/c_like.h"

namespace rune::render {

const Dialect& msl_dialect();

// Throws UserError(DType) for float64, UserError(Unsupported) for more than 541 buffers or 32 KiB
// of threadgroup memory; see c_like.h.
inline std::string render_msl(const lower::Kernel& kernel) {
  return render_c_like(kernel, msl_dialect());
}

}  // namespace rune::render
