"""Loops on a grid that mix no rows: a thread runs all iterations of a row."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cuda_check import check_cuda
from devices import devices

import rune_jit

DEVICES = devices("cuda-interpreted", "metal-interpreted")


def rows(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def explained(device: str, function: Callable[..., Any], *args: Any) -> str:
    """Compares results and arguments with NumPy's; what explain() says."""
    mine, theirs = ([np.copy(x) for x in args] for _ in range(2))
    got = rune_jit.jit(function, device=device, fallback="error")(*mine)
    want = function(*theirs)
    got, want = (r if isinstance(r, tuple) else (r,) for r in (got, want))
    for a, b in zip([*got, *mine], [*want, *theirs], strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=2e-4, atol=2e-5)
    fresh = [np.copy(x) for x in args]
    return str(rune_jit.jit(function, device=device).lower(*fresh).explain())


def threads_of_rows(text: str) -> list[int]:
    found = re.findall(r"launch loops_\d+_rows_\d+: (\d+) workgroups of (\d+) threads", text)
    return [int(groups) * int(threads) for groups, threads in found]


def paths(z, start):
    s = np.empty((z.shape[0] + 1, z.shape[1]), np.float32)
    s[0] = start
    for t in range(z.shape[0]):
        s[t + 1] = s[t] * np.exp(np.float32(0.01) * z[t])
    return s


def simulation(z):
    s, mean = np.ones(z.shape[1], np.float32), np.zeros(z.shape[1], np.float32)
    for t in range(z.shape[0]):
        s = s * np.exp(np.float32(0.1) * z[t])
        mean = mean + s / z.shape[0]
    return s, mean


def filtered_along_the_last_axis(x):
    y = np.zeros_like(x)
    y[:, 0] = x[:, 0]
    y[:, 1] = x[:, 1] + x[:, 0]
    for j in range(2, x.shape[1]):
        y[:, j] = x[:, j] + np.float32(0.5) * y[:, j - 1] - np.float32(0.25) * y[:, j - 2]
    return y


def inner_rows(x):
    y = np.zeros_like(x)
    for t in range(1, x.shape[0]):
        y[t, 1:-1] = np.float32(0.5) * y[t - 1, 1:-1] + x[t, :-2] - x[t, 2:]
    return y


def kalman(z, f):
    x = np.zeros((z.shape[0], 3), np.float32)
    p = np.zeros((z.shape[0], 3, 3), np.float32)
    p += np.eye(3, dtype=np.float32)
    out = np.zeros((z.shape[1], z.shape[0], 3), np.float32)
    for t in range(z.shape[1]):
        x = x @ f
        p = p @ f + np.float32(0.1) * np.eye(3, dtype=np.float32)
        gain = p[:, :, 0] / (np.abs(p[:, :1, 0]) + np.float32(1))
        x = x + gain * (z[:, t, None] - x[:, :1])
        p = p - np.float32(0.2) * gain[:, :, None] * p[:, :1, :]
        out[t] = x
    return out


def with_common_results(x):
    time, times = np.float32(0), np.zeros(300, np.float32)
    for i in range(300):
        x = x + np.float32(0.1) * np.sin(x + time)
        time += np.float32(0.1)
        times[i] = time
    return x, times, time


def until(x, limit):
    total = np.float32(0)
    while total < limit:
        x = np.float32(0.9) * x + np.float32(0.1)
        total += np.float32(1)
    return x, total


def substituted_backwards(b, c, d):
    x = np.zeros_like(d)
    x[-1] = d[-1] / b[-1]
    for i in range(d.shape[0] - 2, -1, -1):
        x[i] = (d[i] - c[i] * x[i + 1]) / b[i]
    return x


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "paths": (paths, (rows(200, 37), np.float32(3))),
    "simulation": (simulation, (rows(200, 200),)),
    "last_axis": (filtered_along_the_last_axis, (rows(33, 150),)),
    "inner_rows": (inner_rows, (rows(200, 40),)),
    "kalman": (kalman, (rows(40, 100), np.eye(3, dtype=np.float32) * 0.5 + 0.1 * rows(3, 3))),
    "with_common_results": (with_common_results, (rows(50),)),
    "until": (until, (rows(60), np.float32(50))),
    "substituted_backwards": (
        substituted_backwards,
        (3 + rows(150, 20), rows(150, 20, seed=1), rows(150, 20, seed=2)),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("device", DEVICES)
def test_a_thread_runs_a_row(device: str, name: str) -> None:
    function, args = CASES[name]
    text = explained(device, function, *args)
    assert threads_of_rows(text), text
    assert not re.search(r"for \S+ from", text), text  # which the host would run


@pytest.mark.parametrize("name", ["simulation", "kalman", "last_axis"])
def test_cuda_source(name: str) -> None:
    function, args = CASES[name]
    source = rune_jit.jit(function, device="cuda").lower(*args).source()
    assert "rows" in source
    check_cuda(source)


def sweeps(u):
    v, p = np.zeros_like(u), np.zeros_like(u)
    for _ in range(4):
        for j in range(1, u.shape[0] - 1):
            p[1:-1, j] = u[j, 1:-1] - np.float32(0.5) * p[1:-1, j - 1]
        for j in range(u.shape[0] - 2, 0, -1):
            v[j, 1:-1] = p[1:-1, j] * np.float32(0.3) + np.float32(0.5) * v[j + 1, 1:-1]
        for j in range(1, u.shape[0] - 1):
            u[1:-1, j] = v[1:-1, j] + np.float32(0.4) * u[1:-1, j - 1]
    return u


def from_the_outer_counter_on(x, w):
    y = np.zeros_like(x)
    for i in range(40):
        for t in range(i + 1, x.shape[0]):
            y[t] = np.float32(0.5) * y[t - 1] + w[i] * x[t] - np.float32(0.1) * y[t]
        y[0] = np.float32(0.01) * y[:30].sum(axis=1)
    return y


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("function", "args", "launches"),
    [(sweeps, (rows(30, 30),), 3), (from_the_outer_counter_on, (rows(90, 30), rows(40)), 1)],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_the_host_runs_the_loop_around_rows(
    device: str, function: Callable[..., Any], args: tuple[Any, ...], launches: int
) -> None:
    text = explained(device, function, *args)
    assert len(threads_of_rows(text)) == launches, text
    assert re.search(r"for \S+ from", text), text


def columns_of_a_grid(x):
    """Rows of two axes: a thread for each pair."""
    y = np.zeros_like(x)
    for k in range(1, x.shape[2]):
        y[:, :, k] = np.float32(0.5) * y[:, :, k - 1] + x[:, :, k] / (x[:, :, k - 1] + 3)
    return y


@pytest.mark.parametrize("device", DEVICES)
def test_rows_of_two_axes(device: str) -> None:
    text = explained(device, columns_of_a_grid, rows(9, 11, 100))
    (threads,) = threads_of_rows(text)
    assert 99 <= threads < 99 + 32


def iterations_apart(x, n):
    """Iterations of the outer loop run side by side, each with a loop of its own."""
    out = np.zeros(x.shape[0], np.float32)
    for i in range(x.shape[0]):
        y = x[i]
        for _ in range(n):
            y = np.float32(4) * y * (np.float32(1) - y) * np.float32(0.9)
        out[i] = y
    return out


@pytest.mark.parametrize("device", DEVICES)
def test_iterations_that_run_apart(device: str) -> None:
    function = lambda x: iterations_apart(x, 50)  # noqa: E731
    text = explained(device, function, np.abs(rows(70)))
    assert threads_of_rows(text), text


def long_rows(x):
    for _ in range(300):
        x = np.sin(np.flip(x, 1)) * np.float32(0.5) + x * np.float32(0.25)
    return x


@pytest.mark.parametrize("device", DEVICES)
def test_few_long_rows_are_launched(device: str) -> None:
    """A thread would take longer for its row than launches for all iterations."""
    text = explained(device, long_rows, rows(3, 3000))
    assert not threads_of_rows(text), text


def transposed(x):
    for _ in range(200):
        x = np.sin(x) * np.float32(0.5) + np.tanh(x.T)
    return x


def neighbours(x):
    for _ in range(200):
        x[1:-1] = np.float32(0.5) * (x[:-2] + x[2:])
    return x


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("function", "args"), [(transposed, (rows(20, 20),)), (neighbours, (rows(90),))]
)
def test_rows_that_are_mixed(
    device: str, function: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    assert not threads_of_rows(explained(device, function, *args))


def sparse_product(starts, columns, values, x):
    y = np.empty(starts.size - 1, values.dtype)
    for i in range(starts.size - 1):
        row = slice(starts[i], starts[i + 1])
        y[i] = values[row] @ x[columns[row]]
    return y


def sparse_arguments(n: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(4)
    starts = np.sort(rng.integers(0, 3 * n, n + 1)).astype(np.int32)
    return starts, rng.integers(0, n, 3 * n).astype(np.int32), rows(3 * n), rows(n, seed=1)


@pytest.mark.parametrize("device", DEVICES)
def test_rows_of_a_sparse_matrix_whose_indices_are_checked(device: str) -> None:
    text = explained(device, sparse_product, *sparse_arguments(700))
    assert threads_of_rows(text) and threads_of_rows(text)[0] >= 700


@pytest.mark.parametrize("device", DEVICES)
def test_the_first_wrong_index_of_all_iterations_is_reported(device: str) -> None:
    starts, columns, values, x = sparse_arguments(700)
    run = rune_jit.jit(sparse_product, device=device, fallback="error")
    np.asarray(run(starts, columns, values, x))
    wrong = columns.copy()
    first = starts[300]
    wrong[first], wrong[starts[650]] = 7001, 8001
    with pytest.raises(IndexError) as theirs:
        sparse_product(starts, wrong, values, x)
    with pytest.raises(IndexError) as ours:
        np.asarray(run(starts, wrong, values, x))
    assert str(ours.value) == str(theirs.value)
