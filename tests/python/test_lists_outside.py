"""Lists from outside of a function that it makes longer: in objects, dicts, globals, arguments
(capture/grown.py)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit
from rune_jit.calls.trial import Trial
from rune_jit.capture.loops import growing

LOG: list[Any] = []
X = np.random.default_rng(1).normal(size=(40, 3))
Y = X @ np.array([1.0, -2.0, 0.5])


@pytest.fixture(autouse=True)
def never_numpy(monkeypatch: Any) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)


def kinds(x: Any) -> Any:
    """The types of numbers in lists, dicts and objects."""
    if isinstance(x, (list, tuple)):
        return [kinds(item) for item in x]
    held = x if isinstance(x, dict) else getattr(x, "__dict__", None)
    return {k: kinds(v) for k, v in held.items()} if held is not None else type(x)


def check(
    function: Callable[..., Any],
    make: Callable[[], tuple[Any, ...]],
    calls: int = 5,
    way: str = "as one program",
    misses: int = 4,
) -> Any:
    """Compares calls with NumPy's; `misses`: how often the function is traced."""
    jitted = rune_jit.jit(function)
    for _ in range(calls):
        found = []
        for f in (function, jitted):
            LOG.clear()
            args = make()
            result = f(*args)
            ids = [i for i, x in enumerate(args) if result is x]
            held = [getattr(x, "__dict__", x) for x in args]
            found.append((ids or result, held, list(LOG)))
        assert kinds(found[1]) == kinds(found[0])
        assert_same(found[1], found[0], ulps=2**12, scaled=True)
    assert way in jitted.explain(), jitted.explain()
    assert jitted.cache_info().misses <= misses, jitted.explain()
    return jitted


class Model:
    def __init__(self) -> None:
        self.w = np.zeros(3)
        self.losses: list[Any] = []
        self.history: dict[str, list[Any]] = {"loss": [], "w": []}

    def step(self) -> Any:
        d = X @ self.w - Y
        self.w -= 0.1 * X.T @ d / len(X)
        loss = np.mean(d**2)
        self.losses.append(float(loss))
        return loss

    def fit(self, epochs: int) -> Any:
        for epoch in range(epochs):
            loss = self.step()
            self.history["loss"].append(loss)
            if epoch % 10 == 0:
                self.history["w"].append(self.w.copy())
        return self

    def last(self, epochs: int) -> Any:
        for _ in range(epochs):
            self.step()
        return self.losses[-1]

    def converges(self, epochs: int) -> Any:
        before = np.inf
        for _ in range(epochs):
            loss = self.step()
            self.history["loss"].append(loss)
            if abs(before - loss) < 1e-3:
                break
            before = loss
        return self

    def sorts(self, epochs: int) -> Any:
        for i in range(epochs * 10):
            if X[i % 40, 0] > 0.3:
                self.losses.append((i, X[i % 40, 1]))
            else:
                self.history["w"].append(i)
            self.w[0] += 1
        return self.w

    def all(self, epochs: int) -> Any:
        for _ in range(epochs):
            self.step()
        return np.array(self.losses)

    def itself(self, epochs: int) -> Any:
        for _ in range(epochs):
            self.step()
        return self.losses

    def stops(self, epochs: int) -> Any:
        for _ in range(epochs):
            self.step()
            if len(self.losses) > 5 and self.losses[-1] > self.losses[-2]:
                break
        return len(self.losses)


LISTS = [Model.fit, Model.last, Model.itself, Model.all, Model.converges, Model.sorts]


@pytest.mark.parametrize("function", LISTS)
def test_lists_in_objects(function: Any) -> None:
    check(function, lambda: (Model(), 30))


def test_a_list_that_becomes_longer_with_each_call() -> None:
    model, other = Model(), Model()
    step = rune_jit.jit(Model.step)
    for _ in range(12):
        assert_same(step(model), Model.step(other), ulps=2**10)
    assert_same(vars(model), vars(other), ulps=2**10)
    assert kinds(model) == kinds(other)
    assert "as one program" in step.explain()
    assert step.cache_info().misses <= 3


def test_lists_that_are_read_in_the_loop() -> None:
    check(Model.stops, lambda: (Model(), 20), way="", misses=9)


def globals_and_arguments(x: Any, found: list[Any], n: int) -> Any:
    for i in range(n):
        x = 0.5 * x
        LOG.append((i, x.sum()))
        found.append(x)
    found += [x[0], "end"]
    return x, len(found)


def of_an_argument(x: Any, found: list[Any]) -> None:
    for i in range(len(x)):
        x[i] = 2 * x[i] + i
        found.append(x[i])


def aliases(x: Any, found: list[Any]) -> Any:
    found.append(x)
    found.append(x + 1)
    found.append(found[-1])
    return found


def test_a_list_that_only_code_reads_which_does_not_run() -> None:
    class Model:
        def __init__(self) -> None:
            self.w, self.losses = np.zeros(3), [9.0]

    def fit(model: Any, x: Any, stops_early: bool) -> None:
        for i in range(4):
            model.w = model.w - x[i]
            model.losses.append(model.w[0])
            if stops_early and model.losses[-1] > model.losses[-2]:
                break

    check(fit, lambda: (Model(), X, False), way="", misses=9)
    check(fit, lambda: (Model(), X, True), way="", misses=9)


def test_global_lists_and_arguments() -> None:
    check(globals_and_arguments, lambda: (np.arange(3.0), [1.0], 30))
    check(of_an_argument, lambda: (np.arange(30.0), []))
    check(aliases, lambda: (np.arange(3.0), ["a"]))


def test_what_is_appended_is_what_numpy_appends() -> None:
    jitted = rune_jit.jit(aliases)
    for _ in range(3):
        x: Any = np.arange(3.0)
        found: list[Any] = []
        result = jitted(x, found)
        assert result is found
        assert found[0] is x
        assert found[1] is found[2]


def test_lists_that_become_longer_than_there_is_room_for(monkeypatch: Any) -> None:
    monkeypatch.setattr(growing, "_FIRST_ROWS", 16)
    monkeypatch.setattr(growing, "_FIRST_BYTES", 16)
    check(Model.sorts, lambda: (Model(), 30), calls=9, misses=9)


def test_calls_that_raise_append_what_numpy_appends() -> None:
    def failing(model: Any, x: Any, n: int) -> Any:
        for i in range(n):
            model.losses.append(x[i] * 2)
        return n

    jitted = rune_jit.jit(failing)
    x = np.arange(8.0)
    for n in (8, 8, 9, 8, 9):
        a, b = Model(), Model()
        for f, model in ((failing, a), (jitted, b)):
            try:
                f(model, x, n)
            except IndexError:
                model.losses.append("raised")
        assert a.losses == b.losses


def test_two_lists_of_one_object_and_two_names_of_one_list() -> None:
    class Holder:
        def __init__(self, same: bool) -> None:
            self.x, self.a = np.ones(2), [0.0]
            self.b = self.a if same else copy.copy(self.a)

    def both(h: Any, n: int) -> Any:
        for i in range(n):
            h.x = h.x * 0.5
            h.a.append(h.x[0])
            h.b.append(i)
        return h.x

    for same in (False, True):
        check(both, lambda same=same: (Holder(same), 20), way="", misses=9)


def test_lists_that_code_reads_which_is_not_copied() -> None:
    class Log:
        def __init__(self) -> None:
            self.items: list[Any] = []
            self.w = np.zeros(2)

        def __len__(self) -> int:
            return len(self.items)

        @property
        def count(self) -> int:
            return len(self.items)

        def counted(self, x: Any) -> Any:
            self.w = self.w + x
            self.items.append(self.w.sum())
            return self.w * self.count

        def measured(self, x: Any) -> Any:
            self.items.append(x.sum())
            return x * len(self)

        def replaced(self, x: Any) -> Any:
            self.items.append(x[0])
            self.items = []
            self.items.append(x[1])
            return x * 2

    for function in (Log.counted, Log.measured, Log.replaced):
        one, other = Log(), Log()
        jitted = rune_jit.jit(function)
        for i in range(6):
            x = np.arange(2.0) + i
            assert_same(jitted(one, x), function(other, x))
            assert repr(one.items) == repr(other.items)
