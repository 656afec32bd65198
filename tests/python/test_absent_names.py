"""Globals that do not exist when a function is traced, that it makes and that it deletes;
attributes of functions that are functions; variables without a value."""

from __future__ import annotations

import gc
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit

X = np.arange(3.0)

SOURCE = """
import numpy as np

def make(x):
    global made
    made = x * 2
    return made + 1

def make_by_text(x):
    globals()["made"] = x.sum()
    return x

def make_and_print(x):
    global made
    made = x.sum()
    print(x.max())
    return made * 2

def delete(x):
    global made
    try:
        del made
        return x
    except NameError as error:
        return str(error)

def read(x):
    try:
        return x * made
    except NameError:
        return x - 1

def ask(x):
    return x * 3 if "made" in globals() else x
"""
NAMES = ("make", "make_by_text", "make_and_print", "delete", "read", "ask")


def module_of(wrap: Callable[[Any], Any]) -> dict[str, Any]:
    module = types.ModuleType("program")
    exec(SOURCE, vars(module))
    for name in NAMES:
        setattr(module, name, wrap(vars(module)[name]))
    return vars(module)


@pytest.mark.parametrize(
    "order",
    [
        ["make"] * 4,
        ["make_by_text"] * 4,
        ["make_and_print"] * 4,
        ["read", "read", "make", "read", "read"],
        ["ask", "ask", "make_by_text", "ask", "delete", "ask", "ask"],
        ["delete", "make", "delete", "make", "delete", "delete", "make", "read", "delete", "read"],
    ],
    ids=lambda order: "-".join(dict.fromkeys(order)),
)
def test_globals_that_come_and_go(order: list[str]) -> None:
    plain, jitted = module_of(lambda f: f), module_of(rune_jit.jit)
    for i, name in enumerate(order):
        assert_same(jitted[name](X + i), plain[name](X + i))
        assert ("made" in jitted) is ("made" in plain)
        if "made" in plain:
            assert_same(jitted["made"], plain["made"])


def averages(rate: float) -> Any:
    value, count = None, 0

    def update(x: Any) -> Any:
        nonlocal value, count
        count += 1
        value = x * 1.0 if value is None else (1 - rate) * value + rate * x
        return value

    def reset() -> None:
        nonlocal value, count
        value, count = None, 0

    update.reset = reset
    update.state = lambda: (value, count)
    update.last = None
    return update


def test_functions_that_are_attributes_of_functions() -> None:
    def feed(average: Any, x: Any, starts_again: bool) -> Any:
        average(x)
        average.last = average(x + 1)
        found = average.state()
        if starts_again:
            average.reset()
        return found, average.state()[1]

    own, given = averages(0.5), averages(0.5)
    jitted = rune_jit.jit(lambda x, starts_again: feed(given, x, starts_again))
    for i in range(8):
        assert_same(jitted(X + i, i % 4 == 3), feed(own, X + i, i % 4 == 3))
        assert_same(given.last, own.last)
        assert_same(given.state(), own.state())


class Bus:
    """Its methods are not copied: it holds no array."""

    def __init__(self) -> None:
        self.listeners: list[Any] = []

    def emit(self, x: Any) -> Any:
        return [listener(x) for listener in self.listeners]


BUS, TOTAL = Bus(), np.zeros(3)


def add(x: Any) -> Any:
    global TOTAL
    TOTAL = TOTAL + x
    return TOTAL.sum()


BUS.listeners.append(add)


@pytest.fixture
def visited() -> Iterator[None]:
    """A search for what holds traced arrays visits this module, too (see tests/conftest.py)."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("visited")
def test_globals_that_methods_assign(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        before = TOTAL
        return before, BUS.emit(x), TOTAL

    jitted = rune_jit.jit(f, fallback="silent")
    for i in range(4):
        results = []
        for function in (f, jitted):
            monkeypatch.setitem(globals(), "TOTAL", np.full(3, float(i)))
            results.append((function(X + i), TOTAL))
        assert_same(results[1], results[0])


def test_class_attributes_that_methods_count() -> None:
    class Body:
        count = 0

        def __init__(self, mass: Any) -> None:
            self.mass = mass
            type(self).count += 1

    Body.__init__ = rune_jit.jit(Body.__init__, fallback="silent")  # type: ignore[method-assign]
    for i in range(4):
        assert "count" not in vars(Body(X))
        assert Body.count == i + 1


def test_a_variable_without_a_value():
    def f(x):
        out = x * x.sum().tolist()
        for i in range(20):
            out[i] += later[0]  # noqa: F821
        later = x  # noqa: F841
        return out

    jitted = rune_jit.jit(f)
    for _ in range(3):
        with pytest.raises(UnboundLocalError, match="'later'"):
            jitted(np.arange(30.0))
