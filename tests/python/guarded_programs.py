# mypy: ignore-errors
"""Programs as in user_programs.py, with `try`, `np.errstate` and combined iterables in loops."""

from __future__ import annotations

import numpy as np
from user_programs import program


def damped_exponential(r):
    t = np.linspace(0, 4, 120)
    y = 2.5 * np.exp(-1.3 * t) + 0.5 + 0.01 * r.standard_normal(len(t))
    return t, y, np.array([1.0, 1.0, 0.0])


@program(damped_exponential)
def gauss_newton(t, y, p):
    """Fits p[0] * exp(-p[1] * t) + p[2]."""
    damping, cost = 1e-3, np.inf
    for _ in range(50):
        e = np.exp(-p[1] * t)
        r = p[0] * e + p[2] - y
        jacobian = np.stack([e, -p[0] * t * e, np.ones_like(t)], axis=1)
        try:
            step = np.linalg.solve(jacobian.T @ jacobian + damping * np.eye(3), -jacobian.T @ r)
        except np.linalg.LinAlgError:
            damping *= 10
            continue
        p = p + step
        new = 0.5 * r @ r
        if abs(cost - new) < 1e-12:
            break
        cost = new
    return p, cost


@program(lambda r: (r.standard_normal((300, 4)), r.standard_normal((5, 4)) * 3))
def kmeans_until_settled(x, centers):
    for _ in range(30):
        labels = ((x[:, None, :] - centers[None]) ** 2).sum(-1).argmin(1)
        sums = np.zeros_like(centers)
        np.add.at(sums, labels, x)
        counts = np.bincount(labels, minlength=len(centers))
        with np.errstate(divide="ignore", invalid="ignore"):
            new = sums / counts[:, None]
        new = np.where(counts[:, None] > 0, new, centers)
        if np.abs(new - centers).max() < 1e-8:
            break
        centers = new
    return centers, labels


@program(lambda r: (r.random((200, 8)), r.random(8)))
def geometric_means(a, w):
    out = np.empty(len(a))
    with np.errstate(all="ignore"):
        for i, row in enumerate(a):
            s = row * w
            out[i] = np.log(s).sum() / (s - s.mean()).max()
    return out


@program(lambda r: (r.random(300), r.random(300), r.random((300, 3))))
def weighted_rows(a, b, c):
    out = np.zeros(len(a))
    for i, (x, y, row) in enumerate(zip(a, b, c, strict=True)):
        out[i] = x * row.sum() + y
    for k, (u, v) in enumerate(zip(a[:-1], a[1:], strict=True), start=1):  # noqa: RUF007
        out[k] += (u - v) ** 2
    return out


@program(lambda r: (r.random(400) + 0.1, 0.3))
def guarded_filter(x, a):
    y = np.zeros_like(x)
    for i in range(1, len(x)):
        try:
            y[i] = a * y[i - 1] + (1 - a) / float(x[i])
        except (ZeroDivisionError, OverflowError):
            y[i] = y[i - 1]
    return y
