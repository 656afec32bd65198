"""Functions that change objects outside by attributes that Python keeps for itself: an object's
class and dict, the layout of an array, a function's default arguments; by `exec`; and functions
that add members to classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_matches

import rune_jit


class Red:
    factor = 1.0

    def __init__(self, weights: Any = None) -> None:
        self.weights = weights

    def turn(self: Any) -> None:
        self.__class__ = Green


class Green(Red):
    factor = 2.0

    def turn(self: Any) -> None:
        self.__class__ = Red


def scaled(x: Any, factor: float = 1.0) -> Any:
    return x * factor


plain, holder = Red(), Red(np.ones(3))
values: Any = np.arange(4.0)


def class_of_object(x: Any) -> Any:
    plain.turn()
    return x * plain.factor, type(plain).__name__


def class_of_holder(x: Any) -> Any:
    holder.turn()
    holder.weights = holder.weights + x
    return x * holder.factor, holder.weights, type(holder).__name__


def dict_of_object(x: Any) -> Any:
    plain.__dict__ = {"weights": 1 + (plain.weights or 0)}
    return x * plain.weights


def default_arguments(x: Any) -> Any:
    result = scaled(x)
    (factor,) = scaled.__defaults__ or (0.0,)
    scaled.__defaults__ = (factor + 1,)
    return result


def flag(x: Any) -> Any:
    values.flags.writeable = not values.flags.writeable
    return x, values.flags.writeable


def shape(x: Any) -> Any:
    values.shape = (2, 2) if values.ndim == 1 else (4,)
    return x, values.ndim


def dtype(x: Any) -> Any:
    values.dtype = np.dtype("i8" if values.dtype == np.dtype("f8") else "f8")
    return x, values.dtype.str


def text(x: Any) -> Any:
    exec("plain.weights = 1 + (plain.weights or 0)")
    return x * plain.weights


@pytest.mark.parametrize(
    "function",
    [
        *(class_of_object, class_of_holder, dict_of_object, default_arguments),
        *(flag, shape, dtype, text),
    ],
)
def test_changes_happen_at_each_call(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = []
    for f in (function, rune_jit.jit(function, fallback="silent")):
        made = {"plain": Red(), "holder": Red(np.ones(3)), "values": np.arange(4.0)}
        for name, x in made.items():
            monkeypatch.setitem(globals(), name, x)
        monkeypatch.setattr(scaled, "__defaults__", (1.0,))
        calls = [f(np.arange(3.0) + i) for i in range(5)]
        now = type(plain).__name__, vars(plain), vars(holder), values, scaled.__defaults__
        outcomes.append((calls, now, values.flags.writeable))
    assert_matches(outcomes[1], outcomes[0])


class Counted(type):
    reads = 0

    @property
    def count(cls) -> int:
        Counted.reads += 1
        return Counted.reads

    def __getitem__(cls, step: int) -> int:
        cls.total = getattr(cls, "total", 0) + step
        return int(cls.total)


class Single(metaclass=Counted):
    n = 0

    def __new__(cls) -> Any:
        if not hasattr(cls, "instance"):
            cls.instance = object.__new__(cls)
        return cls.instance


class Base:
    def __init_subclass__(cls) -> None:
        Base.subclasses = getattr(Base, "subclasses", 0) + 1  # type: ignore[attr-defined]


def new_member(x: Any) -> Any:
    if not hasattr(Single, "cache"):
        Single.cache = x * 2  # type: ignore[attr-defined]
    return x + Single.cache  # type: ignore[attr-defined]


def new_counter(x: Any) -> Any:
    Single.calls = getattr(Single, "calls", 0) + 1  # type: ignore[attr-defined]
    return x * Single.calls  # type: ignore[attr-defined]


def singleton(x: Any) -> Any:
    held = Single()
    held.n += 1
    return x * held.n


def of_metaclass(x: Any) -> Any:
    return x * Single.count, Single[2]


def subclasses(x: Any) -> Any:
    class Derived(Base):
        pass

    return x * Base.subclasses, Derived.__name__  # type: ignore[attr-defined]


@pytest.mark.parametrize("function", [new_member, new_counter, singleton, of_metaclass, subclasses])
def test_members_of_classes(function: Callable[..., Any]) -> None:
    outcomes = []
    for f in (function, rune_jit.jit(function, fallback="silent")):
        Counted.reads = 0
        for kind in (Single, Base):
            for name in {"instance", "cache", "calls", "total", "subclasses"} & vars(kind).keys():
                delattr(kind, name)
        outcomes.append([f(np.arange(3.0) + i) for i in range(5)])
    assert_matches(outcomes[1], outcomes[0])
