"""Loops that write windows which grow, shrink or move with the counter: all iterations at once,
where each element is written by the last of the iterations that write it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import window_programs
from devices import devices

import rune_jit

DEVICES = devices("cpu", "interpreter", "cuda-interpreted", "metal-interpreted")
ALL = window_programs.AT_ONCE + window_programs.ONE_BY_ONE


def _arguments(size: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(size)
    return rng.random((size, size), np.float32) - 0.3, rng.random(size, np.float32) + 0.5


def _check(program: Callable[..., Any], device: str, ours: Any, theirs: Any) -> None:
    got = rune_jit.jit(program, device=device, fallback="error")(*ours)
    np.testing.assert_allclose(got, program(*theirs), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [1, 2, 13, 33])
@pytest.mark.parametrize("program", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("device", DEVICES)
def test_results_are_numpys(device: str, program: Callable[..., Any], size: int) -> None:
    if size < 3 and program is window_programs.slabs:
        size = 3  # the program takes three columns
    _check(program, device, _arguments(size), _arguments(size))


@pytest.mark.parametrize("program", window_programs.AT_ONCE, ids=lambda f: f.__name__)
def test_there_is_no_loop(program: Callable[..., Any]) -> None:
    lowered = rune_jit.jit(program, device="cuda-interpreted", fallback="error").lower(
        *_arguments(33)
    )
    text = str(lowered.graph)
    assert "loop" not in text
    assert text.count("where") <= 3  # expanded iterations would be a selection each


@pytest.mark.parametrize("name", ["mirrored_rows", "read_across", "shifted_windows"])
def test_slices_that_are_written_to_slices_are_a_loop(name: str) -> None:
    f = rune_jit.jit(getattr(window_programs, name), device="cpu", fallback="error")
    assert str(f.lower(*_arguments(33)).graph).count("= end_loop") == 1


def test_long_loops_that_copy_triangles_are_few_kernels() -> None:
    program = rune_jit.jit(window_programs.symmetric_without_diagonal, device="cuda-interpreted")
    assert len(program.lower(*_arguments(1000)).kernels) == 1


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.0])
def test_what_is_not_written_may_be_anything(value: float) -> None:
    ours, theirs = _arguments(13), _arguments(13)
    for x, _ in (ours, theirs):
        x[7, 2] = x[3, 9] = x[0, 0] = value
    for program in (window_programs.symmetric_without_diagonal, window_programs.backwards):
        f = rune_jit.jit(program, device="cuda-interpreted", fallback="error")
        np.testing.assert_array_equal(f(*ours), program(*theirs))


def _windows(n: int, choices: list[int]) -> Callable[..., Any]:
    """Two writes of windows along rows or columns, whose limits the choices give, of what the array
    itself or another one has in other windows."""
    rows, a, b, c, d, column, e, f, reads, step = choices

    def program(x: Any, y: Any) -> Any:
        out = x.copy()
        for i in range(2, n - 2)[::step]:
            if rows:
                out[i + a, i + b :] = x[i, i + b :] + y[i + b :]
            else:
                out[: i + b, i + a] = x[: i + b, i] * 2
            from_ = out if reads else x
            if column:
                out[c : i + d, i] = from_[i + e, c : i + d] + y[i]
            else:
                out[i + d, c + 1 :] = from_[c + 1 :, i + f] - 1
        return out

    return program


@pytest.mark.parametrize("seed", range(30))
def test_windows_by_chance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 14))
    small = [int(k) for k in rng.integers(-2, 3, 8)]
    choices = [
        int(rng.integers(2)), small[0], small[1], abs(small[2]), small[3],
        int(rng.integers(2)), small[4], small[5], int(rng.integers(2)), int(rng.choice([1, -1])),
    ]  # fmt: skip
    device = ("cpu", "cuda-interpreted")[seed % 2]
    _check(_windows(n, choices), device, _arguments(n), _arguments(n))
