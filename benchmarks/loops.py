# mypy: ignore-errors
"""Programs with loops over elements, small systems and choices: one source, run by NumPy, by numba
(`njit`) and by rune_jit, each call checked against NumPy.

    python benchmarks/loops.py [NAME ...]

Prints a table: the best time of a call in microseconds, the first call in seconds with tracing and
compiling, and rune_jit's time over numba's. numba has no cache on disk here, rune_jit an empty one.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[np.random.Generator], tuple]]] = {}


def program(make):
    def register(f):
        PROGRAMS[f.__name__] = f, make
        return f

    return register


def _tracking(rng):
    f, h = np.eye(4) + np.eye(4, k=2) / 10, np.eye(2, 4)
    z = rng.standard_normal((500, 2))
    return z, f, h, np.eye(4) / 100, np.eye(2) / 10, np.zeros(4), np.eye(4)


@program(_tracking)
def kalman_filter(z, f, h, q, r, x, p):
    states = np.zeros((len(z), len(x)))
    for t in range(len(z)):
        x = f @ x
        p = f @ p @ f.T + q
        gain = p @ h.T @ np.linalg.inv(h @ p @ h.T + r)
        x = x + gain @ (z[t] - h @ x)
        p = (np.eye(len(x)) - gain @ h) @ p
        states[t] = x
    return states


@program(lambda rng: (rng.standard_normal((60, 60)),))
def lu_with_pivoting(a):
    a = a.copy()
    n = a.shape[0]
    for k in range(n - 1):
        p = k + np.argmax(np.abs(a[k:, k]))
        if p != k:
            row = a[k].copy()
            a[k] = a[p]
            a[p] = row
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
    return a


@program(lambda rng: (rng.random((64, 64)),))
def median_filter(image):
    out = image.copy()
    for i in range(1, image.shape[0] - 1):
        for j in range(1, image.shape[1] - 1):
            out[i, j] = np.median(image[i - 1 : i + 2, j - 1 : j + 2])
    return out


@program(lambda rng: (rng.standard_normal(300), rng.standard_normal(300)))
def time_warping(x, y):
    d = np.full((len(x) + 1, len(y) + 1), np.inf)
    d[0, 0] = 0
    for i in range(1, len(x) + 1):
        for j in range(1, len(y) + 1):
            d[i, j] = abs(x[i - 1] - y[j - 1]) + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
    return d[len(x), len(y)]


@program(lambda rng: (rng.integers(0, 4, 200), rng.integers(0, 4, 180)))
def alignment(a, b):
    m, n = len(a), len(b)
    s = np.zeros((m + 1, n + 1))
    s[:, 0], s[0] = -np.arange(m + 1), -np.arange(n + 1)
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            match = s[i - 1, j - 1] + (1 if a[i - 1] == b[j - 1] else -1)
            s[i, j] = max(match, s[i - 1, j] - 1, s[i, j - 1] - 1)
    i, j, moves = m, n, 0
    while i > 0 and j > 0:
        if s[i, j] == s[i - 1, j - 1] + (1 if a[i - 1] == b[j - 1] else -1):
            i -= 1
            j -= 1
        elif s[i, j] == s[i - 1, j] - 1:
            i -= 1
        else:
            j -= 1
        moves += 1
    return s, moves


@program(lambda rng: (rng.random((24, 24)),))
def relaxation(f):
    n = len(f)
    u = np.zeros((n, n))
    steps = 0
    while steps < 200:
        error = 0.0
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                around = u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1]
                new = -0.7 * u[i, j] + 1.7 * 0.25 * (around - f[i, j] / n**2)
                error = max(error, abs(new - u[i, j]))
                u[i, j] = new
        steps += 1
        if error < 1e-6:
            break
    return u, steps


@program(lambda rng: (np.array([1.0, 2.0]), 20.0, 1e-7))
def runge_kutta(y, end, tolerance):
    t, h, steps = 0.0, 0.1, 0
    while t < end:
        if t + h > end:
            h = end - t
        k1 = np.array([y[1], -np.sin(y[0])])
        z = y + h / 2 * k1
        k2 = np.array([z[1], -np.sin(z[0])])
        z = y + 3 * h / 4 * k2
        k3 = np.array([z[1], -np.sin(z[0])])
        new = y + h * (2 / 9 * k1 + 1 / 3 * k2 + 4 / 9 * k3)
        k4 = np.array([new[1], -np.sin(new[0])])
        error = np.max(np.abs(h * (-5 / 72 * k1 + 1 / 12 * k2 + 1 / 9 * k3 - 1 / 8 * k4)))
        if error < tolerance:
            t += h
            y = new
            steps += 1
        h *= min(5.0, max(0.2, 0.9 * (tolerance / max(error, 1e-16)) ** (1 / 3)))
    return y, steps


@program(lambda rng: (rng.standard_normal((60, 8)), rng.standard_normal(60)))
def coordinate_descent(x, y):
    n, m = x.shape
    w, residual = np.zeros(m), y.copy()
    for _ in range(100):
        change = 0.0
        for j in range(m):
            old = w[j]
            residual += x[:, j] * old
            rho = x[:, j] @ residual / n
            w[j] = np.sign(rho) * max(abs(rho) - 0.1, 0.0) / ((x[:, j] ** 2).sum() / n)
            residual -= x[:, j] * w[j]
            change = max(change, abs(w[j] - old))
        if change < 1e-6:
            break
    return w


@program(lambda rng: (rng.random((100, 100)),))
def shortest_paths(d):
    d = d.copy()
    n = len(d)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


def _best(f, args, seconds=1.0):
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        given = [np.copy(x) if isinstance(x, np.ndarray) else x for x in args]
        start = time.perf_counter()
        f(*given)
        times.append(time.perf_counter() - start)
    return min(times)


def _first(f, args):
    given = [np.copy(x) if isinstance(x, np.ndarray) else x for x in args]
    start = time.perf_counter()
    result = f(*given)
    return result, time.perf_counter() - start


def main() -> None:
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
    import numba

    import rune_jit

    warnings.simplefilter("ignore")
    print(f"NumPy {np.__version__}, numba {numba.__version__}, {platform.machine()}\n")
    print("| program | numpy: us | numba: us | first: s | rune_jit: us | first: s | over numba |")
    print("|---|---|---|---|---|---|---|")
    ratios = []
    for name, (f, make) in PROGRAMS.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        args = make(np.random.default_rng(0))
        expected, _ = _first(f, args)
        cells = [f"{1e6 * _best(f, args):.0f}"]
        times = []
        for run in (numba.njit(f), rune_jit.jit(f, fallback="error")):
            found, first = _first(run, args)
            pairs = (
                zip(found, expected, strict=True)
                if isinstance(expected, tuple)
                else [(found, expected)]
            )
            for got, want in pairs:
                np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9)
            times.append(_best(run, args))
            cells += [f"{1e6 * times[-1]:.1f}", f"{first:.2f}"]
        ratios.append(times[1] / times[0])
        print(f"| {name} | {' | '.join(cells)} | {ratios[-1]:.2f} |", flush=True)
    mean = float(np.exp(np.mean(np.log(ratios))))
    print(f"\n{len(ratios)} programs: geometric mean {mean:.2f} of numba's time.")


if __name__ == "__main__":
    main()
