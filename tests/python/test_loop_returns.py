"""`return` in loops whose first iteration runs apart, since a name changes its type there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loop_checks import rolled

import rune_jit

FOUND = 5.0  # which the sum of a row exceeds from there on


def number(a):
    total = 0
    for i in range(a.shape[0]):
        total = a[i].sum()
        if total >= FOUND:
            return total
    return total


def two_results(a):
    total = 0
    for i in range(a.shape[0]):
        total = a[i].sum()
        if total >= FOUND:
            return total, 1
    return total, 2


def row(a):
    total = 0
    for i in range(a.shape[0]):
        total = a[i].sum()
        if total >= FOUND:
            return a[i], i
    return a[0], -1


def array_of_before(a):
    total, b = 0, a * 2
    for i in range(a.shape[0]):
        total = a[i].sum()
        if total >= FOUND:
            return b
        b = b + 1
    return a


@pytest.mark.parametrize("place", (None, 0, 1, 2, 5))
@pytest.mark.parametrize("function", (number, two_results, row, array_of_before))
def test_any_iteration_may_return(function: Callable[..., Any], place: int | None) -> None:
    a = np.zeros((6, 4))
    if place is not None:
        a[place, 2] = FOUND
    rolled(function, a)


def test_what_only_the_first_iteration_may_return() -> None:
    """The other iterations return nothing, and what follows the loop has more values."""

    def f(a, b):
        n = a.shape[0]
        s, t, u, w = b[0], b[1], np.zeros(n), b * 2
        c = np.multiply.outer(a, b)
        for i in range(n - 1):
            u[n - 1] += i
            if i > 0:
                continue
            for j in range(0, n, 2):
                if s > 3:
                    return s, t, u, w
                m = 0
                while True:
                    m += 1
                    if m >= n:
                        break
                    if i == 0 or not t > b[n - 1 - j]:
                        if b[m - 1] > t:
                            t = b[m - 1]
                        continue
                    u, w = w, u + 2 * np.minimum(a.T[0, :], c[n - 1 - i, :i, m - 1].sum())
                if j > 0 and b[i] > 2:
                    a[1:] -= a[:-1] * (c[j, : j + 1, i] @ c[i, : j + 1, n - 1 - i])
        return s, t, u, w, b

    jitted = rune_jit.jit(f)
    for first in (2.0, 4.0, 0.0, 5.0):
        b = np.array([first, 2.0, 1.0, 2.0, 1.0])
        a = np.arange(25.0).reshape(5, 5)
        wanted, found = f(a.copy(), b), jitted(a.copy(), b)
        assert len(found) == len(wanted)
        for x, y in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(x, y)
