"""Every ufunc on every dtype and memory layout, with special values among the data, on every
device, against NumPy. One program takes all layouts of a dtype."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_matches
from devices import HAS_DENORMALS
from op_cases import FLOATS, INTS

from rune_jit import _core

UFUNCS = sorted(
    {
        f
        for f in vars(np).values()
        if isinstance(f, np.ufunc) and f.signature is None and _core.has_ufunc(f.__name__)
    },
    key=lambda f: f.__name__,
)
# One dtype a kind and width that differs in how it is computed; --full takes all.
_SAMPLE = ("bool", "int8", "uint16", "int64", "float16", "float32")
_ALL = ("bool", *INTS, *FLOATS)
# In units of the last place; what two correct roundings of an intermediate may do.
_ULPS = {"float_power": 16, "power": 16, "logaddexp": 16, "logaddexp2": 16}


def special(dtype: np.dtype) -> np.ndarray:
    """Values at which operations of a dtype are special, first those that wrap or overflow."""
    if dtype.kind == "b":
        return np.array([False, True, True, False, True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        values = [limits.min, limits.max, limits.min + 1, limits.max - 1, 0, 1, 2, 7]
        return np.array(values + ([-1, -2] if dtype.kind == "i" else []), dtype)
    limits = np.finfo(dtype)
    tiny = [limits.tiny, limits.eps, limits.max]
    if HAS_DENORMALS or dtype != np.float32:
        tiny.append(limits.smallest_subnormal)
    plain = [0.0, 1.0, np.inf, 0.5, 2.5, 3.0, 1e-3, 100.0]
    return np.array([np.nan, *(s * v for v in (*plain, *tiny) for s in (1, -1))], dtype)


def layouts(values: np.ndarray) -> list[np.ndarray]:
    """The values in arrays of each layout: contiguous, with a step, backwards, transposed, repeated
    by broadcasting, 0-d, of one element, empty, of prime sizes."""
    wide = np.resize(values, 13 * 7 * 2).reshape(13, 14)
    return [
        np.resize(values, 37),
        np.resize(values, 74)[::2],
        np.resize(values, 37)[::-1],
        wide[:, ::2].T,
        wide[::-2, 3:-4],
        np.broadcast_to(values[:5], (3, 5)),
        np.broadcast_to(values[3:4, None], (2, 3)),
        values[1].reshape(()),
        values[:1],
        values[:0].reshape(3, 0),
    ]


def parameters() -> Any:
    for ufunc in UFUNCS:
        for dtype in _ALL:
            try:
                with np.errstate(all="ignore"):
                    ufunc(*[np.ones(1, dtype)] * ufunc.nin)
            except TypeError:
                continue
            marks = () if dtype in _SAMPLE else (pytest.mark.full,)
            yield pytest.param(ufunc, dtype, id=f"{ufunc.__name__}-{dtype}", marks=marks)


def operands(ufunc: np.ufunc, dtype: str) -> list[tuple[np.ndarray, ...]]:
    values = special(np.dtype(dtype))
    if ufunc.nin == 1:
        return [(x,) for x in layouts(values)]
    first, second = (
        np.array(x, dtype) for x in zip(*itertools.product(values, values), strict=True)
    )
    pairs = list(zip(layouts(first), layouts(second[::-1].copy()), strict=True))
    mixed = [(np.resize(first, (4, 5)), np.resize(second, (5, 4)).T), (first[:7, None], second[:3])]
    return [(first, second), *pairs, *mixed]


@pytest.mark.parametrize(("ufunc", "dtype"), list(parameters()))
def test_ufunc(run: Callable[..., Any], ufunc: np.ufunc, dtype: str) -> None:
    arguments = operands(ufunc, dtype)

    def every_layout(pairs: Any) -> list[Any]:
        return [ufunc(*pair) for pair in pairs]

    with np.errstate(all="ignore"):
        try:
            expected = every_layout(arguments)
        except ValueError:  # integers to negative powers
            arguments = [tuple(np.abs(x) % 5 for x in pair) for pair in arguments]
            expected = every_layout(arguments)
    actual = run(every_layout, arguments)
    assert_matches(actual, expected, _ULPS.get(ufunc.__name__, 8))


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "float64"])
def test_short_rows(run: Callable[..., Any], dtype: str) -> None:
    """Rows of 2 to 9 elements, fewer than a vector's lanes: read and written by columns."""
    rng = np.random.default_rng(7)
    arrays = [
        rng.integers(0, 2 if dtype == "bool" else 100, (rows, width)).astype(dtype)
        for width in range(2, 10)
        for rows in (1, 37, 96)
    ]

    def by_columns(x: Any) -> list[Any]:
        columns = [x[:, i] for i in range(x.shape[1])]
        return [
            np.stack(columns[::-1], -1),
            np.stack([columns[0], columns[0] | columns[1] if dtype == "bool" else -columns[1]], 1),
            columns[0] ^ columns[-1] if dtype == "bool" else columns[0] * columns[-1],
            x == x.max(-1, keepdims=True),
            np.repeat(columns[1][:, None], 3, 1),
            np.where(x[:, ::-1] > x[0], x, columns[1][:, None]),
            x[1:, 1:],
        ]

    def every_row(pairs: Any) -> list[Any]:
        return [by_columns(x) for x in pairs]

    assert_matches(run(every_row, arrays), every_row(arrays), 0)
