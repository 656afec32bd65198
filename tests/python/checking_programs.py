# mypy: ignore-errors
# ruff: noqa: B006, B007
"""Programs that ask for values (value_programs.py): images, sparse matrices, validation and
exceptions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from value_programs import program

# Images.


@program(lambda r: (r.integers(0, 256, (20, 20)).astype(np.uint8),))
def equalize_histogram(image):
    counts = np.bincount(image.ravel(), minlength=256)
    cdf = counts.cumsum()
    low = cdf[cdf > 0][0]
    if low == image.size:
        return image
    table = np.round((cdf - low) / (image.size - low) * 255).astype(np.uint8)
    return table[image]


@program(lambda r: (np.r_[r.normal(80, 30, 3000), r.normal(170, 25, 2000)].clip(0, 255),))
def otsu(x):
    counts, edges = np.histogram(x, bins=64, range=(0, 255))
    p = counts / counts.sum()
    best, threshold = -1.0, None
    for t in range(1, len(p)):
        w0, w1 = p[:t].sum(), p[t:].sum()
        if w0 == 0 or w1 == 0:
            continue
        m0 = (np.arange(t) * p[:t]).sum() / w0
        m1 = (np.arange(t, len(p)) * p[t:]).sum() / w1
        between = w0 * w1 * (m0 - m1) ** 2
        if between > best:
            best, threshold = between, edges[t]
    return threshold, best


@program(lambda r: (24, 20, 30))
def mandelbrot(width, height, limit):
    c = np.linspace(-2, 1, width)[None, :] + 1j * np.linspace(-1.2, 1.2, height)[:, None]
    z = np.zeros_like(c)
    count = np.zeros(c.shape, int)
    alive = np.ones(c.shape, bool)
    for i in range(limit):
        z[alive] = z[alive] ** 2 + c[alive]
        gone = alive & (np.abs(z) > 2)
        count[gone] = i
        alive &= ~gone
        if not alive.any():
            break
    return count, alive.sum()


@program(lambda r: (r.random((12, 12)) < 0.7,))
def erode_until_empty(image):
    layers = []
    while image.any():
        layers.append(int(image.sum()))
        padded = np.pad(image, 1)
        image = (
            padded[1:-1, 1:-1]
            & padded[:-2, 1:-1]
            & padded[2:, 1:-1]
            & padded[1:-1, :-2]
            & padded[1:-1, 2:]
        )
    return layers


@program(lambda r: (r.random((10, 10)),))
def bounding_box(image):
    rows, columns = np.where(image > 0.9)
    if rows.size == 0:
        return None
    box = rows.min(), rows.max(), columns.min(), columns.max()
    return box, image[box[0] : box[1] + 1, box[2] : box[3] + 1].mean()


# Sparse matrices and hidden states.


@program(lambda r: (r.random((8, 8)) * (r.random((8, 8)) < 0.3), r.standard_normal(8)))
def csr_product(dense, x):
    data, columns, pointer = [], [], [0]
    for row in dense:
        (at,) = row.nonzero()
        data.extend(row[at])
        columns.extend(at)
        pointer.append(len(data))
    data, columns, pointer = np.array(data), np.array(columns, dtype=int), np.array(pointer)
    y = np.zeros(len(dense))
    for i in range(len(y)):
        lo, hi = pointer[i], pointer[i + 1]
        if lo < hi:
            y[i] = data[lo:hi] @ x[columns[lo:hi]]
    return y, pointer


@program(
    lambda r: (
        r.integers(0, 3, 12),
        np.array([0.6, 0.4]),
        np.array([[0.7, 0.3], [0.4, 0.6]]),
        np.array([[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]]),
    )
)
def viterbi(observed, start, transition, emission):
    score = np.log(start) + np.log(emission[:, observed[0]])
    back = []
    for o in observed[1:]:
        candidates = score[:, None] + np.log(transition)
        back.append(candidates.argmax(axis=0))
        score = candidates.max(axis=0) + np.log(emission[:, o])
    path = [int(score.argmax())]
    for pointers in reversed(back):
        path.append(int(pointers[path[-1]]))
    return path[::-1], score.max()


# Validation and exceptions.


def validated(x, y):
    if x.shape != y.shape:
        raise ValueError(f"shapes differ: {x.shape} and {y.shape}")
    if np.any(np.isnan(x)) or np.any(np.isnan(y)):
        raise ValueError(f"{np.isnan(x).sum() + np.isnan(y).sum()} missing values")
    if not (x > 0).all():
        i = int(np.argmin(x))
        raise ValueError(f"x must be positive; x[{i}] is {x[i]}")
    return np.log(x) @ y


@program(lambda r: (r.random(5) + 0.1, r.random(5)))
def validation_passes(x, y):
    return validated(x, y)


@program(lambda r: (np.array([1.0, -0.5, 2.0]), np.ones(3)))
def validation_fails(x, y):
    return validated(x, y)


@program(lambda r: (np.array([1.0, np.nan, 2.0]), np.ones(3)))
def validation_finds_nan(x, y):
    return validated(x, y)


@program(lambda r: (r.standard_normal(6), [2, 9, -1, -7, 5]))
def lookups(x, at):
    found, missing = [], []
    for i in at:
        try:
            found.append(x[i])
        except IndexError as error:
            missing.append((i, str(error)))
    return found, missing


@program(lambda r: (r.standard_normal(6), r.integers(-9, 9, 12)))
def lookups_by_traced_index(x, at):
    total = 0.0
    for i in at:
        try:
            total += x[i]
        except IndexError:
            total -= 1
        finally:
            total *= 0.5
    return total


@program(lambda r: (r.standard_normal((3, 3)), np.ones((3, 3))))
def solve_or_least_squares(a, singular):
    out = []
    for m in (a, singular):
        try:
            out.append(np.linalg.solve(m, np.ones(3)))
        except np.linalg.LinAlgError as error:
            print("falling back:", error)
            out.append(np.linalg.lstsq(m, np.ones(3), rcond=None)[0])
    return out


@program(lambda r: (np.array([1.0, 0.0, -1.0]),))
def floating_point_errors(x):
    caught = []
    for f in (lambda: 1 / x, lambda: np.sqrt(x), lambda: np.log(x + 1)):
        try:
            with np.errstate(all="raise"):
                caught.append(f())
        except FloatingPointError as error:
            caught.append(str(error))
    return caught


@program(lambda r: (np.arange(6.0),))
def broken_half_way(x):
    for i in range(len(x)):
        x[i] = x[i] ** 2
        if x[i] > 8:
            raise OverflowError(f"at {i}: {x[i]}")
    return x


@program(lambda r: (r.standard_normal(20),))
def generator_of_batches(x):
    def batches(x, n):
        for i in range(0, len(x), n):
            batch = x[i : i + n]
            if batch.mean() > 0:
                yield i, batch

    return [(i, b.sum()) for i, b in batches(x, 6)], next(batches(np.abs(x), 3))


@program(lambda r: (r.standard_normal(20),))
def outliers_removed(x):
    removed = []
    while True:
        z = np.abs(x - x.mean()) / x.std()
        worst = z.argmax()
        if z[worst] < 1.8 or len(x) < 10:
            break
        removed.append(float(x[worst]))
        x = np.delete(x, worst)
    return x, removed


@program(lambda r: (r.standard_normal(12),))
def memoized_recursion(costs, memo={}):
    memo = {}

    def best(i):
        if i >= len(costs):
            return 0.0
        if i not in memo:
            memo[i] = max(costs[i] + best(i + 2), best(i + 1))
        return memo[i]

    return best(0), sorted(memo)


class Fit(NamedTuple):
    slope: float
    intercept: float
    good: bool


@program(lambda r: (np.arange(20.0), 2 * np.arange(20.0) + r.standard_normal(20)))
def fit_of_a_line(x, y):
    slope, intercept = np.polyfit(x, y, 1)
    residual = y - (slope * x + intercept)
    return Fit(slope, intercept, bool(residual.std() < 2))


@program(lambda r: (r.standard_normal(10).astype(np.float32),))
def single_precision_loop(x):
    total = np.float32(0)
    for v in x:
        if v > 0:
            total += v * v
    while total > 1:
        total /= 2
    return total, type(total).__name__


@program(lambda r: (np.int64(27),))
def collatz(n):
    path = [int(n)]
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        path.append(int(n))
    return len(path), max(path)


@program(lambda r: (48, 36, np.array([8, 12, 20])))
def greatest_common_divisors(a, b, x):
    while b:
        a, b = b, a % b
    g = x[0]
    for v in x[1:]:
        while v:
            g, v = v, g % v
    return a, g


@program(lambda r: (r.standard_normal((5, 2)),))
def convex_hull(points):
    order = np.lexsort((points[:, 1], points[:, 0]))
    hull = []
    for p in points[order]:
        while len(hull) >= 2:
            a, b = hull[-2], hull[-1]
            if (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) > 0:
                break
            hull.pop()
        hull.append(p)
    return np.array(hull)


@program(lambda r: (r.standard_normal((12, 2)), (r.random(12) > 0.5).astype(int)))
def decision_stump(x, y):
    best = (np.inf, None, None)
    for feature in range(x.shape[1]):
        for threshold in np.unique(x[:, feature]):
            left = x[:, feature] <= threshold
            impurity = 0.0
            for side in (y[left], y[~left]):
                if side.size == 0:
                    continue
                p = side.mean()
                impurity += side.size * p * (1 - p)
            if impurity < best[0]:
                best = (impurity, feature, threshold)
    return best


@program(
    lambda r: (
        np.r_[r.normal(-1, 1, (15, 2)), r.normal(2, 1, (15, 2))],
        np.r_[-np.ones(15), np.ones(15)],
    )
)
def perceptron(x, y):
    w, b = np.zeros(2), 0.0
    for epoch in range(15):
        mistakes = 0
        for xi, yi in zip(x, y, strict=True):
            if yi * (np.dot(w, xi) + b) <= 0:
                w += yi * xi
                b += yi
                mistakes += 1
        if mistakes == 0:
            break
    return w, b, mistakes
