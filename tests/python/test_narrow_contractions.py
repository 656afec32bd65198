"""Contractions of float16 and bfloat16 read them narrow: no kernel writes them out as float32."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import rune_jit

DTYPES = {"float16": "f16", "bfloat16": "bf16"}


def widened(a: Any, b: Any) -> Any:
    """The products' sums in float32, rounded once."""
    return (a.astype(np.float32) @ b.astype(np.float32)).astype(a.dtype)


def arguments_of(kernel: Any) -> set[str]:
    """The dtypes of its arrays."""
    return set(re.findall(r"define_global .* : ptr (\w+)", str(kernel)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("device", ["cpu", "metal", "cuda"])
@pytest.mark.parametrize("size", [64, 256, 1024])
def test_one_kernel_reads_them(device: str, dtype: str, size: int) -> None:
    x = np.ones((size, size), dtype)
    for function in (widened, lambda a, b: widened(a, b.T)):
        (kernel,) = rune_jit.jit(function, device=device).lower(x, x).kernels
        assert arguments_of(kernel) == {DTYPES[dtype]}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("device", ["cpu", "metal", "cuda"])
def test_computed_operands_are_stored_narrow(device: str, dtype: str) -> None:
    x = np.ones((512, 512), dtype)
    function = rune_jit.jit(lambda a, b: widened(np.maximum(widened(a, b), 0), b), device=device)
    kernels = function.lower(x, x).kernels
    assert [arguments_of(kernel) for kernel in kernels] == [{DTYPES[dtype]}] * 2


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("m", "k", "n"), [(64, 64, 64), (100, 37, 130), (70, 300, 65), (8, 50, 99)]
)
def test_results_are_those_of_float32(dtype: str, m: int, k: int, n: int) -> None:
    random = np.random.default_rng(m)
    a = random.integers(-8, 8, (m, k)).astype(np.float32).astype(dtype)
    b = random.integers(-8, 8, (k, n)).astype(np.float32).astype(dtype)
    expected = widened(a, b)  # sums of small integers are exact
    np.testing.assert_array_equal(rune_jit.jit(widened, fallback="error")(a, b), expected)
    transposed = rune_jit.jit(lambda a, b: widened(a, b.T), fallback="error")
    np.testing.assert_array_equal(transposed(a, np.ascontiguousarray(b.T)), expected)
