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
