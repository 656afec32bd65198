"""An attribute may have the name of a global variable that the function does not use."""

import itertools

import numpy as np
import pytest
from compare import assert_same

import rune_jit
from rune_jit.calls.trial import Trial


class Layer:
    def __init__(self, w, b):
        self.w, self.b = w, b

    def forward(self, x):
        self.x = x
        return np.tanh(x @ self.w + self.b)

    def backward(self, g, y, rate):
        g = g * (1 - y**2)
        back = g @ self.w.T
        self.w -= rate * (self.x.T @ g)
        self.b -= rate * g.sum(0)
        return back


class Net:
    def __init__(self, *sizes):
        rng = np.random.default_rng(1)
        pairs = itertools.pairwise(sizes)
        self.layers = [Layer(rng.normal(size=(m, n)), np.zeros(n)) for m, n in pairs]
        self.losses = []

    def step(self, x, target):
        ys = [x]
        for layer in self.layers:
            ys.append(layer.forward(ys[-1]))
        g = ys[-1] - target
        self.losses.append(float((g**2).mean()))
        for layer, y in zip(reversed(self.layers), reversed(ys[1:]), strict=True):
            g = layer.backward(g, y, 0.01)
        return self.losses[-1]


# (Their names are those of attributes of Layer and Net.)
b = Net(8, 16, 1)
x = losses = np.arange(3.0)


def test_a_step_of_a_network_is_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)
    inputs = np.random.default_rng(0).normal(size=(32, 8))
    ours, step = Net(8, 16, 1), rune_jit.jit(Net.step)
    for k in range(6):
        x[:] = k  # (no guard of the program)
        found, wanted = step(ours, inputs, inputs[:, :1]), b.step(inputs, inputs[:, :1])
        assert found == pytest.approx(wanted)
    for layer, other in zip(ours.layers, b.layers, strict=True):
        assert_same([layer.w, layer.b, layer.x], [other.w, other.b, other.x], ulps=1000)
    info = step.cache_info()
    assert (info.misses, info.fallbacks, info.segmented) == (2, 0, 0), step.explain()
