# mypy: ignore-errors
# ruff: noqa
import numpy as np


def make_mlp(sizes, seed):
    rng = np.random.default_rng(seed)
    W = [rng.normal(size=(a, b)) / np.sqrt(a) for a, b in zip(sizes, sizes[1:])]
    b = [np.zeros(n) for n in sizes[1:]]
    count = 0

    def forward(x):
        acts = [x]
        for i, (w, c) in enumerate(zip(W, b)):
            x = x @ w + c
            if i < len(W) - 1:
                x = np.tanh(x)
            acts.append(x)
        return acts

    def step(x, y, lr=0.05):
        nonlocal count
        count += 1
        acts = forward(x)
        d = 2 * (acts[-1] - y) / y.size
        for i in range(len(W) - 1, -1, -1):
            gW, gb = acts[i].T @ d, d.sum(0)
            if i:
                d = d @ W[i].T * (1 - acts[i] ** 2)
            W[i] -= lr * gW
            b[i] -= lr * gb
        return np.mean((acts[-1] - y) ** 2), count

    return forward, step, (W, b)


forward, step, params = make_mlp([2, 5, 1], 0)


def train(x, y, n):
    hist = [step(x, y)[0] for _ in range(n)]
    return hist, forward(x)[-1].ravel(), params


CALLS = [
    ("train", lambda r: (r.normal(size=(6, 2)), r.normal(size=(6, 1)), 3)),
    ("train", lambda r: (r.normal(size=(4, 2)), r.normal(size=(4, 1)), 5)),
]
