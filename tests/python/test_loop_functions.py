# ruff: noqa: B023, E731
"""Functions that are defined in the bodies of loops, and see the variables of their iteration. Also
functions that name themselves."""

from __future__ import annotations

import numbers as numbers_abc

import numpy as np
import pytest
from loop_checks import both, rolled

import rune_jit

numbers = np.random.default_rng(0).standard_normal(30)


def test_lambdas() -> None:
    def f(x):
        out = np.zeros(len(x))
        for i in range(len(x)):
            square = lambda t: t * t - x[i] * t + i
            out[i] = square(0.5) + square(1.5)
        return out

    rolled(f, numbers, ulps=1)


def test_functions_that_read_what_the_loop_carries() -> None:
    def f(x):
        s = 0.0
        for i in range(len(x)):
            scale = 0.5 + x[i] ** 2

            def step(t, scale=scale):
                grown = t * scale
                return grown + s / (1 + scale)

            s = step(x[i]) - step(0.1)
        return s

    rolled(f, numbers, ulps=8)


def test_a_variable_that_is_assigned_behind_the_function() -> None:
    def f(x):
        k = np.float64(0)
        total = np.float64(0)
        for i in range(len(x)):

            def now(t):
                return t + k

            total += now(1.0)
            k = k + x[i]
            total += now(x[i])
        return total

    rolled(f, numbers, ulps=8)


def test_functions_in_nested_loops() -> None:
    def f(x):
        out = np.zeros(len(x))
        for i in range(len(x)):
            s = x[i]

            def outer(t):
                return t * s

            for j in range(5):

                def inner(t):
                    return outer(t) + x[j] * i

                out[i] += inner(j)
        return out

    rolled(f, numbers, ulps=8)


def test_what_an_inner_loop_changes_is_seen() -> None:
    def f(x):
        total = np.float64(0)
        for i in range(len(x)):
            s = x[i]

            def seen(t):
                return t * s

            for _ in range(5):
                s = s + seen(0.5)
            total = total + s
        return total

    rolled(f, numbers, ulps=8)


def test_functions_that_outlive_their_iteration() -> None:
    def after(x):
        for i in range(len(x)):

            def last(t):
                return t + x[i]

        return last(1.0)

    def kept(x):
        made = []
        for i in range(len(x)):
            made.append(lambda t: t + x[i])
        return [g(1.0) for g in made]

    def carried(x):
        g = lambda t: t
        total = np.float64(0)
        for i in range(len(x)):
            total = total + g(x[i])
            g = lambda t: t + i
        return total

    def counted(x):
        calls = 0
        total = np.float64(0)
        for i in range(len(x)):

            def step(t):
                nonlocal calls
                calls += 1
                return t * i

            total += step(x[i])
        return total, calls

    for function in (after, kept, carried, counted):
        lines = both(function, numbers, ulps=8)
        assert any("is unrolled" in line for line in lines), lines


@pytest.mark.parametrize("bound", (0.0, 10.0))
def test_functions_under_conditions(bound: float) -> None:
    def f(x, bound):
        out = np.zeros(len(x))
        for i in range(len(x)):
            g = lambda t: t * x[i]
            if x[i] < bound:
                out[i] = g(2.0)
            else:
                out[i] = g(i)
        return out

    rolled(f, numbers, bound)


def test_functions_that_ask_for_classes() -> None:
    def cost(v):
        c = np.squeeze(-np.sum(v) / 3)
        if not isinstance(c, float):
            raise TypeError("no number")
        return c

    def square(v):
        if isinstance(v, (list, tuple)):
            return sum(v)
        if isinstance(v, np.ndarray):
            return v.sum()
        if isinstance(v, numbers_abc.Integral):
            return v * 2
        return v * v

    def f(x):
        total, kinds, out = 0, np.zeros(len(x)), np.zeros(len(x))
        for i in range(len(x)):
            if isinstance(total, float):  # not in the first iteration
                kinds[i] = 1
            total = total + cost(x * i)
            out[i] = square(x[i]) + square((x[i], 1.0)) + square(i) + square(x[:3])
        return total, kinds, out

    rolled(f, numbers, ulps=64)


def test_classes_of_numbers_that_may_be_pythons() -> None:
    def f(x):
        last, out = 0.0, np.zeros((len(x), 2))
        for i in range(len(x)):
            if x[i] > 0.5:
                last = x[i]
            out[i] = isinstance(last, float), isinstance(last, np.floating)
        return out

    both(f, numbers)

    def g(x):
        last, out = 0.0, np.zeros(len(x))
        for i in range(len(x)):
            if x[i] > 0.5:
                last = x[i]
            out[i] = isinstance(last, float)
        return out

    rolled(g, numbers)


def summed_in_halves(x, n):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * i
    return total if n == 0 else total + summed_in_halves(x * 0.5, n - 1)


class Largest:
    __least = -1.0

    def max(self, x):
        best = self.__least
        for i in range(x.shape[0]):
            best = max(best, x[i])
        return best


@pytest.mark.parametrize("function", [summed_in_halves, Largest.max, Largest().max])
def test_functions_that_name_themselves_are_read(function):
    """A function that calls itself; a method that has the name of a function that it calls, and
    reads a name that begins with two underscores."""
    x = np.random.default_rng(0).normal(size=40)
    arguments = (x, 2) if function is summed_in_halves else (x,)
    if function is Largest.max:
        arguments = (Largest(), x)
    jitted = rune_jit.jit(function)
    for _ in range(2):
        np.testing.assert_allclose(jitted(*arguments), function(*arguments), rtol=1e-12)
    assert "is a loop of the program" in jitted.explain()
