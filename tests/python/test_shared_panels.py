"""Contractions on grids of workgroups, through panels of their operands in shared memory that are
filled while others are multiplied, against NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from devices import devices
from msl_emulator import MetalError, run_msl

import rune_jit

# Small whole numbers: every sum is exact, in whatever order it is formed.
_rng = np.random.default_rng(7)


def _array(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return _rng.integers(-3, 4, shape).astype(dtype)


def _product(a: Any, b: Any) -> Any:
    return a @ b


def _wide(a: Any, b: Any) -> Any:
    return a.astype(np.float32) @ b.astype(np.float32)


def _turned(x: np.ndarray) -> np.ndarray:
    """The same elements, those of a column side by side."""
    return np.asfortranarray(x)


Case = tuple[Callable[..., Any], tuple[np.ndarray, ...]]
A, B = _array(197, 131), _array(131, 193)
CASES: dict[str, Case] = {
    "whole tiles": (_product, (_array(192, 128), _array(128, 256))),
    "edges": (_product, (A, B)),
    "one beyond a panel": (_product, (_array(129, 65), _array(65, 257))),
    "int32": (_product, (A.astype("i4"), B.astype("i4"))),
    "int64": (_product, (A.astype("i8"), B.astype("i8"))),
    "uint8": (_product, (_array(129, 260, dtype="u1"), _array(260, 129, dtype="u1"))),
    "float16": (_product, (A.astype("f2"), B.astype("f2"))),
    "float16, sums float32": (_wide, (A.astype("f2"), B.astype("f2"))),
    "bfloat16": (_wide, tuple(x.astype(ml_dtypes.bfloat16) for x in (A, B))),
    "columns side by side": (_product, (_turned(A), _turned(B))),
    "transposed": (lambda a, b: a.T @ b.T, (_array(131, 197), _array(193, 131))),
    "transposed result": (lambda a, b: (a @ b).T + 1, (A, B)),
    "strided": (lambda a, b: a[::-1, ::2] @ b[2:, ::-3], (_array(197, 262), _array(133, 579))),
    "batch": (_product, (_array(3, 130, 131), _array(3, 131, 129))),
    "batch of rows": (_product, (_array(3, 67, 131), B)),
    "with its transpose": (lambda a: a @ a.T, (A,)),
    "prologue": (lambda a, b, s: np.maximum(a, 0) @ (b * s + 1), (A, B, _array(193))),
    "epilogue": (lambda a, b, c: np.maximum(a @ b + c, 0) * 2, (A, B, _array(197, 193))),
    "padded": (lambda a, b: np.pad(a, 1) @ np.pad(b, 1), (A, B)),
    "concatenated": (lambda a, b: np.concatenate([a, a + 1], 1) @ b, (A, _array(262, 193))),
}


@pytest.mark.parametrize("device", devices("interpreter"))
@pytest.mark.parametrize("name", CASES)
def test_cases(name: str, device: str) -> None:
    function, arguments = CASES[name]
    f = rune_jit.jit(function, device=device, fallback="error")
    if device != "cuda":
        assert " copies=2" in str(f.lower(*arguments).schedule)
    actual, expected = f(*arguments), function(*arguments)
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("device", devices("interpreter"))
def test_special_values(device: str) -> None:
    """What lies beyond the reduced axis's end is zero in both panels, whatever the prologue gives
    there; infinities meet no zeros of other rows."""
    a, b = A.copy(), B.copy()
    a[5, 130], a[196, 0], b[130, 192] = np.inf, np.nan, -np.inf

    def f(x: Any, y: Any) -> Any:
        return (1 / (x + 4)) @ np.exp(y)

    with np.errstate(all="ignore"):
        expected = f(a, b)
    actual = rune_jit.jit(f, device=device, fallback="error")(a, b)
    np.testing.assert_allclose(actual, expected, rtol=1e-5)
    assert np.isnan(actual[196]).all() and np.isfinite(actual[:196, :192]).all()


@pytest.mark.parametrize("dtype", ["f4", "i4"])
def test_barriers_on_metal(dtype: str) -> None:
    """By SIMD-groups and by threads: in either order of them results are the same, but not without
    any of the barriers."""
    a, b = A.astype(dtype), B.astype(dtype)
    source = rune_jit.jit(_product).lower(a, b).source("metal")
    grid, local = (int(n) for n in re.findall(r"(\d+) (?:workgroups|threads)", source))
    name = re.findall(r"^void (\w+)", source, re.MULTILINE)[0]
    for reverse in (False, True):
        result = np.zeros((197, 193), dtype)
        run_msl(source, name, [a, b, result], [grid], [local], reverse)
        np.testing.assert_array_equal(result, a @ b)
    barriers = list(re.finditer("threadgroup_barrier.*", source))
    assert len(barriers) == 2
    for barrier in barriers:
        racing = source[: barrier.start()] + source[barrier.end() :]
        with pytest.raises(MetalError, match=r"data race|which nothing has written"):
            run_msl(racing, name, [a, b, result], [grid], [local])
