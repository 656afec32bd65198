"""The ufuncs that are made of the bits of numbers, bit for bit, without a call to the host: on
every number of 16 bits, and on random ones and special ones of more."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from compare import check

import rune_jit

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(np.float16), BFLOAT16, np.dtype(np.float32), np.dtype(np.float64)]
INTEGERS = "bhilBHIL"
RNG = np.random.default_rng(3)


def numbers(dtype: np.dtype[Any]) -> np.ndarray:
    bits = np.dtype(f"u{dtype.itemsize}")
    if dtype.itemsize == 2:
        return np.arange(2**16, dtype=bits).view(dtype)
    limits = np.finfo(dtype)
    special = [0, 1, 2, 0.5, np.inf, np.nan, limits.max, limits.tiny, limits.smallest_subnormal]
    special = np.array([*special, *(-np.array(special))], dtype)
    most = np.iinfo(bits).max
    some = RNG.integers(0, most, 4000, bits, endpoint=True)
    subnormal = RNG.integers(0, most >> (limits.bits - limits.nmant - 1), 1000, bits)
    return np.concatenate([special, np.concatenate([some, subnormal]).view(dtype)])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats(dtype: np.dtype[Any]) -> None:
    x = numbers(dtype)
    y = RNG.permutation(x)
    # Not of zeros: which of two equal ones nextafter returns depends on NumPy's version.
    near = np.where((np.arange(x.size) % 3 > 0) | (x == 0), x, -x)
    check(
        lambda x, y, z: (
            *np.frexp(x), np.spacing(x), np.nextafter(x, y), np.nextafter(x, z), np.reciprocal(x)
        ),
        x, y, near, ulps=0,
    )  # fmt: skip
    exponents = []
    for code in INTEGERS[:-1]:  # NumPy has no loop for uint64
        limits = np.iinfo(code)
        most = RNG.choice([20, 160, 2300], x.size)
        few = RNG.integers(-most, most).clip(limits.min, limits.max).astype(code)
        few[:2] = limits.min, limits.max
        exponents.append(few)
    check(
        lambda x, *exponents: [np.ldexp(x, e) for e in (3, -7, *exponents)],
        x,
        *exponents,
        ulps=0,
    )


def test_integers() -> None:
    def ufuncs(*arrays: Any) -> list[Any]:
        results = []
        for x in arrays:
            results += [np.bitwise_count(x), np.reciprocal(x), np.spacing(x), *np.frexp(x)]
            results += [np.nextafter(x, x[::-1]), np.ldexp(x, np.arange(x.size))]
        return results

    arrays = [np.array([True, False, True])]
    for code in INTEGERS:
        limits = np.iinfo(code)
        some = RNG.integers(limits.min, limits.max, 200, code, endpoint=True)
        arrays.append(np.concatenate([np.array([0, 1, 2, limits.min, limits.max], code), some]))
    check(ufuncs, *arrays, ulps=0)


def test_errors() -> None:
    x = np.ones(3)
    for bad in (
        lambda x: np.ldexp(x, x),
        lambda x: np.ldexp(x, 1.0),
        lambda x: np.ldexp(x, x.astype(np.uint64)),
        lambda x: np.ldexp(x, 2**40),
        np.bitwise_count,
        lambda x: np.frexp(x, x, x, x),
    ):
        with pytest.raises((TypeError, OverflowError)) as numpys:
            bad(x)
        with pytest.raises(numpys.type):
            rune_jit.jit(bad, fallback="error")(x)
