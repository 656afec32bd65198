"""Functions that make arrays and write to them, reached in other ways than by their names: they are
traced like the others, and the same functions to code that compares them."""

from __future__ import annotations

import collections
import dataclasses
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pytest
from compare import assert_same
from numpy import zeros

import rune_jit
from rune_jit.capture.rebinder import Rebinder


def f(x: Any) -> Any:
    out = np.zeros(x.shape)
    out[...] = x
    out[1:] += x[:-1]
    return out


def g(x: Any) -> Any:
    out = np.empty_like(x)
    out[:] = x * 2
    return out


def h(x: Any, k: float = 3.0) -> Any:
    out = zeros(len(x))
    out[...] = x * k
    return out


def add(x: Any, y: Any) -> Any:
    out = np.zeros(x.shape)
    out[:] = x + y
    return out


def numbers(x: Any) -> Iterator[Any]:
    for i in range(3):
        yield STEPS[0](x) * i


class Layer:
    table: ClassVar[dict[str, Any]] = {"f": f}

    def __init__(self, k: float) -> None:
        self.k, self.act, self.acts = k, f, [f, g]

    def __call__(self, x: Any) -> Any:
        out = np.zeros(x.shape)
        out[...] = x * self.k
        return out

    def go(self, x: Any) -> Any:
        out = np.zeros_like(x)
        out[:] = x + self.k
        return self.acts[0](self.act(out))

    @staticmethod
    def static(x: Any) -> Any:
        return h(x, 2.0)

    @classmethod
    def of_class(cls, x: Any) -> Any:
        return cls.table["f"](x)


class Sublayer(Layer):
    def go(self, x: Any) -> Any:
        out = np.zeros_like(x)
        out[:] = super().go(x)
        return out


class Weighted(Layer):
    def __init__(self) -> None:
        super().__init__(2.0)
        self.w, self.layers = np.arange(4.0), [Layer(2.0), Layer(3.0)]

    def go(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return self.acts[1](self.act(x)) + self.w


def scaled(k: float) -> Callable[..., Any]:
    def inner(x: Any) -> Any:
        out = np.zeros(x.shape)
        out[:] = x * k
        return out

    return inner


def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        ones = np.zeros(3)
        ones[:] = 1
        return function(*args, **kwargs) + ones.sum()

    return wrapper


@functools.singledispatch
def dispatched(x: Any) -> Any:
    return STEPS[0](x)


@dataclasses.dataclass
class Settings:
    act: Any
    scale: float = 2.0


Pair = collections.namedtuple("Pair", "function k")
STEPS = [f, g]
PAIR = (f, h)
OPS: dict[str, Any] = {"f": f, "g": g, "h": h, "numpy": np.zeros_like}
NESTED: dict[str, Any] = {"a": [f, (g, {"h": h})]}
PARTS = [functools.partial(f), functools.partial(h, k=2.0), functools.partial(add, np.ones(4))]
LAMBDAS = {"square": lambda x: STEPS[0](x) ** 2, "own": lambda x: h(x)}
LAYER, SUBLAYER, WEIGHTED = Layer(2.0), Sublayer(3.0), Weighted()
METHODS = [LAYER.go, LAYER, SUBLAYER.go, WEIGHTED.go, Layer.static, Layer.of_class]
SPACE = types.SimpleNamespace(f=f, inner=types.SimpleNamespace(h=h))
CLOSURES = [scaled(k) for k in (1.0, 2.0)]
DECORATED = [decorator(f), decorator(scaled(2.0))]
SETTINGS, NAMED = Settings(f), Pair(f, 2)
GENERATORS = [numbers]
WEIGHTS = {f: 2.0, g: 3.0}


def in_turn(functions: Any, x: Any) -> Any:
    for function in functions:
        x = function(x)
    return x


def with_defaults(x: Any, functions: Any = (f, g), table: Any = OPS) -> Any:
    return table["f"](in_turn(functions, x))


def chain(*functions: Any) -> Callable[..., Any]:
    def run(x: Any) -> Any:
        for function in functions:
            x = function(x)
        return x

    return run


def write_into_new(x: Any) -> Any:
    out = OPS["numpy"](x)
    out[1:] = x[1:]
    return out


WAYS: dict[str, Callable[..., Any]] = {
    "a list": lambda x: in_turn(STEPS, x),
    "an item of a list": lambda x: STEPS[0](x) + STEPS[-1](x),
    "a tuple": lambda x: in_turn(PAIR, x),
    "a dict": lambda x: OPS["f"](x) + OPS.get("h", f)(x),
    "items of a dict": lambda x: {name: op(x) for name, op in OPS.items() if name != "numpy"},
    "nested": lambda x: NESTED["a"][1][1]["h"](NESTED["a"][0](x)),
    "partials": lambda x: in_turn(PARTS, x),
    "lambdas": lambda x: LAMBDAS["square"](x) + LAMBDAS["own"](x),
    "methods in a list": lambda x: in_turn(METHODS, x),
    "methods": lambda x: LAYER.go(x) + SUBLAYER.go(x) + WEIGHTED.go(x),
    "a callable object": lambda x: LAYER(x),
    "methods of classes": lambda x: Layer.static(x) + Layer.of_class(x) + LAYER.static(x),
    "namespaces": lambda x: SPACE.inner.h(SPACE.f(x)),
    "an attribute of a class": lambda x: Layer.table["f"](x),
    "decorators": lambda x: in_turn(DECORATED, x),
    "closures": lambda x: in_turn(CLOSURES, x),
    "singledispatch": lambda x: dispatched(x),
    "keys": lambda x: sum(function(x) * weight for function, weight in WEIGHTS.items()),
    "a generator": lambda x: sum(GENERATORS[0](x)),
    "map": lambda x: list(map(STEPS[1], [x, x + 1])),
    "reduce": lambda x: functools.reduce(lambda y, function: function(y), STEPS, x),
    "a list as an argument": lambda x: in_turn([OPS["f"], g], x),
    "defaults": lambda x: with_defaults(x),
    "a named tuple": lambda x: NAMED.function(x) * NAMED.k,
    "a dataclass": lambda x: SETTINGS.act(x) * SETTINGS.scale,
    "getattr": lambda x: getattr(SPACE, "f")(x) + getattr(LAYER, "go")(x),  # noqa: B009
    "unpacked": lambda x: [function(x) for function in (*STEPS, *PAIR)],
    "a choice": lambda x: (f if len(x) > 3 else g)(x) + (g if x is None else STEPS[0])(x),
    "made at run time": lambda x: chain(*STEPS)(x),
    "objects made at run time": lambda x: in_turn([Layer(2.0), Layer(3.0).go], x),
    "a function of NumPy": write_into_new,
}


@pytest.mark.parametrize("in_segments", [False, True], ids=["program", "segments"])
@pytest.mark.parametrize("way", WAYS)
def test_they_are_traced(way: str, in_segments: bool) -> None:
    function = WAYS[way]

    def call(x: Any) -> Any:
        return function(x), float(x.sum()) if in_segments else 0.0

    jitted = rune_jit.jit(call, fallback="warn")
    for i in range(4):
        x = np.arange(4.0) + i
        assert_same(jitted(x), call(x))
    if not in_segments:
        assert jitted.explain() == "call: as one program"


def is_itself(x: Any) -> Any:
    same = (f in STEPS, STEPS.index(g), STEPS[0] is f, f in WEIGHTS, OPS["f"] == f, f is f)
    made = {f: 1.0, g: 2.0}
    return (*same, x * WEIGHTS[f] * made[OPS["f"]], STEPS[0](x), f(x), in_turn(STEPS, x))


@pytest.mark.parametrize("in_segments", [False, True], ids=["program", "segments"])
def test_they_stay_the_functions_that_they_are(in_segments: bool) -> None:
    def call(x: Any) -> Any:
        return is_itself(x), str(x.sum()) if in_segments else ""

    jitted = rune_jit.jit(call)
    for i in range(4):
        x = np.arange(4.0) + i
        assert_same(jitted(x), call(x))
    if not in_segments:
        assert jitted.explain() == "call: as one program"


class Layers:
    """A class with methods that a function does not use."""

    def __init__(self) -> None:
        self.w = np.arange(6.0).reshape(2, 3)

    def run(self, x: Any, name: str) -> Any:
        return getattr(self, name)(x) if name else self.total + self.last(x)

    @property
    def total(self) -> Any:
        return self.scaled(self.w).sum()

    @staticmethod
    def scaled(w: Any) -> Any:
        return w * SCALES[0]

    def last(self, x: Any) -> Any:
        out = np.zeros(2)
        for i in range(2):
            out[i] = (self.w[i] * x).sum()
        return out

    def first(self, x: Any) -> Any:
        return x[:2] * self.w[0, 1]

    def same(self, x: Any, y: Any) -> Any:
        return SCALES[1] if x is y else SCALES[0]


SCALES = [2.0, 3.0]


@pytest.mark.parametrize(
    ("call", "copied"),
    [
        (lambda layers, x: layers.last(x), {"last"}),
        (lambda layers, x: layers.run(x, ""), {"run", "last", "total", "scaled"}),
        (lambda layers, x: layers.run(x, "first"), {"run", "first"}),
        (lambda layers, x: (layers.first)(x) + sorted([1, 0], key=layers.scaled)[1], None),
    ],
)
def test_only_the_methods_that_are_used_are_copied(
    monkeypatch: Any, call: Any, copied: Any
) -> None:
    codes, code_of = set(), Rebinder._code_of

    def noted(self: Any, function: Any) -> Any:
        codes.add(function.__name__)
        return code_of(self, function)

    monkeypatch.setattr(Rebinder, "_code_of", noted)
    jitted = rune_jit.jit(call, fallback="error")
    for x in (np.ones(3), np.arange(3.0)):
        assert_same(jitted(Layers(), x), call(Layers(), x))
    assert copied is None or codes == {"<lambda>", *copied}


def test_what_methods_read_is_watched() -> None:
    def call(layers: Any, x: Any) -> Any:
        return layers.total + layers.same(x, layers.w)

    jitted = rune_jit.jit(call)
    for scale in (2.0, 2.0, 5.0, 7.0):
        SCALES[0] = scale
        for x in (np.ones(3), np.arange(3.0)):
            assert_same(jitted(Layers(), x), call(Layers(), x))
    SCALES[0] = 2.0


def test_copies_of_objects_have_their_class_and_attributes() -> None:
    def call(layers: Any, x: Any) -> Any:
        kinds = type(layers) is Layers, layers.__class__ is Layers, isinstance(layers, Layers)
        return x * 2, kinds, sorted(vars(layers)), layers

    layers = Layers()
    jitted = rune_jit.jit(call)
    for _ in range(3):
        found, wanted = jitted(layers, np.ones(3)), call(layers, np.ones(3))
        assert_same(found[0], wanted[0])
        assert found[1:3] == wanted[1:3]
        assert found[3] is layers
        assert type(layers) is Layers
