"""Objects of the user's classes that a traced function makes: their methods are traced like
functions, and nobody can tell that they are."""

from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
from typing import Any

import numpy as np
import pytest
from compare import assert_same
from loop_checks import ROLLED

import rune_jit

X = np.random.default_rng(3).normal(size=60)


class Accumulator:
    made = 0

    def __init__(self, start: float = 0.0) -> None:
        self.total, self.largest, self.count = start, -np.inf, 0

    def add(self, value: Any) -> Any:
        if value > self.largest:
            self.largest = value
            self.count += 1
        self.total += value
        return self.largest

    def __call__(self, value: Any) -> Any:
        return self.add(value) if value > 0 else self.largest

    @property
    def mean(self) -> Any:
        return self.total / 60 if self.total > 0 else 0.0

    @mean.setter
    def mean(self, value: Any) -> None:
        self.total = value * 60

    @staticmethod
    def clipped(value: Any) -> Any:
        return value if value > 0 else 0.0

    @classmethod
    def counted(cls) -> Any:
        cls.made += 1
        return cls(cls.made)

    def unused(self) -> Any:
        try:
            return self.missing  # type: ignore[attr-defined]
        except AttributeError:
            return None


class Limited(Accumulator):
    limit = 1.0

    def add(self, value: Any) -> Any:
        if value > self.limit:
            return self.largest
        return super().add(value)


class Descent:
    """Its method has the loop."""

    def __init__(self, rate: float = 0.1, steps: int = 50) -> None:
        self.rate, self.steps, self.taken = rate, steps, 0

    def fit(self, a: Any, y: Any) -> Any:
        self.w = np.zeros(a.shape[1])
        for _ in range(self.steps):
            gradient = a.T @ (a @ self.w - y) / len(y)
            if np.abs(gradient).max() < 1e-3:
                break
            self.w -= self.rate * gradient
            self.taken += 1
        return self


@dataclasses.dataclass
class Point:
    x: Any
    y: Any = 0.0

    def moved(self, by: Any) -> Any:
        if by > 0:
            return Point(self.x + by, self.y)
        return Point(self.x, self.y + by)


def how(function: Any, *args: Any) -> list[str]:
    jitted = rune_jit.jit(function)
    for _ in range(3):
        given, wanted = copy.deepcopy(args), copy.deepcopy(args)
        assert_same(jitted(*given), function(*wanted), ulps=8, scaled=True)
        assert_same(given, wanted)
    lines = [line.strip() for line in jitted.explain().splitlines()]
    return [line for line in lines if line.startswith("loop at")]


def rolled(function: Any, *args: Any) -> None:
    lines = how(function, *args)
    assert lines and all(line.endswith(ROLLED) for line in lines), lines


def test_methods_with_branches() -> None:
    def f(x: Any) -> Any:
        a = Accumulator()
        out = np.empty(len(x))
        for i in range(len(x)):
            out[i] = a.add(x[i]) + a.clipped(x[i])
        return out, a.total, a.count

    rolled(f, X)


def test_special_methods_properties_and_overridden_methods() -> None:
    def f(x: Any) -> Any:
        a, b = Accumulator(), Limited(2.0)
        for value in x:
            a(value)
            b.add(value)
        a.mean = a.mean + 1.0
        return a.total, a.largest, b.total, b.count, b.mean

    assert how(f, X)


def test_methods_with_loops() -> None:
    def f(x: Any, y: Any) -> Any:
        model = Descent().fit(x.reshape(20, 3), y)
        return model.w, model.taken

    rolled(f, X, X[:20])


def test_new_objects_in_loops() -> None:
    def f(x: Any) -> Any:
        p = Point(0.0)
        for value in x:
            p = p.moved(value)
        return p.x, p.y

    rolled(f, X)


def test_a_class_of_the_function() -> None:
    def f(x: Any) -> Any:
        class Range:
            def __init__(self) -> None:
                self.low, self.high = np.inf, -np.inf

            def feed(self, value: Any) -> None:
                if value < self.low:
                    self.low = value
                if value > self.high:
                    self.high = value

        r = Range()
        for value in x:
            r.feed(value)
        return r.low, r.high

    assert how(f, X)


def test_what_can_be_asked_about_classes() -> None:
    def f(x: Any) -> Any:
        a, b = Accumulator(), Limited()
        a.add(x[0])
        return (
            type(a) is Accumulator,
            type(a).__name__,
            a.__class__ is Accumulator,
            isinstance(b, Accumulator),
            isinstance(a, Limited),
            type(b).__mro__ == Limited.__mro__,
            issubclass(type(b), Accumulator),
            Point(1, 2) == Point(1, 2),
            repr(Point(1, 2)),
            type(type(a)) is type,
            type(x) is np.ndarray,
            {type(a): 3}[Accumulator],
            a.largest,
        )

    how(f, X)


def test_returned_objects_are_of_their_classes() -> None:
    kept: list[Any] = []

    def f(x: Any, holder: Any) -> Any:
        p = Point(x[0], Point(x[1]))
        for value in x:
            p = Point(p.x + value, p.y)
        holder["p"] = p
        return p, [Accumulator(1.0)]

    jitted = rune_jit.jit(f)
    for _ in range(3):
        holder: dict[str, Any] = {}
        p, (a,) = jitted(X, holder)
        assert type(p) is type(p.y) is type(holder["p"]) is Point and type(a) is Accumulator
        assert p.x == pytest.approx(X[0] + X.sum())
        assert type(p.moved(1.0)) is Point and a.add(3.0) == 3.0
        assert type(pickle.loads(pickle.dumps(p))) is Point
        kept.append(p)
    assert vars(Point).keys() == vars(dataclasses.replace(p).__class__).keys()


def test_objects_that_outlive_a_failed_trace_are_of_their_classes() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        a = Accumulator()
        seen.append(a)
        if a.add(x[0]) > 0:  # known only when the program runs
            a.add(x[1])
        raise ValueError(str(float(a.total)))

    for _ in range(3):
        with pytest.raises(ValueError):
            rune_jit.jit(f)(np.abs(X))
    assert {type(a) for a in seen} == {Accumulator}


def test_what_is_assigned_to_a_class_is_assigned_to_it() -> None:
    def f(x: Any) -> Any:
        a = Accumulator.counted()
        type(a).made += 1
        b = Accumulator()
        b.__class__.made += 1
        return x + a.total + Accumulator.made

    jitted = rune_jit.jit(f)
    for _ in range(3):
        Accumulator.made = 0
        expected = f(X)
        assert Accumulator.made == 3
        Accumulator.made = 0
        np.testing.assert_array_equal(jitted(X), expected)
        assert Accumulator.made == 3
    Accumulator.made = 0


def test_a_method_that_changes() -> None:
    class Scale:
        def by(self, x: Any) -> Any:
            return x * 2 if x.ndim else x

    def f(x: Any) -> Any:
        return Scale().by(x)

    jitted = rune_jit.jit(f)
    for _ in range(2):
        np.testing.assert_array_equal(jitted(X), X * 2)
    Scale.by = lambda self, x: x * 3  # type: ignore[method-assign]
    for _ in range(2):
        np.testing.assert_array_equal(jitted(X), X * 3)


def test_classes_that_see_their_subclasses() -> None:
    found: list[str] = []

    class Registered:
        def __init_subclass__(cls) -> None:
            found.append(cls.__name__)

        def twice(self, x: Any) -> Any:
            return x * 2

    def f(x: Any) -> Any:
        return Registered().twice(x)

    assert how(f, X) == [] and found == []


def test_arrays_that_methods_make() -> None:
    class Buffer:
        def __init__(self, n: int) -> None:
            self.items, self.count = np.zeros(n), 0

        def push(self, value: Any) -> None:
            self.items[self.count % len(self.items)] = value
            self.count += 1

    def f(x: Any) -> Any:
        b = Buffer(7)
        for value in x:
            b.push(value * 2)
        return b.items, b.count

    rolled(f, X)


class Matrix:
    def __init__(self, a: Any) -> None:
        self.a = a

    def __matmul__(self, other: Any) -> Any:
        return Matrix(self.a @ other.a)

    def __float__(self) -> float:
        return float(self.a[0, 0])

    def __bool__(self) -> bool:
        return bool(self.a[0, 0] > 0)

    def __len__(self) -> int:
        return len(self.a)

    def __contains__(self, value: Any) -> bool:
        return bool((self.a == value).any())


def test_what_python_needs_to_know_of_objects() -> None:
    def f(x: Any) -> Any:
        m = step = Matrix(x.reshape(-1, 2)[:2])
        for _ in range(5):
            m = m @ step
        return m.a, float(m), bool(m), len(m), 0.0 in m

    assert how(f, X)


class Counter:
    def __init__(self) -> None:
        self.hits, self.log, self.ring = 0, np.zeros(61), [1.0, 2.0]

    def hit(self, value: Any) -> Any:
        self.hits += 1
        self.log[self.hits] = value
        self.ring = [self.ring[1], self.ring[0] + value]
        return value < 1


def test_methods_in_operands_run_where_python_runs_them() -> None:
    def both(x: Any) -> Any:
        c, k = Counter(), 0
        for value in x:
            if value > 0 and c.hit(value):
                k += 1
        return c.hits, c.log, c.ring, k

    def either(x: Any) -> Any:
        c, k = Counter(), 0.0
        for value in x:
            k += 1.0 if value > 0 or c.hit(value) else 2.0
        return c.hits, c.log, c.ring, k

    def of_functions(x: Any) -> Any:
        hits, k = 0, 0

        def hit(value: Any) -> Any:
            nonlocal hits
            hits += 1
            return value < 1

        for value in x:
            while value > 0 and hit(value) and value < 3:
                value = value + 1
                k += 1
        return hits, k

    for f in (both, either, of_functions):
        assert how(f, X)


def test_lambdas_that_call_classes() -> None:
    kind = Accumulator

    class Running:
        def __init__(self, x: Any) -> None:
            self.total = kind(1.0)
            self.sums = np.array(x)
            for i in range(len(x)):
                self.total.add(x[i])
                self.sums[i] = self.total.total

    functions: list[Any] = [
        lambda x: Running(x).sums,
        lambda x, scale=2.0: (Running(x * scale).sums, *[kind(v).total for v in (1.0, 2.0)]),
    ]
    for f in functions:
        rolled(f, X)
        assert "as one program" in _explained(f)


def _explained(f: Any) -> str:
    jitted = rune_jit.jit(f)
    jitted(X)
    return jitted.explain()


def _is_array(x: Any) -> bool:
    return type(x) is np.ndarray


class Model:
    def __init__(self, data: Any) -> None:
        if not self.is_known(data):
            raise ValueError(f"unrecognized data: {type(data)}")
        self.data = np.asarray(data)

    def is_known(self, data: Any) -> bool:
        return _is_array(data)

    @property
    def kind(self) -> type:
        return type(self.data)


def test_methods_see_arrays_in_segments() -> None:
    make = lambda x: Model(x)  # noqa: E731 (lambdas are read in another way)

    def f(x: Any) -> Any:
        first = x[0].tolist()
        model = Model(x) if first > 0 else make(x)
        return model.data * first, model.kind is np.ndarray, type(model) is Model

    jitted = rune_jit.jit(f)
    for i in range(3):
        assert_same(jitted(X + i), f(X + i))
        assert_same(jitted(-X - i), f(-X - i))


class Vector:
    def __init__(self, parts):
        self.parts = parts

    def length(self):
        return np.sqrt((self.parts**2).sum())


LENGTHS = []


def total_length(x):
    total = 0.0
    for i in range(3):
        length = float(Vector(x * i).length()) * np.nonzero(x)[0].tolist()[-1]
        LENGTHS.append(length)
        total += length
    return total


def test_classes_of_made_objects_do_not_keep_the_trace(monkeypatch):
    """All objects are searched for those that keep copies of functions, which takes milliseconds:
    the classes must not."""
    searches, search = [], gc.get_referrers
    monkeypatch.setattr(gc, "get_referrers", lambda *of: searches.append(of) or search(*of))
    jitted = rune_jit.jit(total_length)
    for _ in range(3):
        LENGTHS.clear()
        assert jitted(np.array([3.0, 4.0])) == 15
        assert LENGTHS == [0, 5, 10]
    assert "in segments" in jitted.explain()
    assert not searches


class Signal:
    __array_priority__ = 10

    def __init__(self, values):
        self.values = np.asarray(values)

    @staticmethod
    def of(x):
        return x if isinstance(x, Signal) else Signal(x)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)

    def __sub__(self, other):
        return Signal(self.values - Signal.of(other).values)

    def __rsub__(self, other):
        return Signal.of(other) - self


def test_reflected_methods_and_conversion_to_arrays() -> None:
    def f(x, y):
        made = x - Signal(y)
        print(made.values[0].tolist())
        return made.values, float(np.sum(made)), np.maximum(Signal(x), 0.5)

    jitted = rune_jit.jit(f)
    for i in range(3):
        assert_same(jitted(X + i, X * 2), f(X + i, X * 2), ulps=8, scaled=True)
