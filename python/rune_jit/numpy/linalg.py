"""The linear algebra extension of the array API standard 2024.12. Its functions are
numpy.linalg's."""

# mypy: disable-error-code=empty-body
from __future__ import annotations

from typing import Any, Literal

import numpy as np

from rune_jit.arrays.array import Array
from rune_jit.numpy.namespace import install as _install


def _unary(x: Any, /) -> Array: ...
def _several(x: Any, /) -> tuple[Array, ...]: ...
def _binary(x1: Any, x2: Any, /) -> Array: ...
def _with_rtol(x: Any, /, *, rtol: Any = None) -> Array: ...


det = eigvalsh = inv = matrix_transpose = svdvals = _unary
eigh = slogdet = _several
matmul = outer = solve = _binary
matrix_rank = pinv = _with_rtol


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array: ...
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Array: ...
def cholesky(x: Any, /, *, upper: bool = False) -> Array: ...
def diagonal(x: Any, /, *, offset: int = 0) -> Array: ...
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array: ...
def matrix_power(x: Any, n: int, /) -> Array: ...
def qr(x: Any, /, *, mode: Literal["reduced", "complete"] = "reduced") -> tuple[Array, Array]: ...
def svd(x: Any, /, *, full_matrices: bool = True) -> tuple[Array, Array, Array]: ...
def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Array: ...
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array: ...
def vector_norm(
    x: Any,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: Any = 2,
) -> Array: ...


_install(globals(), np.linalg)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
