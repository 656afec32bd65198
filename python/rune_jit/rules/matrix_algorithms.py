"""Linear algebra written in NumPy. These functions are traced like functions of the user."""

from __future__ import annotations

from typing import Any

import numpy as np


def solution(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solves A @ X = B by Gauss-Jordan elimination with partial pivoting (Golub and Van Loan,
    Matrix Computations, 3.4 and exercises)."""
    n = len(a)
    both = np.concatenate([a, b], axis=1)
    for k in range(n):
        p = k + np.argmax(np.abs(both[k:, k]))
        row = both[p].copy()
        if row[k] == 0:
            raise np.linalg.LinAlgError("Singular matrix")
        both[p] = both[k]
        row = row / row[k]
        factors = both[:, k].copy()
        factors[k] = 0
        both -= factors[:, None] * row
        both[k] = row
    return both[:, n:]


def inverse(a: np.ndarray) -> np.ndarray:
    """The inverse matrix of A."""
    return solution(a, np.eye(len(a), dtype=a.dtype))


def determinant(a: np.ndarray) -> Any:
    """The determinant: the product of the results of sign_and_pivots."""
    sign, pivots = sign_and_pivots(a)
    return sign * np.prod(pivots)


def sign_and_logarithm(a: np.ndarray) -> tuple[Any, Any]:
    """The determinant's sign, and the logarithm of its magnitude."""
    sign, pivots = sign_and_pivots(a)
    return sign * np.prod(np.sign(pivots)), np.sum(np.log(np.abs(pivots)))


def sign_and_pivots(a: np.ndarray) -> tuple[Any, np.ndarray]:
    """The pivots of Gaussian elimination with partial pivoting, and 1 or -1 for an even or odd
    number of exchanges of rows. If a pivot is 0, its column is left as it is."""
    n = len(a)
    a = a.copy()
    pivots = np.zeros(n, a.dtype)
    sign = a.dtype.type(1)
    for k in range(n):
        p = k + np.argmax(np.abs(a[k:, k]))
        row = a[p].copy()
        a[p] = a[k]
        pivots[k] = row[k]
        sign = np.where(p == k, sign, -sign)[()]
        factors = a[:, k] / np.where(row[k] == 0, 1, row[k])
        a -= factors[:, None] * row
    return sign, pivots


def cholesky_factor(a: np.ndarray) -> np.ndarray:
    """The lower triangular L of A = L @ L.T, by columns (Golub and Van Loan, 4.2). Elements of A
    above the diagonal are not read."""
    n = len(a)
    factor = np.zeros_like(a)
    for j in range(n):
        column = a[j:, j] - factor[j:, :j] @ factor[j, :j]
        if np.logical_not(column[0] > 0):
            raise np.linalg.LinAlgError("Matrix is not positive definite")
        factor[j:, j] = column / np.sqrt(column[0])
    return factor
