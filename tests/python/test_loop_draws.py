"""Random numbers in loops: of a program, and of programs of their own (capture/draws.py,
capture/loops/lent.py)."""

from __future__ import annotations

import copy
import random

import numpy as np
import pytest
from compare import assert_same

import rune_jit
from rune_jit.calls.trial import Trial
from rune_jit.capture.loops.apart import LoopApart
from rune_jit.capture.random_methods import NUM_PARAMETERS

POINTS = np.random.default_rng(1).random((40, 3))
WEIGHTS = np.array([0.1, 0.2, 0.3, 0.4])
RNG = np.random.default_rng(3)


COMPILED = []  # for each run of a loop apart: whether a program ran it


@pytest.fixture(autouse=True)
def never_numpy(monkeypatch):
    """Calls stay in segments, however long they take."""
    monkeypatch.setattr(Trial, "verdict", lambda self: None)
    note = LoopApart._note

    def noting(self, trace, function):
        note(self, trace, function)
        info = function.cache_info()
        COMPILED.append(info.fallbacks == info.segmented == 0)

    monkeypatch.setattr(LoopApart, "_note", noting)


def states(generator):
    mine = repr(generator.bit_generator.state) if generator is not None else None
    others = repr(np.random.get_state(legacy=False)), random.getstate()
    return mine, repr(RNG.bit_generator.state), *others


def start(seed, generator):
    np.random.seed(seed)
    random.seed(seed)
    RNG.bit_generator.state = np.random.PCG64(seed + 1).state
    if generator is not None:
        generator.bit_generator.state = np.random.PCG64(seed).state


def run(function, call, generator, seed):
    """What a call gives or raises, and the states after it."""
    start(seed, generator)
    args = copy.deepcopy(call)
    try:
        result = function(*args, *([] if generator is None else [generator]))
    except Exception as error:
        result = type(error), str(error)
    return result, args, states(generator)


def check(function, *call, generator=None, drawn=True):
    """Compares calls with NumPy's: results, arguments, and the states of all generators. `drawn`:
    whether the loop that draws is compiled."""
    jitted = rune_jit.jit(function)
    COMPILED.clear()
    for seed in range(4):
        wanted = run(function, call, generator, seed)
        found = run(jitted, call, generator, seed)
        assert_same(found[:2], wanted[:2], ulps=8, scaled=True)
        assert found[2] == wanted[2]
    explained = jitted.explain()
    is_compiled = any(COMPILED) or "is a loop of the program" in explained
    assert is_compiled == drawn, explained


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def walk(n, rng):
    x = 0.0
    path = np.zeros(n)
    for i in range(n):
        x += rng.normal(0.0, 0.5)
        path[i] = x
    return path


def metropolis(x, n, s, rng):
    accepted = 0
    out = np.zeros(n)
    for i in range(n):
        proposal = x + rng.normal(0, s)
        if np.log(rng.random()) < -0.5 * (proposal * proposal - x * x):
            x = proposal
            accepted += 1
        out[i] = x
    return out, accepted


def stochastic(points, n, rng):
    w = np.zeros(3)
    for t in range(n):
        x = points[rng.integers(len(points))]
        w += (x - w) / (t + 1)
    return w


def swarm(n, m, rng):
    x = rng.uniform(-5, 5, (m, 2))
    v = np.zeros((m, 2))
    best = x.copy()
    for _ in range(n):
        r1, r2 = rng.random((m, 1)), rng.random((m, 1))
        v = 0.7 * v + 1.4 * r1 * (best - x) + 1.4 * r2 * (best.mean(axis=0) - x)
        x = x + v
        better = (x * x).sum(axis=1) < (best * best).sum(axis=1)
        best[better] = x[better]
    return best


def nested(n, m, rng):
    sums = np.zeros(n)
    for i in range(n):
        for _ in range(m):
            sums[i] += rng.standard_normal() ** 2
        sums[i] /= rng.uniform(1, 2)
    return sums


def jittered(n, rng):
    x = np.ones(4)
    noise = []
    for _ in range(n):
        step = rng.normal(size=4)
        step *= 0.1
        x = 0.9 * x + step
        noise.append(step)
    return x, noise


def of_modules(n):
    s = 0.0
    for _ in range(n):
        s = s * 0.5 + np.random.rand() + random.random() + random.randint(1, 6)
        s += np.random.randint(3)
    return s


def aliased(n, rng):
    draw = rng.standard_exponential
    s = 0.0
    for i in range(n):
        s = 0.9 * s + draw() * i
    return s


def weighted(weights, n, rng):
    counts = np.zeros(4, int)
    for _ in range(n):
        counts[rng.choice(4, p=weights)] += 1
    return counts


def in_order(x, n, rng):
    # The value is drawn before the position of the target.
    for _ in range(n):
        x[rng.integers(3)] = rng.integers(100, 200)
    return x


def test_numbers_are_drawn_before_the_loop(rng):
    check(walk, 200, generator=rng)
    check(metropolis, 0.3, 300, 0.8, generator=rng)
    check(stochastic, POINTS, 300, generator=rng)
    check(swarm, 120, 10, generator=rng)
    check(aliased, 150, generator=rng)
    check(weighted, WEIGHTS, 150, generator=rng)
    check(in_order, np.zeros(3, int), 150, generator=rng)


def test_numbers_of_nested_loops_have_an_axis_for_each(rng):
    check(nested, 120, 7, generator=rng)


def test_arrays_that_are_drawn_have_memory_of_their_own(rng):
    check(jittered, 120, generator=rng)


def test_generators_of_modules():
    check(of_modules, 200)


def until(n, eps, rng):
    x, k = np.ones(3), 0
    for k in range(n):  # noqa: B007
        x = 0.9 * x + 0.01 * rng.standard_normal(3) + 0.01 * rng.random()
        if np.abs(x).max() < eps:
            break
    return x, k


@pytest.mark.parametrize("eps", [0.05, 1e-12])
def test_what_a_break_leaves_out_is_not_drawn(rng, eps):
    check(until, 300, eps, generator=rng)


def failing(x, n, rng):
    for i in range(n):
        x[i] = rng.random()
        x[0] += rng.exponential()
    return x


def test_a_loop_that_raises_has_drawn_as_much_as_numpy(rng):
    check(failing, np.zeros(120), 130, generator=rng)


def test_draws_under_conditions_stay_in_their_iterations(rng):
    def conditional(x, n, rng):
        for i in range(n):
            if x[i % 3] < 0 or rng.random() < 0.5:
                x[i % 3] += rng.exponential()
        return x

    def skipping(x, n, rng):
        for i in range(n):
            if x[i % 3] > 1:
                continue
            x[i % 3] += rng.exponential()
        return x

    check(conditional, np.zeros(3), 120, generator=rng, drawn=False)
    check(skipping, np.zeros(3), 120, generator=rng, drawn=False)


def test_arguments_that_the_loop_changes_stay_in_their_iterations(rng):
    def carried(n, rng):
        x = 1.0
        for _ in range(n):
            x = rng.gamma(x, 0.9)
        return x

    def written(weights, n, rng):
        counts = np.zeros(4, int)
        for _ in range(n):
            k = rng.choice(4, p=weights)
            counts[k] += 1
            weights[k] *= 0.9
            weights /= weights.sum()
        return counts

    check(carried, 120, generator=rng, drawn=False)
    check(written, WEIGHTS.copy(), 120, generator=rng, drawn=False)


def test_numbers_of_changing_kinds_stay_in_their_iterations(rng):
    def triangle(n, rng):
        s = 0.0
        for i in range(n):
            s = s * 0.5 + rng.random(i % 4).sum()
        return s

    check(triangle, 120, generator=rng, drawn=False)


def test_other_objects_with_such_methods():
    class Table:
        def choice(self, i):
            return i * 2

    table = Table()

    def chosen(x, n):
        for i in range(n):
            x[i] += table.choice(i)
        return x

    jitted = rune_jit.jit(chosen)
    assert_same(jitted(np.zeros(150), 150), chosen(np.zeros(150), 150))


def first_of(x):
    """A number that Python must know, so that the function runs in segments."""
    return next(iter(range(int(x.sum() * 0) + 2)))


def of_itself_and_a_function(x, n, rng):
    s = float(first_of(x))
    for _ in range(n):
        s += RNG.random() - helper() + rng.random()
    return s


def with_a_stack(x, n, rng):
    todo, s, k = [first_of(x)], 0.0, 0
    while todo and k < n:
        j, k = todo.pop(), k + 1
        if rng.random() < 0.8:
            todo.append(j + 1)
        if rng.random() < 0.6:
            todo.append(j + 2)
        s += j * rng.random()
    return s, k, todo


def handled(x, n, rng):
    s = float(first_of(x))
    for i in range(n):
        try:
            s += rng.normal(0, x[i % 40, 0] - 0.02)
        except ValueError:
            s += 1000
    return s


def shuffled(x, n, rng):
    y = x[first_of(x) :].copy()
    for _ in range(n):
        rng.shuffle(y)
        y[0] += y[rng.permutation(len(y))[0]] * 0.1
    return y


def rows(x, n, rng):
    first, chosen = first_of(x), []
    for _ in range(n):
        chosen.append(rng.choice(x) + first)
    return chosen


def helper():
    return RNG.random()


@pytest.mark.parametrize(
    "function", [of_itself_and_a_function, with_a_stack, handled, shuffled, rows]
)
def test_loops_that_run_apart(function, rng):
    check(function, POINTS, 150, generator=rng)
    assert any(COMPILED)


def test_one_generator_in_two_places():
    check(of_itself_and_a_function, POINTS, 150, generator=RNG)


def test_what_a_loop_does_to_a_generator_besides_drawing(rng):
    def spawning(x, n, rng):
        s = float(first_of(x))
        for _ in range(n):
            s += rng.spawn(1)[0].random() + rng.bit_generator.random_raw() % 7
        return s

    jitted = rune_jit.jit(spawning)
    for _ in range(4):
        other = copy.deepcopy(rng)
        assert jitted(POINTS, 120, rng) == spawning(POINTS, 120, other)
        assert rng.random() == other.random()


def test_new_generators_need_no_new_programs():
    def f(x, seed):
        s, rng = float(first_of(x)), np.random.default_rng(seed)
        for _ in range(200):
            s = 0.5 * s + rng.random()
        return s

    jitted = rune_jit.jit(f)
    COMPILED.clear()
    for seed in range(12):
        assert jitted(POINTS, np.int64(seed)) == pytest.approx(f(POINTS, seed), rel=1e-14)
    assert len(COMPILED) > 5 and all(COMPILED)


SOME = {"triangular": (0.0, 1.0, 3.0), "binomial": (10, 0.3), "geometric": (0.3,), "beta": (1, 2)}


@pytest.mark.parametrize("kind", [np.random.Generator, np.random.RandomState])
@pytest.mark.parametrize("name", sorted(NUM_PARAMETERS))
def test_one_call_draws_what_many_calls_draw(kind, name):
    if not hasattr(kind, name):
        return
    count = NUM_PARAMETERS[name]
    args = SOME.get(name, (2,) if count == 1 else (1, 5)[:count])
    for size in ((), (3,)):
        one, other = kind(np.random.PCG64(3)), kind(np.random.PCG64(3))
        if name in ("rand", "randn"):
            drawn = [getattr(one, name)(*size) for _ in range(60)]
            whole = getattr(other, name)(60, *size)
        else:
            drawn = [getattr(one, name)(*args, size or None) for _ in range(60)]
            whole = getattr(other, name)(*args, (60, *size))
        np.testing.assert_array_equal(whole, drawn)
        states = [
            repr(
                x.bit_generator.state if kind is np.random.Generator else x.get_state(legacy=False)
            )
            for x in (one, other)
        ]
        assert states[0] == states[1]
