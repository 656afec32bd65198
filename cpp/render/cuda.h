// Renders kernels in CUDA C++ that needs no header of the toolkit, for NVRTC.
//
// A kernel becomes `extern "C" __global__ void <name>(b0, ..., vars)`. b0 and so on are its globals
// in the order of their index. `vars` is passed by value if the kernel has symbolic variables: a
// struct of int64, in the order of their first definitions. Launch exactly `grid` blocks of `local`
// threads.
//
// Compile with --fmad=false and without fast math (ftz, prec-div and prec-sqrt at their defaults),
// because only then the results follow the float contract. float16 and bfloat16 are held as bits.
#pragma once

#include "render/c_like.h"

namespace rune::render {

const Dialect& cuda_dialect();

}  // namespace rune::render
