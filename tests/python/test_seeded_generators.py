"""Random numbers of a generator that a function makes from a seed: what it computes of them is a
program, and their arrays can be written to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit


def in_place(x: Any) -> Any:
    w = np.random.default_rng(0).standard_normal(3)
    w -= 0.1 * x
    w[1:] += x[:2]
    return w


def in_a_loop(x: Any) -> Any:
    rng = np.random.default_rng(seed=1)
    w, b = rng.normal(size=(3, 2)) * 0.5, rng.uniform(size=2)
    for _ in range(20):
        h = np.tanh(x @ w + b)
        w -= 0.1 * np.outer(x, h)
        b -= 0.1 * h
    return w, b


def of_all_kinds(x: Any) -> Any:
    rng = np.random.default_rng(np.random.SeedSequence(5))
    order = rng.permutation(3)
    chosen = rng.choice(x.shape[0], 2, replace=False)
    numbers = rng.integers(0, 5, 3)
    numbers[chosen] += 1
    rng.shuffle(order)
    return x[order] * numbers, rng.random(), rng.random(dtype=np.float32), rng.exponential(2.0)


def of_traced_arrays(x: Any) -> Any:
    rng = np.random.default_rng(2)
    y = 2 * x
    rng.shuffle(y)
    return y, rng.permutation(y), rng.choice(y, 2), rng.choice(x), rng.random()


@pytest.mark.parametrize("function", [in_place, in_a_loop, of_all_kinds, of_traced_arrays])
def test_arrays_of_seeded_generators(function: Any) -> None:
    x = np.arange(1.0, 4.0)
    jitted = rune_jit.jit(function)
    for _ in range(3):
        assert_same(jitted(x), function(x), ulps=64, scaled=True)
    assert "as one program" in jitted.explain()


def test_single_numbers_are_pythons() -> None:
    def f(x: Any) -> Any:
        rng = np.random.default_rng(3)
        return x + 1, rng.choice(4), rng.integers(4), rng.choice([1.5, 2.5])

    for found, wanted in zip(rune_jit.jit(f)(np.ones(2))[1:], f(np.ones(2))[1:], strict=True):
        assert found == wanted
        assert type(found) is type(wanted)


def test_generators_that_are_returned_are_numpys() -> None:
    def f(x: Any) -> Any:
        rng = np.random.default_rng(3)
        return x + rng.random(3), rng

    jitted = rune_jit.jit(f)
    for _ in range(2):
        (values, rng), (expected, wanted) = jitted(np.ones(3)), f(np.ones(3))
        np.testing.assert_array_equal(values, expected)
        assert type(rng) is np.random.Generator
        assert rng.random() == wanted.random()


def test_generators_that_are_kept_are_numpys() -> None:
    class Noise:
        def __init__(self) -> None:
            self.rng = np.random.default_rng(7)

        def add(self, x: Any) -> Any:
            return x + self.rng.standard_normal(x.shape)

    @rune_jit.jit
    def f(x: Any) -> Any:
        return Noise().add(x)

    np.testing.assert_array_equal(f(np.ones(3)), Noise().add(np.ones(3)))
    held: dict[str, Any] = {}

    @rune_jit.jit
    def g(x: Any) -> Any:
        held["rng"] = np.random.default_rng(7)
        return x + held["rng"].random(3)

    for _ in range(3):
        np.testing.assert_array_equal(g(np.ones(3)), 1 + np.random.default_rng(7).random(3))
        assert type(held["rng"]) is np.random.Generator
