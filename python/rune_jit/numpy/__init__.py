"""The array API standard 2024.12 over rune_jit.Arrays, and over the arrays of traced functions.

    import rune_jit.numpy as xp

    x = xp.linspace(0, 1, 1000, device="cpu")
    y = xp.sin(x)  # one compiled program

The functions are NumPy's, with NumPy's promotion of dtypes. Outside of `rune_jit.jit` each call
runs a compiled program, or NumPy on the host for what has none: complex numbers, fft, results whose
shape depends on data. Inside, calls become part of the traced function. Extensions: linalg, fft.
Source: https://data-apis.org/array-api/2024.12
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from rune_jit.eager.creation import asarray as asarray
from rune_jit.eager.creation import from_dlpack as from_dlpack
from rune_jit.methods import ArrayMethods
from rune_jit.numpy import fft as fft
from rune_jit.numpy import linalg as linalg
from rune_jit.numpy.dtypes import DTYPES
from rune_jit.numpy.dtypes import can_cast as can_cast
from rune_jit.numpy.dtypes import finfo as finfo
from rune_jit.numpy.dtypes import iinfo as iinfo
from rune_jit.numpy.dtypes import isdtype as isdtype
from rune_jit.numpy.dtypes import result_type as result_type
from rune_jit.numpy.functions import argsort as argsort
from rune_jit.numpy.functions import astype as astype
from rune_jit.numpy.functions import broadcast_arrays as broadcast_arrays
from rune_jit.numpy.functions import diff as diff
from rune_jit.numpy.functions import meshgrid as meshgrid
from rune_jit.numpy.functions import sort as sort
from rune_jit.numpy.info import __array_namespace_info__ as __array_namespace_info__
from rune_jit.numpy.namespace import make_all as _make_all
from rune_jit.numpy.namespace import make_creation as _make_creation

SUPPORTED_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
__array_api_version__ = "2024.12"

e, inf, nan, newaxis, pi = np.e, np.inf, np.nan, None, np.pi

globals().update(DTYPES)

# {signature: names of functions}. Positional-only where the standard says so.
_FUNCTIONS = {
    "x, /": "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor"
    " imag isfinite isinf isnan log log1p log2 log10 logical_not negative positive real reciprocal"
    " round sign signbit sin sinh square sqrt tan tanh trunc nonzero unique_all unique_counts"
    " unique_inverse unique_values matrix_transpose",
    "x1, x2, /": "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift"
    " bitwise_xor copysign divide equal floor_divide greater greater_equal hypot less less_equal"
    " logaddexp logical_and logical_or logical_xor maximum minimum multiply nextafter not_equal pow"
    " remainder subtract matmul",
    "x, /, min=None, max=None": "clip",
    "condition, x1, x2, /": "where",
    "x, /, *, axis=None, keepdims=False": "all any max mean min count_nonzero argmax argmin",
    "x, /, *, axis=None, dtype=None, keepdims=False": "sum prod",
    "x, /, *, axis=None, correction=0.0, keepdims=False": "std var",
    "x, /, *, axis=None, dtype=None, include_initial=False": "cumulative_sum cumulative_prod",
    "x1, x2, /, *, axes=2": "tensordot",
    "x1, x2, /, *, axis=-1": "vecdot",
    "x, indices, /, *, axis=None": "take",
    "x, indices, /, *, axis=-1": "take_along_axis",
    "x1, x2, /, *, side='left', sorter=None": "searchsorted",
    "arrays, /, *, axis=0": "concat stack",
    "x, /, *, axis=0": "unstack",
    "x, /, axis": "expand_dims squeeze",
    "x, /, axes": "permute_dims",
    "x, /, *, axis=None": "flip",
    "x, /, shift, *, axis=None": "roll",
    "x, /, shape": "broadcast_to",
    "x, /, shape, *, copy=None": "reshape",
    "x, source, destination, /": "moveaxis",
    "x, repeats, /, *, axis=None": "repeat",
    "x, repetitions, /": "tile",
    "x, /, *, k=0": "tril triu",
}
globals().update(_make_all(_FUNCTIONS, np, __name__))

_CREATION = {
    "shape, *, dtype=None, device=None": "empty ones zeros",
    "shape, fill_value, *, dtype=None, device=None": "full",
    "x, /, *, dtype=None, device=None": "empty_like ones_like zeros_like",
    "x, /, fill_value, *, dtype=None, device=None": "full_like",
    "start, /, stop=None, step=1, *, dtype=None, device=None": "arange",
    "start, stop, /, num, *, dtype=None, device=None, endpoint=True": "linspace",
    "n_rows, n_cols=None, /, *, k=0, dtype=None, device=None": "eye",
}
globals().update(_make_all(_CREATION, np, __name__, _make_creation))


def _array_namespace(self: ArrayMethods, *, api_version: str | None = None) -> Any:
    if api_version not in (None, *SUPPORTED_VERSIONS):
        raise ValueError(
            f"__array_namespace__: cannot give version {api_version!r} of the array API standard"
            f" (the versions are {', '.join(SUPPORTED_VERSIONS)})"
        )
    return sys.modules[__name__]


ArrayMethods.__array_namespace__ = _array_namespace  # type: ignore[attr-defined]


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
