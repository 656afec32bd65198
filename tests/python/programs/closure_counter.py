# mypy: ignore-errors
# ruff: noqa
import numpy as np


def make_ema(a):
    s, n = None, 0

    def update(x):
        nonlocal s, n
        n += 1
        s = np.array(x, float) if s is None else (1 - a) * s + a * x
        return s / (1 - (1 - a) ** n)

    def reset():
        nonlocal s, n
        s, n = None, 0

    update.reset = reset
    update.state = lambda: (s, n)
    return update


FILTERS = {"ema": make_ema(0.3)}


def feed(xs):
    ema = FILTERS["ema"]
    outs = [ema(x) for x in xs]
    st = ema.state()
    if st[1] > 6:
        ema.reset()
    return outs, st


def schedule(kind, **kw):
    if kind == "step":
        return lambda t: kw["lr"] * kw.get("gamma", 0.5) ** (t // kw["every"])
    if kind == "cos":
        return lambda t: kw["lr"] * 0.5 * (1 + np.cos(np.pi * t / kw["T"]))
    return lambda t: kw["lr"]


def opt(x, kind, n, kw):
    lr = schedule(kind, **kw)
    path = [x.copy()]
    for t in range(n):
        x -= lr(t) * (2 * x + np.sin(5 * x))
        path.append(x)
    return path, [float(lr(t)) for t in range(n)], x is path[-1]


CALLS = [
    ("feed", lambda r: ([r.random(2), r.random(2)],)),
    ("feed", lambda r: ([r.random(2)] * 3,)),
    ("opt", lambda r: (r.random(3), "step", 4, dict(lr=0.1, every=2))),
    ("opt", lambda r: (r.random(3), "cos", 3, dict(lr=0.2, T=5))),
    ("opt", lambda r: (r.random(2), "const", 2, dict(lr=1))),
    ("opt", lambda r: (r.random(2), "step", 2, dict(lr=1))),
]
