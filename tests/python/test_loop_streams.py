"""Random numbers that loops of programs make of a generator's words (capture/loops/streams.py)."""

from __future__ import annotations

import random

import numpy as np
import pytest
from test_loop_draws import check, never_numpy, rng

import rune_jit
from rune_jit.capture.loops import samplers, streams

__all__ = ["never_numpy", "rng"]
SPINS = np.random.default_rng(2).choice([-1, 1], (6, 6))


def ising(s, beta, sweeps, rng):
    n = s.shape[0]
    magnetization = []
    for _ in range(sweeps):
        for _ in range(n * n):
            i, j = rng.integers(n), rng.integers(0, n)
            around = s[(i + 1) % n, j] + s[i, (j + 1) % n] + s[i - 1, j] + s[i, j - 1]
            cost = 2 * s[i, j] * around
            if cost <= 0 or rng.random() < np.exp(-cost * beta):
                s[i, j] *= -1
        magnetization.append(abs(s.mean()))
    return magnetization, s


def annealing(x, n, rng):
    value = np.sum(x**2 - 10 * np.cos(2 * np.pi * x))
    best, temperature = value, 10.0
    for _ in range(n):
        i = rng.integers(len(x))
        old = x[i]
        x[i] = old + rng.normal(0, 0.5)
        new = np.sum(x**2 - 10 * np.cos(2 * np.pi * x))
        if new < value or rng.random() < np.exp(-(new - value) / temperature):
            value = new
            best = min(best, value)
        else:
            x[i] = old
        temperature *= 0.999
    return x, best


def first_passages(n, p, rng):
    times = np.zeros(n)
    for i in range(n):
        t = x = 0
        while x < 5 and t < 1000:
            x += 1 if rng.random() < p else -1
            t += 1
        times[i] = t
    return times


def drifting(n, rng):
    x = 0.0
    for _ in range(n):
        x = rng.normal(0.9 * x, scale=0.1) + rng.uniform(-abs(x), high=1.0)
        x -= rng.standard_normal()
    return x


def choosing(data, n, rng):
    path = np.zeros((n, 2))
    for i in range(1, n):
        path[i] = path[i - 1]
        path[i, rng.choice(2)] += rng.choice([-1, 1]) * rng.choice(data)
    return path


def summing(n, rng):
    total = 0.0
    for _ in range(n):
        if total >= 0:
            total += rng.random()
    return total


def older(x, n):
    for i in range(n):
        if x[i % 3] < np.random.rand():
            x[i % 3] += np.random.randn()
        else:
            x[i % 3] -= np.random.uniform(0.5, 1.5) * np.random.randint(3)
        x[i % 3] += np.random.normal(0.1 * i, 0.5) * np.random.choice([0.5, 2.0])
        x[np.random.choice(3)] *= np.random.random()
    return x


def pythons(x, n):
    for i in range(n):
        if x[i % 3] < random.random():
            x[i % 3] += random.uniform(-1, abs(x[0]))
        else:
            x[random.randrange(3)] -= random.randint(1, 6) * random.choice(x) * 0.1
        x[random.randrange(1, 3)] *= 0.5
    return x


def test_draws_under_conditions(rng):
    check(ising, SPINS, 0.4, 30, generator=rng)
    check(annealing, np.array([1.5, -0.5, 2.0]), 400, generator=rng)
    check(first_passages, 120, 0.55, generator=rng)


def test_arguments_that_the_loop_changes(rng):
    check(drifting, 200, generator=rng)
    check(choosing, np.array([0.5, 1.5]), 150, generator=rng)


def test_older_generators_and_pythons():
    check(older, np.zeros(3), 150)
    check(pythons, np.ones(3), 150)


def test_more_words_than_at_first(rng, monkeypatch):
    monkeypatch.setattr(streams, "FIRST_WORDS", 64)
    check(ising, SPINS, 0.4, 10, generator=rng)
    check(first_passages, 120, 0.55, generator=rng)


def test_a_loop_is_given_at_most_twice_the_words_that_it_takes(rng, monkeypatch):
    counts, begin = [], streams._Pcg.begin
    monkeypatch.setattr(streams._Pcg, "begin", lambda self, n: counts.append(n) or begin(self, n))
    check(summing, 20_000, generator=rng)
    assert counts[0] < 20_000 <= max(counts) <= 40_000


def test_growing_lists_get_their_items_once(rng, monkeypatch):
    monkeypatch.setattr(streams, "FIRST_WORDS", 64)

    def accepted(n, rng):
        found = []
        for i in range(n):
            x = rng.random()
            if x < 0.3:
                found.append((i, x))
        return found

    check(accepted, 200, generator=rng)


def test_what_a_loop_raises(rng):
    def failing(x, n, rng):
        for i in range(n):
            x[i] = rng.random()
            if rng.random() < 0.2:
                x[0] += rng.standard_normal()
        return x

    def invalid(n, rng):
        s = 1.0
        for i in range(n):
            s = rng.normal(s, 100 - i) * 1e-3
        return s

    check(failing, np.zeros(120), 130, generator=rng)
    check(invalid, 130, generator=rng)


def test_two_names_of_a_generator_and_two_generators(rng):
    other = np.random.default_rng(9)

    def mixed(n, rng):
        again = rng
        s = 0.0
        for _ in range(n):
            if again.random() < 0.5:
                s += rng.integers(10)
            s = 0.5 * s + other.random()
        return s

    jitted = rune_jit.jit(mixed)
    for seed in range(3):
        states = np.random.PCG64(seed).state, np.random.PCG64(seed + 10).state
        found = []
        for function in (mixed, jitted):
            rng.bit_generator.state, other.bit_generator.state = states
            found.append((function(200, rng), repr(rng.bit_generator.state)))
            found[-1] += (repr(other.bit_generator.state),)
        assert found[0][0] == pytest.approx(found[1][0], rel=1e-14)
        assert found[0][1:] == found[1][1:]


def test_state_that_a_loop_begins_with(rng):
    """A generator may hold the half of a word, or the second of two normal numbers."""

    def halves(n, rng):
        s = rng.integers(10) * 1.0
        for _ in range(n):
            if s > -1:
                s = s * 0.5 + rng.integers(100)
        return s, rng.integers(1000)

    def pairs(n):
        s = np.random.randn()
        for _ in range(n):
            if s > -100:
                s = s * 0.5 + np.random.randn()
        return s, np.random.randn()

    check(halves, 151, generator=rng)
    check(halves, 152, generator=rng)
    check(pairs, 151)
    check(pairs, 152)


def numbers_of(name, words, held, args):
    at = np.zeros(2, np.int64)
    sampler = getattr(samplers, name)
    return [sampler(words, at, held, *args) for _ in range(2000)], at


ARGUMENTS = {
    "uniform": [(), (1, 3), (-2.5,)],
    "integers": [(7,), (-5, 1000), (3 * 2**30,), (2, 3)],
    "normal": [(), (1.0, 2.0)],
    "randint": [(7,), (-5, 1000), (3 * 2**30,), (2, 3)],
    "choice": [(5,), ([1.0, 2.0, 4.0],)],
}


def samplers_of(kind):
    """The methods of this kind of generator that samplers stand for, and the samplers."""
    names = [x for x in (*vars(samplers), *streams._OTHERS) if x.startswith(f"{kind}_")]
    return sorted((x.removeprefix(f"{kind}_"), streams._OTHERS.get(x, x)) for x in names)


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "Philox", "SFC64"])
@pytest.mark.parametrize("method, name", samplers_of("pcg"))
def test_samplers_make_numpys_numbers(kind, method, name):
    assert streams._fill()
    make = getattr(np.random, kind)
    for args in ARGUMENTS.get(method, [()]):
        generator = np.random.Generator(make(4))
        wanted = [getattr(generator, method)(*args) for _ in range(2000)]
        words, held = make(4).random_raw(20_000), np.zeros(1, np.uint64)
        found, at = numbers_of(name, words, held, args)
        assert found == wanted
        assert set(map(type, found)) == set(map(type, wanted))
        state = generator.bit_generator.state
        assert (at[1], held[0] if at[1] else 0) == (
            state["has_uint32"],
            state["uinteger"] if at[1] else 0,
        )


@pytest.mark.parametrize("method, name", samplers_of("mt"))
def test_samplers_of_older_generators_make_numpys_numbers(method, name):
    for args in ARGUMENTS.get(method, [()]):
        generator, other = np.random.RandomState(4), np.random.RandomState(4)
        wanted = [getattr(generator, method)(*args) for _ in range(2000)]
        words = other.randint(0, 2**32, 20_000, np.uint32).astype(np.uint64)
        found, _ = numbers_of(name, words, np.zeros(2), args)
        np.testing.assert_allclose(found, wanted, rtol=1e-14)
        assert set(map(type, found)) == set(map(type, wanted))


OF_PYTHON = {
    "random": [()],
    "uniform": [(1, 3.5)],
    "randint": [(1, 6), (5, 5)],
    "randrange": [(10,), (10, 2**31)],
    "choice": [([1, 2.5, 4],)],
}


@pytest.mark.parametrize("method, name", samplers_of("python"))
def test_samplers_of_python_make_its_numbers(method, name):
    for args in OF_PYTHON[method]:
        generator = random.Random(4)
        wanted = [getattr(generator, method)(*args) for _ in range(2000)]
        bits = random.Random(4).getrandbits(32 * 20_000).to_bytes(4 * 20_000, "little")
        words = np.frombuffer(bits, np.uint32).astype(np.uint64)
        found, _ = numbers_of(name, words, np.zeros(2), args)
        assert found == wanted
        assert set(map(type, found)) == set(map(type, wanted))
