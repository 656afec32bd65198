# mypy: ignore-errors
"""Whole programs as users of NumPy write them, each with what makes its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# By name: the function; its arguments, of a generator.
PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[np.random.Generator], tuple]]] = {}


def program(make):
    def register(f):
        PROGRAMS[f.__name__] = (f, make)
        return f

    return register


# Signals
@program(lambda r: (r.standard_normal(500), np.hanning(21)))
def smooth(x, window):
    """Smoothing by a window, edges mirrored."""
    n = len(window)
    s = np.r_[x[n - 1 : 0 : -1], x, x[-2 : -n - 1 : -1]]
    return np.convolve(window / window.sum(), s, mode="valid")


@program(lambda r: (r.standard_normal(256).astype(np.float32),))
def autocorrelation(x):
    x = x - x.mean()
    r = np.correlate(x, x, mode="full")[-len(x) :]
    return r / (x.var() * np.arange(len(x), 0, -1))


@program(lambda r: (r.standard_normal(300), 0.2))
def exponential_filter(x, a):
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = a * x[i] + (1 - a) * y[i - 1]
    return y


@program(lambda r: (r.standard_normal((3, 64)),))
def dft_by_matrix(x):
    n = x.shape[-1]
    k = np.arange(n)
    angle = 2 * np.pi * np.outer(k, k) / n
    re, im = x @ np.cos(angle), -(x @ np.sin(angle))
    return np.hypot(re, im), np.arctan2(im, re)


@program(lambda r: (np.sin(np.arange(400) / 7) + 0.1 * r.standard_normal(400),))
def zero_crossings(x):
    s = np.signbit(x)
    return np.count_nonzero(s[1:] != s[:-1]), np.diff(s).sum()


@program(lambda r: (r.standard_normal(400),))
def moving_statistics(x):
    w = np.lib.stride_tricks.sliding_window_view(x, 16)
    return w.mean(axis=-1), w.std(axis=1, ddof=1), w.max(-1) - w.min(-1), np.median(w, axis=1)


@program(lambda r: (r.standard_normal(128), r.standard_normal(128)))
def resample(t, y):
    order = np.argsort(t)
    t, y = t[order], y[order]
    grid = np.linspace(t[0], t[-1], 50)
    return grid, np.interp(grid, t, y)


@program(lambda r: (r.standard_normal(1000),))
def spectral_peak(x):
    spectrum = np.abs(np.fft.rfft(x * np.hamming(len(x)))) ** 2
    return np.argmax(spectrum), spectrum.max()


# Learning
@program(
    lambda r: (
        r.standard_normal((64, 10)).astype(np.float32),
        r.integers(0, 3, 64),
        {
            "w1": 0.1 * r.standard_normal((10, 16)).astype(np.float32),
            "b1": np.zeros(16, np.float32),
            "w2": 0.1 * r.standard_normal((16, 3)).astype(np.float32),
            "b2": np.zeros(3, np.float32),
        },
        0.1,
    )
)
def training_step(x, y, params, lr):
    h = np.maximum(x @ params["w1"] + params["b1"], 0)
    logits = h @ params["w2"] + params["b2"]
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    loss = -np.log(p[np.arange(len(y)), y]).mean()
    d = p.copy()
    d[np.arange(len(y)), y] -= 1
    d /= len(y)
    grads = {"w2": h.T @ d, "b2": d.sum(0)}
    dh = d @ params["w2"].T
    dh[h <= 0] = 0
    grads["w1"], grads["b1"] = x.T @ dh, dh.sum(axis=0)
    return loss, {k: v - lr * grads[k] for k, v in params.items()}


@program(lambda r: (r.standard_normal((200, 3)), r.standard_normal((4, 3))))
def kmeans(points, centers):
    for _ in range(5):
        distance = ((points[:, None, :] - centers[None]) ** 2).sum(-1)
        labels = distance.argmin(axis=1)
        sums = np.zeros_like(centers)
        np.add.at(sums, labels, points)
        counts = np.bincount(labels, minlength=len(centers))
        centers = sums / np.maximum(counts, 1)[:, np.newaxis]
    return centers, labels, counts


@program(lambda r: (r.standard_normal((100, 6)),))
def pca_by_power_iteration(x):
    x = x - x.mean(axis=0)
    c = x.T @ x / (len(x) - 1)
    components, values = [], []
    for _ in range(2):
        v = np.ones(c.shape[0]) / np.sqrt(c.shape[0])
        for _ in range(30):
            v = c @ v
            v /= np.linalg.norm(v)
        value = v @ c @ v
        values.append(value)
        components.append(v)
        c = c - value * np.outer(v, v)
    return np.stack(components), np.array(values)


@program(lambda r: (r.standard_normal((50, 4)), r.standard_normal(50)))
def ridge_regression(x, y):
    a = np.column_stack([np.ones(len(x)), x])
    w = np.linalg.solve(a.T @ a + 0.1 * np.eye(a.shape[1]), a.T @ y)
    residual = y - a @ w
    r2 = 1 - residual @ residual / np.sum((y - y.mean()) ** 2)
    return w, r2


@program(lambda r: (r.standard_normal((120, 4)), (r.random(120) > 0.5).astype(float)))
def logistic_regression(x, y):
    w = np.zeros(x.shape[1])
    for _ in range(20):
        p = 1 / (1 + np.exp(-x @ w))
        w -= 0.5 * x.T @ (p - y) / y.size
    return w, ((p > 0.5) == y).mean()


@program(
    lambda r: (
        r.standard_normal((2, 8, 16)).astype(np.float32),
        *(r.standard_normal((16, 16)).astype(np.float32) for _ in range(3)),
    )
)
def attention(x, wq, wk, wv):
    q, k, v = (np.einsum("btd,de->bte", x, w) for w in (wq, wk, wv))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    scores = np.where(np.tri(x.shape[1], dtype=bool), scores, -np.inf)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return scores / scores.sum(-1, keepdims=True) @ v


@program(lambda r: (r.standard_normal((40, 5)), r.standard_normal((30, 5)), r.integers(0, 3, 40)))
def nearest_neighbours(train, test, labels):
    d = np.sqrt(((test[:, None] - train) ** 2).sum(2))
    nearest = np.argpartition(d, 5, axis=1)[:, :5]
    votes = np.eye(3, dtype=int)[labels[nearest]].sum(axis=1)
    return votes.argmax(1), np.take_along_axis(d, np.argsort(d, axis=1)[:, :3], axis=1)


@program(lambda r: (r.integers(0, 4, 100), r.integers(0, 4, 100)))
def confusion_matrix(true, predicted):
    m = np.zeros((4, 4), int)
    np.add.at(m, (true, predicted), 1)
    precision = np.diag(m) / np.clip(m.sum(axis=0), 1, None)
    recall = m.diagonal() / m.sum(axis=1)
    return (
        m,
        precision,
        recall,
        2 * precision * recall / (precision + recall),
        np.trace(m) / m.sum(),
    )


@program(
    lambda r: (
        r.standard_normal((8, 3, 10, 10)).astype(np.float32),
        r.standard_normal((4, 3, 3, 3)).astype(np.float32),
    )
)
def convolution_layer(images, kernels):
    w = np.lib.stride_tricks.sliding_window_view(images, (3, 3), axis=(2, 3))
    y = np.einsum("nchwij,kcij->nkhw", w, kernels)
    y = np.maximum(y, 0)
    n, k, h, w = y.shape
    return y.reshape(n, k, h // 2, 2, w // 2, 2).max(axis=(3, 5))


@program(lambda r: (r.random(50) > 0.4, r.random(50)))
def roc_auc(labels, scores):
    order = np.argsort(-scores, kind="stable")
    hits = labels[order]
    tpr = np.cumsum(hits) / hits.sum()
    fpr = np.cumsum(~hits) / (~hits).sum()
    return np.trapezoid(tpr, fpr)


# Finance
@program(lambda r: (np.linspace(80, 120, 41), 100.0, 0.5, 0.02, 0.25))
def black_scholes(strike, spot, t, rate, vol):
    def cdf(x):
        return 1 / (1 + np.exp(-1.702 * x))

    d1 = (np.log(spot / strike) + (rate + vol**2 / 2) * t) / (vol * t**0.5)
    d2 = d1 - vol * np.sqrt(t)
    call = spot * cdf(d1) - strike * np.exp(-rate * t) * cdf(d2)
    return call, call - spot + strike * np.exp(-rate * t)


@program(lambda r: (100 * np.exp(np.cumsum(0.01 * r.standard_normal(250))),))
def price_statistics(price):
    returns = np.diff(np.log(price))
    drawdown = price / np.maximum.accumulate(price) - 1
    sma = np.cumsum(np.insert(price, 0, 0.0))
    sma = (sma[20:] - sma[:-20]) / 20
    return (
        returns.mean() * 252,
        returns.std(ddof=1) * np.sqrt(252),
        drawdown.min(),
        np.percentile(returns, 5),
        np.where(price[19:] > sma, 1, -1),
    )


@program(lambda r: (r.standard_normal((60, 5)) * 0.02,))
def minimum_variance_portfolio(returns):
    cov = np.cov(returns, rowvar=False)
    ones = np.ones(cov.shape[0])
    w = np.linalg.inv(cov) @ ones
    w /= w.sum()
    return w, w @ cov @ w, np.corrcoef(returns.T)


@program(lambda r: (r.standard_normal((500, 50)), 100.0, 0.2))
def asian_option(z, spot, vol):
    dt = 1 / z.shape[1]
    path = spot * np.exp(np.cumsum((0.03 - 0.5 * vol * vol) * dt + vol * np.sqrt(dt) * z, axis=1))
    payoff = np.maximum(path.mean(axis=1) - 100, 0)
    return payoff.mean(), payoff.std() / np.sqrt(len(payoff))


@program(lambda r: (np.array([-100.0, 30, 40, 50]),))
def internal_rate_of_return(flows):
    rate = 0.1
    for _ in range(20):
        powers = (1 + rate) ** -np.arange(len(flows))
        value = np.dot(flows, powers)
        slope = -(np.arange(len(flows)) * flows * powers).sum() / (1 + rate)
        rate = rate - value / slope
    return rate


# Physics
@program(lambda r: (r.standard_normal((20, 3)), r.standard_normal((20, 3)), r.random(20)))
def n_body(position, velocity, mass):
    for _ in range(3):
        d = position[np.newaxis, :, :] - position[:, np.newaxis, :]
        inverse = (np.sum(d**2, axis=2) + 1e-2) ** -1.5
        np.fill_diagonal(inverse, 0)
        velocity += 0.01 * np.einsum("ijk,ij,j->ik", d, inverse, mass)
        position += 0.01 * velocity
    kinetic = 0.5 * np.sum(mass[:, None] * velocity**2)
    return kinetic, position


@program(lambda r: (r.random((40, 40)),))
def heat_equation(u):
    for _ in range(10):
        u[1:-1, 1:-1] += 0.1 * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        )
        u[0], u[-1] = u[1], u[-2]
        u[:, 0] = u[:, -1] = 0
    return u.sum()


@program(lambda r: (np.array([1.0, 1.0, 1.0]), 0.01))
def lorenz_by_runge_kutta(state, dt):
    def slope(s):
        x, y, z = s
        return np.array([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    track = [state]
    for _ in range(20):
        k1 = slope(state)
        k2 = slope(state + dt / 2 * k1)
        k3 = slope(state + dt / 2 * k2)
        k4 = slope(state + dt * k3)
        state = state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        track.append(state)
    return np.array(track)


@program(lambda r: (np.where(r.random((16, 16)) < 0.5, -1, 1), r.random((4, 16, 16))))
def ising(spins, draws):
    checker = np.indices(spins.shape).sum(axis=0) % 2 == 0
    for draw in draws:
        for colour in (checker, ~checker):
            neighbours = sum(np.roll(spins, s, a) for s in (1, -1) for a in (0, 1))
            change = 2 * spins * neighbours
            flip = colour & (draw < np.exp(-0.4 * change))
            spins[flip] *= -1
    return spins.mean(), spins


@program(lambda r: (r.standard_normal((30, 3)), 4.0))
def lennard_jones(x, box):
    i, j = np.triu_indices(len(x), k=1)
    d = x[i] - x[j]
    d -= box * np.round(d / box)
    r2 = (d * d).sum(axis=-1)
    s6 = 1 / r2**3
    near = r2 < 2.5**2
    energy = np.where(near, 4 * (s6**2 - s6), 0).sum()
    pair = np.where(near[:, None], (48 * s6**2 - 24 * s6)[:, None] / r2[:, None] * d, 0.0)
    force = np.zeros_like(x)
    np.add.at(force, i, pair)
    np.subtract.at(force, j, pair)
    return energy, force


@program(lambda r: (np.linspace(-2, 0.5, 40), np.linspace(-1, 1, 30)))
def mandelbrot(re, im):
    cr, ci = np.meshgrid(re, im)
    zr = np.zeros(cr.shape)
    zi = np.zeros_like(zr)
    count = np.zeros(cr.shape, dtype=np.int32)
    for i in range(30):
        inside = zr * zr + zi * zi <= 4
        zr, zi = (
            np.where(inside, zr * zr - zi * zi + cr, zr),
            np.where(inside, 2 * zr * zi + ci, zi),
        )
        count[inside] = i
    return count


@program(lambda r: (r.random((20, 20)), r.random((20, 20))))
def reaction_diffusion(u, v):
    def laplace(z):
        return sum(np.roll(z, d, axis=a) for d in (-1, 1) for a in (0, 1)) - 4 * z

    for _ in range(5):
        uvv = u * v * v
        u += 0.16 * laplace(u) - uvv + 0.035 * (1 - u)
        v += 0.08 * laplace(v) + uvv - 0.095 * v
    return np.clip(v * 255, 0, 255).astype(np.uint8)


@program(lambda r: (np.linspace(0, 1, 50), 2.0))
def wave_equation(x, c):
    dt = 0.5 / 49 / c
    u = np.exp(-100 * (x - 0.5) ** 2)
    previous = u.copy()
    frames = np.empty((10, x.size))
    for n in range(10):
        following = np.zeros_like(u)
        following[1:-1] = (
            2 * u[1:-1] - previous[1:-1] + (c * dt * 49) ** 2 * (u[2:] - 2 * u[1:-1] + u[:-2])
        )
        previous, u = u, following
        frames[n] = u
    return frames


# Images
@program(lambda r: (r.integers(0, 256, (24, 32, 3), dtype=np.uint8),))
def grayscale_and_edges(image):
    gray = image @ np.array([0.299, 0.587, 0.114])
    p = np.pad(gray, 1, mode="edge")
    gx = p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:] - p[:-2, :-2] - 2 * p[1:-1, :-2] - p[2:, :-2]
    gy = p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:] - p[:-2, :-2] - 2 * p[:-2, 1:-1] - p[:-2, 2:]
    edges = np.hypot(gx, gy)
    return gray, (255 * edges / edges.max() + 1e-6).astype("u1")


@program(lambda r: (r.integers(0, 256, (20, 20), dtype=np.uint8),))
def histogram_equalization(image):
    histogram = np.bincount(image.ravel(), minlength=256)
    cdf = histogram.cumsum()
    low = np.min(cdf, where=cdf > 0, initial=cdf[-1])
    table = np.round((cdf - low) / (image.size - low) * 255).clip(0, 255).astype(np.uint8)
    return table[image]


@program(lambda r: (r.random((16, 16)) < 0.4,))
def game_of_life(board):
    for _ in range(4):
        n = sum(
            np.roll(np.roll(board, i, 0), j, 1).astype(int)
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            if (i, j) != (0, 0)
        )
        board = (n == 3) | (board & (n == 2))
    return board, board.sum()


@program(lambda r: ((r.random((12, 12)) < 0.4).astype(np.uint8),))
def game_of_life_in_place(z):
    n = np.zeros(z.shape, int)
    n[1:-1, 1:-1] += (
        z[:-2, :-2]
        + z[:-2, 1:-1]
        + z[:-2, 2:]
        + z[1:-1, :-2]
        + z[1:-1, 2:]
        + z[2:, :-2]
        + z[2:, 1:-1]
        + z[2:, 2:]
    )
    birth = (n == 3)[1:-1, 1:-1] & (z[1:-1, 1:-1] == 0)
    survive = ((n == 2) | (n == 3))[1:-1, 1:-1] & (z[1:-1, 1:-1] == 1)
    z[...] = 0
    z[1:-1, 1:-1][birth | survive] = 1
    return np.sum(z)


@program(lambda r: (r.random((18, 18)).astype(np.float32),))
def bilinear_resize(image):
    h, w = image.shape
    ys, xs = np.linspace(0, h - 1, 31), np.linspace(0, w - 1, 29)
    y0, x0 = np.floor(ys).astype(int), np.floor(xs).astype(int)
    y1, x1 = np.minimum(y0 + 1, h - 1), np.minimum(x0 + 1, w - 1)
    fy, fx = (ys - y0)[:, None], (xs - x0)[None, :]
    top = image[y0][:, x0] * (1 - fx) + image[y0][:, x1] * fx
    bottom = image[np.ix_(y1, x0)] * (1 - fx) + image[y1[:, None], x1] * fx
    return top * (1 - fy) + bottom * fy


@program(lambda r: (r.random((15, 15)),))
def median_filter(image):
    p = np.pad(image, 1, mode="reflect")
    stack = np.stack([p[i : i + 15, j : j + 15] for i in range(3) for j in range(3)])
    return np.median(stack, axis=0), np.sort(stack, axis=0)[4]


@program(lambda r: (r.random((32, 32, 3)).astype(np.float32), 1.3))
def tone_mapping(image, exposure):
    luminance = np.tensordot(image, np.float32([0.2126, 0.7152, 0.0722]), axes=1)
    key = np.exp(np.log(luminance + 1e-6).mean())
    scaled = image * (exposure * 0.18 / key)
    mapped = scaled / (1 + scaled)
    srgb = np.where(mapped <= 0.0031308, 12.92 * mapped, 1.055 * mapped ** (1 / 2.4) - 0.055)
    return (np.clip(srgb, 0, 1) * 255 + 0.5).astype(np.uint8)


@program(lambda r: (r.random((10, 10)),))
def rgb_from_hsv(h):
    s, v = 0.7, 0.9
    i = np.floor(h * 6).astype(int)
    f = h * 6 - i
    p, q, t = v * (1 - s), v * (1 - f * s), v * (1 - (1 - f) * s)
    i = i % 6
    r = np.choose(
        i,
        [v * np.ones_like(h), q, p * np.ones_like(h), p * np.ones_like(h), t, v * np.ones_like(h)],
    )
    g = np.select([i == 0, (i == 1) | (i == 2), i == 3], [t, v, q], default=p)
    return np.dstack([r, g])


@program(lambda r: (r.integers(0, 2, (12, 12)).astype(bool),))
def morphology(mask):
    p = np.pad(mask, 1)
    windows = np.lib.stride_tricks.sliding_window_view(p, (3, 3))
    eroded, dilated = windows.all(axis=(-1, -2)), windows.any(axis=(-1, -2))
    return eroded, dilated, dilated ^ eroded, np.logical_and.reduce(mask, axis=0)


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
