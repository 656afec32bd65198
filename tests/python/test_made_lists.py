"""Lists that a function makes, appends to and returns, where data decide how long they are: one
program (capture/loops/made_lists.py, list_results.py)."""

from __future__ import annotations

import numpy as np
import pytest
from compare import assert_same
from growing_checks import compared
from segment_checks import never_numpy, outcome  # noqa: F401

import rune_jit
from rune_jit.capture.loops import list_results


def descent(x):
    """Gradient descent with a history and a test of convergence."""
    w, history = np.zeros(3), []
    a = np.reshape(x[:60], (20, 3))
    for k in range(400):  # noqa: B007
        g = a.T @ (a @ w - x[:20]) / 20
        w = w - 0.3 * g
        size = np.linalg.norm(g)
        history.append(size)
        if size < 1e-6:
            break
    return w, history, k


def trained(x):
    """A perceptron whose epochs end when it makes no mistake. Counts are Python's integers."""
    w, b, errors = np.zeros(2), 0.0, []
    points = np.reshape(x[:40], (20, 2))
    for _ in range(30):
        wrong = 0
        for p, t in zip(points, np.sign(points[:, 0] + 0.3), strict=True):
            side = 1 if p @ w + b >= 0 else -1
            step = 0.1 * (t - side)
            w += step * p
            b += step
            wrong += int(step != 0.0)
        errors.append(wrong)
        if wrong == 0:
            break
    return w, b, errors


def halved(x):
    """A `while` loop; the list has an item before, and a last one after."""
    s = np.sum(np.abs(x))
    sizes: list = [s]
    while s > 0.5:
        s = s / 2
        sizes.append(s)
    sizes.append(-s)
    return sizes


def as_arrays(x):
    s, halves, counts = np.abs(x).sum(), [], []
    while s > 1:
        s = s / 2
        halves.append(s)
        counts.append(len(x))
    return {"halves": np.array(halves), "counts": np.asarray(counts), "list": halves}


def pairs(x):
    """Tuples, and copies of arrays."""
    found, steps = [], []
    y = x[:4]
    for i in range(60):
        y = y * 0.8
        found.append((i, y[0]))
        steps.append(y.copy())
        if np.max(np.abs(y)) < 0.1:
            break
    return steps, found, found


def selected(x):
    """Items under a condition, in nested loops, one of which ends early."""
    kept = []
    for i in range(20):
        if x[i] > 0:
            for j in range(10):
                if x[i] * j > 2:
                    break
                kept.append(x[i] * j)
    return len(x), kept


def returned_early(x):
    found = []
    for i in range(len(x)):
        if x[i] > 2.2:
            return 1, found
        if x[i] > 1:
            found.append(2 * x[i])
    found.append(0.0)
    return 0, found


def nothing(x):
    empty = []
    for v in x:
        if v > 100:
            empty.append(v)
    return empty


PROGRAMS = (*(descent, trained, halved, as_arrays, pairs, selected, returned_early, nothing),)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_results_are_numpys_and_the_loops_are_of_the_program(function):
    jitted = compared(function)
    text = jitted.explain()
    assert "as one program" in text
    assert "unrolled" not in text
    assert jitted.cache_info().fallbacks == 0


def test_on_the_interpreter():
    x = np.random.default_rng(1).normal(size=150)
    jitted = rune_jit.jit(halved, device="interpreter")
    for _ in range(2):
        assert_same(jitted(x), halved(x), ulps=8)


def test_a_list_that_is_returned_twice_is_one_list_and_each_call_makes_another():
    x = np.random.default_rng(1).normal(size=150)
    jitted = rune_jit.jit(pairs)
    first, second = jitted(x), jitted(x)
    assert first[1] is first[2]
    assert first[1] is not second[1]
    assert all(a.base is None for a in first[0])


def named(x):
    """The list gets the array that `y` stands for, and which is changed later."""
    y, seen = np.zeros(3), []
    for i in range(len(x)):
        if x[i] > 1.5:
            break
        y[0] += x[i]
        seen.append(y)
    return seen


def replaced(x):
    """The last item of the list is the array that is returned."""
    y, path = x[:3].copy(), []
    for _ in range(50):
        y = y * 0.5
        path.append(y)
        if np.max(np.abs(y)) < 0.01:
            break
    return y, path


def helped(x):
    """Another function makes the list, and this one reads it."""

    def sizes(s):
        found = []
        while s > 1:
            s = s / 2
            found.append(s)
        return found

    return len(sizes(np.abs(x).sum())), sum(sizes(np.abs(x[:5]).sum()))


def read(x):
    found = []
    for i in range(len(x)):
        if x[i] > 1:
            found.append(x[i])
        if len(found) == 3:
            break
    return found, found[-1]


def mixed(x):
    """The items have different types."""
    found = []
    for i in range(20):
        if x[i] > 1:
            found.append(i)
        if x[i] < -1:
            found.append("low")
    return found


@pytest.mark.parametrize("function", (named, replaced, helped, read, mixed))
def test_lists_that_arrays_cannot_represent(function):
    jitted = compared(function)
    x = np.random.default_rng(3).normal(size=153)
    got, expected = jitted(x), function(x)
    if function is replaced:
        assert got[0] is got[1][-1]
    if function is named:
        assert all(y is got[0] for y in got)
    assert_same(got, expected, ulps=16)


def test_errors_are_numpys_and_leave_no_list():
    def f(x):
        found = []
        for i in range(30):
            if x[i] > 2:
                raise ValueError(f"{i} is too large")
            if x[i] > 0:
                found.append(1 / int(x[i] + 1))
        return found

    for seed in range(12):
        x = np.random.default_rng(seed).normal(size=30)
        assert outcome(rune_jit.jit(f), (x,), {}) == outcome(f, (x,), {})


def test_longer_lists_get_programs_with_more_room(monkeypatch):
    monkeypatch.setattr(list_results, "_LIKELY", 8)

    def f(x, least):
        s, sizes = np.sum(x), []
        while s > least:
            s = s * 0.9
            sizes.append(s)
        return sizes

    jitted, x = rune_jit.jit(f), np.ones(5)
    for least in (4.0, 1.0, 1.0, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3):
        assert_same(jitted(x, least), f(x, least), ulps=64)
    before = jitted.cache_info().fallbacks
    assert_same(jitted(x, 1e-3), f(x, 1e-3), ulps=64)
    assert jitted.cache_info().fallbacks == before
