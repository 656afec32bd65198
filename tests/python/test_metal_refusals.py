"""What the emulator of tests/metal_emulator refuses or detects, as Metal or its checks would."""

from __future__ import annotations

import numpy as np
import pytest
from msl_emulator import MetalError, Msl, run_msl

# --- What the emulator refuses --------------------------------------------------------------------


def kernel(body: str, parameters: str = "", outside: str = "") -> str:
    return (
        "#include <metal_stdlib>\nusing namespace metal;\n"
        f"{outside}\nkernel void k(device float* out [[buffer(0)]], {parameters}\n"
        "    uint3 gid [[threadgroup_position_in_grid]],\n"
        f"    uint3 lid [[thread_position_in_threadgroup]]) {{\n{body}\n}}\n"
    )


_BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"

REFUSED_TEXT = {
    "double": (kernel("double x = 1; out[0] = x;"), "poisoned"),
    "unknown function": (kernel("out[0] = erf(out[0]);"), "erf"),
    "ambiguous overload": (kernel("out[0] = max(out[0], 1);"), "ambiguous"),
    "unknown attribute": (kernel("", "uint n [[thread_count]],"), "unknown attribute"),
    "no attribute": (kernel("", "uint n,"), "has no attribute"),
    "two at one index": (kernel("", "device float* b [[buffer(0)]],"), "two parameters at buffer"),
    "index of buffer": (kernel("", "device float* b [[buffer(31)]],"), "not from 0 to 30"),
    "threadgroup outside": (
        kernel("", outside="threadgroup float m[2];"),
        "must be in a kernel",
    ),
    "recursion": (
        kernel("out[0] = f(2.0f);", outside="float f(float x) { return x > 1 ? f(x - 1) : x; }"),
        "function f is recursive",
    ),
    "recursion of two": (
        kernel(
            "out[0] = f(2.0f);",
            outside="float g(float x);\nfloat f(float x) { return g(x); } // f(x)\n"
            "float g(float x) { return x > 1 ? f(x - 1) : x; }",
        ),
        "function [fg] is recursive",
    ),
    "attribute of the kernel": (
        kernel("").replace("kernel void", "[[kernel, no_such_thing(3)]] void"),
        "unknown attribute",
    ),
    "more threads than there are": (
        kernel("").replace(
            "kernel void", "[[kernel, max_total_threads_per_threadgroup(2048)]] void"
        ),
        "max_total_threads_per_threadgroup",
    ),
    "write to const": (
        kernel("b[0] = 1.0f;", "device const float* b [[buffer(1)]],"),
        "read-only",
    ),
    "parameter by value": (kernel("", "float x [[buffer(1)]],"), "neither a pointer nor a"),
    "two kernels of one name": (
        kernel("") + kernel("").partition("metal;")[2],
        "redefinition of kernel k",
    ),
}


@pytest.mark.parametrize("case", REFUSED_TEXT)
def test_refused_text(case: str) -> None:
    source, message = REFUSED_TEXT[case]
    with pytest.raises(MetalError, match=message):
        Msl(source)


REFUSED_RUNS = {
    "write behind a buffer": ("out[64 + lid.x] = 0.0f;", r"writes 4 bytes at byte 256 of buffer 0"),
    "read before a buffer": ("out[lid.x] = out[(int)lid.x - 1];", r"reads 4 bytes at byte -4 of"),
    "vector over the end": (
        "*(device packed_float4*)(out + 61) = packed_float4(1, 2, 3, 4);",
        "writes 16 bytes at byte 244",
    ),
    "divergent barrier": (
        f"if (lid.x < 16) {{ {_BARRIER} }} out[lid.x] = 0;",
        "the barrier in line 7 is reached by 16 of 64 threads",
    ),
    "two barriers": (
        f"if (lid.x < 16) {{ {_BARRIER}\n}} else {{ {_BARRIER} }}",
        "the barrier in line 8 is reached by 48 of 64 threads",
    ),
    "divergent SIMD operation": (
        "if (lid.x % 2 == 0) { out[lid.x] = simd_sum(1.0f); }",
        "the SIMD-group operation in line 7 is reached by 16 of 32 threads",
    ),
    "missing barrier": (
        "threadgroup float m[64]; m[lid.x] = 1.0f; out[lid.x] = m[63 - lid.x];",
        "data race|which nothing has written",
    ),
    "barrier of other memory": (
        "threadgroup float m[64]; m[lid.x] = 1.0f; threadgroup_barrier(mem_flags::mem_device);"
        "out[lid.x] = m[63 - lid.x];",
        "data race",
    ),
    "two writers": ("out[lid.x / 2] = 1.0f;", "data race"),
    "memory not written": (
        f"threadgroup float m[64]; {_BARRIER} out[lid.x] = m[lid.x];",
        "which nothing has written",
    ),
    "behind a threadgroup variable": (
        "threadgroup float m[64]; threadgroup float n[64]; n[lid.x] = 0.0f; m[lid.x + 1] = 1.0f;",
        "writes 4 bytes at byte 256 of threadgroup variable m",
    ),
    "too much threadgroup memory": (
        "threadgroup float m[8193]; m[lid.x] = 1.0f; out[lid.x] = m[lid.x];",
        "32772|32784 bytes of threadgroup memory",
    ),
    "division by zero": ("out[lid.x] = (float)(7 / (int)lid.x);", "an integer division faults"),
    "wild pointer": ("*(device float*)(ulong)16 = 1.0f;", "out of bounds"),
}


@pytest.mark.parametrize("case", REFUSED_RUNS)
def test_refused_runs(case: str) -> None:
    body, message = REFUSED_RUNS[case]
    source = kernel(body)
    with pytest.raises(MetalError, match=message):
        run_msl(source, "k", [np.zeros(64, np.float32)], [1], [64])


def test_a_race_between_threadgroups() -> None:
    source = kernel("if (lid.x == 0) out[0] = (float)gid.x;")
    run_msl(source, "k", [np.zeros(1, np.float32)], [1], [32])
    with pytest.raises(MetalError, match="thread 0 of threadgroup 0 wrote"):
        run_msl(source, "k", [np.zeros(1, np.float32)], [2], [32])


def test_too_many_threads() -> None:
    source = kernel("out[lid.x] = 1.0f;")
    run_msl(source, "k", [np.zeros(1024, np.float32)], [1], [1024])
    with pytest.raises(MetalError, match="1025 threads per threadgroup"):
        run_msl(source, "k", [np.zeros(2048, np.float32)], [1], [1025])


def test_a_missing_buffer() -> None:
    source = kernel("out[lid.x] = b[lid.x];", "device const float* b [[buffer(2)]],")
    x = np.zeros(32, np.float32)
    with pytest.raises(MetalError, match="nothing is bound at buffer index 2"):
        run_msl(source, "k", [x], [1], [32])
    run_msl(source, "k", {0: x, 2: x}, [1], [32])


def test_a_failed_run_leaves_the_next_alone() -> None:
    x = np.zeros(64, np.float32)
    with pytest.raises(MetalError):
        run_msl(kernel("out[64 + lid.x] = 0.0f;"), "k", [x], [1], [64])
    run_msl(kernel("out[lid.x] = 1.0f;"), "k", [x], [1], [64])
    assert (x == 1).all()


def test_threads_and_lanes() -> None:
    body = """
      threadgroup float m[4];
      const uint group = simd;
      float total = simd_sum((float)lid.x);
      total += simd_shuffle_xor((float)lane, (ushort)1) * 0.0f;
      if (lane == 0) m[group] = total;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      float all = 0.0f;
      for (uint i = 0; i < 4; ++i) all += m[i];
      out[gid.x * size.x + lid.x] = all;"""
    source = kernel(
        body,
        "uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],"
        "uint3 size [[threads_per_threadgroup]],",
    )
    for reverse in (False, True):
        x = np.zeros(256, np.float32)
        run_msl(source, "k", [x], [2], [128], reverse)
        assert (x == 127 * 64).all()


def test_denormals_are_zero() -> None:
    x = np.full(32, 1e-38, np.float32)
    run_msl(kernel("out[lid.x] = out[lid.x] * 0.5f;"), "k", [x], [1], [32])
    assert (x == 0).all()
