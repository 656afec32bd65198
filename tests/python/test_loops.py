"""Loops of the traced function that become loops of the program, and those that do not."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from compare import assert_same
from loop_checks import ROLLED, both, refused, rolled
from loop_programs import PROGRAMS

import rune_jit
from rune_jit.capture.loops.source import with_loops


@pytest.mark.parametrize("n", (0, 1, 2, 3, 4, 5, 8, 13))
@pytest.mark.parametrize("number", range(len(PROGRAMS)), ids=[f.__name__ for f, _ in PROGRAMS])
def test_programs(number: int, n: int) -> None:
    function, make = PROGRAMS[number]
    args = make(np.random.default_rng(n), n)
    try:
        with np.errstate(all="ignore"):
            function(*(x.copy() for x in args))
    except (IndexError, ValueError, UnboundLocalError):
        pytest.skip("NumPy refuses arrays of this size")
    both(function, *args, ulps=64)


def x(n: int = 9, dtype: Any = np.float64) -> np.ndarray:
    return np.arange(1, n + 1).astype(dtype)


# What is carried.


def test_numbers_are_carried() -> None:
    def f(x):
        s, c, last = 0.0, np.float32(1), True
        for i in range(x.shape[0]):
            s = s + x[i]
            c = c * np.float32(0.5)
            last = x[i] > 3
        return s, c, last

    rolled(f, x())


def test_a_python_float_stays_one() -> None:
    def f(x):
        factor = 1.0
        for i in range(x.shape[0]):
            factor *= 0.5
            x[i] *= factor
        return x, factor

    rolled(f, x())
    rolled(f, x(dtype=np.float32))


def test_a_python_integer_of_unknown_size_is_not_carried() -> None:
    def f(x):
        k = 1
        for i in range(x.shape[0]):
            k = k * 1000 + i
            x[i] += k % 7
        return x, k

    refused("k is a Python integer of unknown size", f, x(30))


def test_arrays_are_written_through_views() -> None:
    def f(x):
        half, flat = x[::2], x[1:].reshape(-1)
        for i in range(half.shape[0]):
            half[i] += flat[i]
            flat[-1 - i] *= 2
        return half.sum()

    rolled(f, x(12))


def test_an_array_from_outside_is_written() -> None:
    held = np.zeros(8)

    def f(x):
        for i in range(8):
            held[i] = held[i] + x[i]
        return held * 2

    jitted = rune_jit.jit(f)
    for count in (1, 2, 3):
        np.testing.assert_array_equal(jitted(x(8)), count * 2 * x(8))
        np.testing.assert_array_equal(held, count * x(8))
    assert ROLLED in jitted.explain()


def test_names_that_exchange_arrays() -> None:
    def f(x):
        a, b = x, x * 2
        for i in range(6):
            a, b = b, a + b * i
        a[0] = -1
        return a, b, x

    rolled(f, x())

    def g(x, y):
        for i in range(6):
            x, y = y, x
            x[i] = i
        return x, y

    both(g, x(), x() * 2)


def test_views_of_what_is_written_are_not_values() -> None:
    def f(x):
        row = x[0]
        for i in range(5):
            x[i] = x[i] + row
            row = x[i]
        return x, row

    both(f, np.ones((5, 3)))


def test_the_counter_and_other_names_after_the_loop() -> None:
    def f(x):
        for i in range(1, x.shape[0], 2):
            t = x[i] * 2
            row = x + i
        return i, t, row

    rolled(f, x())


# What loops may do.


def test_nested_and_triangular_loops() -> None:
    def f(a):
        for i in range(a.shape[0]):
            for j in range(i, -1, -1):
                for k in range(j + 1, a.shape[0], 2):
                    a[i, j] += a[k, j] * a[i, k]
        return a

    rolled(f, np.arange(36.0).reshape(6, 6) % 5)


def test_rows() -> None:
    def f(a, v):
        s = np.zeros(a.shape[1])
        for row in a:
            s += row * v
            row[0] = 0
        t = 0.0
        for e in v:
            t = t + e
        return s, t

    rolled(f, np.arange(20.0).reshape(5, 4), x(4))


def test_enumerate_and_zip() -> None:
    def f(a, b, v):
        s = np.float64(0)
        for i, row in enumerate(a):
            row += v * i
            s = s + row[0]
        for p, q in zip(a, b):  # noqa: B905
            q[:] = p * 2
            s = s + q.sum()
        return s, i

    rolled(f, np.arange(20.0).reshape(5, 4), np.ones((7, 4)), x(4))

    def others(a):
        s = a[0] * 0
        for i, row in enumerate(a, 3):
            s = s + row * i
        for row, k in zip(a, (1, 2, 3, 4)):  # noqa: B905
            s = s + row * k
        return s

    both(others, np.arange(20.0).reshape(5, 4))


def test_counters_beside_the_index() -> None:
    def f(x):
        k, back = 0, x.shape[0] - 1
        for i in range(2, x.shape[0] - 2):
            x[k] += i
            x[back] *= 2
            k += 1
            back = back - 1
        x[k] = -1
        return x, k, back

    def own(x):
        for i in range(x.shape[0]):
            i += 1
            x[i - 1] = i
        return x, i

    rolled(own, x(12))

    def nested(x):
        k = 0
        for i in range(3, 8):
            for j in range(4):
                x[i] += x[j] * k
                k += 1
        return x, k

    rolled(f, x(12))
    both(nested, x(12))


def test_called_functions() -> None:
    def inner(a, k):
        total = np.float64(0)
        for j in range(a.shape[0]):
            total = total + a[j] * k
        a[k] = total
        return total

    def f(x):
        s = np.float64(1)
        for i in range(x.shape[0]):
            s = s + inner(x, i)
        return s

    rolled(f, x())


def test_loops_in_called_functions_and_closures() -> None:
    weight = np.float64(0.5)

    def inner(a):
        for i in range(1, a.shape[0]):
            a[i] += weight * a[i - 1]
        return a

    rolled(lambda x: inner(x) * 2, x())


def test_the_first_and_last_iterations_may_differ() -> None:
    def f(x):
        y = np.zeros_like(x)
        for i in range(x.shape[0]):
            if i == 0 or i == x.shape[0] - 1:
                y[i] = x[i]
            else:
                y[i] = x[i - 1] + x[i + 1]
        return y

    rolled(f, x())


def test_continue_and_conditions_that_are_known() -> None:
    def f(x, how):
        for i in range(x.shape[0]):
            if how == "twice":
                x[i] *= 2
                continue
            x[i] = 0
        return x

    rolled(f, x(), "twice")
    rolled(f, x(), "not")


def test_loops_in_loops_that_run_all_iterations() -> None:
    def f(x):
        for axis in range(4):
            if axis % 2:
                for i in range(x.shape[0]):
                    x[i] = x[i] + axis
        return x

    assert both(f, x())


def test_large_counts_compile_at_once() -> None:
    def f(x):
        s = np.float64(0)
        for i in range(100_000):
            s = s * 0.5 + x[i % 1] * i
        return s

    both(f, x())


# Branches.


def test_branches_on_values_select() -> None:
    def f(x, y):
        count, last, weight = np.int64(0), x[0], 1.0
        for i in range(x.shape[0]):
            if x[i] > 3:
                x[i] = -x[i]
                y[i] += x[i - 1]
                count = count + 1
                last = x[i] * 2
            elif y[i] > 2:
                weight *= 0.5
                y[:i] = 0
            else:
                row = y * 2
                row[0] = x[i]
                last = row.sum()
        return count, last, weight, x

    for shift in range(6):
        rolled(f, np.roll(x(), shift), np.roll(x(), 2 * shift) / 2)


def test_branches_on_the_counter_select() -> None:
    def f(a):
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                if i < j:
                    a[i, j] = a[j, i]
                elif (i + j) % 3 == 0:
                    a[i, j] *= 2
        return a

    rolled(f, np.arange(36.0).reshape(6, 6))


def test_an_else_side_sees_what_was_before() -> None:
    def f(b):
        t = b[1]
        for i in range(b.shape[0]):
            if i % 2:
                t = t + b[0]
            else:
                b[i] = t
            t = b[0]
        return b

    rolled(f, x(dtype=np.int64))


def test_returns_under_conditions() -> None:
    def clipped(a):
        if a > 5:
            return a * 2
        elif a < 2:
            return a - 1
        return a

    def score(a, b):
        if a + b == 7:
            return 1
        return 0

    def f(x):
        y = np.zeros(x.shape, np.int32)
        for i in range(1, x.shape[0]):
            x[i] = clipped(x[i]) + clipped(x[i - 1])
            y[i] = max(y[i - 1], y[i] + score(i, x[i]), min(x[i], 3.0) > 2)
        return x, y

    both(f, x())

    def g(x):
        y = np.zeros(x.shape, np.int64)
        for i in range(1, x.shape[0]):
            y[i] = max(y[i - 1], y[i] + score(i, x[i]))
        return y

    rolled(g, x(dtype=np.int64))


def test_bounds_that_depend_on_outer_counters() -> None:
    def f(a, s):
        n = a.shape[0]
        for i in range(n - 1, -1, -1):
            for j in range(i + 1, n):
                if i + 1 < n and j - 1 >= 0:
                    if i < j - 1:
                        a[i, j] = max(a[i, j], a[i + 1, j - 1] + s[j])
                    else:
                        a[i, j] = max(a[i, j], a[i + 1, j - 1])
                for k in range(i + 1, j):
                    a[i, j] = max(a[i, j], a[i, k] + a[k + 1, j])
        return a

    rolled(f, np.arange(49.0).reshape(7, 7) % 5, x(7))


# Source.


def test_code_without_source_runs_all_iterations() -> None:
    names: dict[str, Any] = {}
    exec("def f(x):\n    for i in range(6):\n        x[i] = i\n    return x\n", names)
    assert both(names["f"], x()) == []


def test_methods_decorators_and_defaults_keep_their_meaning() -> None:
    def doubled(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return 2 * function(*args, **kwargs)

        return wrapper

    class Model:
        rate = 0.5

        @doubled
        def run(self, x, *, scale=3.0, steps: int = 7):
            rate = self.rate
            for _i in range(steps):
                x = x * rate + scale
            return x

    jitted = rune_jit.jit(Model().run)
    np.testing.assert_array_equal(jitted(x()), Model().run(x()))
    np.testing.assert_array_equal(jitted(x(), steps=9), Model().run(x(), steps=9))
    assert ROLLED in jitted.explain()


def test_lines_of_errors_are_the_sources() -> None:
    def f(x):
        for i in range(6):
            x[i] = 0
            np.add(x, np.ones(4))

    with pytest.raises(ValueError, match="broadcast") as raised:
        rune_jit.jit(f)(x())
    lines = [entry.lineno for entry in raised.traceback if entry.path.name == "test_loops.py"]
    assert lines[-1] == f.__code__.co_firstlineno + 2  # pytest counts from 0


def test_code_that_is_not_its_source_is_left_alone() -> None:
    def f(x):
        for i in range(6):
            x[i] = i
        return x

    assert with_loops(f) is not f.__code__
    changed = f.__code__.replace(co_consts=(None, 7))
    g = type(f)(changed, f.__globals__)
    assert with_loops(g) is g.__code__
    np.testing.assert_array_equal(rune_jit.jit(g)(x()), g(x()))


step = width = 0


def test_variables_of_comprehensions_in_loops_are_no_globals() -> None:
    def smoothed(x: Any, n: int) -> Any:
        for _ in range(n):
            total = sum(np.roll(x, step) for step in (-1, 1) if step)
            x = total * 0.5 + (lambda width: width * 0.1)(x)
        return x

    global step, width
    f = rune_jit.jit(smoothed)
    x = np.linspace(-1, 1, 20)
    for k in range(3):
        step = width = k
        np.testing.assert_allclose(f(x, 3), smoothed(x, 3), rtol=1e-14)
    assert f.cache_info().misses == 1


def test_a_view_stands_for_a_name_until_the_loop_assigns_it() -> None:
    """The loop writes to the array that `row` is a view of; no iteration may run."""

    def f(x, y):
        row, i = x[1], 0
        while i < len(y) and x[-1].sum() % 2 == 0:
            x[1:] -= x[:-1] * y[i]
            row = y + x[0]
            i += 1
        return row

    x = np.arange(49, dtype=np.int32).reshape(7, 7) % 5
    jitted = rune_jit.jit(f)
    for last in (0, 1):
        x[-1] = [last, 2, 4, 6, 4, 2, 0]
        y = np.array([4, 1, 3, 2, 2, 0, 1], np.int32)
        assert_same(jitted(x.copy(), y), f(x.copy(), y))
    assert "is a loop of the program" in jitted.explain()
