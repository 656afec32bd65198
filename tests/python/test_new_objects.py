"""Calls with objects that the function has not met: those like a known one, in its class and in
what the trace has read of it, share its program; others have one of their own."""

from __future__ import annotations

import functools
import itertools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_matches
from new_objects import Layer, Settings, X, described, follow, scaled

import rune_jit
from rune_jit.calls.trial import Trial


class Slots:
    __slots__ = ("factor", "more", "weights")

    def __init__(self, factor: float = 2.0, seed: int = 0) -> None:
        self.factor = factor
        self.weights = X + seed

    def __call__(self, x: Any) -> Any:
        return self.weights * x + self.factor + (self.more if hasattr(self, "more") else 0)


class Average:
    """An object with state."""

    def __init__(self, rate: float = 0.5) -> None:
        self.rate, self.calls, self.mean = rate, 0, np.zeros(6)

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        self.mean = self.rate * self.mean + (1 - self.rate) * x
        return self.mean / (1 - self.rate**self.calls)


def applied(f: Any, x: Any) -> Any:
    return f(x) * 2


def times(factor: Any) -> Callable[..., Any]:
    return lambda x: x * factor


@pytest.mark.parametrize(
    ("function", "make"),
    [
        (scaled, lambda i: Settings()),
        (scaled, lambda i: Settings(name=str(i))),  # which nothing reads
        (scaled, lambda i: Settings(X + i)),
        (applied, lambda i: Layer(i)),
        (applied, lambda i: Slots()),
        (applied, lambda i: Layer(i).__call__),
        (applied, lambda i: times(2.0)),
        (applied, lambda i: times(X * i)),
        (applied, lambda i: functools.partial(np.multiply, X + i)),
        (applied, lambda i: functools.partial(lambda layer, x: layer(x), Layer(i))),
        (lambda layers, x: sum(f(x) for f in layers), lambda i: [Layer(i), Layer(i + 1)]),
        (lambda layers, x: layers["a"](x) - x, lambda i: {"a": (Layer(i), None)[0]}),
    ],
)
def test_objects_of_one_class_share_a_program(
    function: Any, make: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)
    jitted = rune_jit.jit(function)
    for i in range(100):
        assert_matches(jitted(make(i), X), function(make(i), X))
    assert jitted.cache_info().misses == 1
    assert jitted.cache_info().fallbacks == 0


def test_methods() -> None:
    class Scale:
        def __init__(self, factor: float) -> None:
            self.weights = X * factor

        @rune_jit.jit
        def __call__(self, x: Any) -> Any:
            return self.weights * x

    for i in range(100):
        assert_matches(Scale(i)(X), X * i * X)
    assert vars(Scale)["__call__"].cache_info().misses == 1


def test_state() -> None:
    jitted = rune_jit.jit(lambda average, x: average(x))
    for i in range(40):
        ours, theirs = Average(), Average()
        for k in range(3):
            assert_matches(jitted(ours, X + i + k), theirs(X + i + k))
            assert_matches(described(ours), described(theirs))
    assert jitted.cache_info().misses <= 4


def counter() -> Callable[..., Any]:
    calls = 0

    def count(x: Any) -> Any:
        nonlocal calls
        calls += 1
        return x * calls

    return count


class Moments:
    """State in a dict."""

    def __init__(self) -> None:
        self.moments: dict[str, Any] = {}
        self.last: Any = None

    def __call__(self, x: Any) -> Any:
        self.moments["m"] = self.moments.get("m", 0.0) * 0.9 + x
        self.last = x if self.last is None else self.last + x
        return self.moments["m"] - self.last


@pytest.mark.parametrize("make", [counter, Moments, lambda: Average(0.25)])
def test_state_of_objects_that_are_used_little(
    make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)
    jitted = rune_jit.jit(lambda f, x: f(x))
    for i in range(30):
        ours, theirs = make(), make()
        for k in range(1 + i % 3):
            assert_matches(jitted(ours, X + i + k), theirs(X + i + k))
    assert jitted.cache_info().misses <= 8


def test_a_method_of_one_object_is_one_key() -> None:
    layer = Layer()
    jitted = rune_jit.jit(applied)
    for _ in range(50):
        assert_matches(jitted(layer.__call__, X), layer(X) * 2)
    assert (jitted.cache_info().misses, jitted.cache_info().size) == (1, 1)


def test_objects_that_run_in_segments() -> None:
    class Printed(Settings):
        def __call__(self, x: Any) -> Any:
            return x * len(f"{(x * self.factor).sum()}")

    jitted = follow(applied, [(Printed(2.0 + i % 2), X) for i in range(30)])
    assert jitted.cache_info().misses <= 3
    assert jitted.cache_info().segmented + jitted.cache_info().fallbacks >= 2


def test_globals_that_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(x: Any) -> Any:
        return x * CURRENT.factor

    jitted = rune_jit.jit(read)
    for factor in (2.0, 2.0, 2.0, 3.0, 2.0, X, X + 1):
        monkeypatch.setitem(globals(), "CURRENT", Settings(factor))
        assert_matches(jitted(X), X * factor)
    assert jitted.cache_info().misses <= 4


CURRENT = Settings()


# Other values.

DIFFERENT: dict[str, tuple[Any, list[tuple[Any, ...]]]] = {
    "numbers": (
        scaled,
        [
            (Settings(f), X)
            for f in (2.0, 3.0, 2, True, -0.0, 0.0, np.nan, 2j, None)
            if f is not None
        ],
    ),
    "NumPy's numbers": (scaled, [(Settings(np.float32(f)), X) for f in (1, 2, 1)]),
    "texts": (
        lambda s, x: x * 2 if s.name == "double" else x * 3,
        [(Settings(name=name), X) for name in ("double", "triple", "double", "")],
    ),
    "shapes": (applied, [(Layer(1, rows), X) for rows in (6, 3, 6, 1)]),
    "dtypes": (scaled, [(Settings(X.astype(t)), X) for t in (float, np.float32, int, complex)]),
    "orders": (
        lambda s, x: s.factor.ravel(order="K") * x,
        [(Settings(np.asarray(X.reshape(2, 3), order=order)), X) for order in "CFC"],
    ),
    "elements that are read": (
        lambda s, x: x[: int(s.factor[1])],
        [(Settings(np.array([0, i])), X) for i in (2, 3, 2, 4)],
    ),
    "of an object in it": (applied, [(Layer(i, factor=i), X) for i in (1, 2, 1)]),
    "kinds": (scaled, [(Settings(f), X) for f in (2.0, X, [1.0] * 6, (2.0,) * 6, X.tolist())]),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_values(name: str) -> None:
    function, calls = DIFFERENT[name]
    follow(function, calls + calls)


def edited(edit: Callable[[Any], Any], seed: int = 0) -> Any:
    layer = Layer(seed)
    edit(layer)
    return layer


EDITS: dict[str, Callable[[Any], Any]] = {
    "a length": lambda layer: layer.sizes.append(3),
    "an item": lambda layer: layer.sizes.__setitem__(1, 5),
    "an item of a dict": lambda layer: layer.names.update({"in": "z"}),
    "the order of a dict": lambda layer: layer.names.update({"in": layer.names.pop("in")}),
    "an attribute": lambda layer: setattr(layer, "activation", np.sin),
    "an attribute more": lambda layer: setattr(layer, "more", 3),
    "an attribute that hides a method": lambda layer: setattr(layer, "helped", lambda x: x + 1),
    "an attribute that hides the class's": lambda layer: setattr(layer, "constant", 7.0),
    "an attribute of another class": lambda layer: setattr(layer, "settings", Other(2.0)),
    "one array twice": lambda layer: setattr(layer, "bias", layer.weights[0]),
    "another class": lambda layer: setattr(layer, "__class__", Helped2),
}


class Helped(Layer):
    constant = 3.0

    def helped(self, x: Any) -> Any:
        return x * 2

    def __call__(self, x: Any) -> Any:
        y = super().__call__(self.helped(x)) + self.constant
        return y * (self.more if hasattr(self, "more") else 1) + sum(self.sizes)


class Helped2(Helped):
    constant = 4.0


class Other(Settings):
    @property
    def factor(self) -> Any:
        return 5.0

    @factor.setter
    def factor(self, value: Any) -> None:
        pass


@pytest.mark.parametrize("name", EDITS)
def test_edited_objects(name: str) -> None:
    def make(i: int, is_edited: bool) -> Helped:
        made = Helped(i)
        if is_edited:
            EDITS[name](made)
        return made

    jitted = rune_jit.jit(applied)
    for i, is_edited in enumerate((False, False, True, False, True, True, False)):
        assert_matches(jitted(make(i, is_edited), X), applied(make(i, is_edited), X))
    same = make(3, False)  # one object, before and after
    assert_matches(jitted(same, X), applied(same, X))
    EDITS[name](same)
    assert_matches(jitted(same, X), applied(same, X))


def test_attributes_that_are_deleted() -> None:
    def read(s: Any, x: Any) -> Any:
        return x * s.factor if hasattr(s, "factor") else x - 1

    for order in itertools.product([False, True], repeat=4):
        jitted = rune_jit.jit(read)
        last = Settings()
        for is_deleted in order:
            last = Settings()
            if is_deleted:
                del last.factor
            assert_matches(jitted(last, X), read(last, X))
        if hasattr(last, "factor"):
            del last.factor
        else:
            last.factor = 3.0
        assert_matches(jitted(last, X), read(last, X))


def test_slots_without_value() -> None:
    jitted = rune_jit.jit(applied)
    for more in (None, 2.0, None, 3.0, 2.0):
        made = Slots()
        if more is not None:
            made.more = more
        assert_matches(jitted(made, X), applied(made, X))


class Ring:
    __slots__ = ("data", "head", "last")

    def __init__(self, n: int, kind: Any = float) -> None:
        self.data = np.zeros(n, kind)
        self.head = 0

    def push(self, x: Any) -> Any:
        self.data[self.head] = self.last = x
        self.head = self.head + 1
        return self.data.sum()


def test_slots_that_functions_fill() -> None:
    plain = types.FunctionType(Ring.__init__.__code__, globals(), "plain", (float,))
    start, push = rune_jit.jit(Ring.__init__), rune_jit.jit(Ring.push)
    for kind in (float, float, np.uint8, float, np.float32):
        wanted, made = object.__new__(Ring), object.__new__(Ring)
        plain(wanted, 4, kind)
        start(made, 4, kind)
        for x in (X[0], X[1]):
            assert_matches(push(made, x), Ring.push(wanted, x))
        assert type(made.data) is np.ndarray
        assert_matches((made.data, made.last), (wanted.data, wanted.last))


def test_a_slot_that_is_filled_later() -> None:
    jitted = rune_jit.jit(applied)
    made = Slots()
    assert_matches(jitted(made, X), applied(made, X))
    made.more = 2.0
    assert_matches(jitted(made, X), applied(made, X))
    del made.more
    assert_matches(jitted(made, X), applied(made, X))


def test_class_attributes_that_change() -> None:
    class Scale:
        factor = 2.0

        def __call__(self, x: Any) -> Any:
            return x * self.factor

    jitted = rune_jit.jit(applied)
    for factor in (2.0, 2.0, 3.0, 2.0, X):
        Scale.factor = factor  # type: ignore[assignment]
        for _ in range(2):
            assert_matches(jitted(Scale(), X), X * factor * 2)
    Scale.__call__ = lambda self, x: x - 1  # type: ignore[method-assign]
    assert_matches(jitted(Scale(), X), (X - 1) * 2)
