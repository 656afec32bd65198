"""Loops that draw from generators which the function makes from known seeds: loops of the program
that has the numbers (capture/draws.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from loop_checks import both, rolled

import rune_jit

X = np.random.default_rng(1).normal(size=(70, 3))
Y = np.random.default_rng(2).integers(0, 2, 70)


class Dense:
    def __init__(self, inputs: int, outputs: int, rng: Any) -> None:
        self.weights = rng.normal(0, 0.1, (inputs, outputs))

    def forward(self, x: Any) -> Any:
        self.x = x
        return x @ self.weights

    def backward(self, gradient: Any) -> Any:
        self.change = self.x.T @ gradient
        return gradient @ self.weights.T

    def step(self, rate: float) -> None:
        self.weights -= rate * self.change


def epochs_of_layers(x: Any, y: Any, seed: int, epochs: int) -> Any:
    rng = np.random.default_rng(seed)
    layers, losses = [Dense(3, 4, rng), Dense(4, 2, rng)], []
    for _ in range(epochs):
        order, total = rng.permutation(len(x)), 0.0
        for start in range(0, len(x), 16):
            batch = order[start : start + 16]
            out = x[batch]
            for layer in layers:
                out = layer.forward(out)
            gradient = out - np.eye(2)[y[batch]]
            total += (gradient**2).sum()
            for layer in reversed(layers):
                gradient = layer.backward(gradient / len(batch))
            for layer in layers:
                layer.step(0.1)
        losses.append(total)
    return losses, layers[0].weights, rng.random()


def test_epochs_in_random_order() -> None:
    rolled(epochs_of_layers, X, Y, 7, 6, ulps=2**12)


def test_compilation_does_not_grow_with_the_epochs() -> None:
    few, many = (rune_jit.jit(epochs_of_layers).lower(X, Y, 7, n) for n in (5, 50))
    assert len(few.kernels) == len(many.kernels)


def test_kinds_of_numbers() -> None:
    def f(n: int) -> Any:
        rng = np.random.default_rng(3)
        found, flips = np.zeros(n), 0
        for i in range(n):
            step = rng.normal(0.0, i + 1.0)
            flips += int(rng.integers(2)) if rng.random() < 0.5 else 0
            row = rng.uniform(-1, 1, size=3)
            row[0] = step
            found[i] = row.sum() + rng.standard_normal(2, dtype=np.float32)[1]
        return found, flips, rng.integers(0, 100, 4)

    def backwards(n: int) -> Any:
        rng = np.random.default_rng(4)
        found = []
        for i in range(n, 0, -1):
            found.append(rng.random() * i)
        return found, rng.random()

    both(f, 40)
    rolled(backwards, 30)


def test_shuffled_arrays() -> None:
    def f(x: Any, n: int) -> Any:
        rng = np.random.default_rng(5)
        for _ in range(n):
            rng.shuffle(x)
            x[0] += rng.choice(x) * rng.permutation(3)
        return x, rng.random()

    rolled(f, X, 30, ulps=64)


def test_several_generators_and_attributes() -> None:
    class Source:
        def __init__(self, seed: int) -> None:
            self.rng = np.random.default_rng(seed)

    def f(x: Any, n: int) -> Any:
        first, second = np.random.default_rng(1), Source(2)
        for _ in range(n):
            x = x * first.random() + second.rng.normal(size=3)
        return x, first.random(), second.rng.random()

    rolled(f, X, 30, ulps=64)


def test_an_object_may_change_in_the_first_iteration() -> None:
    class State:
        pass

    def f(x: Any, n: int) -> Any:
        rng, state = np.random.default_rng(5), State()
        for i in range(n):
            state.last = x[i % 70] * rng.random()
            state.count = i
        return state.last, state.count, rng.random()

    both(f, X, 20)


def test_loops_in_loops() -> None:
    def paths(n: int) -> Any:
        rng = np.random.default_rng(8)
        ends = np.zeros(n)
        for i in range(n):
            x = rng.normal()
            for k in range(20):
                x += 0.1 * rng.standard_normal() + rng.random(2)[1] * k
            for _ in range(2):
                x -= rng.random()
            ends[i] = x + rng.integers(5)
        return ends, rng.random()

    def deeper(x: Any) -> Any:
        rng = np.random.default_rng(9)
        for i in range(5):
            for j in range(2):
                for k in range(6):
                    x[i, k % 3] += rng.random() * (j + 1)
            x[i] += rng.normal(size=3)
        return x, rng.random()

    rolled(paths, 10, ulps=64)
    both(paths, 120, ulps=64)
    both(deeper, X, ulps=64)


def conditional(x: Any, n: int) -> Any:
    rng = np.random.default_rng(6)
    for i in range(n):
        if x[i, 0] > 0:
            x[i] += rng.random()
    return x, rng.random()


def until(x: Any, n: int) -> Any:
    rng = np.random.default_rng(6)
    for i in range(n):
        x[i] += rng.random()
        if x[i, 1] > 1.5:
            break
    return x, i, rng.random()


def nested(x: Any, n: int) -> Any:
    rng = np.random.default_rng(6)
    for i in range(n):
        for k in range(3):
            x[i, k] += rng.random()
    return x, rng.random()


def in_a_function(x: Any, n: int) -> Any:
    rng = np.random.default_rng(6)

    def step(row: Any) -> Any:
        return row + rng.random()

    for i in range(n):
        x[i] = step(x[i]) * rng.random()
    return x, rng.random()


def passed_on(x: Any, n: int) -> Any:
    def step(row: Any, source: Any) -> Any:
        return row + source.random()

    rng = np.random.default_rng(6)
    for i in range(n):
        x[i] = step(x[i], rng) + rng.random()
    return x, rng.random()


def by_data(x: Any, n: int) -> Any:
    rng = np.random.default_rng(6)
    for i in range(n):
        x[i] += rng.random(int(abs(x[i, 0])) + 1).sum()
    return x, rng.random()


@pytest.mark.parametrize(
    "function", [conditional, until, nested, in_a_function, passed_on, by_data]
)
@pytest.mark.parametrize("n", [1, 5, 60])
def test_other_draws(function: Any, n: int) -> None:
    both(function, X, n, ulps=64)
