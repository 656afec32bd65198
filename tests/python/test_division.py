"""Divisions by values that a loop does not change: the CPU multiplies by reciprocals, and gets the
same bits as a division."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit

SPECIAL = (
    *(0.0, 1.0, 3.0, 7.0, 1 / 3, np.inf, np.nan, 5e-324, 1e-310, 2.3e-308, 1e-300, 1e300, 1.7e308),
    *(1e-45, 1e-40, 1.2e-38, 3e38, 2.0**-60, 2.0**60, 2.0**-400, 2.0**400),
)
RNG = np.random.default_rng(11)


def numbers(dtype: Any, count: int) -> np.ndarray:
    """Special values and numbers of all magnitudes, with both signs."""
    with np.errstate(over="ignore", under="ignore"):
        found = np.concatenate([SPECIAL, np.exp(RNG.uniform(-740, 709, count))]).astype(dtype)
        near_one = RNG.uniform(0.5, 4, count).astype(dtype)
    found = np.concatenate([found, near_one])
    return np.concatenate([found, -found])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quotients_by_one_divisor(dtype: Any, full: bool) -> None:
    def divide(x: Any, c: Any) -> Any:
        return x / c

    jitted, x = rune_jit.jit(divide), numbers(dtype, 500)
    with np.errstate(all="ignore"):
        for c in numbers(dtype, 2000 if full else 50):
            assert_same(jitted(x, c), divide(x, c))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, c: x / c[:, None],
        lambda x, c: x / c,
        lambda x, c: (x / 3.7) / c,
        lambda x, c: x / c[0] + x[::-1] / c[1],
        lambda x, c: np.sin(x / c) / c[:, None],
        lambda x, c: (x / c[:, None])[:, 3:20],
    ],
)
def test_quotients_by_rows_and_columns(dtype: Any, function: Callable[..., Any]) -> None:
    with np.errstate(all="ignore"):
        for _ in range(4):
            c = RNG.permutation(numbers(dtype, 50))[:97]
            x = RNG.permutation(numbers(dtype, 10000))[: 97 * 97].reshape(97, 97)
            wanted, found = function(x, c), rune_jit.jit(function)(x, c)
            if "sin" in function.__code__.co_names:
                np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-37)
            else:
                assert_same(found, wanted)


def test_every_float32_between_one_and_two(full: bool) -> None:
    """The steps depend on the digits only: all of x, by divisors whose reciprocals are rounded by
    almost half a unit, and by some of any sort."""
    divide = rune_jit.jit(lambda x, c: x / c)
    x = np.arange(0x3F800000, 0x40000000, dtype=np.int32).view(np.float32)
    divisors = np.arange(0x3F800000, 0x40000000, dtype=np.int32).view(np.float32)
    off = np.abs(divisors.astype(float) * (np.float32(1) / divisors) - 1) * divisors
    worst = divisors[np.argsort(off)[-(200 if full else 4) :]]
    for c in (*worst, *RNG.choice(divisors, 4), divisors[-1], divisors[1]):
        np.testing.assert_array_equal(divide(x, c), x / c)
