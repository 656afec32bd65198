"""Deep, wide and long programs: none takes time or memory that grows faster than the program."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import compare
import numpy as np
import pytest

X = np.arange(12.0).reshape(3, 4)
pytestmark = pytest.mark.parametrize("device", ["cpu", "interpreter"])


def run(function: Callable[[Any], Any], device: str, seconds: float) -> Any:
    """The function's result jitted; what grows exponentially would take hours."""
    start = time.perf_counter()
    result = compare.run(function, device, X)
    took = time.perf_counter() - start
    assert took < seconds, f"{took:.1f} s"
    return result


def test_a_chain_of_5000_operations(device: str) -> None:
    def f(x: Any) -> Any:
        for _ in range(2500):
            x = x * 0.5 + 1
        return x

    np.testing.assert_array_equal(run(f, device, 60), f(X))


def test_deep_movement(device: str) -> None:
    def f(x: Any) -> Any:
        for _ in range(2000):
            x = x[::-1].T
        return x

    np.testing.assert_array_equal(run(f, device, 30), f(X))


def test_sharing_is_not_recomputed_exponentially(device: str) -> None:
    def f(x: Any) -> Any:
        a, b = x, x + 1
        for _ in range(100):
            a, b = b, a + b
        for _ in range(30):
            b = np.roll(b, 1, 0) + b
        for k in range(20):
            b = np.maximum(b[(np.arange(len(b)) + k) % len(b)], b - 1)
        return b

    np.testing.assert_array_equal(run(f, device, 30), f(X))


def test_wide_graphs(device: str) -> None:
    def f(x: Any) -> Any:
        return sum([x * i for i in range(1000)]), np.stack([x[0] * i for i in range(100)])

    for got, want in zip(run(f, device, 60), f(X), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_loop_unrolled_2000_times(device: str) -> None:
    def f(x: Any) -> Any:
        total = 0
        for i in range(2000):
            total = total + x[i % 3] * i
        return total

    np.testing.assert_array_equal(run(f, device, 30), f(X))
