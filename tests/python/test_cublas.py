"""Products by cuBLAS instead of kernels: which programs, and with what matrices.

On every machine, on the fake driver of tests/cuda_fake, whose cuBLAS computes products and whose
launches compute nothing. With a card and cuBLAS, on these.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from test_cuda_device import on_cuda
from test_cuda_sharing import FAKE, run_on_fake

import rune_jit

_PROGRAM = """
import ctypes, os, ml_dtypes, numpy as np, rune_jit
fake = ctypes.CDLL(os.environ["RUNE_JIT_CUDA_DRIVER"])
fake.rune_fake_misuse.restype = ctypes.c_char_p
fake.rune_fake_get.restype = ctypes.c_long
rng = np.random.default_rng(0)

def numbers(shape, dtype="float32"):
    return rng.integers(-2, 3, shape).astype(dtype)

def count(name):
    return fake.rune_fake_get(name)

def counts(function, *arrays):
    before = count(b"cublasGemm"), count(b"cuLaunchKernel")
    result = rune_jit.jit(function, device="cuda", fallback="error")(*arrays)
    return result, (count(b"cublasGemm") - before[0], count(b"cuLaunchKernel") - before[1])
"""

# The program computes one product, and nothing else.
_PRODUCTS = (
    _PROGRAM
    + """
def check(function, *arrays):
    result, counted = counts(function, *arrays)
    expected = function(*(a.astype("float64") for a in arrays)).astype(arrays[0].dtype)
    np.testing.assert_array_equal(np.asarray(result), expected)
    assert counted == (1, 0), (counted, [a.shape for a in arrays])

dtype = os.environ["DTYPE"]
m, n, k = 240, 320, 400
a, b = numbers((m, k), dtype), numbers((k, n), dtype)
check(lambda a, b: a @ b, a, b)
check(lambda a, b: a.T @ b, a.T.copy(), b)
check(lambda a, b: a @ b.T, a, b.T.copy())
check(lambda a, b: a.T @ b.T, a.T.copy(), b.T.copy())
check(lambda a, b: a[:, 16:] @ b[16:, :304], a, b)
check(lambda a: a @ a.T, a)
check(lambda a, b: np.einsum("xyk,kn->xyn", a, b), a.reshape(12, 20, k), b)
check(lambda a, b: np.tensordot(a, b, 2), a.reshape(m, 20, 20), b.reshape(20, 20, n))
check(lambda a, b: a @ b, numbers((3, 200, k), dtype), numbers((3, k, n), dtype))
check(lambda a, b: a @ b, numbers((3, 200, k), dtype), numbers((k, n), dtype))
c, d = numbers((240, 3, k), dtype), numbers((200, 3, k), dtype)
check(lambda c, d: np.einsum("xgk,ygk->gxy", c, d), c, d)
if dtype == "float16":
    result, counted = counts(lambda a, b: a.astype("float32") @ b.astype("float32"), a, b)
    assert counted == (1, 0) and result.dtype == np.float32
    np.testing.assert_array_equal(np.asarray(result), a.astype("float32") @ b.astype("float32"))
assert fake.rune_fake_misuse() == b"", fake.rune_fake_misuse()
print("done")
"""
)

# What is stored before and after a product of float16 costs less than its kernel would. Products of
# float32 are not worth it: their kernels compute the neighbours, too.
_NEIGHBOURS = (
    _PROGRAM
    + """
def expect(counted, function, *arrays):
    assert counts(function, *arrays)[1] == counted, counts(function, *arrays)[1]

a, b, c = numbers((400, 400), "float16"), numbers((400, 400), "float16"), numbers(400, "float16")
expect((1, 1), lambda a, b, c: np.maximum(a @ b + c, 0), a, b, c)
expect((1, 1), lambda a, b: np.maximum(a, 0) @ b, a, b)
expect((2, 1), lambda a, b, c: np.maximum(a @ b + c, 0) @ b, a, b, c)
expect((1, 1), lambda a, b: (a @ b).sum(1), a, b)
expect((0, 1), lambda a, b: a @ b, a[:64, :64].copy(), b[:64, :64].copy())
expect((0, 1), lambda a, b: a @ b, a[:4].copy(), b)
a, b, c = numbers((300, 300)), numbers((300, 300)), numbers(300)
expect((1, 0), lambda a, b: a @ b, a, b)
expect((0, 1), lambda a, b, c: np.maximum(a @ b + c, 0), a, b, c)
expect((0, 1), lambda a, b: a[::-1] @ b, a, b)
expect((0, 1), lambda a, b: a @ b, a.astype("int32"), b.astype("int32"))
print("done")
"""
)


def _run(program: str, **environment: str) -> None:
    run_on_fake(program, **{"RUNE_JIT_CUBLAS": str(FAKE), **environment})


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_products(dtype: str) -> None:
    _run(_PRODUCTS, DTYPE=dtype)


def test_neighbours() -> None:
    _run(_NEIGHBOURS)


@pytest.mark.parametrize("cublas", ["off", "/nowhere/libcublas.so.13"])
def test_without_cublas(cublas: str) -> None:
    program = """
a = numbers((400, 400))
assert counts(lambda a: a @ a, a)[1] == (0, 1)
print("done")
"""
    _run(_PROGRAM + program, RUNE_JIT_CUBLAS=cublas)


@on_cuda
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_on_the_card(dtype: str) -> None:
    numbers = np.random.default_rng(0)
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    a, b = (numbers.standard_normal((768, 768)).astype(kind) for _ in range(2))
    expected = a.astype(np.float64) @ b.astype(np.float64)
    scale = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    for function, x, y in (
        (lambda a, b: a @ b, a, b),
        (lambda a, b: a.T @ b.T, a.T.copy(), b.T.copy()),
    ):
        got = np.asarray(rune_jit.jit(function, device="cuda", fallback="error")(x, y))
        error = np.abs(got.astype(np.float64) - expected)
        rounded = float(ml_dtypes.finfo(got.dtype).eps)
        summed = float(np.finfo(np.float64 if dtype == "float64" else np.float32).eps)
        assert np.all(error <= rounded * np.abs(expected) + 32 * summed * scale)
