"""`return` in loops: values whose types the first iteration changes, and objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_same
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


class Fitted:
    """A model whose loop returns the model."""

    def __init__(self, other: Any = None) -> None:
        self.w, self.losses, self.count, self.other = np.ones(3), [], 0, other

    def fit(self, rows: Any, tolerance: float) -> Any:
        for row in rows:
            old = self.w
            self.w = self.w * 0.5 + row
            self.losses.append(self.w.sum())
            self.count += 1
            if abs(self.w - old).max() < tolerance:
                return self
        return self

    def converged(self, rows: Any, tolerance: float) -> Any:
        for row in rows:
            self.w = self.w * 0.5 + row
            if self.w.max() < tolerance:
                return self
        return None

    def one_of_two(self, rows: Any, tolerance: float) -> Any:
        for row in rows:
            self.w = self.w * 0.5 + row
            if self.w.max() < tolerance:
                return self.other
            if self.w.min() < tolerance:
                return self
        return self.other


@pytest.mark.parametrize("method", ["fit", "converged", "one_of_two"])
def test_the_object_of_a_method(method: str) -> None:
    call = getattr(Fitted, method)
    jitted = rune_jit.jit(call)
    for tolerance in (1e-3, 0.0, 1e-3, 0.0, 10.0):
        for rows in (np.zeros((30, 3)), np.random.default_rng(0).random((30, 3))):
            mine, theirs = Fitted(Fitted()), Fitted(Fitted())
            found, wanted = jitted(mine, rows, tolerance), call(theirs, rows, tolerance)
            names = [
                [name for name, x in ((1, m), (2, m.other)) if x is y]
                for m, y in ((mine, found), (theirs, wanted))
            ]
            assert names[0] == names[1]
            assert (found is None) == (wanted is None)
            for x, y in ((mine, theirs), (mine.other, theirs.other)):
                assert_same((x.w, x.losses, x.count), (y.w, y.losses, y.count), ulps=8, scaled=True)
    if method != "one_of_two":
        assert "is a loop of the program" in jitted.explain()
