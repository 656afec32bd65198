# mypy: ignore-errors
"""More programs such as those of user_programs.py: ciphers, hidden Markov models, splines, audio,
automatic differentiation."""

from __future__ import annotations

import numpy as np
from user_programs import PROGRAMS, program

__all__ = ["PROGRAMS"]  # with those of user_programs


@program(lambda r: (r.integers(0, 2**32, 40, dtype=np.uint32), np.uint32(0x9E3779B9)))
def tiny_encryption(words, delta):
    a, b = words.copy(), np.roll(words, 1)
    s = np.uint32(0)
    with np.errstate(over="ignore"):
        for _ in range(8):
            a += (((b << np.uint32(4)) ^ (b >> np.uint32(5))) + b) ^ (s + np.uint32(3))
            s = np.uint32(s + delta)
            b += (((a << np.uint32(4)) ^ (a >> np.uint32(5))) + a) ^ (s + np.uint32(5))
    return a, b, s


@program(
    lambda r: (
        r.random(3) + 0.1,
        r.random((3, 3)) + 0.1,
        r.random((3, 4)) + 0.1,
        r.integers(0, 4, 13),
    )
)
def forward_backward(start, transition, emission, observed):
    """Baum and Welch's expectations for a hidden Markov model."""
    transition = transition / transition.sum(1, keepdims=True)
    emission = emission / emission.sum(1, keepdims=True)
    steps = len(observed)
    alpha, beta, scale = np.zeros((steps, 3)), np.ones((steps, 3)), np.zeros(steps)
    for t, o in enumerate(observed):
        alpha[t] = (start / start.sum() if t == 0 else alpha[t - 1] @ transition) * emission[:, o]
        scale[t] = alpha[t].sum()
        alpha[t] /= scale[t]
    for t in reversed(range(steps - 1)):
        beta[t] = (transition * emission[:, observed[t + 1]]) @ beta[t + 1] / scale[t + 1]
    pairs = sum(
        np.outer(alpha[t], emission[:, observed[t + 1]] * beta[t + 1]) * transition / scale[t + 1]
        for t in range(steps - 1)
    )
    return alpha * beta, pairs, np.log(scale).sum()


@program(lambda r: (r.standard_normal(20), r.standard_normal(20)))
def cubic_spline(x, y):
    order = np.argsort(x)
    x, y = x[order], y[order]
    n, h = len(x), np.diff(x)
    a, b = np.zeros((n, n)), np.zeros(n)
    a[0, 0] = a[-1, -1] = 1
    for i in range(1, n - 1):
        a[i, i - 1 : i + 2] = h[i - 1], 2 * (h[i - 1] + h[i]), h[i]
        b[i] = 3 * ((y[i + 1] - y[i]) / h[i] - (y[i] - y[i - 1]) / h[i - 1])
    c = np.linalg.solve(a, b)
    at = np.linspace(x[0], x[-1], 9)
    k = np.clip(np.searchsorted(x, at) - 1, 0, n - 2)
    d = at - x[k]
    slope = (y[k + 1] - y[k]) / h[k] - h[k] * (2 * c[k] + c[k + 1]) / 3
    return y[k] + d * slope + c[k] * d**2 + (c[k + 1] - c[k]) / (3 * h[k]) * d**3


@program(lambda r: (r.random((129, 6)), 16000.0, 8))
def mel_spectrum(power, rate, bands):
    def mel(f):
        return 2595.0 * np.log10(1.0 + f / 700.0)

    points = 700.0 * (10.0 ** (np.linspace(mel(0), mel(rate / 2), bands + 2) / 2595.0) - 1.0)
    ramps = np.subtract.outer(points, np.fft.rfftfreq(256, 1 / rate))
    width = np.diff(points)
    weights = np.zeros((bands, len(power)))
    for i in range(bands):
        weights[i] = np.maximum(0, np.minimum(-ramps[i] / width[i], ramps[i + 2] / width[i + 1]))
    weights *= (2.0 / (points[2:] - points[:-2]))[:, np.newaxis]
    return 10 * np.log10(np.maximum(1e-10, weights @ power)), weights


class Value:
    """A number or an array, with its derivative."""

    def __init__(self, data, parents=()):
        self.data, self.grad, self.parents = data, 0.0, parents
        self.spread = lambda: None

    def __add__(self, other):
        out = Value(self.data + other.data, (self, other))

        def spread():
            self.grad += out.grad
            other.grad += out.grad

        out.spread = spread
        return out

    def __mul__(self, other):
        out = Value(self.data * other.data, (self, other))

        def spread():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out.spread = spread
        return out

    def tanh(self):
        t = np.tanh(self.data)
        out = Value(t, (self,))

        def spread():
            self.grad += (1 - t**2) * out.grad

        out.spread = spread
        return out

    def backward(self):
        order, seen = [], set()

        def visit(v):
            if v not in seen:
                seen.add(v)
                for parent in v.parents:
                    visit(parent)
                order.append(v)

        visit(self)
        self.grad = 1.0
        for v in reversed(order):
            v.spread()


@program(lambda r: (r.standard_normal(5), r.standard_normal(5), r.standard_normal(5)))
def automatic_differentiation(x, w, b):
    inputs, weights, bias = Value(x), Value(w), Value(b)
    y = ((inputs * weights + bias).tanh() * weights).tanh()
    y.backward()
    return y.data, inputs.grad, weights.grad, bias.grad
