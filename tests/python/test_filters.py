"""Comprehensions with conditions, as loops that append to lists (capture/loops/filters.py)."""

from __future__ import annotations

import numpy as np
import pytest
from growing_checks import compared, loops_apart  # noqa: F401
from segment_checks import never_numpy  # noqa: F401


def filtered(x):
    at = np.array([i for i in range(1, len(x) - 1) if x[i] > x[i - 1] if x[i] > x[i + 1]])
    return at, len([v for v in x if v > 0.5]) / len(x), sum([2 * v for v in x if -1 < v < 0])


def near(x):
    p = x[:100].reshape(50, 2)
    n = len(p)
    return [
        (i, j)
        for i in range(n)
        for j in range(i + 1, n)
        if (p[i, 0] - p[j, 0]) ** 2 + (p[i, 1] - p[j, 1]) ** 2 < 0.1
    ]


def names_of_its_own(x):
    i, v = 7, "v"
    x = [x[i] for i in range(len(x)) if x[i] > 0]
    return x, i, v, [v for v in np.array(x) if v > 1], v


@pytest.mark.parametrize("function", [filtered, near, names_of_its_own])
def test_comprehensions_with_conditions(function, ran):
    compared(function)
    assert ran
    assert all("as one program" in x for x in ran), ran


def other_items(x):
    labels = ["high" if v > 0 else "low" for v in x if abs(v) > 1]
    a = x[:144].reshape(12, 12)
    others = np.stack([a[i] for i in range(12) if i != 3]).mean(axis=0)
    odd = [k for k in (1, 2, 3, 4) if k % 2]
    return labels, others, odd, [[j for j in range(i) if x[j] > 0] for i in range(5) if x[i] > 0]


def shadowed(x):
    return [sum(x for x in range(i)) for i in range(30) if x[i] > 0], [
        [i for i in range(3)] for i in range(30) if x[i] > 0
    ]


def evaluated_before(x):
    found = []

    def note():
        found.append(len(x))
        return found

    return note() + [i for i in range(40) if x[i] > 0 and len(found) == 1], found


def unbound(x):
    [i for i in range(40) if x[i] > 0]
    return i  # noqa: F821


def out_of_bounds(x):
    return [i for i in range(len(x) + 1) if x[i] > 0]


@pytest.mark.parametrize(
    "function", [other_items, shadowed, evaluated_before, unbound, out_of_bounds]
)
def test_comprehensions_that_stay_as_they_are(function):
    compared(function)
