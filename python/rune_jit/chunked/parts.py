"""Complex arrays as arrays of pairs of real numbers along a last axis, as in programs of blocks."""

from __future__ import annotations

from typing import Any

import numpy as np


def parts_of(x: np.ndarray) -> np.ndarray:
    """The real and imaginary parts of a complex array. Returns other arrays unchanged.

    >>> import numpy as np
    >>> from rune_jit.chunked.parts import parts_of
    >>> parts_of(np.array([1 + 2j]))
    array([[1., 2.]])
    """
    if x.dtype.kind != "c":
        return x
    plain = np.ascontiguousarray(x, x.dtype.newbyteorder("="))
    return plain.view(plain.real.dtype).reshape(*x.shape, 2)


def numbers_of(x: np.ndarray, dtype: Any) -> np.ndarray:
    """The inverse of parts_of: the array with this dtype that has these parts."""
    if np.dtype(dtype).kind != "c" or x.dtype.kind == "c":
        return x
    found: np.ndarray = np.ascontiguousarray(x).view(dtype)[..., 0]
    return found


def in_parts(x: Any) -> Any:
    """parts_of, also for dask's arrays."""
    if x.dtype.kind != "c" or isinstance(x, np.ndarray):
        return parts_of(x)
    dtype = np.empty((), x.dtype.newbyteorder("=")).real.dtype
    return x.map_blocks(parts_of, new_axis=x.ndim, chunks=(*x.chunks, (2,)), dtype=dtype)


def in_numbers(x: Any, dtype: np.dtype[Any]) -> Any:
    """numbers_of, for dask's arrays."""
    if dtype.kind != "c":
        return x
    last = x.ndim - 1
    return x.map_blocks(numbers_of, dtype, drop_axis=last, chunks=x.chunks[:last], dtype=dtype)
