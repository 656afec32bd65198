"""Random generators from outside of the function, as attributes, globals and arguments: the rest of
the function is one program, for which they draw (capture/drawn.py)."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit
from rune_jit.calls.trial import Trial

RNG = np.random.default_rng(5)
X = np.random.default_rng(1).normal(size=(70, 3))
Y = X @ np.array([1.0, -2.0, 0.5])


@pytest.fixture(autouse=True)
def never_numpy(monkeypatch: Any) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)


def states(*objects: Any) -> Any:
    held = [x for o in objects for x in (o, *getattr(o, "__dict__", {}).values())]
    own = [repr(x.bit_generator.state) for x in held if isinstance(x, np.random.Generator)]
    legacy = [repr(x.get_state()) for x in held if isinstance(x, np.random.RandomState)]
    return own, legacy, repr(np.random.get_state()), random.getstate(), RNG.bit_generator.state


def check(
    function: Callable[..., Any],
    make: Callable[[int], tuple[Any, ...]],
    calls: int = 4,
    misses: int = 2,
    way: str = "as one program",
) -> Any:
    """Compares calls with NumPy's: results, arguments and generators, exceptions. `make` makes the
    arguments of a call; `misses`: how often the function is traced."""
    jitted = rune_jit.jit(function)
    for seed in range(calls):
        found = []
        for f in (function, jitted):
            np.random.seed(seed)
            random.seed(seed)
            RNG.bit_generator.state = np.random.PCG64(seed).state
            args = make(seed)
            try:
                result: Any = f(*args)
            except Exception as error:
                result = type(error), str(error)
            held = [
                {
                    k: v
                    for k, v in vars(x).items()
                    if not hasattr(v, "bit_generator") and not hasattr(v, "get_state")
                }
                for x in args
                if hasattr(x, "__dict__")
            ]
            arrays = [x for x in args if isinstance(x, np.ndarray)]
            found.append(((result if result is not args[0] else None, held, arrays), states(*args)))
        assert_same(found[1][0], found[0][0], ulps=2**12, scaled=True)
        assert found[1][1] == found[0][1]
    assert way in jitted.explain(), jitted.explain()
    assert jitted.cache_info().misses <= misses + ("changes" in way), jitted.explain()
    return jitted


class Network:
    def __init__(self, seed: int, dropout: float = 0.0) -> None:
        self.rng = np.random.default_rng(seed)
        self.w = self.rng.normal(0, 0.1, (3, 4))
        self.v = self.rng.normal(0, 0.1, 4)
        self.dropout = dropout
        self.last = np.zeros(4)

    def step(self, x: Any, y: Any) -> Any:
        h = np.tanh(x @ self.w)
        if self.dropout:
            h = h * (self.rng.random(h.shape) > self.dropout)
        error = h @ self.v - y
        self.w -= 0.1 * x.T @ (np.outer(error, self.v) * (1 - h**2)) / len(x)
        self.v -= 0.1 * h.T @ error / len(x)
        return np.mean(error**2)

    def fit(self, x: Any, y: Any, epochs: int) -> Any:
        for _ in range(epochs):
            order = self.rng.permutation(len(x))
            for start in range(0, len(x), 16):
                batch = order[start : start + 16]
                self.step(x[batch], y[batch])
        return self


def test_trainings_whose_order_is_drawn_in_each_epoch() -> None:
    check(Network.fit, lambda seed: (Network(seed), X, Y, 6))


def test_draws_in_functions_that_loops_call() -> None:
    check(Network.fit, lambda seed: (Network(seed, 0.3), X, Y, 6))


def test_one_step_after_the_other() -> None:
    network, other = Network(1, 0.5), Network(1, 0.5)
    step = rune_jit.jit(Network.step)
    for _ in range(6):
        assert_same(step(network, X, Y), other.step(X, Y), ulps=2**12)
    assert states(network) == states(other)
    assert "as one program" in step.explain()
    assert step.cache_info().misses == 1


def of_a_module(x: Any, n: int) -> Any:
    scale = RNG.uniform(0.5, 1.0)
    for _ in range(n):
        x = scale * x + 0.1 * RNG.normal(size=x.shape)
    return x, RNG.integers(0, 10, 3)


def of_the_library(x: Any, n: int) -> Any:
    np.random.seed(n)
    x = x + np.random.randn(len(x)) * np.random.rand()
    for _ in range(n):
        x = 0.5 * x + np.random.normal(0.0, 0.1, len(x))
    return x, np.random.randint(10), random.random(), random.gauss(0.0, 1.0)


def of_arguments(x: Any, rng: Any, sigma: float) -> Any:
    noise = rng.normal(0.0, sigma, size=x.shape)
    rng.shuffle(x)
    chosen = rng.choice(x, 2, replace=False)
    return x + noise, chosen, rng.permutation(x), rng.integers(3), rng.random(dtype=np.float32)


def with_a_condition(x: Any, rng: Any) -> Any:
    if rng.random() < 0.5:
        return x + rng.normal(size=3)
    return x * rng.integers(1, 5)


@pytest.mark.parametrize("function", [of_a_module, of_the_library])
def test_generators_of_modules(function: Any) -> None:
    check(function, lambda seed: (np.arange(4.0), 30), misses=1)


def test_generators_among_the_arguments() -> None:
    check(of_arguments, lambda seed: (np.arange(5.0), np.random.default_rng(seed), 0.1 * seed))
    check(of_arguments, lambda seed: (np.ones((4, 2)), np.random.default_rng(seed), 2.0))


def test_each_way_through_a_condition_draws_its_numbers() -> None:
    for function in (with_a_condition, with_a_condition_behind_a_loop):
        check(function, lambda seed: (np.zeros(3), np.random.default_rng(seed)), 8)


def with_a_condition_behind_a_loop(x: Any, rng: Any) -> Any:
    for i in range(150):
        if rng.random() < 0.5:
            x[i % 3] += rng.normal()
    if x.sum() > 0:
        return x + rng.normal(size=3)
    return x, rng.random()


class Bandit:
    def __init__(self, seed: int, kind: Any = np.random.default_rng) -> None:
        self.rng = kind(seed)
        self.means, self.values, self.counts = np.linspace(0, 1, 5), np.zeros(5), np.zeros(5)

    def choose(self) -> int:
        if self.rng.random() < 0.2:
            return int(self.rng.integers(5))
        return int(np.argmax(self.values))

    def run(self, steps: int) -> Any:
        total = np.zeros(steps)
        for t in range(steps):
            arm = self.choose()
            total[t] = self.means[arm] + self.rng.normal()
            self.counts[arm] += 1
            self.values[arm] += (total[t] - self.values[arm]) / self.counts[arm]
        return total


class Chain:
    def __init__(self, seed: int) -> None:
        self.rng, self.x, self.accepted = np.random.RandomState(seed), np.zeros(3), 0

    def run(self, steps: int) -> Any:
        path = np.zeros((steps, 3))
        for t in range(steps):
            new = self.x + 0.5 * self.rng.normal(size=3)
            gain = 0.5 * (self.x @ self.x - new @ new)
            if gain >= 0 or np.log(self.rng.rand()) < gain:
                self.x = new
                self.accepted += 1
            path[t] = self.x
        return path

    def leave(self, most: int) -> int:
        count = 0
        for _ in range(most):
            self.x += self.rng.normal(size=3)
            count += 1
            if np.abs(self.x).max() > 5:
                break
        return count


def test_draws_under_conditions_in_methods() -> None:
    check(Bandit.run, lambda seed: (Bandit(seed), 200))
    check(Chain.run, lambda seed: (Chain(seed), 150), misses=3)


def test_a_loop_that_ends_early_draws_no_more() -> None:
    check(Chain.leave, lambda seed: (Chain(seed), 300))


def test_calls_that_raise_draw_what_numpy_draws() -> None:
    def outside(x: Any, rng: Any, n: int) -> Any:
        for i in range(n):
            x[i] = rng.exponential()
        return x

    def invalid(x: Any, rng: Any) -> Any:
        return x * rng.normal(0.0, -1.0) + rng.random()

    check(outside, lambda seed: (np.zeros(8), np.random.default_rng(seed), 8 + seed % 2), misses=4)
    check(invalid, lambda seed: (np.zeros(3), np.random.default_rng(seed)), way="", misses=9)


def test_generators_that_are_drawn_from_elsewhere_too() -> None:
    step = rune_jit.jit(lambda x, rng: x + rng.normal(size=3))
    a, b = np.random.default_rng(0), np.random.default_rng(0)
    for _ in range(4):
        np.testing.assert_array_equal(step(np.ones(3), a), 1 + b.normal(size=3))
        assert a.random() == b.random()
    assert a.bit_generator.state == b.bit_generator.state


def test_what_no_trace_draws_runs_as_in_numpy() -> None:
    def spawned(x: Any, rng: Any) -> Any:
        return x + rng.spawn(1)[0].random()

    def listed(x: Any, rng: Any) -> Any:
        items = [1.0, 2.0, 3.0]
        rng.shuffle(items)
        return x * items[0], items

    def permuted(x: Any, rng: Any) -> Any:
        rng.random(out=x)
        return rng.permuted(x * 2)

    for function in (spawned, listed, permuted):
        check(function, lambda seed: (np.ones(3), np.random.default_rng(seed)), way="", misses=9)


def test_generators_that_are_returned_and_stored_are_the_same() -> None:
    class Two:
        def __init__(self) -> None:
            self.a = self.b = np.random.default_rng(1)
            self.x, self.c = np.zeros(3), None

        def run(self, n: int) -> Any:
            for _ in range(n):
                self.x += self.a.normal(size=3) * self.b.random()
            self.c = self.a
            return self.x, self.b

    one, other = Two(), Two()
    jitted = rune_jit.jit(Two.run)
    for n in (5, 5, 5, 6):
        (x, rng), (wanted, _) = jitted(one, n), other.run(n)
        assert_same(x, wanted, ulps=8, scaled=True)
        assert rng is one.a is one.c
        assert states(one) == states(other)
    assert "as one program" in jitted.explain()


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState, random.Random])
def test_attributes_that_are_assigned(make: Any) -> None:
    def name(rng: Any, x: Any) -> Any:
        rng.name = "a"
        return rng.random() + x

    jitted = rune_jit.jit(name, fallback="silent")
    for _ in range(3):
        rng = make(1)
        if make is random.Random:
            assert_same(jitted(rng, np.ones(2)), name(make(1), np.ones(2)))
            assert rng.name == "a"
        else:
            with pytest.raises(AttributeError, match="no attribute 'name'"):
                jitted(rng, np.ones(2))


def test_arrays_in_chunks_refuse_draws() -> None:
    da = pytest.importorskip("dask.array")
    with pytest.raises(rune_jit.UnsupportedOpError, match="random"):
        rune_jit.jit(lambda x: x + RNG.normal())(da.ones(4, chunks=2)).compute()


BITS, SEEDS = np.random.PCG64(5), np.random.SeedSequence(4)


class Holder:
    def __init__(self) -> None:
        self.bits = np.random.MT19937(3)


HOLDER = Holder()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + np.random.Generator(BITS).random(),
        lambda x: x + np.random.default_rng(BITS).random(),
        lambda x: x + np.random.RandomState(HOLDER.bits).rand(),
        lambda x: x + BITS.random_raw() % 1000,
        lambda x: x + np.random.default_rng(SEEDS.spawn(1)[0]).random(),
    ],
)
def test_bit_generators_from_outside(function) -> None:
    """Their states change at each call."""
    jitted = rune_jit.jit(function, fallback="silent")
    assert len({float(jitted(np.zeros(1))[0]) for _ in range(5)}) == 5


@pytest.mark.parametrize(
    "of", [lambda rng: rng.shuffle, lambda rng: np.random.shuffle, lambda rng: Held(rng).mix]
)
def test_arrays_that_segments_shuffle(of: Any) -> None:
    def f(x: Any, rng: Any) -> Any:
        np.random.seed(5)
        shuffle, order, y = of(rng), np.arange(x.shape[0]), x * 2
        for held in (x, order, y, y[3:7]):
            shuffle(held)
        rng.shuffle(y, axis=0)
        return np.unique(x), y, order

    run = rune_jit.jit(f)
    for _ in range(4):
        (x, mine), (y, other) = [(np.arange(9.0), np.random.default_rng(2)) for _ in "12"]
        assert_same(run(x, mine), f(y, other))
        assert_same((x, mine.random()), (y, other.random()))


class Held:
    def __init__(self, rng: Any) -> None:
        self.rng = rng

    def mix(self, x: Any) -> None:
        self.rng.shuffle(x)


def test_segments_do_not_shuffle_item_by_item() -> None:
    def f(x: Any, rng: Any) -> Any:
        y = x * 2
        rng.shuffle(y)
        rng.shuffle(y[None], axis=1)
        return y, np.unique(x)

    run = rune_jit.jit(f)
    x = np.arange(50.0)
    assert_same(run(x, np.random.default_rng(2)), f(x, np.random.default_rng(2)))
    assert "in segments (1 program)" in run.explain()


def test_a_generator_ends_once_at_each_call():
    ended = []

    def positions(n):
        try:
            yield from range(n)
        finally:
            ended.append(n)

    def f(x):
        total = 0.0
        for i in positions(len(x)):
            if x[i] > 0.5:
                break
            total += x[i]
        return total

    jitted = rune_jit.jit(f, fallback="silent")
    for call in range(3):
        x = np.array([0.1, 0.2, 0.6, 0.3])
        assert jitted(x) == f(x)
        gc.collect()
        assert len(ended) == 2 * (call + 1)


@pytest.mark.parametrize("sizes", [((5, 3), (1, 3)), ((5, 3), (5, 1)), (10, 1), ((1, 3), (5, 3))])
def test_sizes_of_draws_are_arguments(sizes: tuple[Any, Any]) -> None:
    def draw(rng: Any, size: Any, dtype: Any) -> Any:
        return rng.integers(9, size=size, dtype=dtype)

    f = rune_jit.jit(draw)
    for size in sizes * 3:
        rng, other = np.random.default_rng(5), np.random.default_rng(5)
        found, expected = f(rng, size, np.int32), draw(other, size, np.int32)
        np.testing.assert_array_equal(found, expected, strict=True)
        assert rng.random() == other.random()


def into(values: Any, out: Any) -> None:
    out[:] = values * 2


def test_out_of_another_call_is_no_generators() -> None:
    def drawn(x: Any, rng: Any) -> Any:
        into(rng.random(3), out=x)
        return x, np.add(x, 1, out=np.empty(3))

    jitted = rune_jit.jit(drawn, fallback="error")
    for seed in range(3):
        wanted = drawn(np.zeros(3), np.random.default_rng(seed))
        for a, b in zip(jitted(np.zeros(3), np.random.default_rng(seed)), wanted, strict=True):
            np.testing.assert_array_equal(a, b)
