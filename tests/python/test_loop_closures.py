"""Loops that call functions which assign variables of outer functions, and loops that assign such
variables themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from loop_checks import both, refused, rolled

import rune_jit

X = np.random.default_rng(5).normal(size=40)


def test_sums_and_filters() -> None:
    def f(x: Any) -> Any:
        total, state, count = 0.0, x[0] * 0, 0

        def add(value: Any) -> None:
            nonlocal total, count
            total += value
            count += 1

        def step(value: Any) -> Any:
            nonlocal state
            state = 0.9 * state + 0.1 * value
            add(state * 2)
            return state

        out = np.empty(len(x))
        for i in range(len(x)):
            out[i] = step(x[i]) + total
        return out, total, state, count

    rolled(f, X, ulps=8)


def test_conditions() -> None:
    def f(x: Any) -> Any:
        best, at, total = x[0], 0, 0.0

        def visit(value: Any, i: int) -> None:
            nonlocal best, at
            if value > best:
                best, at = value, i

        def add(value: Any) -> None:
            nonlocal total
            total = total + value

        for i in range(1, len(x)):
            visit(x[i], i)
            if x[i] > 0:
                add(x[i])
            else:
                add(1.0)
        return best, at, total

    rolled(f, X, ulps=8)


def test_closures_of_their_own() -> None:
    def f(x: Any) -> Any:
        def make(rate: float) -> Any:
            y = 0.0

            def step(value: Any) -> Any:
                nonlocal y
                y = (1 - rate) * y + rate * value
                return y

            return step

        fast, slow = make(0.5), make(0.1)
        out = []
        for value in x:
            out.append(fast(value) - slow(value))
        return np.array(out), fast(1.0)

    rolled(f, X, ulps=8)


def test_loops_that_assign_variables_of_outer_functions() -> None:
    def f(x: Any) -> Any:
        total, count = 0.0, 0

        def feed(values: Any) -> Any:
            nonlocal total
            for value in values:
                total = 0.5 * total + value
            return total

        def count_up(values: Any) -> None:
            nonlocal count
            for value in values:
                if value > 0:
                    count += 1

        first = feed(x[:20])
        count_up(x)
        return first, feed(x[20:]), total, count

    rolled(f, X, ulps=8)


def test_arrays() -> None:
    def f(x: Any) -> Any:
        state, kept = x * 0, x

        def step(value: Any) -> None:
            nonlocal state, kept
            kept = state
            state = state * 0.5 + value

        for i in range(20):
            step(x[i])
        return state, kept

    rolled(f, X, ulps=8)


def test_variables_outside_of_the_traced_function() -> None:
    total = 0.0

    def add(value: Any) -> None:
        nonlocal total
        total = total + value

    def f(x: Any) -> Any:
        for value in x:
            add(value)
        return total * 2

    jitted = rune_jit.jit(f)
    wanted, totals = [], []
    for _ in range(4):
        wanted.append(f(X))
        totals.append(total)
    total = 0.0
    for result, left in zip(wanted, totals, strict=True):
        assert jitted(X) == pytest.approx(result)
        assert total == pytest.approx(left)


def test_variables_that_change_their_kind() -> None:
    def f(x: Any) -> Any:
        last: Any = None

        def difference(value: Any) -> Any:
            nonlocal last
            found = 0.0 if last is None else value - last
            last = value
            return found

        total = 0.0
        for value in x:
            total += difference(value)
        return total, last

    assert both(f, X, ulps=8)


def test_a_variable_that_the_loop_and_a_function_assign() -> None:
    def f(x: Any) -> Any:
        total = 0.0

        def double() -> None:
            nonlocal total
            total = total * 2

        for value in x:
            total += value
            double()
        return total

    refused("total is no local variable", f, X[:10])


def test_global_variables() -> None:
    def f(x: Any) -> Any:
        global COUNT
        for value in x:
            count(value)
        return COUNT * 1.0

    jitted = rune_jit.jit(f)
    global COUNT
    for k in range(1, 4):
        COUNT = 0
        expected = f(X)
        COUNT = 0
        assert jitted(X) == expected == COUNT, k


COUNT = 0


def count(value: Any) -> None:
    global COUNT
    COUNT += 1


def test_functions_that_share_a_variable_see_what_one_assigns() -> None:
    def make() -> Any:
        total = 0.0

        def add(value: Any) -> None:
            nonlocal total
            total = total + value

        def f(x: Any) -> Any:
            add(x[0] + 1)
            return total * 2

        return f

    wanted, jitted = make(), rune_jit.jit(make())
    for _ in range(5):
        assert jitted(X) == wanted(X)


def test_a_loop_assigns_global_variables() -> None:
    def f(x: Any) -> Any:
        global TOTAL, STEPS
        for value in x:
            TOTAL += value
            if value > 0.5:
                STEPS += 1
            count(value)
        return TOTAL * 2

    global TOTAL, STEPS, COUNT
    jitted = rune_jit.jit(f)
    for _ in range(4):
        found = []
        for function in (f, jitted):
            TOTAL, STEPS, COUNT = 0.5, 0, 0
            found.append((function(X), TOTAL, STEPS, COUNT))
            found[-1] += tuple(map(type, found[-1]))
        assert found[1] == found[0]
    assert "is a loop of the program" in jitted.explain()


def test_a_loop_assigns_a_global_variable_and_raises() -> None:
    def f(x: Any) -> Any:
        global STEPS
        for value in x:
            if value > 0.9:
                raise ValueError(f"{value:.3f} after {STEPS}")
            STEPS += 1
        return STEPS

    global STEPS
    jitted = rune_jit.jit(f)
    for x in (X * 0.1, X, X * 0.2, X):
        found = []
        for function in (f, jitted):
            STEPS = 0
            try:
                found.append((function(x), STEPS))
            except ValueError as error:
                found.append((str(error), STEPS))
        assert found[1] == found[0]


TOTAL, STEPS = 0.5, 0


def relaxed(x: Any) -> Any:
    """A script: its functions read what its loops assign."""
    source = x * 0

    def smooth(p: Any) -> Any:
        for _ in range(5):
            p = 0.5 * p + source
        return p

    p, error, count = x.copy(), 1.0, 0
    while error > 1e-6:
        source = np.sin(p) * 0.1
        before = p.copy()
        p = smooth(p)
        error = np.abs(p - before).max()
        count += 1
    return p, count, source


def bounded(x: Any) -> Any:
    u = np.zeros(len(x))

    def set_ends() -> None:
        u[0], u[-1] = 1.0, x[0]

    for _ in range(8):
        u = u + 0.1 * x
        set_ends()
    return u


def bisected(x: Any) -> Any:
    low, high = 0.0, 9.0

    def middle() -> Any:
        return (low + high) / 2

    def is_high() -> Any:
        return middle() ** 2 > abs(x[0])

    for _ in range(60):
        if is_high():
            high = middle()
        else:
            low = middle()
        if high - low < 1e-9:
            break
    return middle(), low, high


def of_counters(x: Any) -> Any:
    def product(j: Any) -> Any:
        return i * j + n

    n, out = 0, np.zeros(len(x))
    for i in range(len(x)):
        for j in range(5):
            out[i] += product(j) * x[j]
        n += 2
    return out, n


def of_first_assigned(x: Any) -> Any:
    def doubled() -> Any:
        return value * 2

    out = np.zeros(len(x))
    for i in range(len(x)):
        if x[i] > 0:  # noqa: SIM108
            value = x[i]
        else:
            value = -3 * x[i]
        out[i] = doubled()
    return out, value


def of_containers(x: Any) -> Any:
    state = [x[0], 0.0]
    add = lambda v: state[0] + v  # noqa: E731

    total = x[0] * 0
    for i in range(len(x)):
        state = [x[i], state[0]]
        total = total + add(state[1])
    return total, state


@pytest.mark.parametrize(
    "function", [relaxed, bounded, bisected, of_counters, of_first_assigned, of_containers]
)
def test_functions_that_read_what_loops_assign(function: Any) -> None:
    rolled(function, X, ulps=64)


def test_functions_that_read_what_loops_in_segments_assign() -> None:
    def f(x: Any) -> Any:
        scale, kept = 1.0, []

        def scaled(v: Any) -> Any:
            return v * scale

        first = x[0].tolist()
        for i in range(len(x)):
            scale = scale + 0.5
            if scaled(x[i]) > first:
                kept.append(i)
        return kept, scale

    both(f, X)


def test_a_loop_that_makes_a_global_variable_is_not_traced_before_the_variable_exists() -> None:
    """Its iterations would be traced one by one, and the trace refused at its end."""

    def f(x: Any) -> Any:
        global LAST
        for i in range(len(x)):
            LAST = i * 2
        return x * LAST

    for _ in range(2):
        globals().pop("LAST", None)
        with pytest.raises(rune_jit.UnsupportedOpError, match="makes the global LAST"):
            rune_jit.jit(f).lower(X)
        assert "LAST" not in globals()
    jitted = rune_jit.jit(f)
    for _ in range(3):
        np.testing.assert_array_equal(jitted(X), f(X))
        assert globals()["LAST"] == 2 * len(X) - 2
