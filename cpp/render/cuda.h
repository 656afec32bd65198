// Renders kernels in CUDA C++ that needs no header of the toolkit, for NVRTC.
//
// A kernel becomes `extern "C" __global__ void <name>(b0, ..., vars)`: its globals by index, then,
// if it has symbolic variables, all of them in one struct of int64 by first definition, passed by
// value. It is to be launched with exactly `grid` blocks of `local` threads.
//
// Compile with --fmad=false and without fast math (ftz, prec-div and prec-sqrt at their defaults):
// results follow the float contract then. float16 and bfloat16 are held as their bits.
#pragma once

#include "render/c_like.h"

namespace rune::render {

const Dialect& cuda_dialect();

}  // namespace rune::render
