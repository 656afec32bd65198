"""The array API standard 2024.12 over rune_jit.Arrays, and over the arrays of traced functions.

    import rune_jit.numpy as xp

    x = xp.linspace(0, 1, 1000, device="cpu")
    y = xp.sin(x)  # one compiled program

The functions are NumPy's, with NumPy's promotion of dtypes. Outside of `rune_jit.jit` each call
runs a compiled program, or NumPy on the host if there is none (complex numbers, fft, results whose
shape depends on data). Inside of `jit`, calls become part of the traced function. The extensions
linalg and fft are included.

Source: https://data-apis.org/array-api/2024.12
"""

# mypy: disable-error-code=empty-body
from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rune_jit.arrays.array import Array
from rune_jit.eager.creation import asarray as asarray
from rune_jit.eager.creation import from_dlpack as from_dlpack
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
from rune_jit.numpy.functions import unique_values as unique_values
from rune_jit.numpy.info import __array_namespace_info__ as __array_namespace_info__
from rune_jit.numpy.namespace import install as _install

SUPPORTED_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
__array_api_version__ = "2024.12"

e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi

globals().update(DTYPES)
if TYPE_CHECKING:
    from numpy import complex64 as complex64
    from numpy import complex128 as complex128
    from numpy import float16 as float16
    from numpy import float32 as float32
    from numpy import float64 as float64
    from numpy import int8 as int8
    from numpy import int16 as int16
    from numpy import int32 as int32
    from numpy import int64 as int64
    from numpy import uint8 as uint8
    from numpy import uint16 as uint16
    from numpy import uint32 as uint32
    from numpy import uint64 as uint64


_Axis = int | tuple[int, ...] | None
_Shape = int | tuple[int, ...]


# The functions that are NumPy's. The definitions below give their parameters, which are
# positional-only where the standard says so. `install` at the end replaces the functions.


def _unary(x: Any, /) -> Array: ...
def _binary(x1: Any, x2: Any, /) -> Array: ...
def _several(x: Any, /) -> tuple[Array, ...]: ...
def _reduction(x: Any, /, *, axis: _Axis = None, keepdims: bool = False) -> Array: ...
def _sum(x: Any, /, *, axis: _Axis = None, dtype: Any = None, keepdims: bool = False) -> Array: ...
def _variance(
    x: Any, /, *, axis: _Axis = None, correction: float = 0.0, keepdims: bool = False
) -> Array: ...
def _cumulative(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array: ...
def _join(arrays: Any, /, *, axis: int | None = 0) -> Array: ...
def _resized(x: Any, /, axis: _Shape) -> Array: ...
def _triangle(x: Any, /, *, k: int = 0) -> Array: ...
def _filled(shape: _Shape, *, dtype: Any = None, device: str | None = None) -> Array: ...
def _like(x: Any, /, *, dtype: Any = None, device: str | None = None) -> Array: ...


abs = acos = acosh = asin = asinh = atan = atanh = bitwise_invert = ceil = conj = cos = _unary
cosh = exp = expm1 = floor = imag = isfinite = isinf = isnan = log = log1p = log2 = log10 = _unary
logical_not = negative = positive = real = reciprocal = round = sign = signbit = sin = _unary
sinh = square = sqrt = tan = tanh = trunc = matrix_transpose = _unary
nonzero = unique_all = unique_counts = unique_inverse = _several
add = atan2 = bitwise_and = bitwise_left_shift = bitwise_or = bitwise_right_shift = _binary
bitwise_xor = copysign = divide = equal = floor_divide = greater = greater_equal = hypot = _binary
less = less_equal = logaddexp = logical_and = logical_or = logical_xor = maximum = _binary
minimum = multiply = nextafter = not_equal = pow = remainder = subtract = matmul = _binary
all = any = max = mean = min = count_nonzero = argmax = argmin = _reduction
sum = prod = _sum
std = var = _variance
cumulative_sum = cumulative_prod = _cumulative
concat = stack = _join
expand_dims = squeeze = _resized
tril = triu = _triangle
empty = ones = zeros = _filled
empty_like = ones_like = zeros_like = _like


def clip(x: Any, /, min: Any = None, max: Any = None) -> Array: ...
def where(condition: Any, x1: Any, x2: Any, /) -> Array: ...
def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Array: ...
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Array: ...
def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Array: ...
def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Array: ...
def searchsorted(
    x1: Any, x2: Any, /, *, side: Literal["left", "right"] = "left", sorter: Any = None
) -> Array: ...
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]: ...
def permute_dims(x: Any, /, axes: tuple[int, ...]) -> Array: ...
def flip(x: Any, /, *, axis: _Axis = None) -> Array: ...
def roll(x: Any, /, shift: _Shape, *, axis: _Axis = None) -> Array: ...
def broadcast_to(x: Any, /, shape: _Shape) -> Array: ...
def reshape(x: Any, /, shape: _Shape, *, copy: bool | None = None) -> Array: ...
def moveaxis(x: Any, source: _Shape, destination: _Shape, /) -> Array: ...
def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Array: ...
def tile(x: Any, repetitions: _Shape, /) -> Array: ...
def full(
    shape: _Shape, fill_value: Any, *, dtype: Any = None, device: str | None = None
) -> Array: ...
def full_like(
    x: Any, /, fill_value: Any, *, dtype: Any = None, device: str | None = None
) -> Array: ...
def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: str | None = None
) -> Array: ...
def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Array: ...
def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Any = None,
    device: str | None = None,
) -> Array: ...


_install(globals(), np)


def array_namespace(self: Any, *, api_version: str | None = None) -> Any:
    """The result of `__array_namespace__` of Arrays and traced arrays: this module."""
    if api_version not in (None, *SUPPORTED_VERSIONS):
        raise ValueError(
            f"__array_namespace__: cannot give version {api_version!r} of the array API standard"
            f" (the versions are {', '.join(SUPPORTED_VERSIONS)})"
        )
    return sys.modules[__name__]


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
