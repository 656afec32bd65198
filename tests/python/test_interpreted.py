"""Kernels as they are lowered for Metal and CUDA, with these devices' own capabilities, in the
interpreter, which checks bounds and races; and programs on a device that does everything late."""

from __future__ import annotations

from typing import Any

import compare
import numpy as np
import pytest
from compare import assert_matches, outcome, own
from op_cases import ALL, CASES, OpCase
from sampling import some

import rune_jit

DEVICES = ("metal-interpreted", "cuda-interpreted", "interpreter-delayed")


def run(function: Any, device: str, *arguments: Any) -> Any:
    """The test is skipped where the program needs float64 and the device has none."""
    try:
        return compare.run(function, device, *arguments)
    except rune_jit.DTypeError as error:
        assert device.startswith("metal") and "float64" in str(error), error
        pytest.skip("Metal has no float64")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operations(case: OpCase, device: str, full: bool) -> None:
    dtypes = [d for d in case.dtypes if d != "float64" or not device.startswith("metal")]
    for dtype in some(dtypes, 1, f"{case.name} {device}", full):
        arguments = case.arguments(dtype)
        expected = outcome(case.function, *own(arguments, "end"))
        assert_matches(run(case.function, device, *arguments), expected, case.ulps)


def reductions(x: Any) -> list[Any]:
    return [
        *(f(x, axis=axis) for f in (np.max, np.min, np.any, np.argmax) for axis in (0, -1)),
        *(f(x, axis=1, dtype=np.int32) for f in (np.sum, np.prod) if x.dtype.kind in "bi"),
        *(f(x, axis=1) for f in (np.sum, np.mean) if x.dtype.kind == "f"),
        x.sum() if x.dtype.kind == "i" else x.max(),
        np.cumsum(x[:, :70], axis=1, dtype=x.dtype) if x.dtype.kind == "i" else x[:, 1],
    ]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [d for d in ALL if d != "float64"])
def test_groups_reduce(dtype: str, device: str) -> None:
    """Rows that a group of threads shares, whatever the device has to combine what they found."""
    for size in (33, 257, 1000):
        x = (np.random.default_rng(size).integers(0, 100, (3, size)) % 51).astype(dtype)
        with np.errstate(all="ignore"):
            assert_matches(run(reductions, device, x), reductions(x), 64)


def test_results_that_live_on_a_device_that_waits() -> None:
    """Arrays of earlier calls are arguments of later ones, and freed in between."""
    rng = np.random.default_rng(0)
    step = rune_jit.jit(lambda x, y: (np.sort(x @ y, axis=1) + x[:1], (x * y).sum(0)))
    x, y = (rng.integers(0, 5, (8, 8)).astype(np.float32) for _ in range(2))
    a, b = (rune_jit.asarray(v, device="interpreter-delayed") for v in (x, y))
    for _ in range(4):
        (x, sums), (a, found) = step.__wrapped__(x, y), step(a, b)
        x, a = x % 7, a % 7
        np.testing.assert_array_equal(np.asarray(found), sums)
    np.testing.assert_array_equal(np.asarray(a), x)
    view = np.asarray(a)
    del a, found
    np.testing.assert_array_equal(view, x)
