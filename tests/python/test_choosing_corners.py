"""Corners of functions that search and choose, and of what they write to: results, types and errors
are NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune_jit


def check(function: Callable[..., Any], *args: Any) -> None:
    """Compares calls with NumPy's: results with their types, arguments, errors."""
    jitted = rune_jit.jit(function)
    for _ in range(3):
        found = []
        for f in (function, jitted):
            given = [x.copy() if isinstance(x, np.ndarray) else x for x in args]
            try:
                result: Any = f(*given)
            except Exception as error:
                result = type(error), str(error)
            found.append(repr((result, given)))
        assert found[1] == found[0]


def test_piecewise_calls_no_function_for_nothing() -> None:
    def seen(x: Any) -> Any:
        shapes = []

        def double(v: Any) -> Any:
            shapes.append(v.shape)
            return v * 2

        return np.piecewise(x, [x < -5, x > 2], [double, lambda v: v + 1]), shapes

    def largest(x: Any) -> Any:
        return np.piecewise(x, [x < 0, x >= 2], [lambda v: -v, lambda v: v.max(), 1])

    def first(x: Any) -> Any:
        return np.piecewise(x, [x < 1], [lambda v: v[0] * 2, 0.0])

    for x in (np.arange(4.0), np.arange(4.0) / 4, -np.arange(4.0), np.arange(1.0, 4.0)):
        for function in (seen, largest, first):
            check(function, x)


SORTERS = [
    *([1, 2, 0], [1, 2], [1, 2, 7], [7, 2, 0], [1, -2, 0], [1, 2, -1], [-5, -5, -5]),
    *([1.0, 2.0, 0.0], [True, False, True], [[1, 2, 0]]),
]


@pytest.mark.parametrize("sorter", SORTERS, ids=str)
def test_sorters(sorter: Any) -> None:
    def search(a: Any, v: Any, sorter: Any) -> Any:
        return np.searchsorted(a, v, sorter=sorter), a.searchsorted(v, "right", sorter)

    check(search, np.array([3.0, 1.0, 2.0]), np.array([1.5, 2.5, 9.0]), np.array(sorter))


def test_long_sorters() -> None:
    def search(a: Any, v: Any, sorter: Any) -> Any:
        return np.searchsorted(a, v, sorter=sorter)

    a, sorter = np.arange(100.0)[::-1].copy(), np.arange(100)[::-1].copy()
    for more in (0, 60, -60):
        check(search, a, np.array([1.5, 50.0]), sorter + more)


def test_dot_into_an_array_without_axes_gives_a_number() -> None:
    def dot(a: Any, b: Any, out: Any) -> Any:
        result = np.dot(a, b, out=out)
        return result, type(result), result is out

    check(dot, np.ones(3), np.arange(3.0), np.zeros(()))
    check(dot, 2.0, 3.0, np.zeros(()))
    check(dot, np.ones((2, 3)), np.arange(3.0), np.zeros(2))
    check(dot, np.ones(3), np.arange(3.0), np.zeros((), np.float32))


class Decides:
    """Says itself what ufuncs do that are given it."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        places = [i for i, x in enumerate(inputs) if x is self]
        places += [-1 - i for i, x in enumerate(kwargs.get("out", ())) if x is self]
        return ufunc.__name__, places


def test_objects_that_decide_what_is_written_to_them() -> None:
    def written(x: Any) -> Any:
        a = Decides()
        outputs = np.sin(x, a), np.sin(x, out=a), np.modf(x, None, a), np.modf(x, out=(a, x))
        return outputs, np.add(x, x, a), np.sin(a), np.add(x, a, out=x), np.add(x, a)

    check(written, np.arange(2.0))


def test_lists_with_complex_numbers_are_written() -> None:
    def write(a: Any, b: Any, x: Any) -> Any:
        a[:2] = [1j, 1]
        b[0] = [2j, x[0]]
        a[[0, 2]] = [1j, True]
        a[a.real > 0] = [x[1]]
        b[1:, 0] = 1 + 2j, 3
        return a, b

    check(write, np.zeros(3, complex), np.ones((3, 2), np.complex64), np.arange(1.0, 3.0))
