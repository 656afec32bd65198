# mypy: ignore-errors
# ruff: noqa
import numpy as np


def source(n, seed):
    rng = np.random.default_rng(seed)
    for i in range(n):
        yield i, rng.normal(size=2)


def smooth(stream, a):
    s = None
    for i, x in stream:
        s = x if s is None else a * x + (1 - a) * s
        yield i, s


def detect(stream, thr):
    prev = None
    for i, x in stream:
        if prev is not None and np.linalg.norm(x - prev) > thr:
            got = yield i, x
            if got == "reset":
                prev = None
                continue
        prev = x


def run(n, thr, a):
    g = detect(smooth(source(n, 3), a), thr)
    out = []
    try:
        ev = next(g)
        while True:
            out.append(ev)
            ev = g.send("reset" if len(out) % 2 else None)
    except StopIteration:
        pass
    return out


def accumulate():
    total = 0.0
    while True:
        x = yield total
        if x is None:
            return
        total = total + np.sum(x)


def drive(chunks):
    c = accumulate()
    next(c)
    vals = [c.send(k) for k in chunks]
    c.close()
    return vals


def chain(x):
    def inner():
        r = yield from (v * 2 for v in x)
        return "done"

    res = yield from inner()
    yield res


CALLS = [
    ("run", lambda r: (8, 0.5, 0.5)),
    ("run", lambda r: (6, 0.1, r.random())),
    ("drive", lambda r: ([r.random(2), r.random(3)],)),
    ("chain", lambda r: (r.random(3),)),
    ("drive", lambda r: ([r.random(2), r.random((1, 3)), r.random(2)],)),
]
