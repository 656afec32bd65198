# mypy: ignore-errors
# ruff: noqa
import numpy as np


class ShapeError(ValueError):
    def __init__(self, want, got):
        self.want, self.got = want, got
        super().__init__(f"expected {want}, got {got}")


def check(X, y=None, *, min_n=2, finite=True, dtype=float):
    X = np.asarray(X, dtype=dtype)
    if X.ndim == 1:
        X = X[:, None]
    if X.ndim != 2:
        raise ShapeError("2 dimensions", X.ndim)
    if len(X) < min_n:
        raise ShapeError(f">= {min_n} rows", len(X))
    if finite and not np.all(np.isfinite(X)):
        bad = np.argwhere(~np.isfinite(X))[0]
        raise ValueError(f"X[{bad[0]}, {bad[1]}] is {X[tuple(bad)]}")
    if y is not None:
        y = np.asarray(y).ravel()
        if y.shape[0] != X.shape[0]:
            raise ShapeError(X.shape[0], y.shape[0])
    return X, y


def ols(X, y, fit_intercept=True):
    X, y = check(X, y)
    if fit_intercept:
        X = np.column_stack([np.ones(len(X)), X])
    beta, res, rank, sv = np.linalg.lstsq(X, y, rcond=None)
    assert rank == X.shape[1], f"rank {rank} < {X.shape[1]}"
    resid = y - X @ beta
    dof = len(y) - rank
    s2 = resid @ resid / dof if dof > 0 else np.nan
    se = np.sqrt(np.diag(s2 * np.linalg.inv(X.T @ X)))
    r2 = 1 - resid.var() / y.var() if y.var() else 0.0
    return dict(beta=beta, se=se, r2=r2, n=len(y), text=f"R2={r2:.3f}")


CALLS = [
    ("ols", lambda r: (r.random((6, 2)), r.random(6))),
    ("ols", lambda r: (r.random(5), r.random(5), False)),
    ("ols", lambda r: (r.random((4, 2)), r.random(3))),
    ("ols", lambda r: (np.array([[1, np.nan], [2, 3]]), [1, 2])),
    ("ols", lambda r: (np.ones((4, 2)), r.random(4))),
    ("ols", lambda r: (r.random((2, 2, 2)), r.random(2))),
    ("check", lambda r: ([["a", "b"]],)),
    ("ols", lambda r: ([[1, 2], [3, 5], [4, 4], [7, 1]], [1, 2, 3, 4])),
]
