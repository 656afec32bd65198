"""The dtypes of `rune_jit.numpy`, and the standard's functions on dtypes."""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from rune_jit.arrays.array import Array
from rune_jit.tracing.tracer import Tracer

# NumPy's scalar types. Unlike numpy.dtype("float64"), they do not equal None. They equal the dtypes
# of arrays.
_NAMES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 bfloat16 float16 float32 float64"
    " complex64 complex128"
)
DTYPES = {name: np.dtype(name).type for name in _NAMES.split()}


class FloatInfo(NamedTuple):
    """The limits of a floating-point dtype, with the attributes of numpy.finfo. For a complex
    dtype, the limits of its parts."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


class IntInfo(NamedTuple):
    """The limits of an integer dtype, with the attributes of numpy.iinfo."""

    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


def _dtype_of(x: Any) -> np.dtype[Any]:
    return x.dtype if isinstance(x, (Array, Tracer)) else np.dtype(x)


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating-point dtype, or of an array's dtype."""
    limits: Any = ml_dtypes.finfo(_dtype_of(type))  # type: ignore[no-untyped-call]
    return FloatInfo(
        limits.bits,
        float(limits.eps),
        float(limits.max),
        float(limits.min),
        float(limits.smallest_normal),
        np.dtype(limits.dtype),
    )


def iinfo(type: Any, /) -> IntInfo:
    """The limits of an integer dtype, or of an array's dtype."""
    limits = np.iinfo(_dtype_of(type))
    return IntInfo(limits.bits, limits.max, limits.min, limits.dtype)


def isdtype(dtype: Any, kind: Any) -> bool:
    """numpy.isdtype. bfloat16 is "real floating"."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if np.dtype(dtype) != DTYPES["bfloat16"]:
        return np.isdtype(np.dtype(dtype), kind)
    return any(k in ("real floating", "numeric") or k == dtype for k in kinds)


def can_cast(from_: Any, to: Any, /) -> bool:
    """numpy.can_cast. Only the dtype of an array counts."""
    return np.can_cast(_dtype_of(from_), to)


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """numpy.result_type, for dtypes, arrays and Python numbers."""
    return np.result_type(
        *(x.dtype if isinstance(x, (Array, Tracer)) else x for x in arrays_and_dtypes)
    )
