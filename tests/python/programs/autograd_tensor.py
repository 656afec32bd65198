# mypy: ignore-errors
# ruff: noqa
import numpy as np


class Tensor:
    __array_priority__ = 100

    def __init__(self, data, parents=(), fn=None, requires_grad=False):
        self.data = np.asarray(data, dtype=np.float64)
        self.parents, self.fn = parents, fn
        self.grad = None
        self.requires_grad = requires_grad or any(p.requires_grad for p in parents)

    @staticmethod
    def lift(x):
        return x if isinstance(x, Tensor) else Tensor(x)

    def _unbroadcast(self, g):
        while g.ndim > self.data.ndim:
            g = g.sum(0)
        for ax, n in enumerate(self.data.shape):
            if n == 1 and g.shape[ax] != 1:
                g = g.sum(ax, keepdims=True)
        return g

    def __add__(self, o):
        o = Tensor.lift(o)
        return Tensor(self.data + o.data, (self, o), lambda g: (g, g))

    def __mul__(self, o):
        o = Tensor.lift(o)
        return Tensor(self.data * o.data, (self, o), lambda g: (g * o.data, g * self.data))

    def __matmul__(self, o):
        return Tensor(self.data @ o.data, (self, o), lambda g: (g @ o.data.T, self.data.T @ g))

    def __radd__(self, o):
        return self + o

    def __rmul__(self, o):
        return self * o

    def __sub__(self, o):
        return self + Tensor.lift(o) * -1.0

    def __rsub__(self, o):
        return Tensor.lift(o) - self

    def __pow__(self, n):
        return Tensor(self.data**n, (self,), lambda g: (g * n * self.data ** (n - 1),))

    def exp(self):
        e = np.exp(self.data)
        return Tensor(e, (self,), lambda g: (g * e,))

    def sum(self, axis=None):
        def back(g):
            return (
                np.broadcast_to(g if axis is None else np.expand_dims(g, axis), self.data.shape),
            )

        return Tensor(self.data.sum(axis=axis), (self,), back)

    def backward(self):
        order, seen = [], set()

        def visit(t):
            if id(t) in seen:
                return
            seen.add(id(t))
            for p in t.parents:
                visit(p)
            order.append(t)

        visit(self)
        self.grad = np.ones_like(self.data)
        for t in reversed(order):
            if t.fn is None:
                continue
            for p, g in zip(t.parents, t.fn(t.grad)):
                g = p._unbroadcast(g)
                p.grad = g if p.grad is None else p.grad + g

    def __repr__(self):
        return f"Tensor({self.data.shape})"


def loss(w, b, x, y):
    W, B = Tensor(w, requires_grad=True), Tensor(b, requires_grad=True)
    z = x @ W if isinstance(x, Tensor) else Tensor(x) @ W
    out = ((z + B).exp() - y) ** 2
    l = out.sum() * (1 / len(y))
    l.backward()
    return float(l.data), W.grad, B.grad, repr(W)


def reflected(a, b):
    return (a * Tensor(b)).data, (a - Tensor(b)).data, type(a + Tensor(b)).__name__


CALLS = [
    (
        "loss",
        lambda r: (
            r.normal(size=(3, 2)),
            r.normal(size=2),
            r.normal(size=(5, 3)),
            r.normal(size=(5, 2)),
        ),
    ),
    ("reflected", lambda r: (r.random(3), r.random(3))),
    (
        "loss",
        lambda r: (
            r.normal(size=(2, 1)),
            np.zeros(1),
            r.normal(size=(4, 2)),
            r.normal(size=(4, 1)),
        ),
    ),
    ("reflected", lambda r: (2.0, r.random(3))),
    ("reflected", lambda r: (np.float64(2.0), r.random(2))),
]
