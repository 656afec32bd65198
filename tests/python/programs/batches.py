# mypy: ignore-errors
# ruff: noqa
import math
import numpy as np
from collections import Counter


def sgd(X, y, batch, epochs, seed, lr=0.1):
    rng = np.random.default_rng(seed)
    w = np.zeros(X.shape[1])
    hist = []
    for e in range(epochs):
        order = rng.permutation(len(X))
        for s in range(0, len(X), batch):
            idx = order[s : s + batch]
            g = 2 * X[idx].T @ (X[idx] @ w - y[idx]) / len(idx)
            w -= lr * g
        hist.append(float(((X @ w - y) ** 2).mean()))
        if len(hist) > 1 and hist[-1] > hist[-2]:
            lr *= 0.5
    return w, hist, lr


def gcd_loop(x):
    g = 0
    for v in x:
        g = math.gcd(g, int(v))
        if g == 1:
            break
    return g


CALLS = [
    ("sgd", lambda r: (r.normal(size=(10, 2)), r.random(10), 3, 4, 7)),
    ("gcd_loop", lambda r: (r.integers(1, 20, 6) * 6,)),
]
