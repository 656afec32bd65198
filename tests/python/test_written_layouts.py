"""Arrays in Fortran order that a function makes and writes to stay in that order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit


def written(x: Any) -> Any:
    a = np.zeros((3, 4), order="F")
    a[0] = x
    return a, a * 2, a.T


def asked(x: Any) -> Any:
    a = np.zeros((3, 4), order="F")
    a[0] = x
    return a.ravel(order="K"), a.flags.f_contiguous, a.flags.c_contiguous


def reshaped(x: Any) -> Any:
    a = np.array([[1.0, 2.0, 3.0, 4.0], [4.0, 5.0, 6.0, 7.0]], order="F")
    a[0] += x
    b = a.reshape(-1)  # a copy
    b[0] = 9.0
    return a, b


def of_transposed(x: Any) -> Any:
    a = np.full((2, 4), 3.0).T
    a[0, 0] = x[0]
    b = a.reshape(-1)
    b[0] = 9.0
    return a, b


def in_loop(x: Any) -> Any:
    a = np.zeros((40, 4), order="F")
    for i in range(40):
        a[i] = x * i
    b = a.reshape(-1)
    b[0] = 9.0
    return a, b


def before_loop(x: Any) -> Any:
    a = np.zeros((40, 4), order="F")
    a[0, 0] = x[0]
    for i in range(40):
        a[i] = x * i
    return a, a.ravel("K")


def of_a_known_operand(x: Any) -> Any:
    a = np.zeros((3, 4), order="F") + x
    return a.flags.f_contiguous, a.flags.c_contiguous, a.ravel("K")


def of_a_known_operand_in_a_loop(x: Any) -> Any:
    a = np.arange(12.0).reshape(4, 3).T
    for i in range(40):
        a = a + x[0] * i
    return a.flags.f_contiguous, a.flags.c_contiguous, a.ravel("K")


def by_function(x: Any) -> Any:
    a = np.zeros((3, 4), order="F")
    for i, f in enumerate((np.sin, np.cos)):
        a[i : i + 1, :] = np.atleast_2d(f(x))
    return a


FUNCTIONS = [
    *(written, asked, reshaped, of_transposed, in_loop, before_loop, by_function),
    *(of_a_known_operand, of_a_known_operand_in_a_loop),
]


@pytest.mark.parametrize("in_segments", [False, True], ids=["program", "segments"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_their_layout(function: Callable[[Any], Any], in_segments: bool) -> None:
    def of_values(x: Any) -> Any:
        x.tolist()
        return function(x)

    jitted = rune_jit.jit(of_values if in_segments else function, fallback="silent")
    for i in range(4):
        x = np.arange(4.0) + i
        wanted, found = function(x), jitted(x)
        assert_same(found, wanted, ulps=4)
        pairs = zip(found, wanted, strict=True) if type(wanted) is tuple else [(found, wanted)]
        for ours, theirs in pairs:
            assert getattr(ours, "strides", None) == getattr(theirs, "strides", None)
