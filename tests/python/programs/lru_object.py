# mypy: ignore-errors
# ruff: noqa
import numpy as np
from functools import cached_property, total_ordering


@total_ordering
class Spectrum:
    def __init__(self, wl, flux, *, name="s"):
        if len(wl) != len(flux):
            raise ValueError(f"lengths differ: {len(wl)} and {len(flux)}")
        self.wl = np.array(wl, dtype=float)
        self.flux = np.array(flux, dtype=float)
        self.name = name

    @cached_property
    def total(self):
        return np.trapezoid(self.flux, self.wl)

    def __add__(self, o):
        if not isinstance(o, Spectrum):
            return NotImplemented
        return Spectrum(
            self.wl, self.flux + np.interp(self.wl, o.wl, o.flux), name=f"{self.name}+{o.name}"
        )

    def __mul__(self, k):
        return Spectrum(self.wl, self.flux * k, name=self.name)

    __rmul__ = __mul__

    def __eq__(self, o):
        return self.total == o.total

    def __lt__(self, o):
        return self.total < o.total

    def __len__(self):
        return len(self.wl)

    def __getitem__(self, s):
        return Spectrum(self.wl[s], self.flux[s], name=self.name)

    def __iter__(self):
        return zip(self.wl, self.flux)

    def __repr__(self):
        return f"<Spectrum {self.name} n={len(self)} total={self.total:.3f}>"

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.flux, dtype)

    def __bool__(self):
        return bool(self.flux.any())


def main(wl, f1, f2, k):
    a, b = Spectrum(wl, f1, name="a"), Spectrum(wl, f2, name="b")
    c = a + k * b
    best = max([a, b, c])
    print(best, sorted([c, a, b])[0].name)
    peak = max(c, key=lambda p: p[1])
    return c, float(np.sum(c)), c[1:3], peak, bool(c), np.asarray(b) + 1


def bad(wl, f):
    return Spectrum(wl, f) + 3


CALLS = [
    ("main", lambda r: (np.linspace(0, 1, 6), r.random(6), r.random(6), 2)),
    ("main", lambda r: (np.linspace(0, 1, 4), r.random(4), r.random(4), 0.5)),
    ("main", lambda r: ([0, 1], r.random(3), [1, 2], 1)),
    ("bad", lambda r: ([0.0, 1.0], [1, 2])),
]
