"""Softmax, logsumexp, mean and variance over rows longer than the caches, against NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune_jit

_rng = np.random.default_rng(5)
# Longer than any second-level cache, with divisors and without.
EVEN, PRIME = 1 << 21, 2_097_143


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def logsumexp(x: Any) -> Any:
    largest = np.max(x)
    return largest + np.log(np.sum(np.exp(x - largest)))


def mean_and_variance(x: Any) -> Any:
    return np.mean(x), np.var(x)


# Times that the input's bytes are read and written, at least.
FUNCTIONS: dict[Callable[..., Any], tuple[int, int]] = {
    softmax: (2, 1),
    logsumexp: (1, 0),
    mean_and_variance: (1, 0),
}


def _compiled(function: Callable[..., Any]) -> Any:
    return rune_jit.jit(function, device="cpu", fallback="error")


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_values_and_bytes(function: Callable[..., Any]) -> None:
    compiled = _compiled(function)
    for size, dtype in ((EVEN, np.float32), (PRIME, np.float32), (EVEN, np.float64)):
        x = _rng.standard_normal(size).astype(dtype)
        for actual, expected in zip(
            np.atleast_2d(compiled(x)), np.atleast_2d(function(x.astype(np.float64))), strict=True
        ):
            rtol = 3e-6 if dtype == np.float32 else 1e-13
            np.testing.assert_allclose(actual, expected, rtol=rtol, atol=1e-7)
        text = str(compiled.lower(x).schedule)
        for direction, times in zip(("read", "written"), FUNCTIONS[function], strict=True):
            moved = sum(map(int, re.findall(rf"bytes_{direction}=(\d+)", text)))
            assert times * x.nbytes <= moved <= times * x.nbytes + 100_000


def test_special_values() -> None:
    compiled = {function: _compiled(function) for function in FUNCTIONS}
    x = _rng.standard_normal(EVEN).astype(np.float32)
    lonely = np.full(EVEN, -np.inf, np.float32)
    inputs = [lonely.copy()]
    for value in (np.nan, np.inf, -np.inf):
        inputs.append(x.copy())
        inputs[-1][EVEN // 3] = value
    lonely[12345] = -1000  # the exponential of its negative overflows
    inputs.append(lonely)
    inputs.append(np.where(np.arange(EVEN) % 2, 3e38, -1e38).astype(np.float32))
    for values in inputs:
        for function in FUNCTIONS:
            with np.errstate(all="ignore"):
                expected = function(values)
            for a, e in zip(
                np.atleast_2d(compiled[function](values)), np.atleast_2d(expected), strict=True
            ):
                np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-7)


def _exact_variance(x: np.ndarray) -> np.ndarray:
    """From integers: the inputs are multiples of a power of two."""
    step = np.spacing(np.abs(x).min())
    deviations = ((x - x.flat[0]) / step).astype(np.int64).astype(object)
    count = x.shape[-1]
    moments = count * (deviations**2).sum(-1) - deviations.sum(-1) ** 2
    return np.array([float(m) for m in moments]) * float(step) ** 2 / count**2


def test_variance_far_from_zero() -> None:
    """The mean's rounding is taken out, in which NumPy errs by its square."""
    cases = [(np.float32, 1e4), (np.float32, 1e6), (np.float64, 1e8), (np.float64, 1e12)]
    for dtype, centre in cases:
        for shape in ((40, 1000), (3, 70_001), (1, EVEN)):
            x = (_rng.standard_normal(shape) + centre).astype(dtype)
            exact = _exact_variance(x)
            error = np.abs(_compiled(lambda x: np.var(x, axis=-1))(x) - exact) / exact
            assert error.max() < 8 * np.finfo(dtype).eps, (dtype, centre, shape)
    for value in (0.1, 1e4 / 3):
        assert _compiled(np.std)(np.full(99_991, value, np.float32)) < 1e-6 * value


def test_variance_that_overflows() -> None:
    x = np.where(np.arange(4096) % 2, 1e34, -1e34).astype(np.float32)
    with np.errstate(all="ignore"):
        assert _compiled(np.var)(x) == np.var(x) == np.inf


@pytest.mark.parametrize("device", ["metal", "cuda"])
def test_variance_on_many_threads(device: str) -> None:
    """Workgroups reduce parts, which are merged: the array is read by one kernel of two."""
    x = np.zeros(1 << 20, np.float32)
    lowered = rune_jit.jit(lambda x: (x.mean(), x.var()), device=device).lower(x)
    assert len(lowered.kernels) <= 3
    assert lowered.explain().count("reads %0:") == 1


def test_several_long_rows() -> None:
    x = _rng.standard_normal((3, EVEN // 4)).astype(np.float32)
    np.testing.assert_allclose(_compiled(softmax)(x), softmax(x), rtol=3e-6, atol=1e-12)
    deviation = _compiled(lambda x: np.std(x, axis=-1))(x)
    np.testing.assert_allclose(deviation, np.std(x, axis=-1), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_positions_of_extrema_of_long_vectors(dtype: str) -> None:
    """The first of equal ones, and the first NaN, in blocks and in what remains."""

    def run(x: Any) -> list[Any]:
        return [np.argmax(x), np.argmin(x), np.argmax(x.reshape(-1, 1), keepdims=True)]

    jitted = rune_jit.jit(run, device="cpu", fallback="error")
    graph = str(jitted.lower(np.zeros(20000, dtype)).graph)
    assert "gather" in graph and "host_callback" not in graph
    for size in (16384, 20000):
        x = np.random.default_rng(0).integers(0, 200, size).astype(dtype)
        cases = [x, np.zeros_like(x)]
        for position in (0, 1023, 1024, 5000, size - 1):
            cases.append(x.copy())
            cases[-1][position] = 250
            if x.dtype.kind == "f":
                cases.append(x.copy())
                cases[-1][[position, size - 2]] = np.nan
        for case in cases:
            for got, want in zip(jitted(case), run(case), strict=True):
                np.testing.assert_array_equal(got, want)
                assert type(got) is type(want)
