"""Attributes of objects, and methods, in loops that run apart (capture/loops/attributes.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit
from rune_jit.calls.trial import Trial

_rng = np.random.default_rng(0)
X = _rng.normal(size=(60, 4))
Y = X @ np.arange(4.0) + _rng.normal(size=60)


@pytest.fixture(autouse=True)
def never_numpy(monkeypatch):
    """Calls stay in segments, however long they take."""
    monkeypatch.setattr(Trial, "verdict", lambda self: None)


def _compare(function: Any, *arguments: Any) -> None:
    jitted = rune_jit.jit(function)
    for k in range(4):
        wanted = _outcome(function, k, arguments)
        assert_same(_outcome(jitted, k, arguments), wanted, ulps=64, scaled=True)
    _are_compiled(jitted)


def _are_compiled(jitted: Any) -> None:
    """Checks that loops are programs, or part of the function's."""
    text = jitted.explain()
    assert "of loops" in text or "is a loop of the program" in text, text


def _outcome(function: Any, k: int, arguments: tuple[Any, ...]) -> Any:
    given = [x + k if isinstance(x, np.ndarray) else x for x in arguments]
    try:
        return function(*given), given
    except ArithmeticError as error:
        return str(error), given


def _contents(x: Any) -> dict[str, Any]:
    return {name: _contents(y) if hasattr(y, "__dict__") else y for name, y in vars(x).items()}


def squared(x):
    return x**2


class Rate:
    def __init__(self, value=0.05):
        self.value, self.steps = value, 0

    def next(self):
        self.steps += 1
        self.value = self.value * 0.99


class Model:
    bias = 0.25

    def __init__(self, steps=80, tolerance=1e-4):
        self.steps, self.tolerance, self.losses = steps, tolerance, []
        self.rate = Rate()

    def errors(self, x, y, scale=1.0):
        return (x @ self.w + self.bias - y) * scale

    def loss(self, x, y):
        """The mean square."""
        return squared(self.errors(x, y=y)).mean()

    def smoothed(self, e):
        r = e * 0.5
        r[1:] += e[:-1]
        for k in range(2, 5):
            r[k] -= 0.1 * r[k - 1]
        return r

    def step(self, slope, x):
        self.w -= self.rate.value * slope
        self.bias = self.bias - self.rate.value * slope.mean()
        self.seen = len(x)

    def fit(self, x, y):
        self.w, before = np.zeros(x.shape[1]), np.inf
        for i in range(self.steps):
            slope = x.T @ self.errors(x, y) / len(y)
            self.step(slope, x)
            self.count = i
            self.rate.next()
            self.losses.append(self.loss(x, y))
            if abs(before - self.losses[-1]) < self.tolerance:
                break
            before = self.losses[-1]
        return self

    def descend(self, x, y):
        self.w = np.zeros(x.shape[1])
        while True:
            e = self.errors(x, y, 0.5) - 0.01 * self.smoothed(y)
            self.w = self.w - self.rate.value * (x.T @ e)
            self.losses.append((e**2).sum())
            if np.abs(e).max() < 1 or len(self.losses) >= 40:
                break
        return self


def fitted(x, y):
    model = Model().fit(x, y)
    return model.w, model.bias, model.losses, model.count, model.seen, _contents(model.rate)


def descended(x, y):
    model = Model().descend(x, y)
    return model.w, model.losses


def test_a_model_with_methods():
    _compare(fitted, X, Y)
    _compare(descended, X, Y)


def test_an_object_from_outside():
    def train(model, x, y):
        before = np.inf
        for _ in range(model.steps):
            model.step(x.T @ model.errors(x, y) / len(y), x)
            loss = model.loss(x, y)
            model.losses.append(loss)
            if before - loss < model.tolerance:
                break
            before = loss
        return before

    jitted = rune_jit.jit(train)
    for _ in range(4):
        models = [Model(), Model()]
        for model, function in zip(models, (jitted, train), strict=True):
            model.w = w = np.zeros(4)
            model.result = function(model, X, Y)
            assert model.w is w
        assert_same(_contents(models[0]), _contents(models[1]), ulps=64, scaled=True)


class Walker:
    def __init__(self, x):
        self.x, self.best, self.visited = x, x, []

    def move(self, slope):
        self.x = self.x - 0.1 * slope


def test_attributes_that_share_arrays():
    def walked(x):
        walker = Walker(x.copy())
        walker.best, least = walker.x, np.inf
        for _ in range(20):
            walker.move(2 * walker.x)
            cost = np.abs(walker.x).sum()
            walker.visited.append(cost)
            if cost < least:
                walker.best, least = walker.x, cost
            if cost < 0.5:
                break
        walker.x += 1
        return walker.x, walker.best, walker.visited, walker.best is walker.x

    jitted = rune_jit.jit(walked)
    for _ in range(3):
        assert_same(jitted(X[0]), walked(X[0]), ulps=8)


def test_an_exception_leaves_what_numpy_leaves():
    def failing(walker, limit):
        for i in range(30):
            walker.x = walker.x * 0.5
            walker.visited.append(i)
            if walker.x.max() < limit:
                raise ArithmeticError(f"too small at {i}")
            if i > 25:
                break
        return i

    jitted = rune_jit.jit(failing)
    for limit in (1e-3, 1e-2, 1e-3, 0.0, 1e-4):
        walkers = [Walker(np.abs(X[0]) + 1), Walker(np.abs(X[0]) + 1)]
        found = _outcome(jitted, 0, (walkers[0], limit))[0]
        assert found == _outcome(failing, 0, (walkers[1], limit))[0]
        assert_same(_contents(walkers[0]), _contents(walkers[1]), ulps=8)


def test_an_exception_leaves_the_items_of_a_queue():
    class Search:
        def __init__(self, start):
            self.open, self.seen = [start], []

    def searched(search, limit):
        while search.open:
            k = search.open.pop()
            search.seen.append(k)
            if k > limit:
                raise ArithmeticError(f"{k} is too large")
            if k < 40:
                search.open.append(2 * k + 1)
                search.open.append(k + 7)
        return len(search.seen)

    jitted = rune_jit.jit(searched)
    for limit in (200, 200, 200, 50, 200, 44):
        searches = [Search(3), Search(3)]
        found = _outcome(jitted, 0, (searches[0], limit))[0]
        assert found == _outcome(searched, 0, (searches[1], limit))[0]
        assert _contents(searches[0]) == _contents(searches[1])


class Computed:
    def __init__(self, x):
        self._x = x

    @property
    def x(self):
        return self._x * 2

    @x.setter
    def x(self, value):
        self._x = value + 1


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


class Noted:
    def __init__(self, x):
        self.x = x

    def __setattr__(self, name, value):
        self.__dict__["sets"] = self.__dict__.get("sets", 0) + 1
        self.__dict__[name] = value


class Early(Walker):
    def move(self, slope):
        if slope.max() > 3:
            return
        self.x = self.x - 0.1 * slope


@pytest.mark.parametrize("kind", [Computed, Slotted, Noted, Early])
def test_other_objects(kind):
    def halved(x):
        held, sums = kind(x), []
        for _ in range(30):
            if kind is Early:
                held.move(held.x)
            held.x = held.x * 0.7
            sums.append(held.x.sum())
            if abs(sums[-1]) < 0.01:
                break
        return held.x, sums, getattr(held, "sets", 0)

    jitted = rune_jit.jit(halved)
    for k in range(3):
        assert_same(jitted(X[k]), halved(X[k]), ulps=8, scaled=True)


def test_two_names_of_an_object():
    def both(walker, other):
        for _ in range(20):
            walker.x = walker.x * 0.9
            other.x = other.x + 1
            walker.visited.append(other.x.sum())
            if walker.x.sum() > 30:
                break
        return walker.x, other.x, walker.visited

    jitted = rune_jit.jit(both)
    for same in (False, True, False, True):
        found = []
        for function in (jitted, both):
            a, b = Walker(X[0]), Walker(X[1])
            found.append(function(a, a if same else b))
        assert_same(*found, ulps=8, scaled=True)


def test_methods_that_become_others(monkeypatch):
    def moved(walker):
        for _ in range(10):
            walker.move(walker.x)
            walker.visited.append(walker.x.sum())
            if abs(walker.x).max() > 1e3:
                break
        return walker.x, walker.visited

    jitted = rune_jit.jit(moved)

    def check(change=lambda walker: None):
        found = []
        for function in (jitted, moved):
            walker = Walker(X[0])
            change(walker)
            found.append(function(walker))
        assert_same(*found, ulps=8, scaled=True)

    def further(self, slope):
        self.x = self.x + slope

    for _ in range(3):
        check()
    monkeypatch.setattr(Walker, "move", further)
    check()
    check(lambda walker: setattr(walker, "move", lambda slope: setattr(walker, "x", slope * 3)))
    check()


FACTOR = 3


class Scaled(Walker):
    def scaled(self):
        y = self.x * FACTOR
        y += 1
        return y

    def move(self, slope):
        self.x = self.twice()
        return self.x

    def twice(self):
        r = self.x
        r = r * 0.5
        return r

    def written(self, y):
        np.copyto(y, 0)
        return y


def test_names_and_results_of_methods():
    def scaled(walker):
        FACTOR = 5
        for _ in range(10):
            walker.visited.append((walker.scaled().sum(), FACTOR))
            walker.x = walker.x + 1
            if walker.x.max() > 8:
                break
        return walker.x, walker.visited

    def moved(walker):
        for _ in range(10):
            y = walker.move(0)
            walker.visited.append((y - walker.twice()).sum())
            if walker.x.max() < 0.1:
                break
        return walker.x, walker.visited

    def written(walker):
        y = walker.x + 1
        for _ in range(3):
            walker.visited.append((y + 1).sum() + walker.written(y).sum())
            y += 2
            if y.max() > 90:
                break
        return walker.visited, y

    for function in (scaled, moved, written):
        jitted = rune_jit.jit(function)
        for k in range(3):
            assert_same(jitted(Scaled(X[k])), function(Scaled(X[k])), ulps=8, scaled=True)


def test_draws_keep_their_order():
    class Noisy:
        def __init__(self, seed):
            self.rng, self.x, self.trace = np.random.default_rng(seed), 0.0, []

        def noise(self, scale):
            return scale * self.rng.normal()

        def run(self):
            for _ in range(50):
                self.x = self.rng.uniform() - self.noise(self.rng.uniform()) + 0.5 * self.x
                self.trace.append(self.x)
                if self.x > 2:
                    break
            return self.x, self.trace, self.rng.random()

    jitted = rune_jit.jit(lambda seed: Noisy(seed).run())
    for seed in range(4):
        assert jitted(seed) == Noisy(seed).run()


def test_stacks_of_a_process_that_draws():
    class Cascade:
        def __init__(self, rng):
            self.rng, self.splits = rng, 0

        def spread(self, most):
            sizes, total = [1.0], 0.0
            while sizes:
                size = sizes.pop()
                total += size
                if self.splits < most:
                    part = self.rng.random()
                    self.splits += 1
                    sizes.append(size * part)
                    if part < 0.5:
                        sizes.append(size - size * part)
            return total, self.splits

    jitted = rune_jit.jit(Cascade.spread)
    for seed in range(6):
        ours, numpys = (Cascade(np.random.default_rng(seed)) for _ in range(2))
        for _ in range(2):
            assert jitted(ours, 100) == numpys.spread(100)
            assert ours.rng.bit_generator.state == numpys.rng.bit_generator.state
    _are_compiled(jitted)


def test_no_iterations():
    def counted(walker, n):
        for i in range(n):
            walker.last = walker.x * i
            walker.visited.append(walker.last.sum())
            if walker.visited[0] > 1e9:
                break
        return getattr(walker, "last", None), walker.visited

    jitted = rune_jit.jit(counted)
    for n in (5, 6, 0, 7, 0):
        assert_same(jitted(Walker(X[0]), n), counted(Walker(X[0]), n))


def test_else():
    def searched(x, limit):
        sums, where = [], None
        for i in range(len(x)):
            sums.append(x[i].sum())
            if sums[i] < -9:
                return -2, i
            if abs(x[i]).max() > limit:
                where = i
                break
        else:
            where = len(sums) + 100
        return where, sums

    def descended(x):
        steps = []
        while np.abs(x).max() > 1e-3:
            x = x * 0.5
            steps.append(x.sum())
            if len(steps) == 12:
                break
        else:
            steps.append(-1.0)
        return steps

    for limit in (1.5, 2.0, 4.0, 40.0):
        jitted = rune_jit.jit(searched)
        for k in range(3):
            assert_same(jitted(X - k, limit), searched(X - k, limit), ulps=8)
        _are_compiled(jitted)
    _compare(descended, X)
    _compare(descended, X * 1e6)


def test_else_of_loops_within_loops():
    """A `break` of the inner loop does not end the outer one."""

    def f(a, b):
        for i in range(len(a)):
            for j in range(3):
                if a[i, j] > 2:
                    break
            else:
                a[i, 0] += 1
        else:
            b[0] -= 10
        return b

    jitted = rune_jit.jit(f)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        a, b = rng.integers(0, 6, (9, 4)), rng.integers(0, 9, 3)
        ours, numpys = (a.copy(), b.copy()), (a.copy(), b.copy())
        assert_same((jitted(*ours), ours), (f(*numpys), numpys))
