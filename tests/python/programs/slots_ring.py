# mypy: ignore-errors
# ruff: noqa
import numpy as np


class Ring:
    __slots__ = ("buf", "head", "full", "_n")

    def __init__(self, n, dtype=float):
        self.buf = np.zeros(n, dtype)
        self.head, self.full, self._n = 0, False, n

    def push(self, v):
        self.buf[self.head] = v
        self.head = (self.head + 1) % self._n
        if self.head == 0:
            self.full = True

    def extend(self, vs):
        for v in vs:
            self.push(v)

    @property
    def data(self):
        if self.full:
            return np.concatenate((self.buf[self.head :], self.buf[: self.head]))
        return self.buf[: self.head]

    def __len__(self):
        return self._n if self.full else self.head


ring = Ring(5)


def feed(x):
    ring.extend(x)
    d = ring.data
    return d.mean() if len(ring) else np.nan, len(ring), ring.head


def local(x, n, dtype):
    r = Ring(n, dtype)
    outs = []
    for v in x:
        r.push(v)
        if len(r) >= 2:
            outs.append(r.data.sum())
    return outs, r.data, r


CALLS = [
    ("feed", lambda r: (r.random(3),)),
    ("feed", lambda r: (r.random(4),)),
    ("local", lambda r: (r.random(6), 4, float)),
    ("local", lambda r: (r.integers(0, 300, 6), 3, np.uint8)),
    ("local", lambda r: (r.random(3), 4, "f4")),
    ("feed", lambda r: ([1, 2],)),
]
