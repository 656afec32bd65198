"""Programs whose loops become loops of the program: each with arguments for a size `n`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

PROGRAMS: list[
    tuple[Callable[..., Any], Callable[[np.random.Generator, int], tuple[Any, ...]]]
] = []


def of(*shapes: str, dtype: Any = np.float64) -> Any:
    """Arguments of these shapes, in terms of n."""

    def make(rng: np.random.Generator, n: int) -> tuple[Any, ...]:
        sizes = [eval(shape, {"n": n}) for shape in shapes]
        if np.dtype(dtype).kind in "iu":
            return tuple(rng.integers(0, 9, size).astype(dtype) for size in sizes)
        return tuple(rng.random(size).astype(dtype) for size in sizes)

    return make


def positive_definite(rng: np.random.Generator, n: int) -> tuple[Any, ...]:
    a = rng.random((n, n))
    return a @ a.T + n * np.eye(n), rng.random(n)


def program(arguments: Any) -> Callable[[Any], Any]:
    def note(function: Any) -> Any:
        PROGRAMS.append((function, arguments))
        return function

    return note


@program(positive_definite)
def solve_lower(a, b):
    x = np.zeros_like(b)
    for i in range(b.shape[0]):
        x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]
    return x


@program(positive_definite)
def solve_upper(a, b):
    x = b.copy()
    n = len(x)
    for i in range(n - 1, -1, -1):
        x[i] = (x[i] - np.dot(a[i, i + 1 :], x[i + 1 :])) / a[i, i]
    return x


@program(positive_definite)
def cholesky(a, b):
    a[0, 0] = np.sqrt(a[0, 0])
    for i in range(1, len(b)):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])


@program(positive_definite)
def lu_in_place(a, b):
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            a[i, j] = (a[i, j] - a[i, :j] @ a[:j, j]) / a[j, j]
        for j in range(i, n):
            a[i, j] -= a[i, :i] @ a[:i, j]
    y = np.zeros_like(b)
    for i in range(n):
        y[i] = b[i] - a[i, :i] @ y[:i]
    return y


@program(lambda rng, n: (0.4 ** np.arange(n + 2),))
def levinson(r):
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y, alpha, beta


@program(of("n+1,n"))
def gram_schmidt(a):
    q = np.zeros_like(a)
    r = np.zeros((a.shape[1], a.shape[1]), dtype=a.dtype)
    for k in range(a.shape[1]):
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, a.shape[1]):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return q, r


@program(of("n+3,n+3"))
def relax(a):
    n = a.shape[0]
    for _ in range(5):
        for i in range(1, n - 1):
            a[i, 1:-1] += a[i - 1, :-2] + a[i - 1, 1:-1] + a[i - 1, 2:] + a[i + 1, 1:-1]
            for j in range(1, n - 1):
                a[i, j] += a[i, j - 1]
                a[i, j] /= 9.0


@program(of("n+2", dtype=np.int32))
def best_pairs(s):
    n = s.shape[0]
    table = np.zeros((n, n), np.int32)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            table[i, j] = max_of(table[i, j], table[i, j - 1])
            table[i, j] = max_of(table[i, j], table[(i + 1) % n, j])
            for k in range(i + 1, j):
                table[i, j] = max_of(table[i, j], table[i, k] + s[k] % 3)
    return table


def max_of(a, b):
    return np.maximum(a, b)


@program(of("n,n", "n,n"))
def triangular_product(a, b):
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            b[i, j] += np.dot(a[i + 1 :, i], b[i + 1 :, j])
    b *= 1.5


@program(of("n,n+1", "n,n"))
def symmetric_update(a, c):
    for i in range(c.shape[0]):
        c[i, : i + 1] *= 0.5
        for k in range(a.shape[1]):
            c[i, : i + 1] += 2.0 * a[i, k] * a[: i + 1, k]


@program(of("n+2,n"))
def covariance(data):
    mean = np.mean(data, axis=0)
    data -= mean
    cov = np.zeros((data.shape[1], data.shape[1]), data.dtype)
    for i in range(data.shape[1]):
        cov[i:, i] = cov[i, i:] = data[:, i] @ data[:, i:] / (data.shape[0] - 1.0)
    return cov


@program(of("n,n"))
def shortest_paths(path):
    for k in range(path.shape[0]):
        path[:] = np.minimum(path, np.add.outer(path[:, k], path[k, :]))


@program(of("n+2,n"))
def forwards_and_backwards(x):
    y, z = np.empty_like(x), np.empty_like(x)
    last = np.zeros(x.shape[1])
    for i in range(x.shape[0]):
        y[i] = 0.5 * x[i] + 0.25 * last
        last = y[i]
    z[-1] = y[-1]
    for i in range(x.shape[0] - 2, -1, -1):
        z[i] = y[i] + 0.5 * z[i + 1]
    return z, last


@program(of("n+4", "n+4"))
def heat(a, b):
    for _t in range(1, 6):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])


@program(of("n,n"))
def sum_of_rows(x):
    total = 0.0
    for row in x:
        total += row.max() * row[0]
    return total


@program(of("n,n"))
def carried_array(x):
    a = np.ones(x.shape[1])
    b = a * 2
    for i in range(x.shape[0]):
        a, b = b, a + b * x[i]
    return a, b


@program(of("n"))
def scaled_by_counter(x):
    s = 0.0
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        y[i] = x[i] * i + i / 7
        s = s + y[i] * (2 * i + 1)
    return y, s, i


@program(of("2*n+1"))
def strided(x):
    for i in range(1, x.shape[0] - 1, 2):
        x[i] = x[i - 1] * x[i + 1]
    for i in range(x.shape[0] - 1, 1, -2):
        x[i] += x[i - 2]
    return x


@program(of("n,n", "n"))
def called_function(a, v):
    out = np.zeros_like(v)
    for i in range(a.shape[0]):
        out[i] = norm_of(a[i], v)
    return out


def norm_of(row, v):
    s = 0.0
    for j in range(4):
        s = s + (row * v).sum() * j
    return np.sqrt(s)


@program(of("n"))
def first_and_last(x):
    y = np.zeros_like(x)
    n = x.shape[0]
    for i in range(n):
        if i == 0:
            y[i] = x[i]
        elif i == n - 1:
            y[i] = -x[i]
        else:
            y[i] = x[i - 1] + x[i + 1]
    return y


@program(of("n"))
def escape_counts(x):
    z = np.zeros(x.shape, np.complex128)
    count = np.zeros(x.shape, np.int64)
    for i in range(20):
        inside = np.abs(z) < 2.0
        z = np.where(inside, z * z + x, z)
        count[inside] = i
    return z, count


@program(of("n+1", dtype=np.uint32))
def checksum(x):
    crc = np.uint32(65535)
    for b in x:
        crc = crc ^ b
        for _ in range(8):
            crc = (crc >> np.uint32(1)) ^ (np.uint32(0x8408) * (crc & np.uint32(1)))
    return crc


@program(of("n,n,n", "n,n"))
def contraction(a, c):
    for r in range(a.shape[0]):
        for q in range(a.shape[1]):
            a[r, q, :] = a[r, q, :] @ c


@program(of("n"))
def view_is_written(x):
    half = x[: x.shape[0] // 2]
    for i in range(half.shape[0]):
        half[i] += x[-1 - i]
    return half * 2


@program(of("n"))
def last_value_is_read(x):
    for i in range(x.shape[0]):
        t = x[i] * 2
        u = t + x
    return t, u, i
