"""Objects that change their class (`self.__class__ = Other`), and classes whose members change."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_matches

import rune_jit

X = np.linspace(0.0, 3.0, 12)


class Plain:
    def __init__(self, x: Any) -> None:
        self.x = x
        self.choose()

    def choose(self) -> None:
        if len(self.x) > 2:
            self.__class__ = Scaled

    def value(self) -> Any:
        return self.x * 2


class Scaled(Plain):
    def value(self) -> Any:
        total = 0.0
        for i in range(3):
            total = total + self.x[i] * 3
        return total


def of_new_object(x: Any) -> Any:
    made = Plain(x)
    return made.value(), isinstance(made, Scaled), type(made) is Scaled


def in_segments(x: Any) -> Any:
    return of_new_object(x * float(x.sum()))


def returned(x: Any) -> Any:
    made = Plain(x + 1)
    return made.value(), made


def changed(x: Any, held: Any) -> Any:
    held.__class__ = Scaled
    return held.value() + x


@pytest.mark.parametrize("use", [of_new_object, in_segments])
def test_new_objects(use: Callable[..., Any]) -> None:
    jitted = rune_jit.jit(use)
    for _ in range(3):
        assert_matches(jitted(X), use(X))


def test_returned_objects() -> None:
    jitted = rune_jit.jit(returned)
    for _ in range(3):
        value, made = jitted(X)
        expected, plain = returned(X)
        assert_matches((value, made.x), (expected, plain.x))
        assert type(made) is type(plain) is Scaled
        assert_matches(made.value(), plain.value())


def test_objects_outside() -> None:
    jitted = rune_jit.jit(changed)
    for _ in range(3):
        ours, theirs = Plain(np.ones(2)), Plain(np.ones(2))
        ours.x = theirs.x = X
        assert_matches(jitted(X, ours), changed(X, theirs))
        assert type(ours) is Scaled


def test_splines() -> None:
    interpolate = pytest.importorskip("scipy.interpolate")

    def smooth(x: Any, y: Any) -> Any:
        spline = interpolate.UnivariateSpline(x, y * float(y[1]), s=0.5)
        return spline(x), spline.derivative()(x)

    jitted = rune_jit.jit(smooth)
    for n in (12, 13, 12):
        x = np.linspace(0.0, 3.0, n)
        assert_matches(jitted(x, np.sin(x)), smooth(x, np.sin(x)), 64)


class Constant:
    def __init__(self, value: float) -> None:
        self.value = value

    def __get__(self, instance: Any, owner: type) -> float:
        return self.value


# What a class has as `member`, and what it has later.
MEMBERS = [
    (property(lambda self: 1.0), property(lambda self: 2.0)),
    (property(lambda self: 1.0), 2.0),
    (staticmethod(lambda x: x + 1), staticmethod(lambda x: x + 2)),
    (staticmethod(np.cos), staticmethod(np.sin)),
    (classmethod(lambda cls, x: x + 1), classmethod(lambda cls, x: x + 2)),
    (classmethod(lambda cls, x: x + 1), staticmethod(lambda x: x + 3)),
    (Constant(1.0), Constant(2.0)),
    (functools.partialmethod(lambda self, k, x: x * k, 2), lambda self, x: x * 3),
]


@pytest.mark.parametrize(("before", "after"), MEMBERS)
@pytest.mark.parametrize("attributes", [{}, {"array": np.ones(2)}])
@pytest.mark.parametrize("at_base", [False, True])
def test_members_of_classes(before: Any, after: Any, attributes: Any, at_base: bool) -> None:
    base = type("Base", (), {"member": before})
    held = type("Derived", (base,), {})()
    vars(held).update(attributes)

    def f(x: Any) -> Any:
        found = held.member
        return found(x) if callable(found) else x + found

    jitted = rune_jit.jit(f)
    for member in (before, after, before):
        (base if at_base else type(held)).member = member
        for _ in range(2):
            assert_matches(jitted(X), f(X))


class Shifted(Plain):
    def value(self) -> Any:
        return self.x + 100


def of_attribute(held: Any) -> Any:
    return held.x * (3 if isinstance(held, Shifted) else 2)


def of_method(held: Any) -> Any:
    return held.value()


@pytest.mark.parametrize("use", [of_attribute, of_method])
def test_objects_whose_class_changes_between_calls(use: Callable[..., Any]) -> None:
    held = Plain(X[:2])
    captured, items = (lambda: use(held)), [held]
    functions = (use, lambda _: captured(), lambda _: use(items[0]))
    jitted = [rune_jit.jit(function) for function in functions]
    for kind in (Plain, Shifted, Plain, Scaled, Shifted):
        held.__class__ = kind
        if kind is not Scaled or use is of_attribute:
            for function in jitted:
                assert_matches(function(held), use(held))


def test_a_class_gets_a_method_of_c() -> None:
    class Names:
        change = str.upper

    def f(x: Any) -> Any:
        Names.change = str.lower
        return x * 2

    jitted = rune_jit.jit(f)
    for _ in range(4):
        Names.change = str.upper
        assert_matches(jitted(X), X * 2)
        assert Names.change is str.lower
