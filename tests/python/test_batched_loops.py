"""Loops whose iterations do not depend on one another: all iterations at once, on grids, and on
cores where each computes one element."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import batched_programs
import numpy as np
import optree as trees
import pytest
from devices import devices

import rune_jit

DEVICES = devices("interpreter", "cuda-interpreted", "metal-interpreted")


def _convolution(x: Any, w: Any) -> Any:
    k = w.shape[0]
    out = np.empty((x.shape[0] - k + 1, x.shape[1] - k + 1, w.shape[2]), x.dtype)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = np.sum(x[i : i + k, j : j + k, np.newaxis] * w, axis=(0, 1))
    return np.maximum(out, 0)


def _pool(x: Any, w: Any) -> Any:
    out = np.empty((x.shape[0] // 2, x.shape[1] // 2), x.dtype)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = np.max(x[2 * i : 2 * i + 2, 2 * j : 2 * j + 2])
    return out


def _overlapping_windows_backwards(x: Any, w: Any) -> Any:
    out = np.zeros((4, x.shape[1]), x.dtype)
    for i in range(3, -1, -1):
        out[i] = x[2 * i : 2 * i + 3].sum(0) - x[x.shape[0] - 1 - i]
    return out


def _some_rows_of_an_argument(x: Any, w: Any) -> Any:
    for i in range(2, 7):
        x[i] = np.exp(x[i]) - 1
    return x


def _columns_by_two_writes(x: Any, w: Any) -> Any:
    y, z = x.copy(), np.empty_like(x)
    for j in range(x.shape[1]):
        y[1:3, j] = 2 * x[1:3, j]
        y[4:6, j] = x[0:2, j] - 1
        z[:, x.shape[1] - 1 - j] = x[:, j]
    return y, z


def _products(x: Any, w: Any) -> Any:
    out = np.empty((x.shape[0], x.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        out[i] = x @ (x[i] * 2) + (x[i] - x[0]) @ x.T
    return out


def _diagonal(x: Any, w: Any) -> Any:
    out = np.empty(x.shape[1], x.dtype)
    for i in range(x.shape[1]):
        out[i] = x[i, i] + x[i + 1, x.shape[1] - 1 - i]
    return out


def _joined_parts_of_windows(x: Any, w: Any) -> Any:
    out = np.empty((x.shape[0] - 2, 3, x.shape[1]), x.dtype)
    for i in range(out.shape[0]):
        part = np.concatenate([x[i : i + 1], x[i + 1 : i + 3]])
        out[i] = np.where(part > 0.5, part, -part)[::-1]
    return out


AT_ONCE = [
    _convolution, _pool, _overlapping_windows_backwards, _some_rows_of_an_argument,
    _columns_by_two_writes, _products, _diagonal, _joined_parts_of_windows,
]  # fmt: skip


def _every_second_row(x: Any, w: Any) -> Any:
    for i in range(0, x.shape[0], 2):
        x[i] = x[i] * 3
    return x


def _rows_from_rows_before(x: Any, w: Any) -> Any:
    for i in range(1, x.shape[0]):
        x[i] = x[i] + x[i - 1]
    return x


def _overlapping_writes(x: Any, w: Any) -> Any:
    out = np.zeros_like(x)
    for i in range(x.shape[0] - 1):
        out[i : i + 2] = x[i : i + 2] + i
    return out


def _rows_and_a_sum(x: Any, w: Any) -> Any:
    out, total = np.zeros_like(x), x[0, 0] * 0
    for i in range(x.shape[0]):
        out[i] = x[i] * 2
        total = total + x[i].sum()
    return out, total


def _rows_read_after_the_write(x: Any, w: Any) -> Any:
    out = np.zeros_like(x)
    for i in range(x.shape[0]):
        x[i] = x[i] * 2
        out[i] = x[i] + 1
    return out, x


def _rows_that_another_iteration_writes(x: Any, w: Any) -> Any:
    for i in range(x.shape[0]):
        x[i] = x[x.shape[0] - 1 - i] + 1
    return x


def _growing_rows(x: Any, w: Any) -> Any:
    out = np.zeros(x.shape[0], x.dtype)
    for i in range(1, x.shape[0]):
        out[i] = x[:i, 0].sum()
    return out


ONE_BY_ONE = [
    _every_second_row, _rows_from_rows_before, _overlapping_writes,
    _rows_and_a_sum, _rows_read_after_the_write, _rows_that_another_iteration_writes, _growing_rows,
]  # fmt: skip


def _arguments() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.random((9, 8), np.float32) - 0.3, rng.random((3, 3, 2), np.float32) - 0.5


@pytest.mark.parametrize("program", AT_ONCE + ONE_BY_ONE)
@pytest.mark.parametrize("device", DEVICES)
def test_results_are_numpys(device: str, program: Callable[..., Any]) -> None:
    f = rune_jit.jit(program, device=device, fallback="error")
    for _ in range(2):
        ours, theirs = _arguments(), _arguments()
        got, want = f(*ours), program(*theirs)
        for a, b in zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, want)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("program", AT_ONCE)
def test_there_is_no_loop(program: Callable[..., Any]) -> None:
    f = rune_jit.jit(program, device="cuda-interpreted", fallback="error")
    text = str(f.lower(*_arguments()).graph)
    assert "loop" not in text
    # Expanded iterations would be selections by masks of padded parts.
    assert text.count("where") <= 2


def test_a_long_loop_needs_no_thread_alone() -> None:
    f = rune_jit.jit(_convolution, device="cuda-interpreted", fallback="error")
    x, w = np.zeros((300, 400), np.float32), np.zeros((5, 5, 4), np.float32)
    program = f.lower(x, w)
    assert len(program.kernels) == 1
    assert program.cost_analysis()["peak_bytes"] < 4 * (x.nbytes + 296 * 396 * 4 * 4)


PROGRAMS = [f for f in vars(batched_programs).values() if isinstance(f, types.FunctionType)]


@pytest.mark.parametrize("size", [1, 3, 8, 13, 37])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_elements_one_by_one(function: Callable[..., Any], size: int) -> None:
    rng = np.random.default_rng(size)
    given = [rng.random((size, size)) * 4 - 1, rng.random((size, size)) * 2]
    expected_arguments = [x.copy() for x in given]
    expected = function(*expected_arguments)
    for device in ("cpu", "cuda-interpreted") if size == 8 else ("cpu",):
        arguments = [x.copy() for x in given]
        found = rune_jit.jit(function, device=device)(*arguments)
        both = (found, *arguments), (expected, *expected_arguments)
        for x, y in zip(*map(trees.tree_leaves, both), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("function", "left"),
    [
        ("triangular_product", 1),
        ("gram_schmidt", 1),
        ("lu", 2),
        ("outermost", 0),
        ("every_other", 2),
    ],
)
def test_which_loops_of_a_core_are_left(function: str, left: int) -> None:
    x = np.ones((13, 13))
    lowered = rune_jit.jit(getattr(batched_programs, function), device="cpu").lower(x, x)
    assert str(lowered.graph).partition("return")[0].count("= end_loop") == left
