"""Loops on a grid: the host launches the kernels of their iterations."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from devices import devices

import rune_jit

DEVICES = devices("cuda-interpreted", "metal-interpreted")
_RNG = np.random.default_rng(0)
X = _RNG.standard_normal((24, 24)).astype(np.float32)
Y = _RNG.standard_normal((24, 24)).astype(np.float32)


def _sweeps(x, y):
    for _ in range(300):
        x[1:-1, 1:-1] = (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) / 4 + y[
            1:-1, 1:-1
        ]
        y *= 0.5
    return x


def _history(x, y):
    energies = np.zeros((300, 2), np.float32)
    for i in range(300):
        x = np.tanh(x @ y / 5 + y)
        energies[i, 0] = (x * x).sum()
        energies[i, 1] = x.max() * i
    return x, energies


def _growing_parts(x, y):
    for i in range(1, 24):
        for j in range(i):
            x[: i + 1, j:] = np.tanh(x[: i + 1, : j + 1] @ y[: j + 1, j:] / 5 + x[: i + 1, j:])
            y[j:, j] += 0.01 * np.sin(x[i, : 24 - j])
    return x, y


def _backwards(x, y):
    out = np.zeros_like(x)
    for i in range(23, 0, -2):
        for _ in range(40):
            x = np.sin(x) * 0.5 + y[i] + np.tanh(x.T * y[:, i - 1, None])
        out[i] = x.sum(axis=0) + i
    return out


def _until_small(x, y):
    steps = 0
    while np.abs(x).max() > 0.01:
        x = x * 0.9 - np.tanh(x) * 0.01 + y * 1e-4
        steps += 1
    return x, steps


def _left_early(x, y):
    for i in range(1000):  # noqa: B007
        x = np.tanh(x) * 0.99 + y * 0.01
        if np.abs(x).sum() < 40:
            break
        y = y * 0.97
    return x, y, i


def _swapped(x, y):
    for i in range(301):
        x, y = y.T * 0.5 + np.tanh(x) * i / 301, x
    return x, y


def _inner_condition(x, y):
    total = np.zeros(24, np.float32)
    for i in range(23):
        rows = np.tanh(x[i] + y) + np.cos(x @ y)
        while np.abs(rows).sum() > 30:
            rows = np.tanh(rows @ x / 24) * 0.5
        total += rows.sum(axis=1) + i
    return total


def _scan_in_a_loop(x, y):
    for i in range(300):
        x = np.cumsum(np.sin(x) * 0.01, axis=1) + y
        y = np.where(x > y.T, y * 0.5, -y) + i % 3
    return x, y


def _two_steps_back(x, y):
    before = y
    for _ in range(302):
        x, before = np.roll(x, 1, 0) * 0.5 + np.roll(x, -1, 1) * 0.4 - before * 0.1, x
    return x, before


def _three_steps_back(x, y):
    before, first = y, y.T.copy()
    for _ in range(301):
        new = np.roll(x, 1, 0) * 0.5 + np.roll(before, 1, 1) * 0.4 - first * 0.1
        x, before, first = new, x, before
    return x, before, first


def _exchanges_in_a_loop(x, y):
    for i in range(30):
        for _ in range(11 + i):
            x = np.roll(x, 1, 0) * 0.5 + np.roll(x, 1, 1) * 0.4 + y
        y = np.roll(y, 2, 1) * 0.9 + x.T * 0.01
    return x, y


def _stencil_until_small(x, y):
    steps = 0
    while np.abs(x).max() > 0.01:
        x = (np.roll(x, 1, 0) + np.roll(x, 1, 1)) * 0.45 + y * 1e-4
        steps += 1
    return x, steps


PROGRAMS = [
    _two_steps_back,
    _three_steps_back,
    _exchanges_in_a_loop,
    _stencil_until_small,
    _sweeps,
    _history,
    _growing_parts,
    _backwards,
    _until_small,
    _left_early,
    _swapped,
    _inner_condition,
    _scan_in_a_loop,
]


def _compare(function: Callable[..., Any], device: str) -> str:
    """Compares results and arguments with NumPy's; what explain() says."""
    mine, theirs = [X.copy(), Y.copy()], [X.copy(), Y.copy()]
    f = rune_jit.jit(function, device=device, fallback="error")
    got, want = f(*mine), function(*theirs)
    got, want = (r if isinstance(r, tuple) else (r,) for r in (got, want))
    for a, b in zip([*got, *mine], [*want, *theirs], strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=2e-3, atol=2e-4)
    return str(rune_jit.jit(function, device=device).lower(X.copy(), Y.copy()).explain())


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("device", DEVICES)
def test_programs(device: str, function: Callable[..., Any]) -> None:
    explained = _compare(function, device)
    assert re.search(r"for \S+ from .* by", explained), explained
    assert re.search(r"launch loops_0_\d+_", explained), explained


@pytest.mark.parametrize(
    ("function", "turns"),
    [(_two_steps_back, 3), (_swapped, 3), (_stencil_until_small, 2), (_exchanges_in_a_loop, 2)],
)
def test_iterations_exchange_memory(function: Callable[..., Any], turns: int) -> None:
    f = rune_jit.jit(function, device="cuda-interpreted")
    loops = str(f.lower(X.copy(), Y.copy()).explain()).partition("    for ")[2]
    assert f", in {turns} turns that exchange memory" in loops
    assert "copy" not in loops


def test_profiles_count_the_iterations_of_all_turns() -> None:
    f = rune_jit.jit(_swapped, device="cuda-interpreted", fallback="error")
    f(X.copy(), Y.copy())
    with rune_jit.profile() as p:
        f(X.copy(), Y.copy())
    counts = {k.name: k.calls for k in p.kernels}
    assert max(counts.values()) == 301, counts
    copies = [k.calls for k in p.kernels if k.name.startswith("copy")]
    assert sum(copies) == 4, counts  # the arguments at first, and after iteration 301 both results


def _recurrence(x, y):
    for i in range(1, 24):
        for j in range(1, 24):
            x[i, j] = x[i - 1, j] * 0.5 + x[i, j - 1] * y[i, j] * 0.1
    return x


@pytest.mark.parametrize("device", DEVICES)
def test_scalar_work_is_one_kernel(device: str) -> None:
    assert "launch loops" not in _compare(_recurrence, device)


@pytest.mark.parametrize("device", DEVICES)
def test_sizes_that_are_known_at_a_call(device: str) -> None:
    """The number of iterations is an argument of a run, and so are sizes in them."""

    def f(x, w):
        for i in range(x.shape[0]):
            w = np.tanh(w @ w.T / 20 + i)
            x = x * 0.9 + np.cos(w[3])
        return x, w

    jitted = rune_jit.jit(f, device=device, dynamic={"x": {0: rune_jit.Dim("n", max=64)}})
    assert "launch loops_0" in str(jitted.lower(X, Y).explain())
    for n in (24, 1, 7, 24):
        for got, want in zip(jitted(X[:n], Y), f(X[:n], Y), strict=True):
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-3, atol=1e-4)
    assert jitted.cache_info().misses == 1


@pytest.mark.parametrize("device", DEVICES)
def test_profiles_have_each_launch(device: str) -> None:
    f = rune_jit.jit(_sweeps, device=device)
    f(X.copy(), Y.copy())
    with rune_jit.profile() as p:
        f(X.copy(), Y.copy())
    runs = {kernel.name: kernel.calls for kernel in p.kernels}
    assert max(runs.values()) == 300, runs
