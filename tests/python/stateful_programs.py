# mypy: ignore-errors
# ruff: noqa: RUF007
"""Programs that ask for values (value_programs.py): classes with state."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from value_programs import method

# Classes with state.


@method("update", lambda r: (np.array([1.0, 2.0]),), 0.3)
class Smoother:
    def __init__(self, alpha):
        self.alpha = alpha
        self.state = None

    def update(self, x):
        if self.state is None:
            self.state = x.copy()
        else:
            self.state = self.alpha * x + (1 - self.alpha) * self.state
        return self.state


@method(
    "step",
    lambda r: (
        {"w": r.standard_normal((4, 2)), "b": np.zeros(2)},
        {"w": r.standard_normal((4, 2)), "b": np.ones(2)},
    ),
)
class Adam:
    def __init__(self, lr=1e-2, betas=(0.9, 0.999), eps=1e-8):
        self.lr, self.betas, self.eps = lr, betas, eps
        self.m, self.v, self.t = {}, {}, 0

    def step(self, params, grads):
        self.t += 1
        for key in params:
            if key not in self.m:
                self.m[key] = np.zeros_like(params[key])
                self.v[key] = np.zeros_like(params[key])
            g = grads[key]
            self.m[key] = self.betas[0] * self.m[key] + (1 - self.betas[0]) * g
            self.v[key] = self.betas[1] * self.v[key] + (1 - self.betas[1]) * g**2
            mhat = self.m[key] / (1 - self.betas[0] ** self.t)
            vhat = self.v[key] / (1 - self.betas[1] ** self.t)
            params[key] -= self.lr * mhat / (np.sqrt(vhat) + self.eps)


@method("fit", lambda r: (r.standard_normal((40, 3)), r.standard_normal(40)))
class SGDRegressor:
    def __init__(self):
        self.w, self.velocity = None, 0.0
        self.history = []
        self.rng = np.random.default_rng(0)

    def fit(self, x, y):
        if self.w is None:
            self.w = np.zeros(x.shape[1])
        for _ in range(4):
            for batch in np.array_split(self.rng.permutation(len(x)), 4):
                gradient = x[batch].T @ (x[batch] @ self.w - y[batch]) / len(batch)
                if np.linalg.norm(gradient) > 1:
                    gradient = gradient / np.linalg.norm(gradient)
                self.velocity = 0.9 * self.velocity - 0.05 * gradient
                self.w = self.w + self.velocity
            self.history.append(float(np.mean((x @ self.w - y) ** 2)))
            if len(self.history) > 1 and self.history[-1] > self.history[-2]:
                break
        return self


@method("push", lambda r: (r.standard_normal(8),))
class RunningStatistics:
    def __init__(self):
        self.n, self.mean, self.m2 = 0, 0.0, 0.0

    def push(self, xs):
        for x in xs:
            self.n += 1
            delta = x - self.mean
            self.mean += delta / self.n
            self.m2 += delta * (x - self.mean)
        return self.mean, self.variance

    @property
    def variance(self):
        return self.m2 / (self.n - 1) if self.n > 1 else float("nan")


@method("step", lambda r: (np.array([1.2]),))
class KalmanFilter:
    def __init__(self):
        self.x = np.zeros(2)
        self.p = np.eye(2)
        self.f = np.array([[1.0, 1.0], [0.0, 1.0]])
        self.h = np.array([[1.0, 0.0]])
        self.q, self.r = 0.01 * np.eye(2), np.array([[0.5]])
        self.rejected = 0

    def step(self, z):
        self.x = self.f @ self.x
        self.p = self.f @ self.p @ self.f.T + self.q
        y = z - self.h @ self.x
        s = self.h @ self.p @ self.h.T + self.r
        if (y @ np.linalg.inv(s) @ y) > 9:
            self.rejected += 1
            return self.x
        k = self.p @ self.h.T @ np.linalg.inv(s)
        self.x = self.x + k @ y
        self.p = (np.eye(2) - k @ self.h) @ self.p
        return self.x


@method("extend", lambda r: (r.standard_normal(5),), 8)
class RingBuffer:
    def __init__(self, n):
        self.data, self.at, self.full = np.zeros(n), 0, False

    def extend(self, xs):
        for x in xs:
            self.data[self.at] = x
            self.at += 1
            if self.at == len(self.data):
                self.at, self.full = 0, True
        return self.ordered()

    def ordered(self):
        if not self.full:
            return self.data[: self.at].copy()
        return np.concatenate([self.data[self.at :], self.data[: self.at]])


class Biquad:
    def __init__(self, b, a):
        self.b, self.a = np.asarray(b), np.asarray(a)
        self.z = np.zeros(2)

    def process(self, x):
        out = np.empty_like(x)
        for i, v in enumerate(x):
            y = self.b[0] * v + self.z[0]
            self.z[0] = self.b[1] * v - self.a[0] * y + self.z[1]
            self.z[1] = self.b[2] * v - self.a[1] * y
            out[i] = y
        return out


@method("process", lambda r: (r.standard_normal(24),))
class FilterBank:
    def __init__(self):
        self.filters = [Biquad([0.2, 0.4, 0.2], [-0.3, 0.1]), Biquad([0.3, -0.6, 0.3], [0.2, 0.1])]
        self.peak = 0.0

    def process(self, x):
        out = np.stack([f.process(x) for f in self.filters])
        self.peak = max(self.peak, np.abs(out).max())
        if self.peak > 5:
            out = out / self.peak
        return out


@method("__call__", lambda r: (r.integers(0, 5, 3),))
class Memo:
    def __init__(self):
        self.known, self.misses = {}, 0

    def __call__(self, xs):
        key = tuple(xs.tolist())
        if key not in self.known:
            self.misses += 1
            self.known[key] = np.cumsum(xs) ** 2
        return self.known[key]


@method("run", lambda r: (r.standard_normal((10, 4)),))
class PIDController:
    def __init__(self):
        self.integral, self.last, self.saturated = np.zeros(4), None, 0

    def run(self, errors):
        out = []
        for e in errors:
            self.integral += e * 0.1
            derivative = np.zeros(4) if self.last is None else (e - self.last) / 0.1
            u = 2 * e + 0.5 * self.integral + 0.1 * derivative
            if np.abs(u).max() > 3:
                self.saturated += 1
                u = np.clip(u, -3, 3)
            self.last = e
            out.append(u)
        return np.array(out)


@dataclass
class Layer:
    w: np.ndarray
    b: np.ndarray
    cache: list = field(default_factory=list)

    def forward(self, x):
        self.cache.append(x)
        return np.maximum(x @ self.w + self.b, 0)

    def backward(self, gradient, lr=0.1):
        x = self.cache.pop()
        gradient = gradient * ((x @ self.w + self.b) > 0)
        back = gradient @ self.w.T
        self.w -= lr * x.T @ gradient
        self.b -= lr * gradient.sum(axis=0)
        return back


@method("train", lambda r: (r.standard_normal((12, 3)), r.standard_normal((12, 1))))
class Network:
    def __init__(self):
        rng = np.random.default_rng(3)
        sizes = [3, 5, 1]
        self.layers = [
            Layer(0.5 * rng.standard_normal(s), np.full(s[1], 0.1))
            for s in zip(sizes, sizes[1:], strict=False)
        ]
        self.losses = []

    def train(self, x, y):
        for _ in range(5):
            h = x
            for layer in self.layers:
                h = layer.forward(h)
            loss = np.mean((h - y) ** 2)
            self.losses.append(loss)
            gradient = 2 * (h - y) / len(y)
            for layer in reversed(self.layers):
                gradient = layer.backward(gradient)
            if loss < 1e-3:
                break
        return self.losses[-1]


@method("act", lambda r: (np.array([0.1, 0.5, 0.4]),))
class Bandit:
    def __init__(self):
        self.q, self.n = np.zeros(3), np.zeros(3, dtype=int)
        self.rng = np.random.default_rng(9)

    def act(self, rewards):
        chosen = []
        for _ in range(15):
            a = self.rng.integers(3) if self.rng.random() < 0.2 else np.argmax(self.q)
            self.n[a] += 1
            self.q[a] += (rewards[a] - self.q[a]) / self.n[a]
            chosen.append(int(a))
        return chosen
