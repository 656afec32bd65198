"""np.sort and np.median of a few elements are parts of a loop (rules/small_sorts.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loop_checks import both, rolled

import rune_jit


def medians(x: Any, n: int) -> Any:
    out = np.full(len(x), np.nan)
    for i in range(n - 1, len(x)):
        out[i] = np.median(x[i - n + 1 : i + 1])
    return out


def sorted_rows(x: Any, n: int) -> Any:
    out = np.zeros((len(x), n), x.dtype)
    for i in range(n - 1, len(x)):
        out[i] = np.sort(x[i - n + 1 : i + 1])
    return out


def sorted_in_place(x: Any, n: int) -> Any:
    x = x.copy()
    for i in range(len(x) - n):
        x[i : i + n].sort()
    return x


def _values(dtype: str) -> np.ndarray:
    x = (5 * np.random.default_rng(0).standard_normal(40)).astype(dtype)
    if x.dtype.kind == "f":
        x[[3, 9, 10, 11]] = np.nan, np.inf, -np.inf, np.nan
    x[30:33] = x[29]
    return x


@pytest.mark.parametrize("n", [1, 2, 5, 12])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint32"])
@pytest.mark.parametrize("function", [medians, sorted_rows, sorted_in_place])
def test_windows(function: Callable[..., Any], dtype: str, n: int) -> None:
    rolled(function, _values(dtype), n)


@pytest.mark.parametrize("function", [medians, sorted_rows])
def test_what_numpy_sorts(function: Callable[..., Any]) -> None:
    both(function, _values("float16"), 3)
    both(function, _values("int8"), 3)
    both(function, _values("float64") + 1j, 3)
    both(function, _values("float64"), 36)


def test_median_filter() -> None:
    def filtered(image):
        out = image.copy()
        for i in range(1, image.shape[0] - 1):
            for j in range(1, image.shape[1] - 1):
                out[i, j] = np.median(image[i - 1 : i + 2, j - 1 : j + 2])
        return out

    rolled(filtered, np.random.default_rng(0).random((9, 8)))


def ordered(x: Any, n: int) -> Any:
    out = np.zeros((len(x), n), np.int64)
    for i in range(n - 1, len(x)):
        out[i] = np.argsort(x[i - n + 1 : i + 1])
    return out


def ordered_stably(x: Any, n: int) -> Any:
    out = np.zeros((len(x), n), np.int64)
    for i in range(n - 1, len(x)):
        out[i] = np.argsort(x[i - n + 1 : i + 1], kind="stable")
    return out


def nearest(x: Any, n: int) -> Any:
    near = x[:n].copy()
    for i in range(len(x)):
        near = near[np.argsort(np.abs(near - x[i]))] + 0.5 * x[i]
    return near


@pytest.mark.parametrize("n", [1, 2, 5, 12])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_orders_of_equal_elements_are_stable_where_that_is_asked_for(dtype: str, n: int) -> None:
    rolled(ordered_stably, _values(dtype), n)


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_orders(n: int) -> None:
    x = np.random.default_rng(0).standard_normal(40)
    x[[3, 30]] = np.nan, -np.inf
    rolled(ordered, x, n)
    rolled(nearest, np.random.default_rng(1).standard_normal(40), n)


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_orders_of_equal_elements_are_numpys(dtype: str) -> None:
    both(ordered, _values(dtype), 6)


def test_pythons_sorted_in_loops() -> None:
    def f(x, k):
        tour = x.copy()
        for t in range(15):
            i, j = sorted(k[t : t + 2])
            if i == j:
                continue
            new = tour.copy()
            new[i : j + 1] = new[i : j + 1][::-1]
            low, mid, high = sorted((k[t], k[t + 1], k[t + 2]), reverse=True)
            if new[0] + low <= tour[0] + mid * high:
                tour = new
        return tour

    rng = np.random.default_rng(0)
    rolled(f, rng.random(22), rng.integers(0, 22, 22))


def test_pythons_sorted_keeps_types() -> None:
    def f(x, k):
        numbers = int(k[0]), int(k[1]), int(k[2])
        names = sorted("ba"), sorted([3, 1]), sorted({2: 0, 1: 0})
        return sorted(k[:5]), sorted(k[:3], reverse=True), sorted(numbers), names, sorted(x[:3])

    x, k = np.array([np.nan, 1.0, 0.5]), np.array([4, 2, 2, 9, 1])
    actual = rune_jit.jit(f)(x, k)
    assert repr(actual) == repr(f(x, k))
