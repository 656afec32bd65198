"""Loops whose iterations cores share: none of them reads what an earlier one has stored. Where they
read what later ones store, they read what was there before the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loop_checks import rolled

import rune_jit


def rows(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape)


def groups(function: Callable[..., Any], *args: Any) -> list[int]:
    """How many workgroups the kernels of loops have, on the CPU."""
    kernels = rune_jit.jit(function).lower(*map(np.copy, args)).kernels
    heads = [text.splitlines()[0] for text in kernels]
    return [int(h.split("grid=")[1].split()[0]) for h in heads if h.startswith("kernel @loops")]


def own_rows(x):
    """Its iterations run side by side on a machine with several cores."""
    for i in range(x.shape[0]):
        x[i] = np.tanh(x[i]) + x[i, ::-1]
    return x


def triangular_product(a, b):
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            b[i, j] += np.dot(a[i + 1 :, i], b[i + 1 :, j])
    return b


def next_rows(x):
    for i in range(x.shape[0] - 2):
        x[i] = np.tanh(x[i + 1]) + x[i + 2] * x[i]
    return x


def previous_rows_downwards(x):
    for i in range(x.shape[0] - 1, 2, -1):
        x[i] = np.exp(x[i - 1]) - x[: i - 2].sum(axis=0)
    return x


def every_second_row(x):
    for i in range(0, x.shape[0] - 4, 2):
        x[i] = np.sin(x[i + 1]) * np.cos(x[i + 2]) + np.exp(x[i + 3])
    return x


def blocks(x):
    for i in range(x.shape[0] // 4 - 1):
        x[4 * i : 4 * i + 4] += np.exp(x[4 * i + 4 : 4 * i + 8]) * np.tanh(x[4 * i : 4 * i + 4])
    return x


def two_arrays(x, y):
    for i in range(x.shape[0] - 1):
        x[i] = np.exp(y[i + 1]) + np.sin(x[i + 1])
        y[i] = np.exp(x[i + 1]) * np.sin(y[i])
    return x, y


INDEPENDENT = {
    "triangle": (triangular_product, (rows(150, 150), rows(150, 170)), 1 << 12),
    "next": (next_rows, (rows(400, 300),), 8),
    "downwards": (previous_rows_downwards, (rows(300, 200),), 1 << 12),
    "second": (every_second_row, (rows(401, 300),), 8),
    "blocks": (blocks, (rows(200, 600),), 8),
    "two": (two_arrays, (rows(300, 300), rows(301, 300)[:300]), 8),
}


@pytest.mark.parametrize("name", INDEPENDENT)
def test_iterations_that_read_what_later_ones_store(name: str) -> None:
    function, args, ulps = INDEPENDENT[name]
    for _ in range(3):
        rolled(function, *args, ulps=ulps)
    assert (groups(function, *args)[0] > 1) == (groups(own_rows, rows(1000, 500)) != [1])


def reads_rows_above(x):
    for i in range(2, x.shape[0]):
        x[i] = np.tanh(x[i - 2]) + np.sin(x[i])
    return x


def reads_rows_below_downwards(x):
    for i in range(x.shape[0] - 2, -1, -1):
        x[i] = np.tanh(x[i + 1]) + np.sin(x[i])
    return x


def reads_its_row_again(x):
    for i in range(x.shape[0] - 1):
        x[i] = np.tanh(x[i + 1])
        x[i] = np.sin(x[i]) + x[i, ::-1]
    return x


def stores_rows_of_others(x):
    for i in range(x.shape[0] - 2):
        x[i] = np.tanh(x[i + 1])
        x[i + 1] = np.sin(x[i + 2])
    return x


def reads_one_row_that_is_stored(x):
    for i in range(x.shape[0] - 1):
        x[i] = np.tanh(x[i + 1]) + x[7]
    return x


def reads_in_the_loop_inside(x):
    for i in range(0, x.shape[0] - 8, 4):
        for j in range(4):
            x[i + j] = np.tanh(x[i + 4]) + x[i + 3 - j]
    return x


@pytest.mark.parametrize(
    "function",
    (
        reads_rows_above,
        reads_rows_below_downwards,
        reads_its_row_again,
        stores_rows_of_others,
        reads_one_row_that_is_stored,
        reads_in_the_loop_inside,
    ),
)
def test_iterations_that_read_what_earlier_ones_store(function: Callable[..., Any]) -> None:
    for _ in range(3):
        rolled(function, rows(300, 256), ulps=1 << 8)


def test_what_the_loop_has_not_stored_is_read_before_it_runs() -> None:
    """A value that an iteration needs is computed from an array to which iterations store."""

    def f(x, y):
        x[3] = y
        total = np.exp(x).sum(axis=0)
        for i in range(x.shape[0]):
            x[i] = np.sin(x[i]) + total
        return x

    for _ in range(3):
        rolled(f, rows(400, 300), rows(300), ulps=1 << 8)
