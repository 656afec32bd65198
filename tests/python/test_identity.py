"""`is` in traced functions: what stands for functions, classes and objects in a trace is the same
object to the code as what it stands for."""

from __future__ import annotations

import functools
import math
import weakref
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


def _sorted_by_pairs(x: Any) -> Any:
    is_sorted = False
    while is_sorted is False:
        is_sorted = True
        for i in range(len(x) - 1):
            if x[i] > x[i + 1]:
                x[i], x[i + 1] = x[i + 1], x[i]
                is_sorted = False
    return x


def _reached(x: Any) -> Any:
    seen = [False] * len(x)
    open_ = [0]
    while open_:
        i = open_.pop()
        for k, step in enumerate(x[i]):
            if seen[k] is not True and step > 0:
                seen[k] = True
                open_.append(k)
    return seen


def _found_twice(x: Any) -> Any:
    found = again = False
    for i in range(len(x)):
        if x[i] > 2:
            again, found = found, True
    return (1 if found is again else 2), found is True, again is not False


def _numpys_and_pythons(x: Any) -> Any:
    last: Any = True
    for i in range(len(x)):
        if x[i] > 3:
            last = x[i] > 4
    return last is True, last is False, (x[0] > 0) is True, bool(x[0] > 0) is True


def _matched(x: Any) -> Any:
    is_large, kinds = False, np.zeros(len(x))
    for i in range(len(x)):
        match is_large:
            case True:
                kinds[i] = 1
            case False:
                kinds[i] = 2
        is_large = bool(x[i] > 2)
    return kinds


BOOLS = [_sorted_by_pairs, _found_twice, _numpys_and_pythons, _matched]


@pytest.mark.parametrize("f", BOOLS)
@pytest.mark.parametrize("x", [X, X[::-1], np.zeros(3)])
def test_bools_that_data_decide(f: Any, x: Any) -> None:
    jitted = rune_jit.jit(f)
    for _ in range(3):
        found, wanted = jitted(x.copy()), f(x.copy())
        np.testing.assert_array_equal(found, wanted)
        assert type(found) is type(wanted)


def test_bools_of_a_list() -> None:
    x = np.array([[0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 1, 0]])
    jitted = rune_jit.jit(_reached)
    for k in range(3):
        assert jitted(x * k) == _reached(x * k)


def test_functions_without_source() -> None:
    names: dict[str, Any] = {"OP": max, "np": np}
    exec("def f(x):\n    return x * 2 if OP is max else x * 3", names)
    np.testing.assert_array_equal(rune_jit.jit(names["f"])(X), X * 2)


def test_bools_in_functions_without_source() -> None:
    names: dict[str, Any] = {"np": np}
    exec("def f(x):\n    large = bool(x[0] > 0)\n    return 1 if large is True else 2", names)
    for _ in range(2):
        assert rune_jit.jit(names["f"])(X) == 1


class _Watched:
    def method(self):
        return 1


def _deleted(x):
    made = _Watched()
    made.x = x * 2
    dead = weakref.ref(made), weakref.WeakMethod(made.method)
    del made
    return [ref() is None for ref in dead], x + 1


def _replaced(x):
    live = weakref.WeakSet()
    for i in range(3):
        made = _Watched()
        made.x = x * i
        live.add(made)
    return len(live), made.x


def _of_a_function(x):
    table = weakref.WeakValueDictionary()

    def make(key):
        table[key] = made = _Watched()
        return made

    kept = make("kept")
    make("dropped")
    return [*table], kept.method() + x


def _finalized(x):
    ended = []
    made = _Watched()
    weakref.finalize(made, ended.append, 1)
    del made
    return ended, float(x.sum())


@pytest.mark.parametrize("function", [_deleted, _replaced, _of_a_function, _finalized])
def test_objects_of_a_function_live_no_longer_than_with_numpy(function):
    jitted = rune_jit.jit(function)
    for i in range(3):
        x = np.full(2, float(i))
        found, wanted = jitted(x), function(x)
        assert found[0] == wanted[0]
        np.testing.assert_array_equal(found[1], wanted[1])


_ENDED = []


def _parts(x):
    try:
        yield x * 2
        yield x * 3
    finally:
        _ENDED.append("ended")


def test_generators_end_with_the_function_that_has_begun_them():
    def f(x):
        parts = _parts(x)
        total, count = next(parts).sum(), 0
        while total < 100 and count < 5:  # a loop of the program
            count += 1
            total = total + x.sum()
        return total, count

    jitted = rune_jit.jit(f)
    for i in range(4):
        x = np.full(3, i + 1.0)
        _ENDED.clear()
        found = jitted(x)
        assert _ENDED == ["ended"]
        assert found == f(x)
