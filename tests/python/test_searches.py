"""argmax and argmin along rows, which pass over blocks without a match."""

from __future__ import annotations

import numpy as np
import pytest
from compare import assert_same

import rune_jit

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int32", "int64", "uint8"])
@pytest.mark.parametrize("size", [1, 15, 64, 129, 1003])
def test_argmax_of_rows(dtype: str, size: int) -> None:
    rng = np.random.default_rng(size)
    spread = rng.integers(0, 100, (9, size)).astype(dtype)
    equal = np.full((1, size), 7, dtype)
    rows = [spread, equal]
    if np.dtype(dtype).kind == "f":
        one_nan, infinite = spread.copy(), np.full((3, size), -np.inf, dtype)
        one_nan[np.arange(9), rng.integers(0, size, 9)] = np.nan
        one_nan[:, -1] = np.inf
        infinite[1:, size // 2] = [np.nan, np.inf]
        rows += [one_nan, infinite, rng.choice(SPECIAL, (20, size)).astype(dtype)]
    x = np.concatenate(rows)
    for function in (np.argmax, np.argmin):
        assert_same(rune_jit.jit(lambda x, f=function: f(x, axis=1))(x), function(x, axis=1))
        assert_same(rune_jit.jit(lambda x, f=function: f(x))(x), function(x))
