"""Stencils: rows computed together, for numbers of rows and columns that leave some over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compare import assert_matches
from devices import HAS_FLOAT64, devices

import rune_jit
from rune_jit import Dim

RNG = np.random.default_rng(5)
# Rows and columns: none, one, fewer than are computed together, and some more than vectors hold.
SIZES = [(0, 5), (1, 1), (2, 40), (3, 17), (5, 33), (8, 64), (11, 130), (14, 15)]
DEVICES = devices("cpu", "interpreter")


def numbers(dtype: str, *shape: int) -> np.ndarray:
    x = RNG.integers(0 if dtype == "uint8" else -20, 21, shape)
    return (x / 4 if dtype.startswith("float") else x).astype(dtype)


def box(x: Any, size: int) -> Any:
    """Of each window of size * size elements, the sum."""
    n, m = x.shape[0] - size + 1, x.shape[1] - size + 1
    return sum(x[i : i + n, j : j + m] for i in range(size) for j in range(size))


def blurs(x: Any) -> list[Any]:
    near = box(x, 3) - 4 * x[1:-1, 1:-1]
    laplacian = 4 * x[1:-1, 1:-1] - x[:-2, 1:-1] - x[2:, 1:-1] - x[1:-1, :-2] - x[1:-1, 2:]
    edges = np.abs(laplacian[1:] - laplacian[:-1]) + np.abs(laplacian[1:] - near[:-1])
    return [near, laplacian, edges, box(x[::-1, ::2], 3), box(x.T, 3)]


def bounded_blurs(x: Any) -> list[Any]:
    padded = [box(np.pad(x, 1, mode=mode), 3) for mode in ("constant", "edge", "wrap", "symmetric")]
    rolled = (
        x + np.roll(x, 1, 0) + np.roll(x, -1, 0) + np.roll(x, 1, 1) + np.roll(x, (2, -3), (0, 1))
    )
    return [*padded, rolled, np.where(x > 0, box(np.pad(x, 1), 3), rolled)]


def heat(x: Any, k: Any) -> Any:
    inner = x[1:-1, 1:-1, 1:-1]
    around = x[2:, 1:-1, 1:-1] + x[:-2, 1:-1, 1:-1] + x[1:-1, 2:, 1:-1] + x[1:-1, :-2, 1:-1]
    return inner + k[:, None, None] * (around + x[1:-1, 1:-1, 2:] + x[1:-1, 1:-1, :-2] - 6 * inner)


def step_in_place(x: Any) -> Any:
    x[1:-1, 1:-1] = box(x, 3) - x[1:-1, 1:-1]
    x[2:] -= x[:-2] * 2
    return x


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_windows(dtype: str, device: str) -> None:
    if dtype == "float64" and not HAS_FLOAT64:
        pytest.skip("no float64")
    sizes = SIZES if device == "cpu" else SIZES[3:5]
    inner = rune_jit.jit(blurs, device=device, fallback="error")
    bounded = rune_jit.jit(bounded_blurs, device=device, fallback="error")
    volume = rune_jit.jit(heat, device=device, fallback="error")
    for n, m in sizes:
        x = numbers(dtype, n + 2, m + 4)
        assert_matches(inner(x), blurs(x), 0)
        if n:
            assert_matches(bounded(x[:n, :m]), bounded_blurs(x[:n, :m]), 0)
        cube, k = numbers(dtype, n + 2, 6, m + 2), numbers(dtype, n)
        assert_matches(volume(cube, k), heat(cube, k), 0)


@pytest.mark.parametrize("device", DEVICES)
def test_windows_written_to_where_they_are_read(device: str) -> None:
    step = rune_jit.jit(step_in_place, device=device, fallback="error")
    for n, m in SIZES if device == "cpu" else SIZES[3:5]:
        x = numbers("float32", n + 2, m + 2)
        expected = step_in_place(x.copy())
        assert_matches(step(x), expected, 0)
        assert_matches(x, expected, 0)


def test_windows_in_any_number_of_images() -> None:
    def blur(x: Any) -> Any:
        columns = x[..., :-2] + x[..., 1:-1] + x[..., 2:]
        return columns[:, :-2] + columns[:, 1:-1] + columns[:, 2:]

    jitted = rune_jit.jit(blur, dynamic={0: {0: Dim("n", max=16)}}, fallback="error")
    for images in (1, 2, 5, 16):
        x = numbers("float32", images, 13, 40)
        assert_matches(jitted(x), np.stack([box(image, 3) for image in x]), 0)
