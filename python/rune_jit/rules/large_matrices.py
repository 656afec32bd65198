"""Linear algebra of large matrices on the host by SciPy's LAPACK, if SciPy is installed. It is used
where NumPy spends much of its time outside of LAPACK."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np

# The fewest rows. Calls for smaller matrices take less than a millisecond, and importing
# scipy.linalg takes longer.
_LEAST_ROWS = 512


def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """np.linalg.cholesky(a, upper=upper).

    NumPy copies the matrix to and from LAPACK's order, element by element, which takes as long as
    the factorization. SciPy's LAPACK gets the transpose of a matrix in C order, which already has
    LAPACK's order. It refuses the same matrices, and its results agree with NumPy's up to rounding.
    """
    is_large = type(a) is np.ndarray and a.ndim == 2 and a.shape[0] == a.shape[1] >= _LEAST_ROWS
    has_lapack = is_large and a.dtype in (np.float32, np.float64)
    if not has_lapack or importlib.util.find_spec("scipy") is None:
        return np.linalg.cholesky(a, upper=upper)
    lapack = importlib.import_module("scipy.linalg.lapack")
    factorize = lapack.spotrf if a.dtype == np.float32 else lapack.dpotrf
    factor, info = factorize(np.ascontiguousarray(a).T, lower=upper, clean=True)
    if info != 0:
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    return factor.T
