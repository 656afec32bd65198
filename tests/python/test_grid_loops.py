"""Loops over np.ndindex, itertools.product and itertools.repeat as loops of the program."""

from __future__ import annotations

import itertools
import itertools as it
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from loop_checks import both, refused, rolled

import rune_jit

X = np.random.default_rng(0).random((9, 8))


def _ramp(x):
    for i, j in np.ndindex(x.shape[0], x.shape[1]):
        x[i, j] = i * 10 + j


def _of_a_shape(x):
    s = 0.0
    for pos in np.ndindex(x.shape):
        s += x[pos] * pos[0]
    return s


def _of_a_starred_shape(x):
    out = np.zeros(x.shape[::-1])
    for i, j in np.ndindex(*x.shape):
        out[j, i] = x[i, j]
    return out


def _of_numpys_integers(x):
    m, n = np.array(x.shape)
    for i, j in np.ndindex(m, n):
        x[i, j] += i
    return x


def _of_four_axes(x):
    y = x.reshape(3, 3, 4, 2)
    least = np.full(4, 10.0)
    for at in np.ndindex(y.shape):
        least[at[2]] = min(least[at[2]], y[at])
    return least


def _recurrence(x):
    for i, j in product(range(1, x.shape[0]), range(x.shape[1] - 1, 0, -2)):
        if j == 3:
            continue
        x[i, j] = x[i - 1, j] + x[i, j - 1]
    return x


def _repeated(x):
    s = np.zeros(3)
    for i, j in it.product(range(7), repeat=2):
        s[0] += x[i, j]
        s[1] = max(s[1], x[i, j])
        s[2] = i + j
    return s, i, j


def _last_position(x):
    pos = None
    for pos in itertools.product(range(5), range(6)):
        x[pos] = 0
    return x, pos


def _in_a_loop(x):
    out = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j, k in np.ndindex(x.shape[1], 5):
            out[i, j] += x[i, k] * j
    return out


def _to_the_counter(x):
    out = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j, k in np.ndindex(i, x.shape[1]):
            out[i, k] += x[j, k]
    return out


def _within_another(x):
    best = np.zeros(x.shape, bool)
    for at in np.ndindex(x.shape):
        value = x[at]
        for offset in np.ndindex(4, 4):
            near = tuple((p + o - 2) % n for p, o, n in zip(at, offset, x.shape, strict=True))
            best[at] |= x[near] > value
    return best


def _steps(x):
    y = np.zeros(8)
    for _ in it.repeat(None, 50):
        y = y * 0.9 + x[0]
    return y


def _steps_with_a_value(x):
    s = 0.0
    for by in itertools.repeat(0.5, 20):
        s = s * by + x[0, 0]
    return s


ROLLED = [
    *(_ramp, _of_a_shape, _of_a_starred_shape, _of_numpys_integers, _of_four_axes, _recurrence),
    *(_repeated, _last_position, _in_a_loop, _to_the_counter, _within_another, _steps),
    _steps_with_a_value,
]


@pytest.mark.parametrize("function", ROLLED, ids=lambda f: f.__name__[1:])
def test_rolled(function: Callable[..., Any]) -> None:
    rolled(function, X, ulps=2)


def _left(x):
    for i, j in np.ndindex(*x.shape):
        if x[i, j] > 0.9:
            return i, j
    return None


def _broken(x):
    found = -1, -1
    for found in product(range(9), range(8)):
        if x[found] > 0.9:
            break
    else:
        return None
    return found


def _of_lists(x):
    s = 0
    for a, b in product([1, 2, 3, 4], range(5)):
        s = s + a * x[b, 0]
    return s


def _of_three_items(x):
    s = 0.0
    for a, b, c in product(range(2), "ab", range(3)):
        s = s + x[a, c] * (b == "a")
    return s


def _empty(x):
    at = -1
    for at in np.ndindex(0, 4):  # noqa: B007
        x[0] = 1
    for at in np.ndindex(4, 0):  # noqa: B007
        x[1] = 1
    for at in np.ndindex():
        x[0, 0] += len(at)
    for at in np.ndindex(()):  # noqa: B007
        x[0, 0] += 5
    for at in product():  # noqa: B007
        x[0, 1] += 5
    for at in it.repeat(2.0, 0):
        x[0, 2] += at
    return x, at


def _five_axes(x):
    s = 0.0
    for at in np.ndindex(2, 1, 3, 1, 2):
        s = s + x[at[0], at[2]] * at[4]
    return s


def _other_functions_of_the_names(x):
    def product(n):
        return [(n, i) for i in range(5)]

    s = 0.0
    for n, i in product(3):
        s = s + x[n, i]
    for row in x.repeat(2):
        s = s + row
    for i in itertools.islice(it.repeat(3), 4):
        s = s + x[i, 0]
    return s


UNROLLED = [
    *(_left, _broken, _of_lists, _of_three_items, _empty, _five_axes),
    _other_functions_of_the_names,
]


@pytest.mark.parametrize("function", UNROLLED, ids=lambda f: f.__name__[1:])
def test_others(function: Callable[..., Any]) -> None:
    both(function, X, ulps=2)


def test_what_is_no_loop_of_the_program() -> None:
    def filled(x):
        seen = []
        for i, j in np.ndindex(4, 5):
            seen.append(i)
            x[i, j] = max(seen)
        return x

    refused("it changes a list", filled, X)


@pytest.mark.parametrize("sizes", [(-1, 3), (2.5, 3), ("a",)], ids=str)
def test_sizes_that_numpy_refuses(sizes: tuple[Any, ...]) -> None:
    def over(x):
        for at in np.ndindex(*sizes):
            x[at] = 1
        return x

    with pytest.raises((TypeError, ValueError)) as expected:
        over(X.copy())
    with pytest.raises(expected.type, match=r".*") as found:
        rune_jit.jit(over)(X.copy())
    assert str(found.value) == str(expected.value)


def test_an_iterator_that_is_made_before_the_loop_is_used_up() -> None:
    def twice(x):
        times = it.repeat(1.0, 6)
        s = x[0, 0]
        for by in times:
            s = s + by
        for by in times:
            s = s + 100 * by
        return s

    both(twice, X)


def test_the_trace_is_the_same_for_any_size() -> None:
    def ramp(x):
        for i, j in np.ndindex(x.shape):
            x[i, j] = x[i, j] * 2 + i - j
        return x

    sizes = {len(rune_jit.jit(ramp).trace(np.ones((n, n)))) for n in (8, 400)}
    assert len(sizes) == 1
