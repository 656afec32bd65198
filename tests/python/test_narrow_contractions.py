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


# Of products that do not pack their operands on cores.
SMALL = [(1, 300, 200), (200, 300, 1), (8, 512, 99), (512, 300, 8), (100, 16, 130), (9, 8, 7)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("device", ["cpu", "metal", "cuda"])
@pytest.mark.parametrize(("m", "k", "n"), SMALL)
def test_one_kernel_reads_small_ones(device: str, dtype: str, m: int, k: int, n: int) -> None:
    a, b = np.ones((m, k), dtype), np.ones((k, n), dtype)
    (kernel,) = rune_jit.jit(widened, device=device).lower(a, b).kernels
    assert arguments_of(kernel) == {DTYPES[dtype]}
    transposed = rune_jit.jit(lambda a, b: widened(a, b.T), device=device)
    (kernel,) = transposed.lower(a, np.ones((n, k), dtype)).kernels
    assert arguments_of(kernel) == {DTYPES[dtype]}


def test_operands_that_are_read_often_are_widened_once() -> None:
    """On cores: a small operand is kept in the kernel's own memory, not widened for each use."""
    schedule = rune_jit.jit(widened, device="cpu").lower(
        np.ones((8, 512), "float16"), np.ones((512, 640), "float16")
    )
    assert re.search(r"scratch %2 shape=\[\d,512\]", str(schedule.schedule))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("device", ["cpu", "metal", "cuda"])
def test_computed_operands_are_stored_narrow(device: str, dtype: str) -> None:
    x = np.ones((512, 512), dtype)
    function = rune_jit.jit(lambda a, b: widened(np.maximum(widened(a, b), 0), b), device=device)
    kernels = function.lower(x, x).kernels
    assert [arguments_of(kernel) for kernel in kernels] == [{DTYPES[dtype]}] * 2


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("m", "k", "n"), [(64, 64, 64), (100, 37, 130), (70, 300, 65), (8, 50, 99), *SMALL]
)
def test_results_are_those_of_float32(dtype: str, m: int, k: int, n: int) -> None:
    random = np.random.default_rng(m)
    a = random.integers(-8, 8, (m, k)).astype(np.float32).astype(dtype)
    b = random.integers(-8, 8, (k, n)).astype(np.float32).astype(dtype)
    expected = widened(a, b)  # sums of small integers are exact
    np.testing.assert_array_equal(rune_jit.jit(widened, fallback="error")(a, b), expected)
    transposed = rune_jit.jit(lambda a, b: widened(a, b.T), fallback="error")
    np.testing.assert_array_equal(transposed(a, np.ascontiguousarray(b.T)), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_several_sums_and_symbolic_sizes(dtype: str) -> None:
    random = np.random.default_rng(1)

    def numbers(*shape: int) -> Any:
        return random.integers(-4, 4, shape).astype(np.float32).astype(dtype)

    def tensors(a: Any, b: Any) -> Any:
        return np.einsum("bikl,bljk->bij", a.astype(np.float32), b.astype(np.float32))

    a, b = numbers(3, 20, 5, 40), numbers(3, 40, 9, 5)
    np.testing.assert_array_equal(rune_jit.jit(tensors, fallback="error")(a, b), tensors(a, b))
    function = rune_jit.jit(widened, fallback="error", dynamic={"a": {0: "n"}})
    for rows in (5, 30, 31, 17):
        a, b = numbers(rows, 60), numbers(60, 50)
        np.testing.assert_array_equal(function(a, b), widened(a, b))
