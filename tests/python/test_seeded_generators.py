"""Random numbers of a generator that a function makes from a seed: what it computes of them is a
program, and their arrays can be written to."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit
from rune_jit import UnsupportedOpError


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


def of_old_generators(x: Any) -> Any:
    rng = np.random.RandomState(4)
    w = rng.randn(3, 2)
    w[0] = x[:2]
    total = 0.0
    for i in range(x.shape[0]):
        total = total + w[i, 0] * rng.rand() + rng.randint(5)
    return w, total, rng.permutation(3), rng.choice(x, 2), isinstance(rng, np.random.RandomState)


@pytest.mark.parametrize(
    "function", [of_old_generators, in_place, in_a_loop, of_all_kinds, of_traced_arrays]
)
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


class Weights:
    def __init__(self, size: int, seed: int | None) -> None:
        self.rng = np.random.RandomState(seed)
        self.w = self.rng.randn(size)


_OF_THE_SYSTEM: dict[str, Callable[[Any], Any]] = {
    "RandomState": lambda x: x + np.random.RandomState().rand(),
    "RandomState of None": lambda x: x + np.random.RandomState(seed=None).rand(),
    "default_rng": lambda x: x + np.random.default_rng().random(),
    "PCG64": lambda x: x + np.random.Generator(np.random.PCG64()).random(),
    "SeedSequence": lambda x: x + np.random.default_rng(np.random.SeedSequence()).random(),
    "random.Random": lambda x: x + random.Random().random(),
    "random.SystemRandom": lambda x: x + random.SystemRandom().random(),
    "secrets": lambda x: x + secrets.randbelow(1 << 40),
    "an object": lambda x: x + Weights(x.shape[0], None).w,
}


@pytest.mark.parametrize("name", list(_OF_THE_SYSTEM))
def test_numbers_without_a_seed_differ_from_call_to_call(name: str) -> None:
    jitted = rune_jit.jit(_OF_THE_SYSTEM[name], fallback="silent")
    found = {float(jitted(np.zeros(1))[0]) for _ in range(5)}
    assert len(found) == 5


def test_objects_with_a_seeded_generator() -> None:
    def f(x: Any) -> Any:
        made = Weights(x.shape[0], 3)
        for i in range(x.shape[0]):
            made.w[i] += x[i] * made.rng.uniform()
        return made.w, random.Random(7).random()

    jitted = rune_jit.jit(f)
    for _ in range(3):
        assert_same(jitted(np.arange(9.0)), f(np.arange(9.0)), ulps=64, scaled=True)
    assert "as one program" in jitted.explain()


def test_the_state_of_an_old_generator() -> None:
    def f(x: Any) -> Any:
        rng = np.random.RandomState(1)
        total = 0.0
        for i in range(x.shape[0]):
            total = total + rng.rand() * x[i]
            if i == 2:
                rng.seed(5)
        return total, rng.get_state()[1][:3], rng.rand()

    assert_same(rune_jit.jit(f)(np.ones(5)), f(np.ones(5)), ulps=64, scaled=True)


def of_many_draws(x: Any, seed: Any) -> Any:
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(3, 2))
    weights[0] = 0
    state, count, path = 0.0, 0, np.zeros(200)
    for i in range(200):
        new = state + rng.normal()
        if new * new < state * state or rng.random() < 0.3:
            state, count = new, count + 1
        path[i] = state + x[i % 3]
    return path, count, weights, rng.integers(9, size=4), rng.random()


def of_an_old_generator(x: Any, seed: Any) -> Any:
    rng = np.random.RandomState(seed)
    order = rng.permutation(x.shape[0])
    for i in range(x.shape[0]):
        j = rng.randint(0, x.shape[0])
        x[i], x[j] = x[j], x[i] + rng.randn()
    return x, order, rng.uniform(-1, 1, 3)


def of_pythons(x: Any, seed: Any) -> Any:
    rng = random.Random(seed)
    made = np.zeros(1200)
    for i in range(1200):
        made[i] = x[0] + rng.random() if rng.random() < 0.3 else rng.uniform(0, 2)
    return made, rng.random()


def of_two(x: Any, seed: Any) -> Any:
    first, second = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    total = 0.0
    for i in range(30):
        total = total + second.normal() if first.random() < 0.5 else total - x[i % 3]
    return total


def of_made_seeds(x: Any, seed: Any) -> Any:
    sequence = np.random.SeedSequence((seed, 3))
    first, second = np.random.default_rng(sequence), np.random.default_rng(sequence)
    third = np.random.Generator(np.random.PCG64(seed))
    old = np.random.RandomState(np.random.MT19937(seed))
    total = first.normal() - second.normal() + old.rand()
    for i in range(30):
        total = total + third.normal() if third.random() < 0.5 else total - x[i % 3]
    return total, isinstance(sequence, np.random.SeedSequence)


_OF_ARGUMENTS = [of_many_draws, of_an_old_generator, of_pythons, of_two, of_made_seeds]


@pytest.mark.parametrize("function", _OF_ARGUMENTS)
def test_seeds_of_arguments_share_a_program(function: Any) -> None:
    jitted = rune_jit.jit(function)
    for seed in (1, 1, 2, 3, 4, 5, 2**31):
        x = np.linspace(1, 2, 3)
        assert_same(jitted(x.copy(), seed), function(x.copy(), seed), ulps=64, scaled=True)
    assert jitted.cache_info().misses == 1 and "in segments" not in jitted.explain()


def of_children(x: Any, seed: Any) -> Any:
    made = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2)]
    return x + made[0].random(3) + made[1].normal(size=3)


def of_one_bit_generator(x: Any, seed: Any) -> Any:
    bits = np.random.PCG64(seed)
    first, second = np.random.Generator(bits), np.random.Generator(bits)
    return x + first.random(3) + second.normal(size=3)


@pytest.mark.parametrize("function", [of_children, of_one_bit_generator])
def test_seeds_that_are_constants(function: Any) -> None:
    jitted = rune_jit.jit(function)
    for seed in (1, 2, 1, 2):
        x = np.linspace(1, 2, 3)
        assert_same(jitted(x, seed), function(x, seed), ulps=64, scaled=True)
    assert "in segments" not in jitted.explain()


def test_seeds_in_segments() -> None:
    def f(x: Any, seed: int) -> Any:
        return x + np.random.default_rng(seed).normal(size=3), np.unique(x)

    jitted = rune_jit.jit(f)
    for seed in range(6):
        x = np.linspace(1, 2, 3)
        assert_same(jitted(x, seed), f(x, seed), ulps=64, scaled=True)
    assert jitted.cache_info().misses == 3  # (later seeds share the last entry)


@pytest.mark.parametrize("seed", [-1, 1.5])
def test_seeds_that_are_wrong(seed: Any) -> None:
    x, jitted = np.ones(3), rune_jit.jit(of_many_draws)
    jitted(x, 1)
    with pytest.raises((TypeError, ValueError)) as expected:
        of_many_draws(x, seed)
    with pytest.raises(expected.type) as found:
        jitted(x, seed)
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("function", _OF_ARGUMENTS)
def test_seeds_that_are_known(function: Any) -> None:
    jitted = rune_jit.jit(lambda x: function(x, 11))
    for _ in range(3):
        x = np.linspace(1, 2, 3)
        assert_same(jitted(x.copy()), function(x.copy(), 11), ulps=64, scaled=True)
    assert "as one program" in jitted.explain() and "unrolled" not in jitted.explain()


class Noisy:
    def __init__(self, seed: int) -> None:
        self.rng, self.count = np.random.default_rng(seed), 0

    def __call__(self, x: Any) -> Any:
        self.count += 1
        return x + self.rng.normal(size=x.shape)


def test_seeds_that_decide_more() -> None:
    def f(x: Any, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        size = rng.integers(2, 5)
        made = [rng.random() for _ in range(seed % 4)]
        each = np.zeros(4)
        for i in range(4):
            each[i] = np.random.default_rng(i).random() * x[0]
        noisy = Noisy(seed)
        return np.zeros(size), made, each, noisy(noisy(x)), noisy.count

    def given(x: Any, seed: int) -> Any:
        noisy = Noisy(seed)
        return noisy(x), noisy

    jitted, giving = rune_jit.jit(f, fallback="silent"), rune_jit.jit(given, fallback="silent")
    for seed in (1, 2, 3, 1, 1):
        x = np.arange(3.0)
        assert_same(jitted(x, seed), f(x, seed), ulps=64, scaled=True)
        (actual, made), (expected, noisy) = giving(x, seed), given(x, seed)
        assert_same((actual, made(x), made.count), (expected, noisy(x), noisy.count))
        assert type(made.rng) is np.random.Generator


def test_a_computed_seed_in_a_list_is_refused() -> None:
    @rune_jit.jit(fallback="error")
    def f(x: np.ndarray) -> np.ndarray:
        return np.random.default_rng([x[0] + 1]).random(2)

    with pytest.raises(UnsupportedOpError, match="cannot trace a seed that the function computes"):
        f(np.arange(3))
