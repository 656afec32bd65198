"""Loops whose arrays have another shape in every iteration are loops of the program."""

import numpy as np
import pytest
from compare import assert_matches

import rune_jit

RNG = np.random.default_rng(12)


def binomial_tree(v, up):
    for _ in range(len(v) - 1):
        v = 0.99 * (up * v[:-1] + (1 - up) * v[1:])
    return v[0]


def american_option(s, u, strike):
    n = 12
    v = np.maximum(strike - s * u ** (n - 2 * np.arange(n + 1)), 0)
    for i in range(n - 1, -1, -1):
        now = s * u ** (i - 2 * np.arange(i + 1))
        v = np.maximum(strike - now, 0.99 * (0.5 * v[: i + 1] + 0.5 * v[1 : i + 2]))
    return v[0]


def de_casteljau(points, t):
    for _ in range(1, len(points)):
        points = (1 - t) * points[:-1] + t * points[1:]
    return points[0]


def differences(x, y):
    first = []
    for _ in range(6):
        x = np.diff(x)
        first.append(x[0] + y.sum())
    return x, np.array(first)


def both_axes(a, b):
    for _ in range(4):
        a = a[1:, :-1] + a[:-1, 1:]
        b = b + a.sum()
    return a, b


def polynomial(roots, c):
    for r in roots:
        c = np.concatenate([c, [0.0]]) - r * np.concatenate([[0.0], c])
    return c


def grows_by_two(x, y):
    for i in range(5):
        y = np.pad(y, 1) * x[i]
    return y


def with_a_condition(x, y):
    for i in range(8):
        if y[0] > 2:
            y = y * 0.5
        y = y[1:] + x[i]
    return y


CASES = {
    binomial_tree: (RNG.random(30), 0.6),
    american_option: (100.0, 1.03, 101.0),
    de_casteljau: (RNG.random((9, 3)), 0.3),
    differences: (RNG.random(20), RNG.random(3)),
    both_axes: (RNG.random((9, 8)), RNG.random(3)),
    polynomial: (RNG.random(7), np.ones(1)),
    grows_by_two: (RNG.random(5), RNG.random(2)),
    with_a_condition: (RNG.random(8), RNG.random(20) * 5),
}


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_loops_of_the_program(function):
    args = CASES[function]
    jitted = rune_jit.jit(function)
    for _ in range(2):
        assert_matches(jitted(*args), function(*args))
    assert "is unrolled" not in jitted.explain()
    assert any("@loops_" in k or "loop" in k for k in jitted.lower(*args).kernels), jitted.explain()


def ends_early(v, most):
    for _ in range(9):
        if v[0] > most:
            break
        v = v[:-1] + v[1:]
    return v


def writes_to_it(v, x):
    for i in range(6):
        v[0] = x[i]
        v = v[1:] * 2
    return v


def empties_it(v, x):
    for i in range(6):
        v = v[:-1] + x[i]
    return v


def changes_less_later(v, x):
    for i in range(6):
        v = v[1 : 7 - i // 3] + x[i]
    return v


@pytest.mark.parametrize(
    "function, args",
    [
        (ends_early, (np.ones(12), 5.0)),
        (writes_to_it, (RNG.random(9), RNG.random(6))),
        (empties_it, (RNG.random(4), RNG.random(6))),
        (changes_less_later, (RNG.random(9), RNG.random(6))),
    ],
)
def test_other_changes_are_as_numpy(function, args):
    jitted = rune_jit.jit(function)
    for _ in range(2):
        mine, theirs = [np.copy(x) for x in args], [np.copy(x) for x in args]
        assert_matches(jitted(*mine), function(*theirs))
        assert_matches(mine, theirs)


def trajectory(x, dt, most):
    x, rows, t = x.copy(), x, 0
    while t <= most:
        x[0] += x[1] * dt
        rows = np.vstack((rows, x))
        t += dt
    return rows


def until_it_is_large(x, dt, most):
    for _ in range(20):
        x = np.append(x, x[-1] + dt)
        if x[-1] > most:
            break
    return x


def shrinks_until_it_is_large(x, dt, most):
    while x[0] < most:
        x = x[1:] + dt
    return x


def may_be_left_at_once(x, dt, most):
    for i in range(10):
        if x[i] > most:
            break
        x = np.append(x, x[0] * dt)
    return x


@pytest.mark.parametrize(
    "function", [trajectory, until_it_is_large, shrinks_until_it_is_large, may_be_left_at_once]
)
def test_conditions_that_end_such_loops(function):
    """How often the loop runs, and so the shape afterwards, is another one at each call."""
    jitted = rune_jit.jit(function)
    for most in (1.0, 1.0, 0.5, 1.5, 0.7):
        x = np.linspace(0.1, 0.9, 9)
        assert_matches(jitted(x, 0.125, most), function(x, 0.125, most))
