"""`return` in loops whose first iteration runs apart, since a name changes its type there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loop_checks import rolled

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
