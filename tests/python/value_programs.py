# mypy: ignore-errors
# ruff: noqa: B007
"""Programs that ask for values, as users of NumPy write them: loops until convergence, branches,
state, printed output, exceptions. Each with what makes its arguments.

Here: linear systems. test_value_programs.py imports the others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# By name: what makes the callable; its arguments, of a generator.
PROGRAMS: dict[str, tuple[Callable[[], Callable], Callable[[np.random.Generator], tuple]]] = {}


def program(make):
    def register(f):
        PROGRAMS[f.__name__] = ((lambda: f), make)
        return f

    return register


def method(name, make, *args, **kwargs):
    """Registers a bound method of an instance of the class."""

    def register(cls):
        PROGRAMS[f"{cls.__name__}.{name}"] = ((lambda: getattr(cls(*args, **kwargs), name)), make)
        return cls

    return register


def positive_definite(r, n):
    m = r.standard_normal((n, n))
    return m @ m.T + n * np.eye(n)


# Linear systems and eigenvalues.


@program(lambda r: (positive_definite(r, 20), r.standard_normal(20)))
def conjugate_gradients(a, b, tol=1e-8, maxiter=100):
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rs = r @ r
    for k in range(maxiter):
        if np.sqrt(rs) < tol:
            break
        ap = a @ p
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        rs_new = r @ r
        p = r + (rs_new / rs) * p
        rs = rs_new
    return x, k


@program(lambda r: (positive_definite(r, 12), r.standard_normal(12)))
def gmres(a, b, tol=1e-9):
    n = len(b)
    beta = np.linalg.norm(b)
    q = np.zeros((n, n + 1))
    h = np.zeros((n + 1, n))
    q[:, 0] = b / beta
    for k in range(n):
        v = a @ q[:, k]
        for j in range(k + 1):
            h[j, k] = q[:, j] @ v
            v = v - h[j, k] * q[:, j]
        h[k + 1, k] = np.linalg.norm(v)
        e1 = np.zeros(k + 2)
        e1[0] = beta
        y, *_ = np.linalg.lstsq(h[: k + 2, : k + 1], e1, rcond=None)
        residual = np.linalg.norm(h[: k + 2, : k + 1] @ y - e1)
        if residual < tol * beta:
            break
        if h[k + 1, k] < 1e-12:
            break
        q[:, k + 1] = v / h[k + 1, k]
    return q[:, : k + 1] @ y


@program(lambda r: (positive_definite(r, 8),))
def power_iteration(a, tol=1e-10):
    v = np.ones(a.shape[0])
    v /= np.linalg.norm(v)
    value = 0.0
    converged = False
    while not converged:
        w = a @ v
        new = v @ w
        v = w / np.linalg.norm(w)
        converged = abs(new - value) < tol
        value = new
    return value, v


@program(lambda r: (positive_definite(r, 6),))
def qr_algorithm(a, tol=1e-6):
    a = a.copy()
    count = 0
    while np.max(np.abs(np.tril(a, -1))) > tol and count < 500:
        q, r = np.linalg.qr(a)
        a = r @ q
        count += 1
    return np.sort(np.diag(a))[::-1]


@program(lambda r: (positive_definite(r, 6),))
def jacobi_eigenvalues(a):
    a = a.copy()
    n = a.shape[0]
    v = np.eye(n)
    for sweep in range(30):
        off = np.sqrt(np.sum(np.triu(a, 1) ** 2))
        if off < 1e-9:
            break
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(a[p, q]) < 1e-14:
                    continue
                theta = (a[q, q] - a[p, p]) / (2 * a[p, q])
                t = np.sign(theta) / (abs(theta) + np.sqrt(theta**2 + 1)) if theta != 0 else 1.0
                c = 1 / np.sqrt(t**2 + 1)
                s = t * c
                rotation = np.eye(n)
                rotation[p, p] = rotation[q, q] = c
                rotation[p, q], rotation[q, p] = s, -s
                a = rotation.T @ a @ rotation
                v = v @ rotation
    return np.sort(np.diag(a)), np.allclose(v.T @ v, np.eye(n))


@program(lambda r: (r.standard_normal((6, 6)),))
def lu_with_pivoting(a):
    a = a.astype(float).copy()
    n = a.shape[0]
    perm = list(range(n))
    sign = 1
    for k in range(n - 1):
        p = k + int(np.argmax(np.abs(a[k:, k])))
        if a[p, k] == 0:
            raise np.linalg.LinAlgError("singular")
        if p != k:
            a[[k, p]] = a[[p, k]]
            perm[k], perm[p] = perm[p], perm[k]
            sign = -sign
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
    return np.tril(a, -1) + np.eye(n), np.triu(a), perm, sign * np.prod(np.diag(a))


def cholesky(a):
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ValueError(f"expected a square matrix, got {a.shape}")
    if not np.allclose(a, a.T):
        raise ValueError("matrix is not symmetric")
    n = len(a)
    l = np.zeros_like(a)  # noqa: E741
    for j in range(n):
        d = a[j, j] - l[j, :j] @ l[j, :j]
        if d <= 0:
            raise ValueError(f"not positive definite: pivot {j} is {d:.4f}")
        l[j, j] = np.sqrt(d)
        for i in range(j + 1, n):
            l[i, j] = (a[i, j] - l[i, :j] @ l[j, :j]) / l[j, j]
    return l


@program(lambda r: (positive_definite(r, 6),))
def cholesky_positive(a):
    return cholesky(a)


@program(lambda r: (np.diag([3.0, 2.0, -1.0, 4.0]),))
def cholesky_indefinite(a):
    return cholesky(a)


@program(lambda r: (r.standard_normal((3, 4)), r.standard_normal((4, 4))))
def cholesky_of_wrong_matrices(a, b):
    errors = []
    for m in (a, b):
        try:
            cholesky(m)
        except ValueError as error:
            errors.append(str(error))
    return errors


@program(lambda r: (r.standard_normal((6, 4)) @ r.standard_normal((4, 6)),))
def gram_schmidt(a, tol=1e-8):
    basis = []
    for column in a.T:
        w = column - sum((np.dot(column, b) * b for b in basis), np.zeros(len(column)))
        for b in basis:
            w = w - np.dot(w, b) * b
        norm = np.linalg.norm(w)
        if norm > tol:
            basis.append(w / norm)
    return np.array(basis), len(basis)


@program(lambda r: (np.hstack([positive_definite(r, 5), r.standard_normal((5, 1))]),))
def gauss_elimination(m):
    m = m.copy()
    n = m.shape[0]
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(m[k, i]))
        if abs(m[pivot, i]) < 1e-12:
            return None
        if pivot != i:
            m[[i, pivot]] = m[[pivot, i]]
        m[i] = m[i] / m[i, i]
        for j in range(n):
            if j != i:
                m[j] -= m[j, i] * m[i]
    return m[:, -1]


@program(lambda r: (positive_definite(r, 16), r.standard_normal(16)))
def gauss_seidel(a, b, tol=1e-9):
    x = np.zeros_like(b)
    history = []
    for _ in range(50):
        old = x.copy()
        for i in range(len(b)):
            x[i] = (b[i] - a[i, :i] @ x[:i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
        change = np.abs(x - old).max()
        history.append(change)
        if change < tol:
            break
    else:
        raise RuntimeError("no convergence")
    return x, history
