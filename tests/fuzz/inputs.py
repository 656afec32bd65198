"""The arrays that random programs start from: dtypes, shapes, values and layouts."""

from __future__ import annotations

import math
import os
import random
from typing import Any

import ml_dtypes
import numpy as np

BF16 = np.dtype(ml_dtypes.bfloat16)
# Metal has no float64, and flushes denormals.
ON_METAL = os.environ.get("RUNE_TEST_DEVICE") == "metal"
DTYPES = (
    *(np.dtype(kind + str(size)) for kind in "iu" for size in (1, 2, 4, 8)),
    *(np.dtype(name) for name in ("bool", "float16", "float32")),
    BF16,
    *(() if ON_METAL else (np.dtype("float64"),)),
)
# With the usual ones more often.
_LIKELY = (*DTYPES, *(np.dtype(n) for n in ("int32", "int64", "bool")), *DTYPES[-1:] * 2) + (
    np.dtype("float32"),
) * 6
DIMS = (1, 1, 2, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 33, 64, 100)
MOST_ELEMENTS = 4000
_LARGE = (70000, 65537, 40000)  # elements of an array that several tasks share


def is_float(dtype: Any) -> bool:
    """Whether it is a floating-point dtype, bfloat16 included."""
    return dtype.kind == "f" or dtype == BF16


def random_dtype(rng: random.Random) -> np.dtype:
    return rng.choice(_LIKELY)


def name_of(dtype: np.dtype) -> str:
    """As the programs spell it."""
    return "bfloat16" if dtype == BF16 else "np.bool_" if dtype.kind == "b" else f"np.{dtype}"


def random_shape(rng: random.Random, large: bool) -> tuple[int, ...]:
    if large:
        n = rng.choice(_LARGE)
        return rng.choice([(n,), (n // 256, 256), (257, n // 257), (2, n // 2)])
    shape: list[int] = []
    for _ in range(rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4])):
        dim = 0 if rng.random() < 0.02 else rng.choice(DIMS)
        if math.prod(shape) * dim <= MOST_ELEMENTS:
            shape.append(dim)
    return tuple(shape)


def related_shape(rng: random.Random, shape: tuple[int, ...], large: bool) -> tuple[int, ...]:
    """A shape that probably broadcasts or multiplies with the first."""
    choice = rng.random()
    if choice < 0.4:
        return shape
    if choice < 0.6:
        return tuple(1 if rng.random() < 0.4 else d for d in shape)
    if choice < 0.75:
        return shape[rng.randint(0, len(shape)) :]
    if choice < 0.9 and shape and not large:
        return (shape[-1], rng.choice(DIMS))
    return (7,) if large else random_shape(rng, False)


def _special(dtype: np.dtype) -> list[Any]:
    """Limits, and what is next to them."""
    if dtype.kind == "b":
        return [True, False]
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        bits = info.bits
        return [info.min, info.max, 0, 1, info.max // 2 + 1, bits - 1, bits, bits + 1, 2**6]
    info = ml_dtypes.finfo(dtype)
    largest, tiny = float(info.max), float(info.smallest_normal)
    values = [0.0, -0.0, math.inf, -math.inf, math.nan, tiny, largest, -0.99 * largest, 0.5, 2.5]
    values += [largest**0.8, 2 / float(info.eps) + 2]
    return values if ON_METAL else [*values, float(info.smallest_subnormal), -0.01 * tiny]


def random_data(
    rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...], special: bool
) -> np.ndarray:
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if is_float(dtype):
        values = rng.normal(0, 3, shape).astype(dtype)
        if rng.integers(2):
            values = np.rint(values).astype(dtype)
    elif dtype.kind == "i":
        values = rng.integers(-9, 10, shape).astype(dtype)
    else:
        values = rng.integers(0, 20, shape).astype(dtype)
    if special:
        known = np.array(_special(dtype), dtype)
        chosen = known[rng.integers(0, len(known), shape)]
        values = np.where(rng.random(shape) < 0.3, chosen, values)
    return np.asarray(values)


def lay_out(rng: random.Random, array: np.ndarray) -> tuple[np.ndarray, str]:
    """The same elements in another layout."""
    layout = rng.choice(
        ["C"] * 5 + ["F", "strided", "reversed", "offset", "misaligned", "read-only", "broadcast"]
    )
    if array.ndim == 0:
        return array, "C"
    if layout == "F":
        return np.asfortranarray(array), layout
    if layout == "strided":
        wide = np.zeros((*array.shape[:-1], array.shape[-1] * 2 + 1), array.dtype)
        wide[..., ::2][..., : array.shape[-1]] = array
        return wide[..., ::2][..., : array.shape[-1]], layout
    if layout == "reversed":
        return np.ascontiguousarray(array[::-1])[::-1], layout
    if layout == "offset":
        flat = np.concatenate([array.ravel()[:1], array.ravel()])
        return flat[flat.size - array.size :].reshape(array.shape), layout
    if layout == "misaligned":
        raw = np.zeros(array.nbytes + 1, np.uint8)
        raw[1:] = np.frombuffer(array.tobytes(), np.uint8)
        return raw[1:].view(array.dtype).reshape(array.shape), layout
    if layout == "read-only":
        array = array.copy()
        array.flags.writeable = False
    if layout == "broadcast" and array.size:
        return np.broadcast_to(array[:1], array.shape), layout
    return array, layout if layout == "read-only" else "C"
