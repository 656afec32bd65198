"""Positions and slices in terms of counters of which one bounds the other, as i - j for j <= i: the
loops are loops of the program."""

import numpy as np
import pytest
from compare import assert_matches

import rune_jit

RNG = np.random.default_rng(11)


def autocorrelation(out, x):
    for k in range(len(out)):
        for t in range(len(x) - 1, k - 1, -1):
            out[k] += x[t] * x[t - k]


def divided_differences(c, x):
    n = len(x)
    for j in range(1, n):
        for i in range(n - 1, j - 1, -1):
            c[i] = (c[i] - c[i - 1]) / (x[i] - x[i - j])


def rod_cutting(best, prices):
    for i in range(1, len(best)):
        most = -1.0
        for j in range(1, i + 1):
            most = max(most, prices[j - 1] + best[i - j])
        best[i] = most


def from_the_end(out, x):
    n = len(x)
    for i in range(1, n):
        for j in range(i):
            out[i] += x[j - i] * (j + 1)  # negative in all iterations


def diagonals(out, x):
    n = len(x)
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            out[i, j] = out[i + 1, j] + x[j] if j - i > 1 else x[i] - x[j]


def reversed_parts(t, d):
    n = len(t)
    for i in range(1, n - 2):
        for j in range(i + 1, n - 1):
            if d[t[i - 1], t[j]] + d[t[i], t[j + 1]] < d[t[i - 1], t[i]] + d[t[j], t[j + 1]]:
                t[i : j + 1] = t[i : j + 1][::-1]


def sums_of_parts(out, x):
    for i in range(len(x)):
        for j in range(i, len(x)):
            out[i, j] = x[i : j + 1].sum() + x[j - i :].max()


def products_of_parts(out, x):
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            out[i, j] = x[i:j] @ x[: j - i]


def parts_that_may_be_empty(out, x):
    """In half of the iterations the slice ends before it begins, or before the array does."""
    for i in range(len(x)):
        for j in range(len(x)):
            out[i, j] = x[i:j].sum() + 2 * x[i - j : i].sum()


CASES = {
    autocorrelation: (np.zeros(5), RNG.random(9)),
    divided_differences: (RNG.random(7), np.sort(RNG.random(7))),
    rod_cutting: (np.zeros(9), RNG.random(8)),
    from_the_end: (np.zeros(6), RNG.random(6)),
    diagonals: (np.zeros((7, 7)), RNG.random(7)),
    reversed_parts: (np.arange(9), RNG.random((9, 9))),
    sums_of_parts: (np.zeros((6, 6)), RNG.integers(0, 99, 6)),
    products_of_parts: (np.zeros((6, 6)), RNG.random(6)),
    parts_that_may_be_empty: (np.zeros((5, 5)), RNG.integers(0, 99, 5)),
}


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_loops_of_the_program(function):
    first, *rest = CASES[function]
    jitted = rune_jit.jit(function, fallback="error")
    for _ in range(2):
        mine, theirs = np.copy(first), np.copy(first)
        jitted(mine, *rest)
        function(theirs, *rest)
        assert_matches(mine, theirs)
    assert "is unrolled" not in jitted.explain()
    jitted.lower(np.copy(first), *rest)  # one program


@pytest.mark.parametrize("start", [2, -1])
def test_an_index_out_of_bounds_raises(start):
    """The counters' ranges do not tell that the position lies within the axis."""

    def f(out, x):
        for i in range(len(out)):
            for j in range(i + 1):
                out[i] += x[i - j + start]

    x = np.ones(5 if start > 0 else 3)
    assert_matches(_raised(rune_jit.jit(f), np.zeros(4), x), _raised(f, np.zeros(4), x))


def _raised(function, *args):
    try:
        function(*args)
    except IndexError as error:
        return str(error)
    return args[0]


def test_a_slice_of_a_large_array_that_data_decide_is_not_written_in_a_loop():
    """Each iteration would copy the array."""

    def f(x, starts, ends):
        for k in range(len(starts)):
            x[starts[k] : ends[k]] += k

    starts = np.arange(3, 203, 5)
    for size, is_loop in ((300, True), (5000, False)):
        mine, theirs = np.zeros(size), np.zeros(size)
        jitted = rune_jit.jit(f)
        jitted(mine, starts, starts + 7)
        f(theirs, starts, starts + 7)
        assert_matches(mine, theirs)
        assert ("setitem: cannot trace a write to a slice" in jitted.explain()) is not is_loop
        assert ("as one program" in jitted.explain()) is is_loop
