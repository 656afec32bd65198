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


def test_variance_far_from_zero() -> None:
    """The deviations' error is NumPy's, though each part subtracts a mean of its own."""
    for centre, rtol in ((1e3, 1e-5), (1e5, 1e-2)):
        x = (_rng.standard_normal(EVEN) + centre).astype(np.float32)
        exact = np.var(x.astype(np.float64))
        np.testing.assert_allclose(_compiled(np.var)(x), exact, rtol=rtol)


def test_several_long_rows() -> None:
    x = _rng.standard_normal((3, EVEN // 4)).astype(np.float32)
    np.testing.assert_allclose(_compiled(softmax)(x), softmax(x), rtol=3e-6, atol=1e-12)
    deviation = _compiled(lambda x: np.std(x, axis=-1))(x)
    np.testing.assert_allclose(deviation, np.std(x, axis=-1), rtol=1e-6)
