"""Functions of NumPy that compile to kernels alone, without calls to the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import compare
import numpy as np
import pytest
from compare import assert_matches

import rune_jit

RNG = np.random.default_rng(11)
FLOATS = ("float16", "float32", "float64")
DTYPES = ("bool", "int8", "uint16", "int64", *FLOATS)


def check(function: Callable[..., Any], *arguments: Any, ulps: float = 16) -> None:
    """Also, nothing is left to NumPy."""
    jitted = compare.check(function, *arguments, ulps=ulps)
    assert "callback" not in jitted.lower(*arguments).explain()


def check_errors(x: np.ndarray, *functions: Callable[..., Any]) -> None:
    """Each function raises, and the program raises an exception of the same type."""
    for function in functions:
        with pytest.raises(Exception) as numpys:
            function(x)
        with pytest.raises(numpys.type):
            rune_jit.jit(function, fallback="error")(x)


def numbers(dtype: str, *shape: int) -> np.ndarray:
    low = 0 if dtype in ("bool", "uint16") else -4
    values = RNG.integers(4 * low, 16, shape) / 4
    return np.floor(values).astype(dtype) if dtype not in FLOATS else values.astype(dtype)


def holes(dtype: str, *shape: int) -> np.ndarray:
    x = numbers(dtype, *shape)
    if dtype in FLOATS:
        x[RNG.random(shape) < 0.3] = np.nan
        x[0] = np.nan
        x[1, ..., :3] = np.inf, -0.0, np.nan
        x[-1] = 2
        x[2, ..., -1] = -np.inf
    return x


IGNORING_NAN = (np.nansum, np.nanprod, np.nanmin, np.nanmax, np.nanmean, np.nanvar, np.nanstd)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_is_ignored(dtype: str) -> None:
    def functions(x: Any, cube: Any, mask: Any) -> list[Any]:
        results = [np.nancumsum(x), np.nancumprod(x, axis=1)]
        for f in IGNORING_NAN:
            start = {"initial": 1} if f in (np.nanmin, np.nanmax) else {}
            results += [f(x), f(x, axis=1), f(x, axis=0, keepdims=True), f(cube, axis=(0, -1))]
            results.append(f(x, axis=1, where=mask, **start))
        for f in (np.nanargmin, np.nanargmax):
            results += [f(x), f(x[1:], axis=1, keepdims=True), f(x, axis=0)]
        for f in (np.nanvar, np.nanstd):
            results += [f(x, axis=1, ddof=1), f(x, axis=0, correction=1.5)]
            results.append(f(x, axis=1, mean=np.full((4, 1), 0.5)))
        for f in (np.fmin, np.fmax):
            results += [f.reduce(x), f.accumulate(x, axis=1), f.reduce(x, axis=1, initial=0)]
        return results

    x, mask = holes(dtype, 4, 6), RNG.random((4, 6)) > 0.4
    check(functions, x, holes(dtype, 3, 4, 5), mask, ulps=64)


@pytest.mark.parametrize("dtype", ["float64", "complex64", "complex128"])
def test_nan_alone(dtype: str) -> None:
    x = np.array([[np.nan, np.nan], [1, np.nan]], dtype)
    for f in (np.nanargmin, np.nanargmax):
        jitted = rune_jit.jit(lambda x, f=f: f(x, axis=1), fallback="error")
        with pytest.raises(ValueError, match="All-NaN slice encountered"):
            jitted(x)
        x[0, 1] = 3
        np.testing.assert_array_equal(jitted(x), [1, 0])
        x[0, 1] = np.nan
    if x.dtype.kind == "c":
        return
    check_errors(
        x,
        lambda x: np.nanmin(x[:0]),
        lambda x: np.nanmax(x, axis=1, where=x > 0),
        lambda x: np.nanmean(x, dtype=np.int32),
        lambda x: np.nanargmax(x[:, :0], axis=1),
        lambda x: np.nanvar(x, ddof=1, correction=1),
        lambda x: np.nansum(x, axis=2),
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
def test_moments_of_some_elements(dtype: str) -> None:
    def functions(x: Any, mask: Any) -> list[Any]:
        return [
            np.mean(x, where=mask), np.mean(x, axis=1, where=mask, keepdims=True),
            np.var(x, axis=0, where=mask), np.std(x, axis=1, where=mask, ddof=1),
            np.mean(x, where=mask[0], dtype=np.float32), np.average(x, axis=0),
            np.std(x, axis=1, mean=np.mean(x, axis=1, keepdims=True)),
            *np.average(x, axis=1, weights=[1, 2, 3, 1, 0.5, 2], returned=True),
        ]  # fmt: skip

    mask = RNG.random((4, 6)) > 0.4
    mask[0] = False
    check(functions, numbers(dtype, 4, 6), mask, ulps=64)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sliding_products(dtype: str) -> None:
    def functions(x: Any, y: Any, one: Any) -> list[Any]:
        results = []
        for mode in ("full", "same", "valid"):
            for a, b in ((x, y), (y, x), (x, x), (x, one), (x, [1, 2])):
                results += [np.convolve(a, b, mode), np.correlate(a, b, mode)]
        return results

    check(functions, numbers(dtype, 9), numbers(dtype, 4), numbers(dtype, 1))


def test_products_and_errors_of_sliding() -> None:
    x, y = RNG.standard_normal(3000), RNG.standard_normal(50)
    x[7] = np.inf
    check(lambda x, y: np.convolve(x, y, "same"), x, y, ulps=1000)
    check_errors(
        x,
        lambda x: np.convolve(x[:0], x),
        lambda x: np.correlate(x, x[:0]),
        lambda x: np.convolve(np.ones((2, 2)), x),
        lambda x: np.convolve(x, x, "most"),
    )
    with pytest.raises(TypeError, match="Cannot cast array data"):
        rune_jit.jit(lambda x: np.interp(x, [0, 1], [0, 1]))(x + 1j)


@pytest.mark.parametrize("dtype", ("int8", "uint16", "int64", *FLOATS))
def test_places_in_sorted_arrays(dtype: str) -> None:
    def functions(a: Any, v: Any, order: Any) -> list[Any]:
        results = []
        for side in ("left", "right"):
            for sought in (v, v[0], v[2, 1], 1, [0, 3], v.astype(np.float32)):
                results.append(np.searchsorted(a, sought, side))
            results += [np.searchsorted(a[:n], v, side=side) for n in (0, 1, 2, 3, 7, 8)]
            results.append(np.searchsorted(a[::-1], v, side, sorter=order))
        return [*results, np.digitize(v, [0, 1, 3]), np.digitize(v, [3, 1, 0], right=True)]

    a = np.sort(holes(dtype, 4, 9).ravel())
    check(functions, a, holes(dtype, 4, 5), np.arange(a.size)[::-1].copy())


@pytest.mark.parametrize("dtype", ("bool", "uint8", "int64", "uint64", *FLOATS))
def test_membership(dtype: str) -> None:
    """Among few elements, which are all compared, and many, which are sorted and searched."""

    def functions(x: Any, few: Any, many: Any) -> list[Any]:
        results: list[Any] = []
        for known in (few, few[:0], few[0], many, many.reshape(2, -1), [1, 2.5], 3):
            results += [np.isin(x, known), np.isin(x, known, invert=True), np.isin(x[0, 0], known)]
        return [*results, np.isin(x[:0], many), np.isin(3, many), np.isin([2, 7], few)]

    x = holes(dtype, 4, 5)
    arguments = x, x[0, ::-1].copy(), np.arange(40).astype(dtype)
    assert_matches(rune_jit.jit(functions, fallback="error")(*arguments), functions(*arguments))
    with pytest.raises(ValueError, match="Invalid kind"):
        rune_jit.jit(lambda x: np.isin(x, x, kind="hash"), fallback="error")(x)


def test_interpolation() -> None:
    x = np.array([-np.inf, np.inf, np.nan, 0, 1, 2, 3, 0.5, 1.5, -0.0, 2.25, -1, 4])
    xp = np.array([0, 1, 1, 2, 3.0])
    fp = np.array([1, np.inf, 3, np.nan, 5.0])
    flat = np.array([1, 2, np.inf, np.inf, 7])

    def functions(x: Any, xp: Any, fp: Any, flat: Any) -> list[Any]:
        return [
            np.interp(x, xp, fp), np.interp(x, xp, flat), np.interp(x, xp, flat, -7, 8.5),
            np.interp(x, xp[:1], fp[:1]), np.interp(x[3], xp, flat), np.interp(0.25, xp, flat),
            np.interp(x, [0, 10, 20], [3, 2, 5]), np.interp(x.astype(np.float32), xp, flat),
        ]  # fmt: skip

    check(functions, x, xp, fp, flat)
    check_errors(
        x,
        lambda x: np.interp(x, x[:0], x[:0]),
        lambda x: np.interp(x, x, x[1:]),
        lambda x: np.interp(x, x[None], x),
    )
    with pytest.raises(TypeError, match="Cannot cast array data"):
        rune_jit.jit(lambda x: np.interp(x, [0, 1], [0, 1]))(x + 1j)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("dtype", DTYPES)
def test_arithmetic(dtype: str) -> None:
    def plane_crosses(x: Any, y: Any) -> list[Any]:  # up to NumPy 2.4
        return [np.cross(x[:, :2], y[:, :3]), np.cross(x[0, :2], y[0, :2])]

    try:
        plane_crosses(np.eye(3), np.eye(3))
    except ValueError:
        with pytest.raises(ValueError, match="3-dimensional"):
            rune_jit.jit(plane_crosses, fallback="error")(np.eye(3), np.eye(3))

        def plane_crosses(x: Any, y: Any) -> list[Any]:
            return []

    def of_all(x: Any, y: Any) -> list[Any]:
        return [
            np.cov(x), np.cov(x, y), np.cov(x[0]), np.cov(x, rowvar=False), np.cov(x, bias=True),
            np.cov(x, fweights=[1, 2, 0, 1, 3, 1]), np.cov(x[:1], rowvar=False), np.corrcoef(x, y),
            np.corrcoef(x[1], y[0])[0, 1], np.vander(x[0]), np.vander(x[0], 3, increasing=True),
            np.trapezoid(x), np.trapezoid(x, y), np.trapezoid(x, y[0]), np.trapezoid(x, dx=0.5),
            np.diff(x, prepend=0), np.diff(x, n=2, append=y[:, :1]), np.unwrap(x * 2.5),
            *(() if x.dtype == bool else (np.round(x, 2), np.round(x * 7, -1))), np.i0(x),
            np.angle(x),
            np.isclose(x, y), np.allclose(x, x), np.array_equal(x, y), np.array_equiv(x, x[None]),
            np.isreal(x), np.iscomplex(x), np.imag(x), np.fix(x), np.sinc(x), np.kron(x, y),
            np.piecewise(x, [x < 1, x > 2], [0, lambda v: v + v, lambda v: v * v]),
            np.polyval([1, 2, 3], x), np.linspace(x[0], y[1], 4), np.nan_to_num(x, nan=1),
        ]  # fmt: skip

    def of_numbers(x: Any, y: Any) -> list[Any]:
        return [
            np.cross(x[:, :3], y[:, 3:]), np.cross(x[0, :3], y[1, 1:4]), *plane_crosses(x, y),
            np.cross(x[:3], y[:3], axis=0), np.cross(x[:3], y[:, :3].T[:, :1], 0, 0, 0),
            np.linalg.cross(x[:, :3], y[:, 3:]), np.ediff1d(x), np.ediff1d(x, x[0], y[0, 0]),
            np.gradient(x), np.gradient(x, 2, axis=1), np.gradient(x, [0, 1, 3, 4], axis=0),
            np.gradient(x, edge_order=2), np.gradient(x[0], np.arange(6.0) ** 2, edge_order=2),
        ]  # fmt: skip

    x, y = numbers(dtype, 4, 6), numbers(dtype, 4, 6)
    x[0] = np.arange(6)
    check(of_all, x, y, ulps=512)
    if dtype != "bool":
        check(of_numbers, x, y, ulps=64)
    if dtype in FLOATS:
        x[0, :4] = np.nan, np.inf, -np.inf, -0.0
        check(
            lambda x: [
                np.nan_to_num(x, nan=1.5, posinf=2), np.isposinf(x), np.isneginf(x), np.round(x, 1),
                np.isclose(x, x, equal_nan=True), np.array_equal(x, x, equal_nan=True),
            ],
            x,
        )  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_options(dtype: str) -> None:
    def functions(x: Any, y: Any) -> list[Any]:
        results = []
        for f in (np.sum, np.prod, np.cumsum, np.cumprod):
            out = np.zeros((4, 6) if "cum" in f.__name__ else 4, y.dtype)
            results += [f(x, 1, None, out.copy()), f(x, 1, np.float64, out.copy())]
            results += [f(x, 1, out=out), f(x, axis=1, dtype=bool), f(x, axis=0, dtype=np.uint8)]
        results += [
            np.cumulative_sum(x, axis=1, out=np.zeros((4, 6))),
            np.sum(x, 1, None, None, True),
        ]
        results += [
            np.mean(x * 40, axis=0, dtype=np.int8),
            np.linspace(0, x[0, 1], 5, retstep=True),
        ]
        results += [np.tensordot(x, y), np.reshape(x, (3, 8), order="F"), x.ravel("F")]
        return [*results, np.reshape(x.T, (-1, 2), order="F"), x[:, ::2].flatten("F")]

    check(functions, numbers(dtype, 4, 6), np.ones((4, 6)), ulps=64)
    jitted = rune_jit.jit(lambda x: np.argmax(x, axis=0, out=np.zeros(6)), fallback="error")
    with pytest.raises(TypeError, match="cast"):
        jitted(numbers(dtype, 4, 6))
