"""Loops whose iterations replace an array that they read, in turns on two memories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loop_checks import rolled

import rune_jit

COUNTS = (2, 3, 20, 21)


def array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1000, shape).astype(np.int32)


def shortest_paths(path, n):
    for k in range(n):
        path[:] = np.minimum(path, np.add.outer(path[:, k], path[k, :]))


def backwards(path, n):
    for k in range(3 * n, n, -2):
        path = path.T ^ np.add.outer(path[:, k], path[k, ::-1])
    return path


def two_arrays(x, n):
    y = x[::-1] + 1
    for k in range(n):
        x, y = (x.T ^ y[k], y.T + x[:, k])
    return x, y


def with_a_total(x, n):
    total = np.zeros(x.shape[0], x.dtype)
    for k in range(n):
        total += x[k]
        x = x.T ^ x[:, k]
    return x, total


def read_between(x, n):
    kept = np.zeros((n, x.shape[0]), x.dtype)
    for k in range(n):
        kept[k] = x[:, k] + x[k]
        x = np.minimum(x.T + 1, np.add.outer(x[:, k], x[k]))
    return kept, x


def loop_in_the_body(x, n):
    for k in range(n):
        row = x[k]
        for i in range(k):
            row = row ^ x[i]
        x = x.T ^ row
    return x


def loops_after_one_another(x, n):
    for k in range(n):
        x = x.T ^ x[:, k]
    y = x + 1
    for k in range(n + 1):
        x = x.T ^ y[:, k]
    return x, y


def edges_after_the_middle(x, n):
    for k in range(n):
        old = x.copy()
        x[1:-1, 1:-1] = old[2:, 1:-1] ^ old[1:-1, :-2] + k
        x[1:-1, 0] = old[1:-1, -1] + old[:-2, 1]
        x[1:-1, -1] = old[1:-1, 0] - old[2:, 2]
        x[-1] = x[-2]
        x[0] = x[1]


def all_but_corners(x, n):
    for k in range(n):
        old = x.copy()
        x[1:-1, 1:-1] = old[2:, 1:-1] ^ old[1:-1, :-2] + k
        x[1:-1, 0] = old[1:-1, -1] + old[:-2, 1]
        x[1:-1, -1] = old[1:-1, 0] - old[2:, 2]
        x[-1, 1:-1] = x[-2, 1:-1]
        x[0, 1:-1] = x[1, 1:-1]
        x[0, 1] += x[0, 0]


def read_before_replaced(x, n):
    for _ in range(n):
        old = x.copy()
        x[1:] = old[:-1] + old[1:]
        x[-1] ^= x[0]
        x[0] = old[-1]


def loops_in_a_loop(x, n):
    y = x[::-1] + 1
    for k in range(3):
        for j in range(n):
            old = x.copy()
            x[1:] = old[:-1] ^ old[1:, ::-1] + y[j]
            x[0] = x[1] + k
        for j in range(n + 1):
            y = y.T ^ x[:, j]
        x += y
    return y


FUNCTIONS = (
    edges_after_the_middle,
    all_but_corners,
    read_before_replaced,
    loops_in_a_loop,
    shortest_paths,
    backwards,
    two_arrays,
    with_a_total,
    read_between,
    loop_in_the_body,
    loops_after_one_another,
)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("size", [64, 70])
def test_results_are_numpys(function: Callable[..., Any], count: int, size: int) -> None:
    def program(x: np.ndarray) -> Any:
        return function(x, count)

    x = array(size, size)
    wanted, found = x.copy(), x.copy()
    expected, actual = program(wanted), rune_jit.jit(program)(found)
    np.testing.assert_equal(actual, expected)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("count", [20, 21])
def test_no_iteration_copies(count: int) -> None:
    """The loop has half of the iterations, each of which is two of the program's."""

    def program(x: np.ndarray) -> None:
        for k in range(count):
            x[:] = np.minimum(x, np.add.outer(x[:, k], x[k, :]))

    x = array(100, 100)
    rolled(program, x)
    text = str(rune_jit.jit(program, device="cpu").lower(x).kernels[0])
    loop = next(line for line in text.splitlines() if "= range" in line)
    bound = loop.split("range ")[1].split(" ")[0]
    assert f"{bound} = const i64({(count + 1) // 2}) : i64" in text


def test_iterations_that_read_other_rows_are_one_kernel() -> None:
    """Each of them would take long to compile, and they share no registers."""
    program = rune_jit.jit(shortest_paths).lower(array(190, 190), 190)
    assert len(program.kernels) == 1
