// Renders kernels in CUDA C++ that needs no header of the toolkit, for NVRTC.
//
// A kernel becomes `extern "C" __global__ void <name>(b0, ..., vars)`: its globals by index, then,
// if it has symbolic variables, all of them in one struct of int64 by first definition, passed by
// value. It is to be launched with exactly `grid` blocks of `local` threads.
//
// Compile with --fmad=false and without fast math (ftz, prec-div and prec-sqrt at their defaults):
// results follow the float contract then. float16 and bfloat16 are held as their bits.
#pragma once

#include <span>
#include <string>

#include "lower/instr.h"
#include "render/dialect.h"
#include "types/capabilities.h"

namespace rune::render {

const Dialect& cuda_dialect();

// An NVIDIA GPU in general, for rendering on machines that have none. Native are the functions that
// the CUDA math library computes within 2 ulp.
Capabilities cuda_capabilities();

// The name of a kernel's function in the rendered text.
std::string cuda_function_name(const std::string& kernel_name);

// See c_like.h for what they throw.
std::string render_cuda(const lower::Kernel& kernel);
std::string render_cuda_library(std::span<const lower::Kernel> kernels);

}  // namespace rune::render
