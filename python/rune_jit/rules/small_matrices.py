"""Linear algebra of small matrices in the bodies of loops. With a call on the host, the loop could
not be a loop of the program. So functions written in NumPy are traced (matrix_algorithms.py), whose
results agree with LAPACK's up to rounding. If NumPy refuses a matrix, Python runs the call, and
NumPy raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit.rules import matrix_algorithms
from rune_jit.rules.coercions import refuse_unless, traced
from rune_jit.rules.table import implements
from rune_jit.tracing.context import require_trace

# The most rows of a matrix. LAPACK is faster for more.
_MOST_ROWS = 24

_SlogdetResult: Any = type(np.linalg.slogdet(np.eye(1)))


def _require_loop(name: str) -> None:
    refuse_unless(require_trace().is_within_loop, name)


def _in_loop(name: str, function: Callable[..., Any], a: Any, *others: Any) -> Any:
    """Traces function(a, *others) in the body of a loop. `a` must be a small square matrix, and the
    others must have as many rows. Raises UnsupportedOpError for other calls."""
    _require_loop(name)
    matrices = [traced(x) for x in (a, *others)]
    sizes = [n for x in matrices for n in x.shape]
    rows = matrices[0].shape[0] if matrices[0].ndim == 2 else 0
    fits = (
        all(x.dtype.kind in "biu" or x.dtype in (np.float32, np.float64) for x in matrices)
        and all(type(n) is int and n > 0 for n in sizes)
        and all(x.ndim == 2 and x.shape[0] == rows for x in matrices)
        and matrices[0].shape[-1] == rows <= _MOST_ROWS
    )
    refuse_unless(fits, name)
    is_single = all(x.dtype == np.float32 for x in matrices)
    dtype = np.dtype(np.float32 if is_single else np.float64)
    return require_trace().rebind(function)(*(x.astype(dtype) for x in matrices))


@implements(np.linalg.solve)
def _solve(a: Any, b: Any) -> Any:
    _require_loop("linalg.solve")
    if np.ndim(b) == 1:
        return _in_loop("linalg.solve", matrix_algorithms.solution, a, traced(b)[:, None])[:, 0]
    return _in_loop("linalg.solve", matrix_algorithms.solution, a, b)


@implements(np.linalg.inv)
def _inv(a: Any) -> Any:
    return _in_loop("linalg.inv", matrix_algorithms.inverse, a)


@implements(np.linalg.det)
def _det(a: Any) -> Any:
    return _in_loop("linalg.det", matrix_algorithms.determinant, a)


@implements(np.linalg.slogdet)
def _slogdet(a: Any) -> Any:
    return _SlogdetResult(*_in_loop("linalg.slogdet", matrix_algorithms.sign_and_logarithm, a))


@implements(np.linalg.cholesky)
def _cholesky(a: Any, /, *, upper: bool = False) -> Any:
    refuse_unless(upper is False, "linalg.cholesky")
    return _in_loop("linalg.cholesky", matrix_algorithms.cholesky_factor, a)
