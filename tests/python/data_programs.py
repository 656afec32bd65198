# mypy: ignore-errors
"""More programs such as those of user_programs.py: data, statistics, algorithms."""

from __future__ import annotations

import numpy as np
from user_programs import program


# Data and statistics
@program(lambda r: (r.integers(0, 5, 200), r.standard_normal(200)))
def group_by(keys, values):
    counts = np.bincount(keys, minlength=5)
    sums = np.bincount(keys, weights=values, minlength=5)
    largest = np.full(5, -np.inf)
    np.maximum.at(largest, keys, values)
    return counts, sums / counts, largest


@program(lambda r: (np.where(r.random(100) < 0.2, np.nan, r.standard_normal(100)),))
def fill_missing(x):
    missing = np.isnan(x)
    last = np.maximum.accumulate(np.where(missing, 0, np.arange(len(x))))
    forward = x[last]
    mean = np.nanmean(x)
    x[missing] = mean
    return forward, x.std(), np.count_nonzero(missing)


@program(lambda r: (r.standard_normal(300) * 3,))
def describe(x):
    q1, q2, q3 = np.percentile(x, [25, 50, 75])
    z = (x - x.mean()) / x.std(ddof=1)
    return dict(
        mean=x.mean(),
        skew=(z**3).mean(),
        kurtosis=(z**4).mean() - 3,
        iqr=q3 - q1,
        median=q2,
        outliers=((x < q1 - 1.5 * (q3 - q1)) | (x > q3 + 1.5 * (q3 - q1))).sum(),
        histogram=np.histogram(x, bins=10, range=(-10, 10))[0],
    )


@program(lambda r: (r.standard_normal((30, 4)),))
def rank_correlation(x):
    ranks = x.argsort(axis=0).argsort(axis=0).astype(float)
    return np.corrcoef(ranks, rowvar=False)


@program(lambda r: (r.standard_normal(50), r.integers(0, 50, (200, 50))))
def bootstrap(x, draws):
    means = x[draws].mean(axis=1)
    return means.std(ddof=1), np.quantile(means, [0.025, 0.975])


@program(lambda r: (r.permutation(64),))
def bubble_sort(x):
    x = x.copy()
    for i in range(8):
        swap = x[i % 2 : -1 : 2][:31] > x[i % 2 + 1 :: 2][:31]
        a, b = x[i % 2 : -1 : 2][:31].copy(), x[i % 2 + 1 :: 2][:31].copy()
        x[i % 2 : -1 : 2][:31] = np.where(swap, b, a)
        x[i % 2 + 1 :: 2][:31] = np.where(swap, a, b)
    return x


@program(lambda r: (r.integers(0, 1000, 128),))
def bitonic_sort(x):
    n = len(x)
    index = np.arange(n)
    k = 2
    while k <= n:
        j = k // 2
        while j:
            partner = index ^ j
            up = (index & k) == 0
            low = index < partner
            other = x[partner]
            x = np.where(low == up, np.minimum(x, other), np.maximum(x, other))
            j //= 2
        k *= 2
    return x


@program(lambda r: (r.integers(0, 100, 60), r.integers(0, 100, 40)))
def merge_and_search(a, b):
    merged = np.sort(np.concatenate([a, b]))
    return merged, np.searchsorted(merged, [10, 50]), np.isin(a, b).sum(), merged[::-1][:5]


@program(lambda r: (r.integers(0, 2**31, 100),))
def hash_values(x):
    h = x.astype(np.uint32) ^ np.uint32(17)
    h = (h ^ (h >> 16)) * np.uint32(0x45D9F3B)
    h = (h ^ (h >> np.uint32(16))) * np.uint32(0x45D9F3B)
    return h ^ (h >> 16), np.bitwise_xor.reduce(h), (h % 16).astype(np.int8)


@program(lambda r: (r.random((6, 6)),))
def shortest_paths(weights):
    d = weights.copy()
    np.fill_diagonal(d, 0)
    for k in range(len(d)):
        d = np.minimum(d, d[:, k, None] + d[None, k, :])
    return d


@program(lambda r: ((r.random((10, 10)) < 0.3).astype(float),))
def page_rank(links):
    out = links.sum(axis=1, keepdims=True)
    m = np.where(out > 0, links / np.where(out == 0, 1, out), 1 / len(links)).T
    rank = np.full(len(links), 1 / len(links))
    for _ in range(15):
        rank = 0.85 * m @ rank + 0.15 / len(links)
    return rank, np.argsort(rank)[::-1][:3]


@program(lambda r: ((m := r.random((5, 5)), m @ m.T + np.eye(5))[1], r.random(5)))
def conjugate_gradient(a, b):
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rs = r @ r
    for _ in range(5):
        ap = a @ p
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        p = r + new / rs * p
        rs = new
    return x


@program(lambda r: (r.random((6, 6)) + 6 * np.eye(6),))
def lu_decomposition(a):
    a = a.copy()
    n = a.shape[0]
    for k in range(n - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    lower, upper = np.tril(a, -1) + np.eye(n), np.triu(a)
    return lower @ upper, np.prod(np.diag(upper))


@program(lambda r: (r.random((8, 4)),))
def gram_schmidt(a):
    q = np.zeros_like(a)
    for j in range(a.shape[1]):
        v = a[:, j] - q[:, :j] @ (q[:, :j].T @ a[:, j])
        q[:, j] = v / np.sqrt(v @ v)
    return q, q.T @ q


@program(lambda r: (r.random(30), r.random(29), r.random(29), r.random(30)))
def tridiagonal(d, lower, u, b):
    d = d + 3
    n = d.size
    for i in range(1, n):
        w = lower[i - 1] / d[i - 1]
        d[i] -= w * u[i - 1]
        b[i] -= w * b[i - 1]
    x = np.empty(n)
    x[-1] = b[-1] / d[-1]
    for i in reversed(range(n - 1)):
        x[i] = (b[i] - u[i] * x[i + 1]) / d[i]
    return x


@program(lambda r: (np.array([1, 0, 1, 1, 0, 1, 1, 1, 0], np.int64),))
def run_lengths(x):
    position = np.arange(len(x))
    starts = np.maximum.accumulate(np.where(x == 0, position + 1, 0))
    streak = np.where(x == 1, position - starts + 1, 0)
    return streak, streak.max(), x.argmin()


@program(lambda r: (r.integers(0, 26, 30), r.integers(0, 26, 8)))
def edit_distance(a, b):
    row = np.arange(len(b) + 1)
    for i in range(len(a)):
        cost = (b != a[i]).astype(int)
        new = np.minimum(row[1:] + 1, row[:-1] + cost)
        new = np.concatenate(([i + 1], new))
        offset = np.arange(len(new))
        row = np.minimum.accumulate(new - offset) + offset
    return row[-1]


@program(lambda r: (r.standard_normal((5, 3)), r.standard_normal(4)))
def rotation(points, q):
    w, x, y, z = q / np.linalg.norm(q)
    m = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    return points @ m.T, np.cross(points, m[0]), m


@program(lambda r: (r.random((40, 2)) * 180 - 90, r.random((40, 2)) * 180 - 90))
def haversine(a, b):
    lat1, lon1 = np.radians(a).T
    lat2, lon2 = np.deg2rad(b[:, 0]), np.deg2rad(b[:, 1])
    h = (
        np.sin((lat2 - lat1) / 2) ** 2
        + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    )
    return 6371 * 2 * np.arcsin(np.sqrt(h))


@program(lambda r: (r.random((12, 2)), r.random((20, 2))))
def point_in_polygon(polygon, points):
    x, y = points[:, 0], points[:, 1]
    inside = np.zeros(len(points), bool)
    for i in range(len(polygon)):
        (x1, y1), (x2, y2) = polygon[i - 1], polygon[i]
        crosses = ((y1 > y) != (y2 > y)) & (x < (x2 - x1) * (y - y1) / (y2 - y1) + x1)
        inside ^= crosses
    return inside, 0.5 * np.abs(
        np.dot(polygon[:, 0], np.roll(polygon[:, 1], 1))
        - np.dot(polygon[:, 1], np.roll(polygon[:, 0], 1))
    )


@program(lambda r: (r.standard_normal((50, 2)), r.standard_normal(50)))
def kalman_filter(unused, measurements):
    x, p = 0.0, 1.0
    result = np.empty(len(measurements))
    for i, z in enumerate(measurements):
        p = p + 0.01
        k = p / (p + 0.5)
        x = x + k * (z - x)
        p = (1 - k) * p
        result[i] = x
    return result, p


@program(lambda r: (r.standard_normal((3, 3)), r.integers(0, 3, 20), r.dirichlet(np.ones(3), 3)))
def viterbi(start, observations, transition):
    emit = np.exp(start)
    emit /= emit.sum(axis=1)[:, None]
    score = np.log(np.ones(3) / 3) + np.log(emit[:, observations[0]])
    back = np.zeros((len(observations), 3), np.intp)
    for t in range(1, len(observations)):
        candidate = score[:, None] + np.log(transition)
        back[t] = candidate.argmax(axis=0)
        score = candidate.max(axis=0) + np.log(emit[:, observations[t]])
    path = [score.argmax()]
    for t in range(len(observations) - 1, 0, -1):
        path.append(back[t, path[-1]])
    return np.array(path[::-1])


@program(lambda r: (np.arange(24).reshape(2, 3, 4), np.float32(2.5)))
def reshaping(x, scale):
    a = x.transpose(2, 0, 1).reshape(4, -1)
    b = np.moveaxis(x, 0, -1)[..., ::-1]
    c = np.concatenate([a, a[::2].repeat(2, axis=0)], axis=1)
    d = np.vstack((a, c[:, :6])) * scale
    e = np.hstack([v.ravel() for v in np.split(x, 2, axis=2)])
    first, *rest = np.array_split(e, 5)
    return (
        a,
        b,
        c,
        d,
        first,
        rest,
        np.squeeze(x[:1]),
        np.expand_dims(x, (0, -1)),
        x.flat[5],
        np.tile(a, (2, 1)),
    )


@program(lambda r: (r.standard_normal((4, 200)),))
def online_mean(x):
    mean = np.zeros(4)
    m2 = np.zeros(4)
    for n, column in enumerate(x.T[:30], start=1):
        delta = column - mean
        mean += delta / n
        m2 += delta * (column - mean)
    return mean, m2 / (n - 1)


@program(lambda r: (r.integers(0, 100, (6, 4)),))
def wrangle(table):
    table = table[table[:, 0].argsort()]
    key, rest = table[:, 0], table[:, 1:]
    table[:, 2] = np.where(rest[:, 0] > 50, 0, table[:, 2])
    share = rest / rest.sum(axis=1, keepdims=True).clip(1)
    lag = np.full_like(key, -1)
    lag[1:] = key[:-1]
    best = rest.argmax(1)
    return table, share, lag, best, rest[range(len(rest)), best], share.round(2)
