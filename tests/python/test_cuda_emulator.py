"""CUDA text on the host: what the fake driver of tests/cuda_fake computes, refuses and detects when
it emulates launches. That rendered kernels compute what NumPy does is tested by all tests that run
on a device (RUNE_TEST_DEVICE=cuda, docs/cuda.md).
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

FAKE = Path(os.environ.get("RUNE_OPT", "")).parent / "cuda_fake.so"


class CudaError(Exception):
    """What NVRTC would refuse, or what a kernel did wrong."""


@functools.cache
def library() -> ctypes.CDLL:
    if not FAKE.exists():
        pytest.skip("the build has no tests (cuda_fake.so is beside RUNE_OPT)")
    if not any(shutil.which(f"clang++-{version}") for version in (19, 18, 17)):
        pytest.skip("no clang++ 17 or later on this machine to execute CUDA text with")
    fake = ctypes.CDLL(str(FAKE))
    fake.rune_fake_misuse.restype = ctypes.c_char_p
    assert fake.rune_fake_set(b"emulate", 1) == 1
    context = ctypes.c_void_p()
    fake.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    fake.cuCtxPushCurrent_v2(context)
    return fake


def run(text: str, out: np.ndarray, threads: int, blocks: int = 1, number: int = 0) -> np.ndarray:
    """What a kernel `k(T* out, rune_vars<1> vars)` makes of the array."""
    fake, program = library(), ctypes.c_void_p()
    fake.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"k.cu", 0, None, None)
    if fake.nvrtcCompileProgram(program, 0, None):
        size = ctypes.c_size_t()
        fake.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        fake.nvrtcGetProgramLog(program, log)
        raise CudaError(log.value.decode())
    size = ctypes.c_size_t()
    fake.nvrtcGetCUBINSize(program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    fake.nvrtcGetCUBIN(program, code)
    module, kernel, memory = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    assert fake.cuModuleLoadData(ctypes.byref(module), code) == 0
    assert fake.cuModuleGetFunction(ctypes.byref(kernel), module, b"k") == 0
    fake.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(out.nbytes))
    bytes_of_out = ctypes.c_size_t(out.nbytes)
    fake.cuMemcpyHtoDAsync_v2(memory, out.ctypes.data_as(ctypes.c_void_p), bytes_of_out, None)
    vars_ = (ctypes.c_int64 * 1)(number)
    parameters = (ctypes.c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(vars_))
    failed = fake.cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, None, parameters, None)
    if failed:
        fake.rune_fake_set(b"error", 0)
        message = ctypes.c_char_p()
        fake.cuGetErrorString(failed, ctypes.byref(message))
        raise CudaError((message.value or b"").decode())
    result = np.empty_like(out)
    fake.cuMemcpyDtoHAsync_v2(result.ctypes.data_as(ctypes.c_void_p), memory, bytes_of_out, None)
    assert fake.rune_fake_misuse() == b""
    return result


def kernel(body: str, outside: str = "") -> str:
    return (
        "template <int N>\nstruct rune_vars { long long v[N]; };\n"
        f'{outside}\nextern "C" __global__ void __launch_bounds__(256)\n'
        f"k(float* __restrict__ out, const rune_vars<1> vars) {{\n{body}\n}}\n"
    )


def test_blocks_shared_memory_and_variables() -> None:
    body = """
  __shared__ __align__(16) float s[64];
  s[threadIdx.x] = out[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x] + (float)vars.v[0];
"""
    x = np.arange(128, dtype=np.float32)
    got = run(kernel(body), x, threads=64, blocks=2, number=1000)
    np.testing.assert_array_equal(got, x.reshape(2, 64)[:, ::-1].reshape(-1) + 1000)


def test_warps() -> None:
    body = """
  const unsigned i = threadIdx.x;
  const float neighbour = __shfl_xor_sync(0xffffffffu, out[i], 1);
  const float third = __shfl_sync(0xffffffffu, out[i], 3);
  const int any = __any_sync(0xffffffffu, i == 40), all = __all_sync(0xffffffffu, i < 40);
  out[i] = neighbour + 100 * third + 10000 * any + 100000 * all;
"""
    x = np.arange(64, dtype=np.float32)
    want = (np.arange(64) ^ 1) + 100 * (np.arange(64) // 32 * 32 + 3)
    want += np.where(np.arange(64) < 32, 100000, 10000)
    np.testing.assert_array_equal(run(kernel(body), x, threads=64), want.astype(np.float32))


def test_conversions_and_atomic_operations() -> None:
    body = """
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(out[1 + threadIdx.x]));
  float back;
  asm("cvt.f32.f16 %0, %1;" : "=f"(back) : "h"(bits));
  out[1 + threadIdx.x] = back;
  atomicAdd(&out[0], 1.0f);
"""
    x = np.random.default_rng(0).random(33, np.float32)
    got = run(kernel(body), x, threads=32)
    np.testing.assert_array_equal(got[1:], x[1:].astype(np.float16).astype(np.float32))
    assert got[0] == x[0] + np.float32(32)


def test_products_are_not_fused_and_denormals_stay() -> None:
    x = np.array([1 + 2**-12, 1e-40], np.float32)
    got = run(kernel("out[0] = out[0] * out[0] - 1.0f; out[1] = out[1] * 0.5f;"), x, threads=1)
    np.testing.assert_array_equal(got, [x[0] * x[0] - np.float32(1), x[1] * np.float32(0.5)])


REFUSED_TEXT = {
    "unknown function": ("out[0] = no_such_function(out[0]);", "no_such_function"),
    "unknown instruction": ('asm("ex2.approx.f32 %0, %0;" : "+f"(out[0]));', "ex2_approx_f32"),
    "several instructions": ('asm("a.b %0; c.d %0;" : "+f"(out[0]));', "not one instruction"),
    "syntax": ("out[0] = ;", "kernel.cu:6:10: error"),
}


@pytest.mark.parametrize("case", REFUSED_TEXT)
def test_refused_text(case: str) -> None:
    body, message = REFUSED_TEXT[case]
    with pytest.raises(CudaError, match=message):
        run(kernel(body), np.zeros(64, np.float32), threads=64)


_SHARED = "__shared__ __align__(16) float s[64];\n"
REFUSED_RUNS = {
    "behind a buffer": ("out[64 + threadIdx.x] = 0;", "writes 4 bytes at byte 256 of buffer 0"),
    "before a buffer": (
        "out[threadIdx.x] = out[(int)threadIdx.x - 1];",
        "reads 4 bytes at byte -4",
    ),
    "race of blocks": ("out[threadIdx.x] = blockIdx.x;", r"data race"),
    "no barrier": (
        _SHARED + "s[threadIdx.x] = 1; out[threadIdx.x] = s[threadIdx.x ^ 1];",
        "which nothing has written|data race",
    ),
    "behind shared memory": (_SHARED + "s[threadIdx.x + 1] = 1;", "variable s.*out of bounds"),
    "too much shared memory": (
        "__shared__ float s[12289]; s[threadIdx.x] = 1; out[0] = s[threadIdx.x];",
        "49156 bytes of threadgroup memory",
    ),
    "barrier for some": ("if (threadIdx.x < 5) __syncthreads();", "reached by 5 of 64 threads"),
    "shuffle for some": (
        "if (threadIdx.x % 32 < 7) out[0] = __shfl_sync(0xffffffffu, 1.0f, 0);",
        "reached by 7 of 32 threads",
    ),
}


@pytest.mark.parametrize("case", REFUSED_RUNS)
def test_refused_runs(case: str) -> None:
    body, message = REFUSED_RUNS[case]
    with pytest.raises(CudaError, match=message):
        run(kernel(body), np.zeros(64, np.float32), threads=64, blocks=2)
