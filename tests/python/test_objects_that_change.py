"""Calls with new objects that the function returns or changes, or whose program several objects
share."""

from __future__ import annotations

import dataclasses
from collections import deque
from typing import Any

import numpy as np
import pytest
from compare import assert_matches
from test_new_objects import Average, Layer, Settings, X, applied, described, follow

import rune_jit
from rune_jit.calls.compiler import Compiler
from rune_jit.calls.trial import Trial


def test_shared_arrays() -> None:
    def written(a: Any, b: Any, x: Any) -> Any:
        a.factor[0] += x[0]
        b.factor[1] += 2 * a.factor[0]
        return a.factor + b.factor, a.factor is b.factor

    jitted = rune_jit.jit(written)
    for shared in (False, True, False, False, True, True):
        first, second = X.copy(), X.copy()
        ours = Settings(first), Settings(first if shared else X + 1)
        theirs = Settings(second), Settings(second if shared else X + 1)
        assert_matches(jitted(*ours, X), written(*theirs, X))
        assert_matches(described(ours), described(theirs))


def test_returned_objects() -> None:
    def returned(s: Any, x: Any) -> Any:
        return s, s.factor, [s, {"x": x + 1}], x * s.factor

    jitted = rune_jit.jit(returned)
    for i in range(5):
        s = Settings(X + i)
        result = jitted(s, X)
        assert result[0] is s
        assert result[1] is s.factor
        assert result[2][0] is s
        assert_matches(result[3], X * s.factor)


def test_returned_methods_and_keys() -> None:
    for i in range(4):
        layer, s = Layer(i), Settings(Settings(i))
        bound, y = _method(layer, X)
        assert bound.__self__ is layer
        assert_matches(y, layer(X))
        assert next(iter(_key(s, X))) is s
        assert _attribute(s, X)[0] is s.factor


_method = rune_jit.jit(lambda f, x: (f.__call__, f(x)))
_key = rune_jit.jit(lambda s, x: {s: x * 2})
_attribute = rune_jit.jit(lambda s, x: (s.factor, x * 2))


def test_objects_that_are_changed() -> None:
    def step(s: Any, x: Any) -> Any:
        s.factor = s.factor * 2
        s.name += "."
        return s

    def grown(s: Any, x: Any) -> Any:
        s.last = x * s.factor
        return s

    def appended(s: Any, x: Any) -> Any:
        s.factor.append(x * 2)
        return s

    def in_place(s: Any, x: Any) -> Any:
        s.factor += x
        return s

    for function, make in [
        (step, lambda i: Settings(float(i))),
        (step, lambda i: Settings(X + i)),
        (grown, lambda i: Settings(float(i))),
        (grown, lambda i: Settings(X + i)),
        (appended, lambda i: Settings([X])),
        (in_place, lambda i: Settings(X + i)),
    ]:
        jitted = rune_jit.jit(function)
        for i in range(6):
            ours, theirs = make(i), make(i)
            for _ in range(3):
                assert jitted(ours, X) is ours
                function(theirs, X)
                assert_matches(described(ours), described(theirs))


def test_objects_of_objects_are_changed() -> None:
    class Model:
        def __init__(self, i: int) -> None:
            self.averages = [Average(), Average()]
            self.total = Settings(float(i))

        def __call__(self, x: Any) -> Any:
            self.total.factor = self.total.factor + x.sum()
            return sum(f(x) for f in self.averages)

    jitted = rune_jit.jit(applied)
    for i in range(5):
        ours, theirs = Model(i), Model(i)
        for k in range(3):
            assert_matches(jitted(ours, X + k), applied(theirs, X + k))
            assert_matches(described(ours), described(theirs))


def test_functions_that_numba_compiles() -> None:
    numba = pytest.importorskip("numba")

    @numba.njit  # type: ignore[untyped-decorator]
    def sums(x: Any, out: Any) -> float:
        total = 0.0
        for i in range(len(x)):
            total += x[i]
            out[i] = total
        return total

    @numba.vectorize  # type: ignore[untyped-decorator]
    def scaled_by(x: Any) -> Any:
        return x * 2 + 1

    @numba.stencil  # type: ignore[untyped-decorator]
    def differences(x: Any) -> Any:
        return x[0] - x[-1]

    def program(x: Any, scale: Any = scaled_by) -> Any:
        out = np.zeros_like(x)
        return sums(x * 2, out), out, scale(x) + x, differences(out + 1) * 2

    follow(program, [(X,), (X + 1,), (X,), (X,)])


class Decaying:
    def __init__(self) -> None:
        self.steps, self.mean = 0, np.zeros(6)
        self.log: list[Any] = []

    def add(self, x: Any) -> Any:
        self.steps += 1
        self.mean = 0.9 * self.mean + 0.1 * x
        return self.mean / (1 - 0.9**self.steps) if self.steps < 100 else self.mean


def test_a_counter_that_is_asked_for_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)

    def add(s: Any, x: Any) -> Any:
        s.steps += 1
        if s.steps % 5 == 0:
            s.mean = s.mean * 0.5
        s.mean = s.mean + x
        return s.mean * s.steps

    def logging(s: Any, x: Any) -> Any:
        s.steps += 1
        if s.steps % 7 == 0:
            s.log.append(s.mean.sum())
        if s.steps % 11 == 0:
            s.log.append(int(s.mean.sum()))  # needs the value: this way runs in segments
        s.mean = 0.9 * s.mean + x
        return s.mean / (1 - 0.9**s.steps)

    for function in (add, logging):
        ours, theirs = Decaying(), Decaying()
        jitted = rune_jit.jit(function)
        for _ in range(35):
            assert_matches(jitted(ours, X), function(theirs, X))
            assert_matches(described(ours), described(theirs))
        assert jitted.cache_info().misses < 12
        assert "one for each way" in jitted.explain()
        assert "on NumPy" not in jitted.explain()


def test_objects_with_a_counter_that_is_asked_for_share_a_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)
    traces = 0
    trace = Compiler.trace

    def count(self: Any, *args: Any) -> Any:
        nonlocal traces
        traces += 1
        return trace(self, *args)

    monkeypatch.setattr(Compiler, "trace", count)

    def run(averages: Any, x: Any) -> Any:
        return [averages.add(x) for _ in range(3)]

    objects = [Decaying() for _ in range(9)]  # none gets the address of another one
    jitted = follow(run, [(x, X) for x in objects[:4]])
    before = traces
    for x in objects[4:]:
        assert_matches(jitted(x, X), run(Decaying(), X))
    assert traces == before


def test_shared_programs_are_compared_with_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: "NumPy is faster")
    jitted = rune_jit.jit(lambda layer, x: layer(x))
    layers = [Layer(i) for i in range(100)]
    for layer in layers:
        assert_matches(jitted(layer, X), layer(X))
    assert "on NumPy: NumPy is faster" in jitted.explain()


class _Settings:
    def __init__(self) -> None:
        self.count, self.last = 0, None


@dataclasses.dataclass
class _PlainSettings:
    count: int = 0
    last: Any = None


@dataclasses.dataclass
class _Layer:
    weights: np.ndarray
    settings: Any
    rng: Any


def _counts(layer: _Layer, x: np.ndarray) -> Any:
    layer.settings.count += 1
    layer.settings.last = x
    return layer.weights * x * layer.settings.count


def _assigns(layer: _Layer, x: np.ndarray) -> Any:
    layer.settings.last = x.sum()
    return layer.weights * x


def _draws(layer: _Layer, x: np.ndarray) -> Any:
    return layer.weights * x + layer.rng.normal(size=3)


@pytest.mark.parametrize("function", [_counts, _assigns, _draws])
@pytest.mark.parametrize("kind", [_Settings, _PlainSettings])
def test_objects_that_dataclasses_hold(function: Any, kind: Any) -> None:
    ours, theirs = (_Layer(np.ones(3), kind(), np.random.default_rng(1)) for _ in range(2))
    jitted = rune_jit.jit(function, fallback="silent")
    for i in range(4):
        x = np.arange(3.0) + i
        assert_matches(jitted(ours, x), function(theirs, x))
        assert_matches(vars(ours.settings), vars(theirs.settings))
    assert ours.rng.bit_generator.state == theirs.rng.bit_generator.state


@dataclasses.dataclass
class _Node:
    value: Any
    parent: Any = None
    children: list[Any] = dataclasses.field(default_factory=list)


def _tree(value: Any) -> _Node:
    root = node = _Node(value)
    for i in range(6):
        child = _Node(value + i, node)
        node.children.append(child)
        node = child if i % 2 else node
    return root


def _total(node: _Node) -> Any:
    return node.value + sum(map(_total, node.children))


def _grow(node: _Node) -> Any:
    node.children.append(_Node(node.value * 2, node))
    node.value = node.value + 1
    return len(node.children)


@pytest.mark.parametrize("function", [_total, _grow])
@pytest.mark.parametrize("value", [1, np.ones(3)])
def test_dataclasses_that_hold_one_another(function: Any, value: Any) -> None:
    ours, theirs = _tree(value), _tree(value)
    jitted = rune_jit.jit(function, fallback="silent")
    for _ in range(4):
        assert_matches(jitted(ours), function(theirs))
        assert_matches(_total(ours), _total(theirs))


def test_a_list_of_linked_dataclasses() -> None:
    def append(head: Any, value: Any) -> Any:
        new = _Node(value)
        if head is None:
            return new
        last = head
        while last.parent is not None:
            last = last.parent
        last.parent = new
        return head

    jitted = rune_jit.jit(append, fallback="silent")
    ours = theirs = None
    for i in range(5):
        ours, theirs = jitted(ours, i), append(theirs, i)
        assert ours == theirs


def test_a_queue_in_a_dataclass() -> None:
    def appends(layer: Any, x: Any) -> Any:
        layer.rng.append(float(x.sum()))
        return layer.weights * x * len(layer.rng)

    ours, theirs = (_Layer(np.ones(3), 1, deque([0.0], 3)) for _ in range(2))
    jitted = rune_jit.jit(appends, fallback="silent")
    for i in range(4):
        x = np.arange(3.0) + i
        assert_matches(jitted(ours, x), appends(theirs, x))
        assert ours.rng == theirs.rng


def test_attributes_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)
    s = Settings(X)

    def weighted(s: Any, x: Any) -> Any:
        total = x
        for value in vars(s).values():
            total = 2 * total + (value if isinstance(value, np.ndarray) else len(value))
        return total

    jitted = rune_jit.jit(weighted)
    for name in (None, "factor", "factor", "name"):
        if name:
            value = getattr(s, name)
            delattr(s, name)
            setattr(s, name, value)
        for _ in range(2):
            assert_matches(jitted(s, X), weighted(s, X))
