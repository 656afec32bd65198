# mypy: ignore-errors
# ruff: noqa
import math
import numpy as np


class Dual:
    def __init__(self, a, b=0.0):
        self.a, self.b = a, b

    def _of(x):
        return x if isinstance(x, Dual) else Dual(x)

    def __add__(self, o):
        o = Dual._of(o)
        return Dual(self.a + o.a, self.b + o.b)

    __radd__ = __add__

    def __sub__(self, o):
        o = Dual._of(o)
        return Dual(self.a - o.a, self.b - o.b)

    def __rsub__(self, o):
        return Dual._of(o) - self

    def __mul__(self, o):
        o = Dual._of(o)
        return Dual(self.a * o.a, self.a * o.b + self.b * o.a)

    __rmul__ = __mul__

    def __truediv__(self, o):
        o = Dual._of(o)
        return Dual(self.a / o.a, (self.b * o.a - self.a * o.b) / (o.a * o.a))

    def __pow__(self, n):
        return Dual(self.a**n, n * self.a ** (n - 1) * self.b)

    def sin(self):
        return Dual(np.sin(self.a), np.cos(self.a) * self.b)


def newton_dual(x0, tol=1e-10):
    x = x0
    for k in range(30):
        f = Dual(x, 1.0) ** 3 - 2 * Dual(x, 1.0) - 5 + Dual(x, 1.0).sin() / 2
        step = f.a / f.b
        x = x - step
        if np.all(np.abs(step) < tol):
            break
    return x, k


class Quat:
    def __init__(self, w, x, y, z):
        self.q = np.array([w, x, y, z], dtype=float)

    def __mul__(self, o):
        a, b, c, d = self.q
        e, f, g, h = o.q
        return Quat(
            a * e - b * f - c * g - d * h,
            a * f + b * e + c * h - d * g,
            a * g - b * h + c * e + d * f,
            a * h + b * g - c * f + d * e,
        )

    @property
    def norm(self):
        return np.linalg.norm(self.q)

    def conj(self):
        return Quat(*(self.q * [1, -1, -1, -1]))

    def __getattr__(self, name):
        if name in "wxyz" and len(name) == 1:
            return self.q["wxyz".index(name)]
        raise AttributeError(f"Quat has no {name}")


def rotate(points, axis, angle):
    s = math.sin(angle / 2)
    q = Quat(math.cos(angle / 2), *(s * axis / np.linalg.norm(axis)))
    out = np.empty_like(points, dtype=float)
    for i, p in enumerate(points):
        r = q * Quat(0, *p) * q.conj()
        out[i] = r.x, r.y, r.z
    return out, q.norm


CALLS = [
    ("newton_dual", lambda r: (2.0 + r.random(),)),
    ("newton_dual", lambda r: (2.0 + r.random(4),)),
    ("rotate", lambda r: (r.random((3, 3)), r.random(3), 0.7)),
    ("rotate", lambda r: (r.random((3, 3)), [1.0, 2.0, 0.5], 0.3)),
]
