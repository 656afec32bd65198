"""Functions that assign attributes, globals, variables of outer functions, and elements of lists
and dicts: one program, whose results are written back after each call."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_matches
from state_checks import follow, never_on_numpy, random

import rune_jit

__all__ = ["never_on_numpy"]  # a fixture of all tests here


class _Adam:
    def __init__(self) -> None:
        self.steps, self.first, self.second = 0, None, None

    def __call__(self, w: Any, g: Any) -> Any:
        if self.first is None:
            self.first, self.second = np.zeros_like(w), np.zeros_like(w)
        self.steps += 1
        self.first = 0.9 * self.first + 0.1 * g
        self.second = 0.99 * self.second + 0.01 * g * g
        mean = self.first / (1 - 0.9**self.steps)
        return w - 0.1 * mean / (np.sqrt(self.second / (1 - 0.99**self.steps)) + 1e-8)


class _Kalman:
    def __init__(self) -> None:
        self.x, self.covariance, self.updates = np.zeros(2), np.eye(2), 0
        self.motion, self.sensor = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])

    def predict(self) -> None:
        self.x = self.motion @ self.x
        self.covariance = self.motion @ self.covariance @ self.motion.T + 0.1 * np.eye(2)

    def __call__(self, z: Any) -> Any:
        self.predict()
        seen = self.sensor @ self.covariance @ self.sensor.T + 0.5
        gain = self.covariance @ self.sensor.T @ np.linalg.inv(seen)
        self.x = self.x + gain @ (z - self.sensor @ self.x)
        self.covariance = (np.eye(2) - gain @ self.sensor) @ self.covariance
        self.updates += 1
        return self.x


class _Normalization:
    def __init__(self) -> None:
        self.mean, self.variance, self.seen = np.zeros(3), np.ones(3), 0

    def __call__(self, x: Any) -> Any:
        mean, variance = x.mean(axis=0), x.var(axis=0)
        self.mean = 0.9 * self.mean + 0.1 * mean
        self.variance *= 0.9
        self.variance += 0.1 * variance
        self.seen += len(x)
        return (x - mean) / np.sqrt(variance + 1e-5)


class _Network:
    def __init__(self) -> None:
        self.layers, self.weights = [_Normalization(), _Normalization()], np.ones((3, 2))

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x @ self.weights


def _counter() -> Any:
    count = 0

    def count_calls(x: Any) -> Any:
        nonlocal count
        count += 1
        return x * count, count

    return count_calls


class _Momentum:
    """State in a dict."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {"count": 0}

    def __call__(self, w: Any) -> Any:
        if "velocity" not in self.state:
            self.state["velocity"] = np.zeros_like(w)
        self.state["velocity"] = 0.9 * self.state["velocity"] - w
        self.state["count"] += 1
        return self.state["velocity"] + w


def _rows(i: int) -> tuple[Any, ...]:
    return (random(i, 4, 3),)


PROGRAMS: dict[str, tuple[Callable[[], Any], Callable[[int], tuple[Any, ...]]]] = {
    "Adam": (_Adam, lambda i: (random(i, 4), random(i + 9, 4))),
    "a Kalman filter": (_Kalman, lambda i: (random(i, 1),)),
    "running statistics": (_Normalization, _rows),
    "objects in objects": (_Network, _rows),
    "a counter in a closure": (_counter, _rows),
    "a dict": (_Momentum, _rows),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_program(name: str) -> None:
    jitted = follow(*PROGRAMS[name])
    assert "as one program" in jitted.explain()
    assert jitted.cache_info().misses <= 4


_total = 0.0


def _summed(x: Any) -> Any:
    global _total
    _total = _total + x.sum()
    return _total * 2


def test_globals() -> None:
    global _total
    runs = []
    jitted = rune_jit.jit(_summed)
    for function in (_summed, jitted):
        _total = 0.0
        runs.append([(function(random(i, 3)), _total) for i in range(6)])
    assert_matches(runs[1], runs[0])
    assert "as one program" in jitted.explain()


def _counted(x: Any) -> Any:
    global _total
    _total = 0
    while x.sum() < 10 and _total < 4:
        _total += 1
    return x


def test_a_global_is_assigned_the_number_that_it_had() -> None:
    jitted = rune_jit.jit(_counted)
    found = []
    for scale in (9, 9, 1, 1, 9, 1, 9):
        jitted(np.ones(3) * scale)
        found.append(_total)
    assert found == [0, 0, 4, 4, 0, 4, 0]


def _adam_in_dicts(params: Any, grads: Any, state: Any) -> Any:
    state["t"] += 1
    for key in params:
        state["m"][key] = 0.9 * state["m"][key] + 0.1 * grads[key]
        params[key] -= 0.1 * state["m"][key] / (1 - 0.9 ** state["t"])
    return params


def test_dicts_among_the_arguments() -> None:
    def start() -> Any:
        return {"w": np.ones(3), "b": np.zeros(2)}, {"m": {"w": np.zeros(3), "b": np.zeros(2)}}

    (params, state), (ours, our_state) = start(), start()
    state["t"] = our_state["t"] = 0
    moments, weights = our_state["m"], ours["w"]
    jitted = rune_jit.jit(_adam_in_dicts, fallback="error")
    for i in range(5):
        grads = {"w": random(i, 3), "b": random(i, 2)}
        _adam_in_dicts(params, grads, state)
        assert jitted(ours, grads, our_state) is ours
        assert_matches(ours, params)
        assert_matches(our_state, state)
        assert our_state["m"] is moments and ours["w"] is weights
    assert jitted.cache_info().misses == 1


def _shuffled(items: Any, table: Any) -> Any:
    items[0], items[1] = items[1], items[0] * 2
    table["new"] = items[0] + 1
    del table["old"]
    return len(items)


def test_lists_and_keys() -> None:
    jitted = rune_jit.jit(_shuffled)
    for i in range(3):
        given = [random(i, 3), random(i + 5, 3)], {"old": 1.0, "kept": random(i, 2)}
        taken = copy.deepcopy(given)
        assert jitted(*taken) == _shuffled(*given)
        assert_matches(taken, given)
        assert list(taken[1]) == list(given[1])
    assert "as one program" in jitted.explain()


# What runs in segments, or on NumPy, and is right.


class _History:
    def __init__(self) -> None:
        self.losses: list[Any] = []
        self.best: Any = None

    def __call__(self, x: Any) -> Any:
        loss = x.sum()
        self.losses.append(loss)
        if self.best is None or float(loss) < float(self.best.sum()):
            self.best = x
        return loss


class _Periodic:
    def __init__(self) -> None:
        self.step, self.sum = 0, np.zeros(3)

    def __call__(self, x: Any) -> Any:
        self.step += 1
        self.sum = self.sum + x[0]
        if self.step % 3 == 0:
            self.sum = self.sum * 0
        return self.sum


class _Window:
    """Views of one array."""

    def __init__(self) -> None:
        self.buffer = np.zeros(4)
        self.tail = self.buffer[1:]

    def __call__(self, x: Any) -> Any:
        self.buffer = np.append(self.buffer[1:], x.sum())
        self.tail = self.buffer[1:]
        self.tail += 1
        return self.buffer * 2


class _Failing:
    def __init__(self) -> None:
        self.done, self.table = 0, np.arange(4.0)

    def __call__(self, x: Any) -> Any:
        self.done += 1
        self.table = self.table + 1
        picked = self.table[(x[0] * 6).astype(np.int64)]
        self.table = self.table * 2
        return picked


class _Slotted:
    __slots__ = ("count", "mean")

    def __init__(self) -> None:
        self.count, self.mean = 0, np.zeros(3)

    def __call__(self, x: Any) -> Any:
        self.count += 1
        self.mean = self.mean + (x.mean(axis=0) - self.mean) / self.count
        return self.mean, self.count


class _Swapped:
    """Two names of one array."""

    def __init__(self) -> None:
        self.now = self.start = np.ones(3)

    def __call__(self, x: Any) -> Any:
        self.now += x[0]
        self.now = self.now + self.start
        return self.now, self.start


@pytest.mark.parametrize(
    "make", [_History, _Periodic, _Window, _Failing, _Slotted, _Swapped], ids=lambda c: c.__name__
)
def test_other_state(make: Callable[[], Any]) -> None:
    follow(make, _rows, 10)


def test_a_state_that_is_an_argument_too() -> None:
    class Last:
        def __init__(self) -> None:
            self.last = np.ones(3)

        def __call__(self, x: Any) -> Any:
            x += self.last
            self.last = x
            return x

    theirs, ours = Last(), Last()
    jitted = rune_jit.jit(ours)
    x, y = np.ones(3), np.ones(3)
    for _ in range(5):
        np.testing.assert_array_equal(jitted(y), theirs(x))
        assert ours.last is y
        np.testing.assert_array_equal(y, x)


def test_each_object_has_its_state() -> None:
    class Filter:
        def __init__(self, factor: float) -> None:
            self.factor, self.level = factor, 0.0

        @rune_jit.jit
        def step(self, x: Any) -> Any:
            self.level = self.factor * self.level + x.sum()
            return self.level

    one, other = Filter(0.5), Filter(0.25)
    levels = [0.0, 0.0]
    for i in range(6):
        x = random(i, 3)
        levels = [0.5 * levels[0] + x.sum(), 0.25 * levels[1] + x.sum()]
        assert_matches([one.step(x), other.step(x)], levels)
        assert_matches([one.level, other.level], levels)
    one.level = 0.0  # somebody else assigns it
    assert_matches(one.step(x), x.sum())


def test_state_of_other_shapes() -> None:
    filter_ = _Momentum()
    jitted = rune_jit.jit(filter_)
    twin = _Momentum()
    for shape in ((3,), (3,), (3,), (4,), (4,), (4,)):
        if len(filter_.state.get("velocity", np.zeros(shape))) != shape[0]:
            filter_.state, twin.state = {"count": 0}, {"count": 0}
        x = random(1, *shape)
        assert_matches(jitted(x), twin(x))
        assert_matches(filter_.state, twin.state)


def test_changing_strings_do_not_make_a_program_each() -> None:
    class Named:
        def __init__(self) -> None:
            self.name = ""

        def __call__(self, x: Any) -> Any:
            self.name = self.name + "a"
            return x + len(self.name)

    jitted = follow(Named, _rows, 20)
    assert jitted.cache_info().misses < 16


def test_arrays_that_a_loop_writes_to_are_written_once_an_iteration() -> None:
    class Counter:
        def __init__(self) -> None:
            self.a, self.limit, self.start = np.arange(4.0), 0, np.arange(4) * 1j

        def step(self, x: np.ndarray, log: list[complex]) -> None:
            if float(x[0]) < self.limit:
                self.a[0] = float(x[0])
            else:
                log.append(complex(self.start[0]))
            if x.size and not x[0]:
                log.append(2.0)
            else:
                for _ in x:
                    self.a[1] = self.a.argmax()

    for size in (4, 5):
        ours, theirs = Counter(), Counter()
        step = rune_jit.jit(ours.step)
        for _ in range(3):
            step(np.ones(size), [])
            theirs.step(np.ones(size), [])
            assert_matches(ours.a, theirs.a)
