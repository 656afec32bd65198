"""Arrays that a function makes and whose elements follow from their indices are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loop_checks import both, rolled

import rune_jit
from rune_jit import random
from rune_jit.tracing.progressions import find

X = np.linspace(-3, 5, 4096).reshape(64, 64)

FOUND = [
    np.arange(100),
    np.arange(100, dtype=np.uint8),
    np.arange(0, 300, 2, dtype=np.float32),
    np.arange(90, -10, -1, dtype=np.int8),
    np.linspace(0, 99, 100),
    np.arange(300, dtype=np.float16),
    np.arange(64, dtype=">i4"),
    np.arange(70).reshape(7, 10).T,
    np.indices((8, 9)),
    np.mgrid[-5:30, 0:40:3],
    np.stack([np.arange(80, dtype=np.uint32), np.full(80, 7, np.uint32)], axis=-1),
    np.arange(-(2**31) + 1, -(2**31) + 101),
]


@pytest.mark.parametrize("case", range(len(FOUND)))
def test_elements_are_those_of_the_array(case: int) -> None:
    array = FOUND[case]
    progression = find(array)
    assert progression is not None

    def function(x: Any) -> Any:
        return np.copy(array) * x, np.copy(array)

    scale = array.dtype.type(3)
    for actual, expected in zip(rune_jit.jit(function)(scale), function(scale), strict=True):
        np.testing.assert_array_equal(actual, expected)
        assert actual.dtype == expected.dtype


@pytest.mark.parametrize(
    "array",
    [
        np.arange(63),  # small
        -np.arange(100.0),  # begins with -0.0
        np.arange(100) * 1.5,
        np.ones(100),
        np.full(100, np.nan),
        np.arange(100.0) + np.where(np.arange(100) == 50, np.nan, 0),
        np.where(np.arange(100) == 99, 0, np.arange(100)),
        np.arange(2**31, 2**31 + 100),
        np.arange(3000).reshape(10, 20, 15),  # along three axes
        np.arange(100)[:, None] - np.arange(100) - 2**31 + 50,  # int32 holds the first and the last
        np.zeros((0, 5)),
        np.arange(100) == 0,
    ],
)
def test_others_are_read(array: np.ndarray) -> None:
    assert find(array) is None


FUNCTIONS: list[Callable[[Any], Any]] = [
    lambda x: x * np.arange(x.shape[1]),
    lambda x: x * np.arange(x.shape[0], 0, -1)[:, None],
    lambda x: np.exp(-np.indices(x.shape)[0] * (x / 9)),
    lambda x: x[np.arange(0, 64), np.arange(63, -1, -1)],
    lambda x: np.where(np.arange(64) < x, x, 0),
    lambda x: np.argmax(x, axis=1),
    lambda x: np.argmin(x),
    lambda x: np.cumsum(x * np.arange(64.0), axis=1),
    lambda x: (x.ravel()[:, None] * np.arange(64)).sum(),
]


@pytest.mark.parametrize("case", range(len(FUNCTIONS)))
def test_programs_capture_no_array(case: int) -> None:
    function = FUNCTIONS[case]
    jitted = rune_jit.jit(function, fallback="error")
    np.testing.assert_allclose(jitted(X), function(X), rtol=1e-13, atol=1e-12)
    text = str(jitted.lower(X).graph)
    assert text.count("placeholder") == 1 and "iota" in text


def test_loops_count_in_their_bodies() -> None:
    def function(x: Any) -> Any:
        total = np.zeros(64)
        for i in range(20):
            total = total * 0.5 + x[i] * np.arange(64) + np.arange(64)[i]
        return total

    np.testing.assert_allclose(rune_jit.jit(function, fallback="error")(X), function(X))


def test_random_numbers_capture_no_counters() -> None:
    key = random.key(3)
    program = rune_jit.jit(lambda key: random.uniform(key, (100, 100))).lower(key)
    assert str(program.graph).count("placeholder") == 1
    np.testing.assert_array_equal(
        rune_jit.jit(lambda key: random.uniform(key, (100, 100)))(key),
        random.uniform(key, (100, 100)),
    )


def test_writes_reach_the_array_that_was_made() -> None:
    def function(x: Any) -> Any:
        numbers = np.arange(64.0)
        y = x * numbers
        numbers[3] = -1
        return y, x * numbers, numbers

    for actual, expected in zip(rune_jit.jit(function)(X), function(X), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_between_numbers_of_loops() -> None:
    def f(x: Any) -> Any:
        n = x.shape[0]
        made, sums = np.zeros((n, n)), np.zeros((n, 4))
        for i in range(n):
            others = np.concatenate((np.r_[0:i], np.arange(i + 1, n)))
            made[i, others] = x[others] * i
            after = np.arange(i + 1, n)
            made[i, after] += x[after]
            sums[i] = (
                np.arange(i, -1, -1) @ x[: i + 1],
                np.arange(start=i, stop=n, dtype=float).sum(),
                np.r_[x[:i], x[0], i].sum(),
                np.c_[x, x[::-1]][i, 1],
            )
        return made, sums

    rolled(f, np.random.default_rng(0).random(20), ulps=64)


def test_between_numbers_that_cross() -> None:
    """NumPy's array is empty then."""

    def f(x: Any) -> Any:
        sums = np.zeros(x.shape[0])
        for i in range(x.shape[0]):
            sums[i] = np.arange(i, 5).sum() + np.arange(5, i).shape[0] + np.arange(0, i, 3).sum()
        return sums

    both(f, np.ones(12))
