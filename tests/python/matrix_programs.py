# mypy: ignore-errors
"""Programs whose loops solve systems and factor matrices."""

from __future__ import annotations

import numpy as np


def kalman_filter(z, f, h, q, r, x, p):
    states = np.zeros((len(z), len(x)))
    likelihood = 0.0
    for t in range(len(z)):
        x = f @ x
        p = f @ p @ f.T + q
        s = h @ p @ h.T + r
        gain = p @ h.T @ np.linalg.inv(s)
        error = z[t] - h @ x
        x = x + gain @ error
        p = (np.eye(len(x)) - gain @ h) @ p
        sign, logarithm = np.linalg.slogdet(s)
        likelihood -= 0.5 * (error @ np.linalg.solve(s, error) + sign * logarithm)
        states[t] = x
    return states, p, likelihood


def newton(x, tolerance):
    steps = 0
    while steps < 50:
        f = np.array([x[0] ** 2 + x[1] ** 2 - 4, x[0] * x[1] - 1])
        jacobian = np.array([[2 * x[0], 2 * x[1]], [x[1], x[0]]])
        change = np.linalg.solve(jacobian, -f)
        x = x + change
        steps += 1
        if np.abs(change).max() < tolerance:
            break
    return x, steps


def reweighted_least_squares(a, y):
    w = np.zeros(a.shape[1])
    for _ in range(25):
        p = 1 / (1 + np.exp(-a @ w))
        hessian = a.T @ ((p * (1 - p))[:, None] * a)
        change = np.linalg.solve(hessian, a.T @ (y - p))
        w = w + change
        if np.max(np.abs(change)) < 1e-8:
            break
    return w


def chained_solutions(a, b):
    x = np.zeros_like(b[0])
    for i in range(len(a)):
        x = np.linalg.solve(a[i], b[i] + x / 10)
    return x


def chained_inverses(a, b):
    x = np.zeros((len(b), b.shape[1]))
    for i in range(1, len(a)):
        x[i] = np.linalg.inv(a[i]) @ x[i - 1] + b[i]
    return x


def determinants(a, b):
    s = 0.0
    for i in range(len(a)):
        s = s / 100 + np.linalg.det(a[i])
        sign, logarithm = np.linalg.slogdet(a[i] * 2)
        s += sign * logarithm
    return s


def cholesky_factors(a, b):
    s = 0.0
    for i in range(len(a)):
        square = a[i] @ a[i].T + 2 * np.eye(a.shape[1]).astype(a.dtype)
        factor = np.linalg.cholesky(square)
        s = s / 2 + np.log(np.diag(factor)).sum() + factor[-1, 0]
    return s


def several_right_hand_sides(a, b):
    x = np.eye(a.shape[1])[:, :2]
    for i in range(len(a)):
        x = np.linalg.solve(a[i], x + b[i][:, None])
    return x


def only_regular_ones(a, b):
    x = b[0]
    for i in range(len(a)):
        if a[i, 0, 0] != 0:
            x = np.linalg.solve(a[i], b[i] + x / 10)
    return x


def errors_are_counted(a, b):
    x, bad = b[0], 0
    for i in range(len(a)):
        try:
            x = np.linalg.solve(a[i], b[i] + x / 10)
        except np.linalg.LinAlgError:
            bad += 1
    return x, bad


def with_pivoting(a, b):
    """Gauss-Jordan elimination as in a textbook."""
    n = len(a)
    m = np.concatenate([a, b[:, None]], axis=1)
    for k in range(n):
        p = k + np.argmax(np.abs(m[k:, k]))
        row = m[p].copy()
        m[p] = m[k]
        m[k] = row / row[k]
        for i in range(n):
            if i != k:
                m[i] -= m[i, k] * m[k]
    return m[:, n]


def exchanged_rows(a, b):
    a = a.copy()
    for k in range(len(a)):
        p = k + np.argmax(a[k:, 0])
        held = a[p].copy()
        a[p] = a[k]
        a[k] = held
        a[p] += b[k]
        a[p] *= 2
    return a


def factors_with_pivoting(a, b):
    a = a.copy()
    n = len(a)
    order = np.arange(n)
    for k in range(n - 1):
        p = k + int(np.argmax(np.abs(a[k:, k])))
        if a[p, k] == 0:
            raise np.linalg.LinAlgError("singular")
        if p != k:
            a[[k, p]] = a[[p, k]]
            order[[k, p]] = order[[p, k]]
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
    return a, order


def gaussian_elimination(a, b):
    a, b = a.copy(), b.copy()
    n = len(b)
    for k in range(n):
        p = np.argmax(abs(a[k:, k])) + k
        if p != k:
            held = a[k].copy()
            a[k] = a[p]
            a[p] = held
            b[k], b[p] = b[p], b[k]
        for i in range(k + 1, n):
            if a[i, k] != 0.0:
                m = a[i, k] / a[k, k]
                a[i, k + 1 :] = a[i, k + 1 :] - m * a[k, k + 1 :]
                b[i] = b[i] - m * b[k]
    for k in range(n - 1, -1, -1):
        b[k] = (b[k] - np.dot(a[k, k + 1 :], b[k + 1 :])) / a[k, k]
    return b


def simplex(tableau, limit):
    t = tableau.copy()
    steps = 0
    while steps < limit:
        j = int(np.argmin(t[-1, :-1]))
        if t[-1, j] >= -1e-12:
            break
        column = t[:-1, j]
        ratios = np.where(column > 0, t[:-1, -1] / np.where(column > 0, column, 1), np.inf)
        i = int(ratios.argmin())
        t[i] /= t[i, j]
        for k in range(len(t)):
            if k != i:
                t[k] -= t[k, j] * t[i]
        steps += 1
    return t, steps
