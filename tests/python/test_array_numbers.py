"""Loops in which data decide which array a name stands for: the results are the same objects, and
share the same memory, as NumPy's (tracing/array_numbers.py)."""

from __future__ import annotations

import numpy as np
import optree
import pytest

import rune_jit
from rune_jit.calls.trial import Trial


@pytest.fixture(autouse=True)
def never_numpy(monkeypatch):
    """Programs run compiled, however fast NumPy is."""
    monkeypatch.setattr(Trial, "verdict", lambda self: None)


def kept_beside(x, n):
    a = b = x * 2
    for v in x:
        if v > 1:
            b = b + 1
    return a, b


def argument(x, n):
    best = x
    for v in x:
        if v > 1:
            best = best + 1
    return best


def nested(x, n):
    a = b = x * 2
    c = np.zeros(4)
    for i in range(n):
        for v in x:
            if v > i:
                b = b + 1
            elif v < -i:
                c = b
            else:
                a = c
    return a, b, c


def one_after_the_other(x, n):
    a = best = x + 1
    for _ in range(n):
        for v in x:
            new = best - v
            if new[0] > 0:
                best = new
            elif new[0] < -3:
                best = a
    last = best
    for v in x:
        if v < 0:
            last = last * 1
    return best, last, a


def inner_loops_that_carry_arrays(x, n):
    a, b, d = x * 1, x, np.zeros(4)
    for i in range(4):
        c = x - i
        for v in x:
            c = c * v
        d[i] = c[0] % 5
        for v in x:
            if v > 2:
                b = c
    for v in x:
        if v > 1:
            a = b
    return a, b, c, d


def three_names(x, n):
    a = b = c = np.zeros(3)
    for v in x:
        if v > 0:
            a = b + v
        if v > 1:
            b = a
        if v > 2:
            c = b
    return a, b, c


def exchanged(x, n):
    a, b = x + 1, x + 2
    for v in x:
        if v > 0:
            a, b = b, a
        elif v < -1:
            a = b
    return a, b


def in_tuples(x, n):
    a, b = x + 1, x + 2
    t = (a, b)
    for v in x:
        if v > 0:
            t = (t[1], t[0])
        elif v < 0:
            t = (t[1], t[1])
    return t, a, b


def in_dicts(x, n):
    d = {"a": x * 1.0, "b": x}
    e = d["a"]
    for v in x:
        if v > 0:
            e = d["b"]
        elif v < -1:
            e = e * 2
    return d, e


def one_array_unless_the_loop_runs(x, n):
    u = v = x + 0
    i = 0
    while i < n and x.sum() > 1:
        i += 1
        for _ in range(3):
            u, v = v, u + v
    return u, v


def last_two(x, n):
    u = x
    for v in x:
        w = u + 1
        if v > 0:
            u = w
    return u, w


def in_functions(x, n):
    def pick(a, b, c):
        if c > 0:
            return a
        return b

    a, b = x + 1, x
    for v in x:
        a = pick(a, b, v)
    return a, b


def expressions(x, n):
    a, b = x, x * 1
    for v in x:
        c = a if v > 0 else b
        a = c if v > 1 else c + 1
    return a, b, c


def views(x, n):
    a, b = x[1:], x[:3]
    c = a
    for v in x:
        if v > 0:
            c = b
        elif v < -1:
            c = c * 2
    return a, b, c


def reversed_argument(x, n):
    best = keep = x[::-1]
    for v in x:
        if v > 0:
            best = best + v
    return best, keep


def of_rows(y, n):
    p, q = y[0], y[1]
    for i in range(len(y)):
        if y[i, 0] > 1:
            p = y[i]
        if y[i, 1] > 1:
            q = p
    return p, q


def reversed_on_one_way(y, n):
    a = b = y[0] * 2
    for i in range(len(y)):
        if y[i, 0] > 1:
            b = b[::-1]
    return a, b


def view_in_a_list(y, n):
    a, parts = y[0] * 2, []
    for i in range(len(y)):
        a = a + y[i]
        parts.append((a[::-1], i))
    return a, parts


def row_of_a_list_or_new(y, n):
    w, rows = y[1] * 1, []
    for i in range(1, len(y)):
        v = w
        w = v + y[i]
        rows.append(w)
        if y[0, 0] > 0:
            v = v + y[i]
    return v, w, rows


def returned_row(y, n):
    for i in range(len(y)):
        if y[i].sum() >= 2:
            return y[i], i
    return y[0], -1


def returned_column(y, n):
    k = 0
    for i in range(len(y)):
        if y[0, i] > 1:
            return y[:, i], k
        k = k + i
    return y[:, -1], k


def row_with_a_new_axis(y, n):
    found = y[:1]
    for i in range(len(y)):
        if y[i, 0] > 1:
            found = y[None, i]
        elif y[i, 1] > 1:
            found = found * 2
    return found


def row_from_the_end(y, n):
    found = y[0]
    for i in range(len(y)):
        if y[i, 0] > 0:
            found = y[-1 - i]
        elif y[i, 0] < -1:
            found = found * 2
    return found


PROGRAMS = [
    kept_beside,
    argument,
    nested,
    one_after_the_other,
    inner_loops_that_carry_arrays,
    three_names,
    exchanged,
    in_tuples,
    in_dicts,
    one_array_unless_the_loop_runs,
    last_two,
    in_functions,
    expressions,
    views,
    reversed_argument,
]
REFUSED = [reversed_on_one_way, view_in_a_list, row_of_a_list_or_new]
WITH_ROWS = [
    *REFUSED,
    of_rows,
    returned_row,
    returned_column,
    row_with_a_new_axis,
    row_from_the_end,
]


def arrays_of(result):
    return [a for a in optree.tree_leaves(result) if isinstance(a, np.ndarray)]


def memory(result, x):
    """Where the arrays lie in the memory of x, and their strides there."""
    found = [a for a in arrays_of(result) if np.shares_memory(a, x)]
    return [(a.ctypes.data - x.ctypes.data, a.strides) for a in found]


def identities(result, x, is_view):
    """Which arrays of a result and x are one object. (NumPy makes a new view for each y[i]: views
    of x are left out.)"""
    arrays = [a for a, view in zip(arrays_of(result), is_view, strict=True) if not view] + [x]
    return [[a is b for b in arrays] for a in arrays]


def sharing(result):
    """Which arrays of a result share memory."""
    return [[np.shares_memory(a, b) for a in arrays_of(result)] for b in arrays_of(result)]


@pytest.mark.parametrize("program", PROGRAMS + WITH_ROWS, ids=lambda program: program.__name__)
def test_results_are_the_same_arrays(program):
    jitted = rune_jit.jit(program)
    rng = np.random.default_rng(3)
    for k in range(25):
        x = rng.integers(-3, 4, (5, 5) if program in WITH_ROWS else 4) * (1.0 if k % 4 else 0.0)
        n, other = k % 3, x.copy()
        want, got = program(x, n), jitted(other, n)
        for a, b in zip(optree.tree_leaves(want), optree.tree_leaves(got), strict=True):
            np.testing.assert_array_equal(b, a)
        is_view = [a is not x and np.shares_memory(a, x) for a in arrays_of(want)]
        assert memory(got, other) == memory(want, x)
        assert sharing(got) == sharing(want)
        assert identities(got, other, is_view) == identities(want, x, is_view)
    assert ("is a loop of the program" in jitted.explain()) != (program in REFUSED)


class Moving:
    def __init__(self):
        self.b, self.u, self.c = np.arange(3.0), np.ones(3), 0

    def run(self, step):
        i = 0
        while self.c < 20:
            i += 1
            self.c += step[0]
            self.b = self.u + 1
            self.u = self.b
            if i > 6:
                return i
        self.c = self.c - 15
        return i


def test_attributes_that_a_while_loop_makes_one_array():
    run = rune_jit.jit(Moving.run)
    own, other = Moving(), Moving()
    for step in (3, 1, 3, 30, 3):
        assert Moving.run(own, np.array([step])) == run(other, np.array([step]))
        assert (own.b is own.u) == (other.b is other.u)
        np.testing.assert_array_equal(own.b, other.b)


class Search:
    def __init__(self):
        self.best = self.last = np.zeros(4)

    def step(self, x):
        for v in x:
            if v > 0:
                self.best = x * v
            if v > 1:
                self.last = self.best
        return self.best


def test_attributes_are_the_same_arrays():
    step = rune_jit.jit(Search.step)
    own, other = Search(), Search()
    rng = np.random.default_rng(0)
    for _ in range(12):
        x = rng.integers(-3, 4, 4) * 1.0
        for call, on in ((Search.step, own), (step, other)):
            assert call(on, x) is on.best
        assert (own.best is own.last) == (other.best is other.last)
        np.testing.assert_array_equal(own.last, other.last)


def test_a_write_to_a_result_reaches_the_argument():
    def nearest(points, to, within):
        for i in range(len(points)):
            if abs(points[i] - to).sum() < within:
                return points[i]
        return points[0]

    points = np.arange(6.0).reshape(3, 2)
    found = rune_jit.jit(nearest)(points, np.array([4.0, 5.0]), 0.5)
    found[:] = -1
    np.testing.assert_array_equal(points[2], [-1, -1])
