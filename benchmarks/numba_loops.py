"""Loops for numba where it cannot compile the NumPy code, or where nobody would use that."""

from __future__ import annotations

import math

import numpy as np

try:
    from numba import prange
except ImportError:  # the table of names stays readable without numba
    prange = range


def mean_var(x):
    n, m = x.shape
    mean, var = np.empty((n, 1), np.float32), np.empty((n, 1), np.float32)
    for i in prange(n):
        s = np.float32(0)
        for j in range(m):
            s += x[i, j]
        s /= np.float32(m)
        v = np.float32(0)
        for j in range(m):
            v += (x[i, j] - s) * (x[i, j] - s)
        mean[i, 0], var[i, 0] = s, v / np.float32(m)
    return mean, var


def softmax(x):
    n, m = x.shape
    out = np.empty_like(x)
    for i in prange(n):
        top = x[i, 0]
        for j in range(m):
            top = max(top, x[i, j])
        s = np.float32(0)
        for j in range(m):
            out[i, j] = math.exp(x[i, j] - top)
            s += out[i, j]
        for j in range(m):
            out[i, j] /= s
    return out


def layernorm(x, gamma, beta):
    n, m = x.shape
    out = np.empty_like(x)
    for i in prange(n):
        s = np.float32(0)
        for j in range(m):
            s += x[i, j]
        s /= np.float32(m)
        v = np.float32(0)
        for j in range(m):
            v += (x[i, j] - s) * (x[i, j] - s)
        scale = np.float32(1) / np.float32(math.sqrt(v / np.float32(m) + np.float32(1e-5)))
        for j in range(m):
            out[i, j] = (x[i, j] - s) * scale * gamma[j] + beta[j]
    return out


def rmsnorm(x, gamma):
    n, m = x.shape
    out = np.empty_like(x)
    for i in prange(n):
        v = np.float32(0)
        for j in range(m):
            v += x[i, j] * x[i, j]
        scale = np.float32(1) / np.float32(math.sqrt(v / np.float32(m) + np.float32(1e-5)))
        for j in range(m):
            out[i, j] = x[i, j] * scale * gamma[j]
    return out


def logsumexp(x):
    n, m = x.shape
    out = np.empty((n, 1), np.float32)
    for i in prange(n):
        top = x[i, 0]
        for j in range(m):
            top = max(top, x[i, j])
        s = np.float32(0)
        for j in range(m):
            s += np.float32(math.exp(x[i, j] - top))
        out[i, 0] = np.float32(math.log(s)) + top
    return out


def cumsum(x):
    n, m = x.shape
    out = np.empty_like(x)
    for i in prange(n):
        s = np.float32(0)
        for j in range(m):
            s += x[i, j]
            out[i, j] = s
    return out


def sum_axis1(x):
    n, m = x.shape
    out = np.empty(n, np.float32)
    for i in prange(n):
        s = np.float32(0)
        for j in range(m):
            s += x[i, j]
        out[i] = s
    return out


def pairwise(a, b):
    n, m = a.shape[0], b.shape[0]
    out = np.empty((n, m), np.float32)
    for i in prange(n):
        for j in range(m):
            s = np.float32(0)
            for k in range(a.shape[1]):
                s += (a[i, k] - b[j, k]) * (a[i, k] - b[j, k])
            out[i, j] = math.sqrt(s)
    return out


def mandelbrot(x, y):
    n, m = x.shape
    out = np.empty_like(x)
    for i in prange(n):
        for j in range(m):
            re, im = x[i, j], y[i, j]
            count = np.float32(0)
            for _ in range(24):
                a, b = re * re, im * im
                if not a + b < np.float32(4):
                    break
                count += np.float32(1)
                re, im = a - b + x[i, j], np.float32(2) * re * im + y[i, j]
            out[i, j] = count
    return out


def jacobi(u):
    n, m = u.shape
    now = u
    for _ in range(4):
        after = np.zeros_like(u)
        for i in prange(1, n - 1):
            for j in range(1, m - 1):
                after[i, j] = np.float32(0.25) * (
                    now[i - 1, j] + now[i + 1, j] + now[i, j - 1] + now[i, j + 1]
                )
        now = after
    return now


def kmeans(x, centres):
    n, d = x.shape
    nearest = np.empty(n, np.int64)
    total = np.float32(0)
    for i in prange(n):
        best, at = np.float32(np.inf), 0
        for k in range(centres.shape[0]):
            s = np.float32(0)
            for j in range(d):
                s += (x[i, j] - centres[k, j]) * (x[i, j] - centres[k, j])
            if s < best:
                best, at = s, k
        nearest[i] = at
        total += best
    return nearest, total


def nbody(position, mass):
    n = position.shape[0]
    out = np.empty_like(position)
    for i in prange(n):
        fx = fy = fz = np.float32(0)
        for j in range(n):
            dx = position[j, 0] - position[i, 0]
            dy = position[j, 1] - position[i, 1]
            dz = position[j, 2] - position[i, 2]
            r2 = dx * dx + dy * dy + dz * dz + np.float32(0.01)
            pull = mass[j] / (r2 * np.float32(math.sqrt(r2)))
            fx += dx * pull
            fy += dy * pull
            fz += dz * pull
        out[i, 0], out[i, 1], out[i, 2] = fx, fy, fz
    return out


def gather(table, index):
    out = np.empty((index.size, table.shape[1]), np.float32)
    for i in prange(index.size):
        for j in range(table.shape[1]):
            out[i, j] = table[index[i], j] * np.float32(2)
    return out


def scatter_add(values, index, bins):
    out = bins.copy()
    for i in range(values.size):
        out[index[i]] += values[i]
    return out


LOOPS = {
    f.__name__: f
    for f in (
        mean_var,
        softmax,
        layernorm,
        rmsnorm,
        logsumexp,
        cumsum,
        sum_axis1,
        pairwise,
        mandelbrot,
        jacobi,
        kmeans,
        nbody,
        gather,
        scatter_add,
    )
}
# What numba neither compiles from NumPy code nor has loops for here.
WITHOUT = {"attention", "many_arguments"}
# Calls too small for threads.
SERIAL = {"tiny_call", "scatter_add"}
