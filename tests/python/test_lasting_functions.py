"""Functions that a call makes or stores, and that run after it: results, callbacks, finalizers."""

from __future__ import annotations

import atexit
import contextlib
import gc
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_matches

import rune_jit

SAID: list[float] = []
FACTOR = 1.0


class Resource:
    pass


def clipper(x: Any, bounds: Any) -> Callable[[Any], Any]:
    return lambda y: clipped(y, bounds) + x.sum()


@rune_jit.jit
def clipped(y: Any, bounds: Any) -> Any:
    return np.clip(y, *bounds)


def test_a_result_gives_arrays_of_a_tuple_to_a_jitted_function() -> None:
    jitted, x = rune_jit.jit(clipper), np.arange(4.0)
    for i in range(4):
        bounds = np.ones(4), np.full(4, 2.0 + i)
        assert_matches(jitted(x, bounds)(x * 3), np.clip(x * 3, *bounds) + x.sum())


def interpolator(x: Any) -> Callable[[int], Any]:
    scale, y = float(x[0]), x * 2

    def value(n: int) -> Any:
        total = 0.0
        for i in range(n):
            total += scale * i * y[0] * FACTOR
        while total > 100:
            total /= 2
        return total + sum([v * scale for v in range(n) if v > 1])

    return value


def nested(x: Any) -> Callable[[int], Any]:
    y = x * float(x.sum())

    def value(n: int) -> Any:
        def part(i: int) -> Any:
            return sum(y[k] for k in range(i % 3))

        return [part(i) for i in range(n)] + [value(n - 1) for _ in range(n > 1)]

    return value


def method(x: Any) -> Any:
    y = x * float(x.sum())

    class Value:
        def at(self, n: int) -> Any:
            total = 0.0
            for i in range(n):
                total += i * y[0]
            return total

    return Value().at


@pytest.mark.parametrize("make", [interpolator, nested, method])
def test_results_that_are_functions(make: Callable[..., Any]) -> None:
    jitted = rune_jit.jit(make)
    for k in range(4):
        x = np.arange(3.0) + k + 1
        ours, theirs = jitted(x), make(x)
        assert_matches([ours(n) for n in (0, 3, 5)], [theirs(n) for n in (0, 3, 5)])


def test_they_read_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = (f(np.ones(3)) for f in (rune_jit.jit(interpolator), interpolator))
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert_matches(ours(4), theirs(4))
    assert ours.__globals__ is theirs.__globals__
    assert ours.__code__ is theirs.__code__


def test_they_are_traced_later() -> None:
    ours, theirs = (f(np.ones(3)) for f in (rune_jit.jit(interpolator), interpolator))
    for use in (lambda x: x + ours(4), lambda x: ours(int(x[0])) + x):
        jitted = rune_jit.jit(use)
        for _ in range(3):
            assert_matches(jitted(np.full(2, 4.0)), np.full(2, 4.0) + theirs(4))


def say(first: float, rest: list[float]) -> None:
    class Local:
        factor = FACTOR  # (the body of a class reads globals in another way)

    for x in rest:
        if x > 0:
            SAID.append(first + x * Local.factor)


def finalized(x: Any) -> Any:
    resource = Resource()
    resource.data = x * 2  # type: ignore[attr-defined]
    weakref.finalize(resource, say, float(x[0]), [1.0, -1.0, 2.0])
    return resource, x.sum()


def finalized_without_values(x: Any) -> Any:
    resource = Resource()
    weakref.finalize(resource, say, 1.0, [1.0])
    return x + 1


def on_exit(x: Any) -> Any:
    stack = contextlib.ExitStack()
    stack.callback(say, float(x[0]), [1.0])
    return stack, x.sum()


def held(x: Any) -> Any:
    holder = types.SimpleNamespace(close=lambda: say(float(x[0]), [2.0]))
    return holder, x.sum()


@pytest.mark.parametrize("function", [finalized, finalized_without_values, on_exit, held])
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_callbacks(function: Callable[..., Any]) -> None:
    def said(function: Callable[..., Any]) -> list[float]:
        SAID.clear()
        for k in range(4):
            result = function(np.arange(3.0) + k + 1)
            if hasattr(result[0], "close"):
                result[0].close()
            del result
            gc.collect()
        return SAID.copy()

    expected = said(function)
    assert len(expected) >= 4
    assert said(rune_jit.jit(function)) == expected


def test_at_exit() -> None:
    def function(x: Any) -> Any:
        atexit.register(say, 1.0, [])
        return x + 1

    before, jitted = atexit._ncallbacks(), rune_jit.jit(function)  # type: ignore[attr-defined]
    for _ in range(4):
        jitted(np.ones(3))
    assert atexit._ncallbacks() == before + 4  # type: ignore[attr-defined]
    atexit.unregister(say)
