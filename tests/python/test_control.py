"""Loops and choices as functions, outside of programs and in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit

X = np.arange(1.0, 9.0)


def check(function: Callable[..., Any], *args: Any, program: bool = True) -> None:
    """Compares a function with NumPy's results, and with itself in `jit`."""

    def copies() -> list[Any]:
        return [x.copy() if isinstance(x, np.ndarray) else x for x in args]

    jitted = rune_jit.jit(function)
    for _ in range(2):
        wanted, found = copies(), copies()
        assert_same(jitted(*found), function(*wanted), ulps=8, scaled=True)
        assert_same(found, wanted, ulps=8, scaled=True)
    lines = jitted.explain()
    assert not program or "as one program" in lines, lines
    assert not program or "is unrolled" not in lines, lines


def test_fori_loop() -> None:
    def powers(x):
        return rune_jit.fori_loop(0, 20, lambda i, y: y * 0.5 + x * i, x)

    def pair(x):
        def body(i, state):
            total, held = state["total"], state["held"]
            held[i % 4] += x[i]
            return {"total": total + held[0], "held": held}

        return rune_jit.fori_loop(0, 8, body, {"total": 0.0, "held": np.zeros(4)})

    def none(x):
        return rune_jit.fori_loop(3, 3, lambda i, y: y * 2, x)

    for f in (powers, pair, none):
        check(f, X)


def test_bodies_write_to_what_they_close_over() -> None:
    def f(x):
        out = np.zeros(8)

        def body(i, total):
            out[i] = x[i] + total
            x[i] = 0
            return total + out[i]

        return rune_jit.fori_loop(0, 8, body, x[0] * 0), out

    check(f, X)


def test_while_loop() -> None:
    def halve(x):
        return rune_jit.while_loop(lambda y: y.sum() > 1, lambda y: y / 2, x)

    def counted(x):
        def body(state):
            y, n = state
            return y - 0.1 * y**2 / y.max(), n + 1

        return rune_jit.while_loop(lambda state: (state[0] > 0.5).all(), body, (x, 0))

    for f in (halve, counted):
        check(f, X)
    check(halve, X * 0)


def test_iterate() -> None:
    def root(x):
        return rune_jit.iterate(
            lambda y: (y + x / y) / 2, x, until=lambda a, b: np.abs(a - b).max() < 1e-12, max=100
        )

    def limited(x):
        return rune_jit.iterate(lambda y: y + 1, x, until=lambda a, b: b.sum() > 1e6, max=7)

    check(root, X)
    check(limited, X)
    assert limited(X)[1] == 7


@pytest.mark.parametrize("reverse", (False, True))
def test_scan(reverse: bool) -> None:
    def running(x):
        return rune_jit.scan(lambda c, v: (c + v, c * v), x[0] * 0, x, reverse=reverse)

    def rows(x):
        pair = {"a": x.reshape(4, 2), "b": x[:4]}
        return rune_jit.scan(
            lambda c, p: (c + p["a"], (c * p["b"], p["b"])), np.zeros(2), pair, reverse=reverse
        )

    def counted(x):
        return rune_jit.scan(lambda c, _: (c * 2, c.sum()), x, length=6, reverse=reverse)

    for f in (running, rows, counted):
        check(f, X)


def test_results_of_a_scan_have_the_dtype_that_all_of_them_promote_to() -> None:
    check(lambda x: rune_jit.scan(lambda c, v: (c + v, c), 0, x / 4), X)
    check(lambda x: rune_jit.map(lambda v: np.sqrt(v) if v > 4 else 1, x), X, program=False)
    assert rune_jit.scan(lambda c, v: (c + v, c), 0, X / 4)[1].dtype == np.float64


def test_map() -> None:
    check(lambda x: rune_jit.map(lambda v: v * np.arange(3) + x[0], x), X)
    check(lambda x: rune_jit.map(lambda row: row / row.sum(), x.reshape(4, 2)), X)


def test_cond() -> None:
    def chosen(x):
        return rune_jit.cond(x.sum() > 30, lambda y: (y * 2, y[0]), lambda y: (y - 1, y[1]), x)

    def writes(x):
        def first():
            x[0] = -1

        def second():
            x[1:] += x[0]

        rune_jit.cond(x[0] > 0, first, second)
        return x * 1

    for sign in (1, -1):
        check(chosen, X * sign)
        check(writes, X * sign)
    check(lambda x: rune_jit.cond(len(x) > 3, np.sqrt, np.square, x), X)
    # Other types: the value is asked for.
    check(lambda x: rune_jit.cond(x[0] > 0, np.sqrt, np.isnan, x), X, program=False)


def test_switch() -> None:
    def f(x, k):
        return rune_jit.switch(k[0], [np.sqrt, np.negative, lambda y: y * 3], x)

    for k in (-2, 0, 1, 2, 9):
        check(f, X, np.array([k]))
        check(lambda x, k=k: rune_jit.switch(k, [np.sqrt, np.negative, np.square], x), X)


@pytest.mark.parametrize("reverse", (False, True))
@pytest.mark.parametrize("n", (0, 1, 2, 7, 8))
def test_associative_scan(n: int, reverse: bool) -> None:
    x = np.arange(1, n + 1)
    expected = np.cumsum(x[::-1])[::-1] if reverse else np.cumsum(x)
    np.testing.assert_array_equal(rune_jit.associative_scan(np.add, x, reverse=reverse), expected)
    if n:
        check(lambda x: rune_jit.associative_scan(np.add, x, reverse=reverse), x)

    def recurrence(x):
        def combine(p, q):
            return p[0] * q[0], q[0] * p[1] + q[1]

        pair = x.reshape(2, 4).T * 0.25, x.reshape(4, 2)
        return rune_jit.associative_scan(combine, pair, reverse=reverse)

    check(recurrence, X)


def test_loops_in_loops() -> None:
    def f(x):
        def outer(i, y):
            inner = rune_jit.while_loop(lambda v: v > 1, lambda v: v / 2, x[i])
            return y + rune_jit.cond(inner > 0.75, lambda: inner, lambda: -inner)

        return rune_jit.fori_loop(0, 8, outer, x)

    check(f, X)


@pytest.mark.parametrize("device", ("cpu", "interpreter"))
def test_devices(device: str) -> None:
    def f(x):
        return rune_jit.while_loop(lambda y: y.sum() > 1, lambda y: y / 2, x)

    np.testing.assert_array_equal(rune_jit.jit(f, device=device)(X), f(X))


def test_errors() -> None:
    with pytest.raises(TypeError, match="fori_loop: cannot replace a value of structure"):
        rune_jit.fori_loop(0, 3, lambda i, x: (x, x), X)
    with pytest.raises(ValueError, match=r"scan: cannot take arrays of shapes \(8,\), \(4,\)"):
        rune_jit.scan(lambda c, p: (c, c), 0, (X, X[:4]))
    with pytest.raises(TypeError, match="scan: cannot take a result of type ndarray apart"):
        rune_jit.scan(lambda c, v: c + v, np.zeros(2), X)
    with pytest.raises(ValueError, match=r"map: cannot stack results of shapes \(2,\) and \(\)"):
        rune_jit.map(lambda row: row if row[0] < X[1] else row[0], X.reshape(4, 2))
    with pytest.raises(ValueError, match="map: cannot find the shapes"):
        rune_jit.map(np.sqrt, X[:0])
    with pytest.raises(ValueError, match="switch: cannot choose"):
        rune_jit.switch(0, [], X)
    with pytest.raises(ValueError, match="associative_scan: cannot combine"):
        rune_jit.associative_scan(lambda a, b: a, (X, X[:4]))
