"""Convolutions and matrix products in the ways in which people write them: one contraction each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune_jit


def shifted_products(x, w):
    k = w.shape[0]
    height, width = x.shape[1] - k + 1, x.shape[2] - k + 1
    out = np.zeros((x.shape[0], height, width, w.shape[3]), x.dtype)
    for i in range(k):
        for j in range(k):
            out += x[:, i : i + height, j : j + width, :] @ w[i, j]
    return out


def windows(x, w):
    k = w.shape[0]
    views = np.lib.stride_tricks.sliding_window_view(x, (k, k), axis=(1, 2))
    return np.einsum("nhwcij,ijco->nhwo", views, w)


def windows_in_loops(x, w):
    k = w.shape[0]
    out = np.empty((x.shape[0], x.shape[1] - k + 1, x.shape[2] - k + 1, w.shape[3]), x.dtype)
    for i in range(out.shape[1]):
        for j in range(out.shape[2]):
            window = x[:, i : i + k, j : j + k, :, np.newaxis]
            out[:, i, j, :] = np.sum(window * w[np.newaxis], axis=(1, 2, 3))
    return out


def one_by_one(x, w):
    k = w.shape[0]
    out = np.zeros((x.shape[0], x.shape[1] - k + 1, x.shape[2] - k + 1, w.shape[3]), x.dtype)
    for i in range(out.shape[1]):
        for j in range(out.shape[2]):
            out[:, i, j] = np.tensordot(x[:, i : i + k, j : j + k], w, axes=3)
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [2, 3, 5])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("fn", [shifted_products, windows, windows_in_loops, one_by_one])
def test_convolutions(fn: Callable[..., Any], batch: int, kernel: int, dtype: type) -> None:
    rng = np.random.default_rng(kernel)
    x = rng.normal(size=(batch, 11, 13, 4)).astype(dtype)
    w = rng.normal(size=(kernel, kernel, 4, 6)).astype(dtype)
    tolerance = 2e-5 if dtype is np.float32 else 1e-12
    jitted = rune_jit.jit(fn)
    for _ in range(2):
        actual = jitted(x, w)
        np.testing.assert_allclose(actual, fn(x, w), rtol=tolerance, atol=tolerance)
        assert actual.dtype == dtype
    schedule = str(jitted.lower(x, w).schedule)
    assert schedule.count("= contract") == 1
    assert "loop" not in schedule


def by_broadcasting(a, b):
    return np.sum(a[:, :, np.newaxis] * b[np.newaxis], axis=1)


def turned(a, b):
    return np.sum(a.T[:, :, np.newaxis] * b[:, np.newaxis, :], axis=0)


def by_blocks(a, b):
    out = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for k in range(0, a.shape[1], 4):
        out += a[:, k : k + 4] @ b[k : k + 4]
    return out


def by_blocks_from_the_end(a, b):
    out = np.ones((a.shape[0], b.shape[1]), a.dtype)
    for k in range(a.shape[1] - 3, -1, -3):
        out -= a[:, k : k + 3] @ b[k : k + 3]
    return out


def three_terms(a, b):
    return a[:, 0:4] @ b[0:4] + a[:, 4:8] @ b[4:8] + a[:, 8:12] @ b[8:12]


def transposed_terms(a, b):
    return (a[:, 0:4] @ b[0:4]).T + (a[:, 4:8] @ b[4:8]).T + (a[:, 8:12] @ b[8:12]).T


def mixed(a, b):
    out = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for i in range(2):
        for j in range(2):
            out += a[:, 3 * i + 6 * j :][:, :3] @ b[6 * i + 3 * j :][:3]
    return out


# Not one contraction:


def uneven_terms(a, b):
    return a[:, 0:4] @ b[0:4] + a[:, 4:8] @ b[4:8] + a[:, 7:11] @ b[8:12]


def halved(a, b):
    out = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for k in range(0, a.shape[1], 3):
        out += a[:, k : k + 3] @ b[k : k + 3]
        out *= a.dtype.type(2)
    return out


def growing_terms(a, b):
    out = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for k in range(1, a.shape[1]):
        out += a[:, :k] @ b[:k]
    return out


def read_in_the_loop(a, b):
    out = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    rows = []
    for k in range(0, a.shape[1], 3):
        out += a[:, k : k + 3] @ b[k : k + 3]
        rows.append(out.sum())
    return out, np.array(rows)


ONE = [by_broadcasting, turned, by_blocks, by_blocks_from_the_end, three_terms, transposed_terms]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.complex128])
@pytest.mark.parametrize("fn", [*ONE, mixed, uneven_terms, halved, growing_terms, read_in_the_loop])
def test_products(fn: Callable[..., Any], dtype: type) -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-4, 5, shape).astype(dtype) for shape in ((7, 12), (12, 5)))
    jitted = rune_jit.jit(fn)
    for _ in range(2):
        actual, expected = jitted(a, b), fn(a, b)  # small integers: exact in any order
        if not isinstance(expected, tuple):
            actual, expected = (actual,), (expected,)
        for x, y in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(x, y)
            assert x.dtype == y.dtype
    if fn in ONE and dtype in (np.float32, np.float64):
        assert str(jitted.lower(a, b).schedule).count("= contract") == 1


@pytest.mark.parametrize("fn", [by_blocks, three_terms, by_broadcasting])
def test_special_values(fn: Callable[..., Any]) -> None:
    a, b = np.ones((7, 12)), np.ones((12, 5))
    a[1, 2], a[3, 9], b[4, 1] = np.inf, np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(rune_jit.jit(fn)(a, b), fn(a, b))
