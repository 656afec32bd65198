"""Loops that leave one array to several names and items of lists: they are programs of their own
(capture/loops/same_arrays.py)."""

from __future__ import annotations

import numpy as np
import pytest
from compare import assert_same
from growing_checks import compared, loops_apart  # noqa: F401
from segment_checks import never_numpy  # noqa: F401

import rune_jit

pytestmark = pytest.mark.usefixtures("never_numpy")


def start(k):
    return (np.array([1.0 + k / 100, 2.0]),)


def who_is_who(names, items):
    """Which of these are one object."""
    everything = [*names, *items]
    return [[a is b for b in everything] for a in everything]


def accepted(x):
    rng, samples, density = np.random.default_rng(0), [], -np.sum(x**2)
    for _ in range(150):
        new = x + rng.normal(0, 0.5, 2)
        of_new = -np.sum(new**2)
        if np.log(rng.random()) < of_new - density:
            x, density = new, of_new
        samples.append(x)
    return x, samples, who_is_who([x], samples)


def adaptive(y):
    slope = lambda y: np.array([y[1], (1 - y[0] ** 2) * y[1] - y[0]])  # noqa: E731
    t, h, times, path = 0.0, 0.1, [0.0], [y]
    while t < 5:
        first = slope(y)
        second = slope(y + h * first)
        new = y + h / 2 * (first + second)
        error = np.max(np.abs(second - first)) * h / 2
        if error < 1e-2:
            t, y = t + h, new
            times.append(t)
            path.append(y)
        h = h * min(2.0, max(0.2, 0.9 * np.sqrt(1e-2 / (error + 1e-12))))
    return np.array(times), np.array(path), who_is_who([y], path)


def until_small(x):
    path = [x]
    for i in range(1000):  # noqa: B007
        gradient = np.array([2 * x[0], 8 * x[1]])
        if np.linalg.norm(gradient) < 1e-3:
            break
        x = x - 0.05 * gradient
        path.append(x)
    x[0] = 7.0
    path[0][1] = -1.0
    return x, path, i


def never_assigned(x):
    given, kept = x, []
    for i in range(150):
        new = np.sin(x * i)
        if new[0] > 5:
            x = new
        if new[1] > 0.5:
            kept.append(x)
    x[0] = 3.0
    return x is given, x, kept, who_is_who([x, given], kept)


def two_lists(x):
    a, b = [], []
    for _ in range(150):
        new = x * 0.99
        if new[0] > 0.7:
            x = new
            a.append(x)
        if new[0] > 0.5:
            b.append(new)
    return x, a, b, who_is_who([x], a + b)


def swapped(u):
    v, kept = u * 2, []
    for _ in range(150):
        new = u * 0.99
        u, v = v, new
        if new[0] > 0.7:
            kept.append(v)
    v[0] = 3.0
    return u, v, kept, who_is_who([u, v], kept)


def reading(v):
    return (v * 2).sum()


def calling(x):
    total, kept = 0.0, []
    for _ in range(150):
        new = x * 0.99
        if new[0] > 0.5:
            x = new
        total += reading(x)
        if total > 3:
            kept.append(x)
    return x, kept, total, who_is_who([x], kept)


def new_and_old(x):
    kept = []
    for i in range(150):
        new = x * 0.99
        if new[0] > 0.5:
            x = new
            kept.append(x)
        elif new[1] > 0.9:
            kept.append(new + i)
    return kept, who_is_who([x], kept)


PROGRAMS = [
    *(accepted, adaptive, until_small, never_assigned, two_lists, swapped, calling, new_and_old)
]


@pytest.mark.parametrize("function", PROGRAMS)
def test_loops_of_their_own(function, ran):
    compared(function, start)
    assert ran
    assert all("as one program" in x for x in ran), ran


# Loops that write to the arrays, or may.


def writes(x):
    kept = []
    for _ in range(150):
        new = x * 0.99
        if new[0] > 0.5:
            x = new
        x[1] += 1
        if new[0] < 0.9:
            kept.append(x)
    return x, kept


def bump(v):
    v += 1
    return v.sum()


def function_writes(x):
    kept, total = [], 0.0
    for _ in range(150):
        new = x * 0.99
        if new[0] > 0.5:
            x = new
        total += bump(x)
        if total > 3:
            kept.append(x)
    return x, kept, total


def view_is_written(x):
    kept = []
    for _ in range(150):
        new = x * 0.99
        part = new[1:]
        part[0] = 5.0
        if new[0] > 0.5:
            x = new
        if new[0] < 0.9:
            kept.append(x)
    return x, kept


def numpy_writes(x):
    kept = []
    for _ in range(150):
        new = x * 0.99
        if new[0] > 0.5:
            x = new
        np.add(new, 1, out=new)
        np.put(x, 1, 3.0)
        if new[0] < 1.9:
            kept.append(x)
    return x, kept


def rows(x):
    points, kept, last = np.outer(np.arange(150.0), x) % 7, [], x
    for point in points:
        if abs(point - last).sum() > 3:
            kept.append(point)
            last = point
    kept[0][0] = 100.0
    return points, kept, last is kept[-1]


def container(x):
    kept, holder = [], {}
    for i in range(150):
        new = x * 0.99
        if new[0] > 0.5:
            x = new
            holder[0] = x
        holder.setdefault(1, x)
        holder[1][0] += 1
        if i > 100 and new[0] < 3:
            kept.append(x)
    return x, kept, holder


@pytest.mark.parametrize(
    "function", [writes, function_writes, view_is_written, numpy_writes, rows, container]
)
def test_loops_that_write_to_the_arrays(function, ran):
    compared(function, start)
    assert not ran


def raising(x):
    kept = []
    try:
        for _ in range(150):
            new = x * 0.99
            if new[0] > 0.5:
                x = new
            kept.append(x)
            if new[0] < 0.6:
                raise ValueError("small")
    except ValueError as error:
        kept.append(str(error))
    return x, kept[-1], who_is_who([x], kept[:-1])


def test_loops_that_raise():
    compared(raising, start)


def solved(slope, y, h):
    path = [y]
    for _ in range(150):
        new = y + h * slope(y)
        if abs(new).max() < 3:
            y = new
            path.append(y)
    return np.array(path)


def decay(y):
    return np.array([y[1], -y[0]])


def cosine(y):
    return np.cos(y)


def scaled(k):
    return lambda y: -y * k


SCALED = [scaled(k) for k in (1.0, 1.5, 0.5)]


def test_functions_as_arguments(ran):
    compared(lambda y: solved(lambda y: -y, y, 0.1), start)
    compared(solved, lambda k: ((decay, cosine)[k % 2], *start(k), 0.1))
    assert ran
    assert all("as one program" in x for x in ran), ran
    compared(solved, lambda k: (SCALED[k], *start(k), 0.1))
    compared(lambda y: solved(scaled(0.3), y, 0.1), start)


def decay_in_place(y):
    y *= 0.99
    return -y


def slope_of_table(y):
    return slope_now(y)


slope_now = cosine


def test_functions_that_are_others_and_write(monkeypatch):
    slopes = [cosine, cosine, decay_in_place, cosine, decay_in_place]
    compared(solved, lambda k: (slopes[k], *start(0), 0.1), calls=5)

    jitted = rune_jit.jit(lambda y: solved(slope_of_table, y, 0.1))
    for slope in slopes:
        monkeypatch.setitem(globals(), "slope_now", slope)
        wanted, given = start(0)[0], start(0)[0]
        assert_same(jitted(given), solved(slope_of_table, wanted, 0.1), ulps=16, scaled=True)
        assert_same(given, wanted)


def change(new, old):
    difference, size = np.sqrt(np.sum((new - old) ** 2)), np.sqrt(np.sum(old**2))
    if size > 1e-12:
        return difference / size
    return difference


def half_change(new):
    return change(new, 0.5 * new)


def relaxed(x):
    p, changes, halves, last, count = x.copy(), [], [], 1.0, 0
    while last > 1e-5 and count < 400:
        before = p.copy()
        p[1:-1] = 0.5 * (before[2:] + before[:-2])
        last = change(p, before)
        changes.append(last)
        halves.append(half_change(p))
        count += 1
    return p, changes, halves, last, count


def test_lists_get_numbers_that_functions_return(ran):
    jitted = compared(relaxed, lambda k: (np.random.default_rng(k).random(30),))
    assert "as one program" in jitted.explain()
    assert not ran


def test_functions_that_return_other_arrays_later(ran, monkeypatch):
    jitted = rune_jit.jit(relaxed)
    for k in range(2):
        jitted(np.random.default_rng(k).random(30))
    monkeypatch.setitem(globals(), "half_change", lambda new: new)
    expected, actual = (f(np.random.default_rng(0).random(30)) for f in (relaxed, jitted))
    assert_same(actual, expected, ulps=64, scaled=True)
    assert all(x is actual[0] for x in actual[2])
    assert not ran


def test_loops_whose_first_call_raises():
    """The loop has not run apart then, so the next call examines it again."""

    def swapped(x, limit):
        new = np.zeros(4)
        old = new
        for k in range(4):
            if x[k] > limit:
                break
            new, old = old, new + x
            if k == 2:
                raise ValueError("no break")
        old += x
        return new, old

    jitted = rune_jit.jit(swapped)
    x = np.arange(1.0, 5.0)
    for limit in (9, 0, 1, 9, 2, 0):
        assert outcome(jitted, x, limit) == outcome(swapped, x, limit)


def test_nested_loops_apart_that_only_exchange_arrays():
    """Each of the two loops numbers the arrays. None makes a new one."""

    def exchanged(x, count):
        new, old, least = x + 0, x, 0
        for i in range(count):
            for _ in x[1:]:
                least = 1.0 * (0 + min(x[i], 0))
                new, old = old, new
        new[0] = least + 9
        return new, old

    jitted = rune_jit.jit(exchanged)
    for count in (3, 2, 1, 3):
        x, y = np.arange(4.0), np.arange(4.0)
        assert outcome(jitted, x, count) == outcome(exchanged, y, count)
        assert_same(x, y)


def outcome(function, *args):
    try:
        new, old = function(*args)
    except ValueError as error:
        return str(error)
    return new.tolist(), old.tolist(), new is old


def two_targets(x):
    number = x[0].tolist()
    for i in range(4):
        v = w = np.ones(4)
        u = z = x * i
    v += number
    u[0] = 5.0
    return v is w, w, u is z, z


def appended_twice(x):
    rows, number = [], x[0].tolist()
    for i in range(6):
        row = np.zeros(3)
        row[0] = i * number
        rows.append(row)
        rows.append(row)
    rows[0][1] = 4.0
    return rows, who_is_who([], rows)


def made_before(x):
    rows, number = [], x[0].tolist()
    row = np.zeros(3)
    for _ in range(6):
        row[0] += number
        rows.append(row)
    return rows, who_is_who([row], rows)


def made_for_some(x):
    rows, number = [], x[0].tolist()
    row = np.zeros(3)
    for i in range(6):
        if i % 2:
            row = np.zeros(3)
        row[0] += number
        rows.append(row)
    return rows, who_is_who([], rows)


def made_for_a_list(x):
    rows, number = [], x[0].tolist()
    for i in range(40):
        row = np.zeros(3)
        row[1] = x[0] * i * number
        rows.append(row)
    return rows, who_is_who([], rows)


@pytest.mark.parametrize(
    "function", [two_targets, appended_twice, made_before, made_for_some, made_for_a_list]
)
def test_arrays_that_an_iteration_makes(function, ran):
    compared(function, start)
    assert bool(ran) == (function in (two_targets, made_for_a_list))
