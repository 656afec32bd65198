"""Objects with a `__getattr__` of their own: only the function asks it. It may raise what it likes
for names that it does not know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_matches

import rune_jit

ASKED: list[str] = []


class Options(dict[str, Any]):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


class Lenient(dict[str, Any]):
    __getattr__ = dict.get  # None for all names that it does not know


class Strict:
    def __init__(self, **options: Any) -> None:
        self.__dict__.update(options)

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")


class Slotted:
    __slots__ = ("_options",)

    def __init__(self, **options: Any) -> None:
        self._options = options

    def __getattr__(self, name: str) -> Any:
        ASKED.append(name)
        return object.__getattribute__(self, "_options")[name]


def reads(x: Any, options: Any) -> Any:
    return x * options.rate + options.start


def loops(x: Any, options: Any) -> Any:
    total = 0.0
    for i in range(options.count):
        total = total + x[i] * options.rate
    return total


def halves(x: Any, options: Any) -> Any:
    seen = []
    while x.sum() > options.rate:
        x = x * 0.5
        seen.append(float(x[0]))
    return seen, x


class Model:
    def __init__(self, options: Any) -> None:
        self.options, self.weights = options, np.ones(20)

    def run(self, x: Any) -> Any:
        for k in range(len(x)):
            if x[k] > self.options.start:
                self.weights = self.weights + self.options.rate
            self.weights[k] *= 2
        return self.weights


def runs(x: Any, options: Any) -> Any:
    return Model(options).run(x)


@pytest.mark.parametrize("kind", [Options, Lenient, Strict, Slotted])
@pytest.mark.parametrize("use", [reads, loops, halves, runs])
@pytest.mark.filterwarnings("error::rune_jit.JitFallbackWarning")
def test_only_the_function_asks(kind: type, use: Callable[..., Any]) -> None:
    jitted = rune_jit.jit(use)
    ASKED.clear()
    for _ in range(4):
        options = kind(rate=0.25, start=2.0, count=15)
        x = np.linspace(0.0, 3.0, 20)
        assert_matches(jitted(x, options), use(x, options))
    assert set(ASKED) <= {"rate", "start", "count"}


@pytest.mark.filterwarnings("error::rune_jit.JitFallbackWarning")
def test_held_by_a_new_object() -> None:
    options, x = Options(rate=0.5, start=1.0), np.ones(20)
    make = rune_jit.jit(Model.__init__)
    for _ in range(3):
        model = Model.__new__(Model)
        make(model, options)
        assert model.options is options
        assert_matches(model.run(x), Model(options).run(x))
