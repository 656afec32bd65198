"""Long reductions with few results, which the workgroups of a device of many threads share: by
atomic operations where any order gives the same result, else by a second kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from devices import devices

import rune_jit

SIZE = 200_003  # a prime: what is left over of the parts is reduced, too
RANDOM = np.random.default_rng(5)


def extremes(x: Any) -> Any:
    return x.max(), x.min()


def _plans(function: Any, device: str, *args: np.ndarray) -> list[str]:
    """By kernel that reduces: whether it combines with the workgroups beside it, or stores."""
    text = rune_jit.jit(function, device=device).lower(*args).explain()
    lines = [line for line in text.splitlines() if "reduction over" in line]
    return ["atomic" if "atomic operations" in line else "stores" for line in lines]


def _kernels(function: Any, device: str, *args: np.ndarray) -> int:
    return len(rune_jit.jit(function, device=device).lower(*args).kernels)


@pytest.mark.parametrize("device", devices("interpreter", "cpu"))
def test_integers(device: str) -> None:
    low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    whole = RANDOM.integers(low, high, 1 << 18, dtype=np.int32, endpoint=True)
    for x in (whole, whole[:SIZE], whole.reshape(512, 512).T, whole.reshape(2, -1)):

        @rune_jit.jit(device=device, fallback="error")
        def results(x: Any) -> Any:
            return x.max(-1), x.min(), x.sum(dtype=np.int32), x.astype(np.uint32).max()

        expected = x.max(-1), x.min(), x.sum(dtype=np.int32), x.astype(np.uint32).max()
        for actual, wanted in zip(results(x), expected, strict=True):
            np.testing.assert_array_equal(actual, wanted)
        assert rune_jit.jit(np.max, device=device)(x) == x.max()
        np.testing.assert_array_equal(rune_jit.jit(extremes, device=device)(x), extremes(x))


@pytest.mark.parametrize("device", devices("interpreter", "cpu"))
def test_extremes_of_floats(device: str) -> None:
    """NaN wins, wherever it is; so do infinities; the identity never shows."""
    x = RANDOM.standard_normal(1 << 18).astype(np.float32)
    both = rune_jit.jit(extremes, device=device)
    for special in (-np.inf, np.inf, np.nan):
        x[12345] = special
        np.testing.assert_array_equal(both(x), extremes(x))
    for value in (-np.inf, np.inf, -0.0, 0.0):
        same = np.full(1 << 18, value, np.float32)
        for actual in both(same):
            assert actual == value
            assert np.signbit(actual) == np.signbit(value)


@pytest.mark.parametrize("device", devices("interpreter", "cpu"))
def test_sums_of_floats_are_repeatable(device: str) -> None:
    x = RANDOM.standard_normal(1 << 18).astype(np.float32)
    total = rune_jit.jit(np.sum, device=device)
    first = total(x)
    assert all(total(x) == first for _ in range(3))
    np.testing.assert_allclose(first, x.sum(dtype=np.float64), atol=0.05)


def of_columns(x: Any) -> Any:
    return x.argmax(0), x.argmin(0), x.std(0), x.std(), np.log(np.exp(x - x.max(0)).sum(0))


@pytest.mark.parametrize("device", devices("cuda-interpreted", "cpu"))
@pytest.mark.parametrize("shape", [(2003, 67), (10_007, 13), (13, 10_501)])
def test_reductions_of_columns(shape: tuple[int, ...], device: str) -> None:
    dtype, rtol = (np.float32, 1e-5) if device == "metal" else (np.float64, 1e-12)
    x = RANDOM.standard_normal(shape).astype(dtype)
    x[5:60:7, 3] = x[:, 3].max() + 1  # the first of several
    run = rune_jit.jit(of_columns, device=device, fallback="error")
    for got, wanted in zip(run(x), of_columns(x.astype(np.float64)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=rtol)
    x[[5, 9], 2] = np.nan
    x[7, 4] = np.inf
    with np.errstate(invalid="ignore"):
        wanted = of_columns(x.astype(np.float64))
    for got, value in zip(run(x)[:3], wanted[:3], strict=True):
        np.testing.assert_allclose(got, value, rtol=rtol)


def test_columns_are_read_once() -> None:
    """Partial results take a share of what an element takes."""
    for function in (
        lambda x: np.argmax(x, axis=0),
        lambda x: np.std(x, axis=0),
        lambda x: np.std(x.T),
    ):
        x = np.zeros((4003, 401))
        costs = rune_jit.jit(function, device="cuda").lower(x).cost_analysis()
        assert costs["bytes_read"] + costs["bytes_written"] < 2 * x.nbytes


def test_plans() -> None:
    """Two kernels each: one that begins the results, or one that completes them."""
    whole = np.zeros(1 << 20, np.int32)
    for device in ("metal", "cuda"):
        assert _plans(np.max, device, whole) == ["atomic"]
        assert _plans(extremes, device, whole) == ["atomic"]
        assert _plans(np.sum, device, whole.astype(np.float32)) == ["stores", "stores"]
        for function in (np.max, extremes):
            assert _kernels(function, device, whole) == 2
        assert _plans(lambda x: x.max() + 1, device, whole) == ["stores", "stores"]
    assert _plans(np.sum, "metal", whole) == ["stores", "stores"]  # has no 64-bit atomics
    assert _plans(np.sum, "cuda", whole) == ["atomic"]
    assert _plans(np.sum, "cpu", whole.astype(np.float32)) == ["stores", "stores"]


def test_rendered_atomics() -> None:
    whole = np.zeros(1 << 20, np.int32)
    lowered = rune_jit.jit(np.max).lower(whole)
    assert lowered.source("metal").count("atomic_fetch_max_explicit((device atomic_int*)&") == 1
    assert lowered.source("cuda").count("atomicMax(&") == 1
