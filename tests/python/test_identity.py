"""`is` in traced functions: what stands for functions, classes and objects in a trace is the same
object to the code as what it stands for."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from compare import check

import rune_jit

X = np.arange(6.0) + 1
FUNCTIONS = {"sum": np.sum, "max": max, "min": min, "ufunc": np.add, "class": np.float64}
WEIGHTS = np.ones(6)


def _helper(x: Any) -> Any:
    return x + 1


TABLE = [_helper, np.sin, max]


class Settings:
    reduction = max

    def __init__(self) -> None:
        self.op, self.best, self.weights = np.add, min, np.ones(6)


class Asking(Settings):
    @property
    def adds(self) -> bool:
        return self.op is np.add

    def __len__(self) -> int:
        return 3 if self.best is min else 4


SETTINGS, ASKING = Settings(), Asking()


def _which(f: Any) -> int:
    known = (max, min, np.sum, np.add, np.float64, math.sin, len, np, np.linalg, float, print)
    return next((i for i, g in enumerate(known) if f is g), -1)


@pytest.mark.parametrize(
    "f", [max, min, np.sum, np.add, np.float64, math.sin, len, np, np.linalg, float, print, abs]
)
def test_functions_given_and_named(f: Any) -> None:
    outside = [f]
    check(lambda x: x * _which(f), X)
    check(lambda x: x * _which(outside[0]), X)
    assert rune_jit.jit(lambda x, g: _which(g))(X, f) == _which(f)


OF_GLOBALS = {
    "a dict": lambda x: x * 2 if FUNCTIONS["sum"] is np.sum else x,
    "not": lambda x: x * 2 if FUNCTIONS["max"] is not max else x,
    "an attribute": lambda x: x * 2 if SETTINGS.op is np.add and SETTINGS.best is min else x,
    "an attribute of a class": lambda x: x * 2 if Settings.reduction is max else x,
    "a function of the user's": lambda x: TABLE[0](x) if TABLE[0] is _helper else x,
    "an array": lambda x: x * 2 if WEIGHTS is WEIGHTS else x,
    "equality": lambda x: x * (FUNCTIONS["min"] == min) * {max: 2, min: 3}[FUNCTIONS["max"]],
    "called by another name": lambda x: [f(x[0], x[1]) for f in (max, min)],
    "a class": lambda x: x * 2 if x.dtype.type is np.float64 else x,
    "reduce": lambda x: functools.reduce(max, [x[0], x[3], x[2]]),
}


@pytest.mark.parametrize("name", OF_GLOBALS)
def test_what_globals_hold(name: str) -> None:
    check(OF_GLOBALS[name], X)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * 2 * ASKING.weights if ASKING.adds else x,
        lambda x: x * len(ASKING) * ASKING.weights,
    ],
)
def test_methods_that_python_calls(f: Any) -> None:
    jitted = rune_jit.jit(f)
    for _ in range(3):
        np.testing.assert_array_equal(jitted(X), f(X))


def test_an_argument_and_a_global() -> None:
    def f(x: Any, w: Any) -> Any:
        return x * 2 if w is WEIGHTS else x * w

    jitted = rune_jit.jit(f)
    for w in (WEIGHTS, WEIGHTS.copy(), WEIGHTS):
        np.testing.assert_array_equal(jitted(X, w), f(X, w))


def test_functions_without_source() -> None:
    names: dict[str, Any] = {"OP": max, "np": np}
    exec("def f(x):\n    return x * 2 if OP is max else x * 3", names)
    np.testing.assert_array_equal(rune_jit.jit(names["f"])(X), X * 2)
