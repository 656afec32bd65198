"""Every slice of short arrays, read and written: bounds on and beyond the ends, steps both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compare import check

BOUNDS = (None, *range(-7, 8))
SIZES = range(6)
STEPS = (None, 1, 2, 3, -1, -2, -3)


def slices(step: int | None) -> list[slice]:
    return [slice(start, stop, step) for start in BOUNDS for stop in BOUNDS]


@pytest.mark.parametrize("device", ["cpu", "interpreter"])
@pytest.mark.parametrize("step", STEPS)
def test_reads(step: int | None, device: str) -> None:
    def read(arrays: list[Any]) -> list[Any]:
        return [np.concatenate([x[s] for s in slices(step)]) for x in arrays]

    def along_axes(x: Any) -> list[Any]:
        return [np.concatenate([x[s] for s in slices(step)[::5]]), x[:, :: step or 1]]

    check(read, [np.arange(1, size + 1) for size in SIZES], ulps=0, device=device)
    check(along_axes, np.arange(12).reshape(4, 3), ulps=0, device=device)


@pytest.mark.parametrize("device", ["cpu", "interpreter"])
@pytest.mark.parametrize("step", STEPS)
def test_writes(step: int | None, device: str) -> None:
    """Each adds a power of two or its multiple, so that no two amount to the same."""

    def write(arrays: list[Any]) -> None:
        for i, s in enumerate(slices(step)[::3]):
            for x in arrays:
                x[s] += 3**i % 1000003
                x[s] *= 3

    check(write, [np.arange(1, size + 1) for size in SIZES], ulps=0, device=device)
