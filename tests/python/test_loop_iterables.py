"""Loops over combinations of ranges and arrays: zip and enumerate in each other."""

import itertools

import numpy as np
import pytest
from loop_checks import both, rolled

import rune_jit

X, Y = np.random.default_rng(0).normal(size=(2, 50))
ROWS = np.random.default_rng(1).normal(size=(60, 3))


def numbered_pairs(x, y, rows):
    out = np.zeros(60)
    for i, (a, b, row) in enumerate(zip(x, y[:40], rows)):  # noqa: B905
        out[i] = a * row.sum() + b
    return out, i


def neighbours(x, y, rows):
    out = np.zeros(60)
    for i, (a, b) in enumerate(itertools.pairwise(x), start=1):
        out[i] = (a - b) ** 2
    for a, b in itertools.pairwise(zip(y, range(50), strict=True)):
        out[b[1]] += (a[0] - b[0]) * a[1]
    return out, i


def counted_from(x, y, rows):
    out = np.zeros(60)
    for i, (a, b) in enumerate(zip(x[:-1], x[1:]), 7):  # noqa: B905, RUF007
        out[i] -= a * b
    return out


def ranges_beside_arrays(x, y, rows):
    out = np.zeros(60)
    for i, a, b in zip(range(3, 203, 4), x, reversed(y), strict=True):
        out[i // 4] += a - b * i
    for i, a in zip(range(30, 0, -1), x, strict=False):
        out[i] += a
    return out


def numbered_ranges(x, y, rows):
    out = np.zeros(60)
    for i, j in enumerate(range(5, 45, 3)):
        out[i] += x[j]
    for i, j in enumerate(reversed(range(40)), 2):
        out[i] -= x[j]
    return out


def pairs_of_pairs(x, y, rows):
    out = np.zeros(120)
    for (i, a), (j, b) in zip(enumerate(x), enumerate(y, 1), strict=True):
        out[i + j] -= a * b
    for pair in zip(x, itertools.repeat(2, 30), strict=False):
        out[0] += pair[0] * pair[1]
    return out


def last_item(x, y, rows):
    total = 0.0
    for a in x:
        total = total * 0.5 + a
        x[:] = x + 1
    for b in reversed(y):
        total += b
    return total, a, b * 2


@pytest.mark.parametrize(
    "function",
    [
        numbered_pairs,
        neighbours,
        counted_from,
        ranges_beside_arrays,
        numbered_ranges,
        pairs_of_pairs,
        last_item,
    ],
)
def test_rolled(function):
    rolled(function, X, Y, ROWS, ulps=4)


def test_numbered_range_that_data_decide():
    def segments(start, x):
        out = np.zeros((4, 15))
        for i in range(4):
            for k, j in enumerate(range(start[i], start[i + 1])):
                out[i, k] = x[j]
        return out

    rolled(segments, np.array([0, 3, 7, 9, 15]), X)


def test_other_functions_of_these_names():
    def f(x):
        def zip(a, b):
            return [(1, a), (3, b)]

        out = np.zeros(50)
        for i, (k, a) in enumerate(zip(x, x)):
            out[i] = k + a[0]
        return out

    assert both(f, X) == []


@pytest.mark.parametrize("extra", [(), (0, 0)])
def test_lengths_that_differ(extra):
    def f(x, y, out):
        for i, (a, b) in enumerate(zip(x, y, strict=True)):
            out[i] = a + b

    jitted, written, expected = rune_jit.jit(f), np.zeros(50), np.zeros(50)
    for function, out in ((jitted, written), (jitted, written), (f, expected)):
        with pytest.raises(ValueError, match="shorter"):
            function(X, Y[: 40 - len(extra)], out)
    np.testing.assert_array_equal(written, expected)


def test_what_cannot_be_reversed():
    def f(x):
        for a in reversed(zip(x, x)):  # noqa: B905
            print(a)

    with pytest.raises(TypeError, match="not reversible"):
        rune_jit.jit(f)(X)
