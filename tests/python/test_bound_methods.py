"""Jitted methods of objects, which other jitted functions reach by variables, globals, lists and
arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit

X = np.arange(3.0)


class Layer:
    def __init__(self) -> None:
        self.scale, self.weights, self.count, self.last = 2.0, np.ones(3), 0, np.zeros(3)

    def of_scale(self, x: Any) -> Any:
        return x * self.scale + self.weights

    def counted(self, x: Any) -> Any:
        self.count += 1
        self.last = x * self.count
        return x + self.count


class JittedLayer(Layer):
    of_scale = rune_jit.jit(Layer.of_scale)
    counted = rune_jit.jit(Layer.counted)


HELD: Any = None


def by_variable(method: Any) -> Callable[[Any], Any]:
    return lambda x: method(x) - 1


def by_global(method: Any) -> Callable[[Any], Any]:
    global HELD
    HELD = method
    return lambda x: HELD(x) - 1


def by_list(method: Any) -> Callable[[Any], Any]:
    methods = [method]
    return lambda x: methods[0](x) - 1


def by_default(method: Any) -> Callable[[Any], Any]:
    def f(x: Any, method: Any = method) -> Any:
        return method(x) - 1

    return f


def by_function(method: Any) -> Callable[[Any], Any]:
    def shifted(x: Any) -> Any:
        return method(x + 1)

    return lambda x: shifted(x) - 1


def by_attribute(method: Any) -> Callable[[Any], Any]:
    class Holder:
        pass

    holder: Any = Holder()
    holder.method = method
    return lambda x: holder.method(x) - 1


def by_value(method: Any) -> Callable[[Any], Any]:
    """In segments."""
    return lambda x: method(x) - 1 + 0 * sum(x.tolist())


WAYS = [by_variable, by_global, by_list, by_default, by_function, by_attribute, by_value]


def run(make: Any, layer: Any, name: str, wrap: Callable[[Any], Any]) -> list[Any]:
    function = wrap(make(getattr(layer, name)))
    found = []
    for i in range(6):
        layer.scale = float(i // 2)
        if i == 3:
            layer.weights = np.full(3, 5.0)
        found += [function(X + i), layer.count, layer.last]
        assert type(layer.last) is np.ndarray
    return found


@pytest.mark.parametrize("name", ["of_scale", "counted"])
@pytest.mark.parametrize("make", WAYS)
def test_their_objects_are_read_and_assigned_at_each_call(make: Any, name: str) -> None:
    wanted = run(make, Layer(), name, lambda f: f)
    assert_same(run(make, JittedLayer(), name, rune_jit.jit), wanted)


@pytest.mark.parametrize("name", ["of_scale", "counted"])
def test_an_argument(name: str) -> None:
    def apply(method: Any, x: Any) -> Any:
        return method(x) * 2

    jitted = rune_jit.jit(apply)
    ours, theirs = JittedLayer(), Layer()
    methods = getattr(ours, name), getattr(theirs, name)
    for i in range(6):
        ours.scale = theirs.scale = float(i // 2)
        assert_same(jitted(methods[0], X + i), apply(methods[1], X + i))
        assert (ours.count, type(ours.last)) == (theirs.count, np.ndarray)


def test_a_result() -> None:
    layer = JittedLayer()

    @rune_jit.jit
    def f(x: Any) -> Any:
        return x * 2, layer.of_scale

    for _ in range(3):
        doubled, method = f(X)
        assert_same(doubled, X * 2)
        assert method.__self__ is layer
        assert_same(method(X), X * 2 + 1)
        assert method.lower(X) is not None


def test_it_is_a_method_for_inspect() -> None:
    class Made:
        @classmethod
        @rune_jit.jit
        def of(cls, x: Any) -> Any:
            return x * 2

    for method in (JittedLayer().of_scale, Made.of):
        assert inspect.ismethod(method)
        assert [*inspect.signature(method).parameters] == ["x"]
