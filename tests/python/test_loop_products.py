"""Products in loops of rows that the counter selects: one product for all iterations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import rune_jit

A, B = (24, 70), (70, 80)


def rows(a, b):
    out = np.zeros((len(a), b.shape[1]), a.dtype)
    for i in range(len(a)):
        out[i] = a[i] @ b
    return out


def columns(a, b):
    out = np.zeros((len(b.T), len(b.T)), a.dtype)
    for i in range(len(b.T)):
        out[:, i] = b.T @ b[:, i]
    return out


def lower_triangle(a, b):
    out = np.zeros((b.shape[1], b.shape[1]), a.dtype)
    for i in range(b.shape[1]):
        out[i:, i] = out[i, i:] = b[:, i] @ b[:, i:] + i
    return out


def growing(a, b):
    out = np.zeros((b.shape[1], b.shape[1]), a.dtype)
    for i in range(2, b.shape[1]):
        out[i, : i - 1] = b[:, i - 2] @ b[:, : i - 1]
    return out


def backwards(a, b):
    total = np.zeros(b.shape[1], a.dtype)
    for i in range(len(a) - 1, -1, -1):
        total = np.maximum(total, a[i] @ b)
    return total


def mirrored(a, b):
    total = np.zeros(b.shape[1], a.dtype)
    for i in range(len(a)):
        total = total * 2 + a[len(a) - 1 - i] @ b
    return total


def every_other(a, b):
    out = np.zeros((len(a), b.shape[1]), a.dtype)
    for i in range(0, len(a), 2):
        out[i] = a[i] @ b
    return out


def blocks(a, b):
    stacked = a.reshape(2, 12, 70)
    out = np.zeros((2, 12, b.shape[1]), a.dtype)
    for i in range(12):
        out[:, i] = stacked[:, i] @ b
    return out


def nested(a, b):
    out = np.zeros((2, 12, b.shape[1]), a.dtype)
    stacked = a.reshape(2, 12, 70)
    for k in range(2):
        for i in range(12):
            out[k, i] = stacked[k, i] @ b + out[k, i - 1]
    return out


def repeated(a, b):
    square = b[:, :70]
    for _ in range(3):
        following = np.zeros_like(a)
        for i in range(len(a)):
            following[i] = a[i] @ square
        a = following - a
    return a


def written(a, b):
    """Each iteration reads what earlier ones have written."""
    square = b[:, :70].copy()
    for i in range(1, len(square)):
        square[i] = square[i - 1] @ square - square[i]
    return square


FUNCTIONS = [rows, columns, lower_triangle, growing, backwards, mirrored, every_other, blocks]
FUNCTIONS += [nested, repeated, written]


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_products(function: Callable[..., np.ndarray], dtype: str) -> None:
    """Small integers as floats: sums are exact in whatever order."""
    rng = np.random.default_rng(0)
    values = [rng.integers(-4, 5, shape).astype(dtype) for shape in (A, B)]
    if function is written:
        values = [value % 2 for value in values]
    with np.errstate(all="ignore"):
        expected = function(*[value.copy() for value in values])
        actual = rune_jit.jit(function)(*values)
    if function is written:
        np.testing.assert_allclose(actual, expected, rtol=1e-10)
    else:
        np.testing.assert_array_equal(actual, expected)


def test_unused_results_are_not_seen() -> None:
    """Special values in what no iteration reads stay out of the results."""
    a = np.ones(B)
    a[:, 0] = np.nan
    a[3, 5] = np.inf
    expected = growing(a, a)
    np.testing.assert_array_equal(rune_jit.jit(growing)(a, a), expected)


@pytest.mark.parametrize("function", [rows, columns, lower_triangle, growing, backwards, mirrored])
def test_products_leave_the_loop(function: Callable[..., np.ndarray]) -> None:
    lowered = rune_jit.jit(function).lower(np.ones(A), np.ones(B))
    before, _, loop = str(lowered.graph).partition("loop_nest")
    assert "contract" in before
    assert "contract" not in loop.split("end_loop")[0]


def test_empty_arrays_that_loops_read_are_not_written_before() -> None:
    def add(x: np.ndarray, a: np.ndarray, k: int, n: int) -> np.ndarray:
        for i in range(n):
            x = x + a[:, :0][k] @ a[i, :0] + x[i]
        return x

    args = np.arange(7.0), np.arange(49.0).reshape(7, 7), 3, 7
    np.testing.assert_array_equal(rune_jit.jit(add)(*args), add(*args))
