"""Loops that mix no rows, which run in blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loop_checks import rolled

import rune_jit

N = 6007  # rows: more than a block, and not so many as some blocks have


def rows(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape)


def is_blocked(function: Callable[..., Any], *args: Any) -> bool:
    program = rune_jit.jit(function, device="cpu").lower(*args)
    return "_block" in str(program.graph)


def blocked(function: Callable[..., Any], *args: Any, ulps: float = 64) -> None:
    """The function's loops run in blocks, and its results are NumPy's."""
    assert is_blocked(function, *(np.copy(x) if isinstance(x, np.ndarray) else x for x in args))
    rolled(function, *args, ulps=ulps)


def paths(z, start):
    s = np.empty((z.shape[0] + 1, z.shape[1]))
    s[0] = start
    for t in range(z.shape[0]):
        s[t + 1] = s[t] * np.exp(0.01 * z[t])
    return s


def tridiagonal(a, b, c, d):
    n = b.shape[0]
    for i in range(1, n):
        w = a[i] / b[i - 1]
        b[i] -= w * c[i - 1]
        d[i] -= w * d[i - 1]
    x = np.zeros_like(d)
    x[n - 1] = d[n - 1] / b[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = (d[i] - c[i] * x[i + 1]) / b[i]
    return x


def with_common_results(x):
    time, times = 0.0, np.zeros(100)
    for i in range(100):
        x = x + 0.1 * np.sin(x + time)
        time += 0.1
        times[i] = time
    return x, times, time


def inner_rows_only(x, v):
    for _ in range(100):
        x[1:-1] += 0.1 * v[1:-1]
        v[1:-1] -= 0.1 * x[1:-1]
    return x.sum()


def previous_values(x):
    before = np.zeros_like(x)
    for _ in range(100):
        x, before = 0.5 * x + 0.25 * before, x
    return x, before


def exchanged(x, y):
    for _ in range(101):
        x, y = y, 0.9 * x + 0.1
    return x, y


def in_columns(x):
    for t in range(1, x.shape[1]):
        x[:, t] = 0.5 * x[:, t] + 0.5 * x[:, t - 1]
    return x


def coordinates(p, v):
    for _ in range(50):
        r = np.sqrt((p * p).sum(axis=1, keepdims=True)) + 1.0
        v = v - 0.01 * p / r**3
        p = p + 0.01 * v
    return p, v


def nested(x):
    for i in range(20):
        y = x * 0.5
        for j in range(10):
            y = y + 0.01 * np.cos(x * j)
        x = 0.5 * x + 0.1 * y * i
    return x


def updated_in_nested(x):
    out = np.zeros((20, x.shape[0]))
    for i in range(20):
        for j in range(10):
            out[i] += 0.01 * x * j
            x = 0.99 * x
    return out, x


def until(x, limit):
    total = 0.0
    while total < limit:
        x = 0.9 * x + 0.1
        total += 1.0
    return x, total


def masked(z, c):
    count = np.zeros(z.shape, dtype=np.int64)
    for _ in range(60):
        inside = np.abs(z) < 2
        z = np.where(inside, z * z + c, z)
        count += inside
    return count


def shifted_input(x):
    y = np.zeros(x.shape[1] - 2)
    for t in range(x.shape[0]):
        y = 0.5 * y + x[t, 1:-1] - x[t, :-2] + x[t, 2:]
    return y


def reversed_input(x):
    y = np.zeros(x.shape[1])
    for t in range(x.shape[0]):
        y = 0.5 * y + x[t, ::-1]
    return y


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "paths": (paths, (rows(60, N), 100.0)),
    "tridiagonal": (
        tridiagonal,
        (rows(40, N), 4 + rows(40, N, seed=1), rows(40, N, seed=2), rows(40, N, seed=3)),
    ),
    "with_common_results": (with_common_results, (rows(N),)),
    "inner_rows_only": (inner_rows_only, (rows(N), rows(N, seed=1))),
    "previous_values": (previous_values, (rows(N),)),
    "exchanged": (exchanged, (rows(N), rows(N, seed=1))),
    "in_columns": (in_columns, (rows(N, 60),)),
    "coordinates": (coordinates, (rows(N, 3), rows(N, 3, seed=1))),
    "nested": (nested, (rows(N),)),
    "updated_in_nested": (updated_in_nested, (rows(N),)),
    "until": (until, (rows(N), 50.0)),
    "masked": (masked, (rows(70, 90) + 1j * rows(70, 90, seed=1), -0.4 + 0.6j)),
    "shifted_input": (shifted_input, (rows(60, N),)),
    "float32": (previous_values, (rows(N).astype(np.float32),)),
}


@pytest.mark.parametrize("name", CASES)
def test_blocks(name: str) -> None:
    function, args = CASES[name]
    blocked(function, *args)


@pytest.mark.parametrize("n", (4096, 4097, 5000, 8191))
def test_rows_that_fill_no_block(n: int) -> None:
    blocked(paths, rows(60, n), 1.0)
    blocked(with_common_results, rows(n))


def test_special_values() -> None:
    x = rows(N)
    x[::7], x[1::7], x[2::7], x[3::7] = np.nan, np.inf, -np.inf, -0.0
    blocked(previous_values, x)


def neighbours(x):
    for _ in range(100):
        x[1:-1] = 0.5 * (x[:-2] + x[2:])
    return x


def sums(x):
    for _ in range(100):
        x = x / x.sum()
    return x


def permuted(x, order):
    for _ in range(100):
        x = 0.5 * x + x[order]
    return x


def prefixes(x):
    for _ in range(50):
        x = 0.1 * np.cumsum(x)
    return x


def transposed(x):
    for _ in range(100):
        x = np.sin(x) * 0.5 + np.tanh(x.T)
    return x


def some_rows(x):
    for _ in range(100):
        x[0] += 1.0
        x[1:-1] *= 0.5
    return x


MIXED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "neighbours": (neighbours, (rows(N),)),
    "sums": (sums, (rows(N) + 2,)),
    "permuted": (permuted, (rows(N), np.random.default_rng(0).permutation(N))),
    "prefixes": (prefixes, (rows(N),)),
    "transposed": (transposed, (rows(120, 120),)),
    "some_rows": (some_rows, (rows(N),)),
    "reversed_input": (reversed_input, (rows(60, N),)),
}


@pytest.mark.parametrize("name", MIXED)
def test_rows_that_are_mixed_stay_together(name: str) -> None:
    function, args = MIXED[name]
    assert not is_blocked(function, *(np.copy(x) for x in args))
    rolled(function, *args, ulps=1024)


def test_small_loops_stay_as_they_are() -> None:
    assert not is_blocked(previous_values, rows(100))
    rolled(previous_values, rows(100), ulps=64)


def two_arrays(x):
    a, b = np.zeros(x.shape), np.zeros(x.shape)
    for t in range(1, x.shape[0]):
        a[t] = 0.5 * a[t - 1] + x[t]
        b[t] = 0.5 * b[t - 1] - a[t]
    return a, b


def read_before(x):
    a = x * 2.0
    for t in range(1, x.shape[0]):
        a[t] = 0.5 * a[t - 1] + a[t]
    return a, x


@pytest.mark.parametrize("function", (two_arrays, read_before))
def test_arrays_that_begin_in_memory(function: Callable[..., Any]) -> None:
    blocked(function, rows(60, N))


def test_an_array_begins_in_the_results_memory() -> None:
    jitted = rune_jit.jit(read_before, device="cpu")
    x = rows(60, N)
    jitted(x)
    with rune_jit.profile() as profile:
        jitted(x)
    assert "loops" in str(profile)
    assert "copy for loops" not in str(profile)


def test_few_iterations_that_stay_in_registers_are_expanded() -> None:
    def escape(x, y):
        re, im, count = x, y, np.zeros_like(x)
        for _ in range(24):
            a, b = re * re, im * im
            inside = a + b < 4.0
            count = count + np.where(inside, np.float64(1), 0)
            im, re = np.where(inside, 2 * re * im + y, im), np.where(inside, a - b + x, re)
        return count

    x, y = rows(300, 300), rows(300, 300, seed=1)
    program = rune_jit.jit(escape, device="cpu").lower(x, y)
    assert "loop" not in str(program.graph) and len(program.kernels) == 1
    np.testing.assert_array_equal(rune_jit.jit(escape, fallback="error")(x, y), escape(x, y))
