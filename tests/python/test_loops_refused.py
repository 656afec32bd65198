"""What loops of the program may not do: their iterations run one by one."""

from __future__ import annotations

import time

import numpy as np
import pytest
from loop_checks import both, refused, rolled
from test_loops import x

import rune_jit


def test_lists_and_objects_see_every_iteration() -> None:
    def inserts(x):
        found = []
        for i in range(6):
            found.insert(1, x[i] * 2)
        return found

    def counts(x):
        seen = {"count": 0}
        for i in range(6):
            x[i] = 0
            seen["count"] += 1
        return x * seen["count"]

    def grows(x):
        rows = [x]
        for i in range(6):
            rows += [x[i]]
        return len(rows)

    refused("it changes a list", inserts, x())
    both(counts, x())
    both(grows, x())


def test_what_has_no_selection_runs_at_each_iteration() -> None:
    def types(x):
        s = 0
        for i in range(x.shape[0]):
            if x[i] > 3:
                s = x[i]
        return s

    def arrays(x):
        y = x
        for i in range(x.shape[0]):
            if x[i] > 3:
                y = x * 2
        return y

    def unbound(x):
        for i in range(x.shape[0]):
            if x[i] > 0:
                last = x[i]
        return last

    def shapes(x):
        y = x
        while y[0] < 3:
            y = y + 1
        return y

    for function in (types, arrays, unbound, shapes):
        jitted = rune_jit.jit(function)
        for _ in range(2):
            np.testing.assert_array_equal(jitted(x()), function(x()))


def test_errors_are_pythons() -> None:
    def divides(x):
        s = 1.0
        for i in range(6):
            s = 1 / i
            x[i] = s
        return x

    def out_of_bounds(x):
        for i in range(x.shape[0] + 1):
            x[i] = 0

    def handled(x):
        try:
            for i in range(x.shape[0] + 3):
                x[i] = i
        except IndexError:
            return x
        return -x

    for function, error in ((divides, ZeroDivisionError), (out_of_bounds, IndexError)):
        with pytest.raises(error):
            rune_jit.jit(function)(x())
    both(handled, x())

    def overflows(x):
        for i in range(x.shape[0]):
            x[i] = i * 2
        return x

    with pytest.raises(OverflowError):
        rune_jit.jit(overflows)(x(200, np.int8))


def test_functions_with_effects_are_not_called_once() -> None:
    calls = []

    def noted(a):
        calls.append(1)
        return a * 2

    def f(x):
        for i in range(6):
            x[i] = noted(x[i])
        return x

    np.testing.assert_array_equal(rune_jit.jit(f)(x()), f(x()))
    assert len(calls) == 12


def test_the_reason_names_what_the_user_called() -> None:
    def f(x):
        for i in range(6):
            time.sleep(0)
            x[i] += 1
        return x

    jitted = rune_jit.jit(f)
    np.testing.assert_array_equal(jitted(x()), f(x()))
    assert "it uses sleep" in jitted.explain()


def test_keys_that_the_counter_decides() -> None:
    table = {i: [(0.5, i), (0.25, (i + 1) % 8)] for i in range(8)}

    def f(x):
        for i in range(len(x)):
            for weight, at in table[i]:
                x[i] += weight * x[at]
        return x

    refused("it looks up a key that depends on its counter", f, np.arange(8.0))


def test_locals_are_seen() -> None:
    def f(x):
        for i in range(6):
            x[i] = i
        return x, sorted(locals())

    both(f, x())


def test_variables_that_eval_may_read() -> None:
    def f(x):
        for i in range(6):
            x[i] = i
        return x, eval("i")

    refused("the function calls eval", f, x())


def test_what_follows_needs_to_know_a_number() -> None:
    def f(x):
        n = np.int64(0)
        for _i in range(5):
            n = n + 1
        return x[: int(n)]

    both(f, x())


def test_break_and_else_and_return() -> None:
    def breaks(x, k):
        for i in range(x.shape[0]):
            if i == k:
                break
            x[i] = 0
        else:
            x[0] = 7
        return x

    def returns(x):
        for i in range(x.shape[0]):
            x[i] = 0
            if i == 3:
                return x
        return -x

    rolled(breaks, x(), 4)
    rolled(breaks, x(), 40)
    rolled(returns, x())


def test_where_arrays_that_a_loop_carries_lie() -> None:
    def shares(x):
        w, n = x, np.zeros(2)
        for _ in range(5):
            if np.shares_memory(w, x):
                n[0] += 1
            w = x * 2
        return w, n

    def owns(x):
        w, n = x[:3], np.zeros(2)
        for _ in range(5):
            n[0] += w.flags.owndata
            w = x[:3] * 2
        return w, n

    def strides(x):
        w, n = x[::-1], np.zeros(2)
        for _ in range(5):
            n[0] += w.strides[0] > 0
            w = x * 2
        return w, n

    def base(x):
        w, n = x[:3], np.zeros(2)
        for _ in range(5):
            n[0] += w.base is not None
            w = x[:3] * 2
        return w, n

    for function in (shares, owns, strides):
        refused("how an array that it carries lies in memory", function, x())
    both(base, x())


def test_writes_to_what_another_name_has_taken_over() -> None:
    def takes(x, rows):
        u = np.zeros(4)
        w = u
        for i in range(4):
            u, w = w, u + 1
            if x[i] > 2:
                w = rows[i]
        u[0] += 1  # perhaps a row
        return u.sum()

    for values in ([0, 0, 0, 0], [3, 0, 3, 0], [0, 0, 0, 5], [5, 5, 5, 5]):
        refused(
            "an array is written to that may be the same as another one",
            takes,
            np.array(values),
            np.arange(16.0).reshape(4, 4),
        )


def test_the_reason_is_told_if_unrolled_loops_are_too_large() -> None:
    def f(x):
        total = 0.0
        for i in range(len(x)):
            name = f"{i}"
            total = total + np.sin(x[i]) * len(name)
        return total

    jitted = rune_jit.jit(f)
    for _ in range(2):
        jitted(np.ones(2000))
    text = jitted.explain()
    assert "f: on NumPy: trace: cannot make one program of more than" in text
    assert "is unrolled: an f-string" in text
