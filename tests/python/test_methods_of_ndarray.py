"""Methods that code reads from the class numpy.ndarray, such as `np.ndarray.sum(x)`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_matches
from numpy import ndarray

import rune_jit

GREATER = np.ndarray.__gt__
LIMITS = [np.ndarray.max, np.ndarray.min]


class Held:
    add = np.ndarray.__add__

    def __init__(self, data: Any) -> None:
        self.data = data

    def doubled(self) -> Any:
        return Held.add(self.data, self.data)

    def __gt__(self, other: Any) -> Any:
        return np.ndarray.__gt__(self.data, other)

    def flat(self) -> Any:
        return functools.partial(ndarray.flatten, self.data)()


def through(method: Callable[..., Any], x: Any) -> Any:
    def apply() -> Any:
        return method(x, 2)

    return apply()


USES: dict[str, Callable[[Any], Any]] = {
    "direct": lambda x: np.ndarray.sum(x, axis=0),
    "mapped": lambda x: list(map(np.ndarray.flatten, [x, x + 1])),
    "partial": lambda x: functools.partial(np.ndarray.reshape, x)(-1),
    "reduced": lambda x: functools.reduce(np.ndarray.__mul__, [x, x, x]),
    "global": lambda x: GREATER(x, 1),
    "list": lambda x: [limit(x) for limit in LIMITS],
    "cell": lambda x: through(np.ndarray.__pow__, x),
    "attribute": lambda x: Held(x).doubled(),
    "special method": lambda x: (Held(x * 2) > x[0], Held(x * 2).flat()),
    "key": lambda x: max([x[0], x[1]], key=np.ndarray.sum),
    "result": lambda x: (np.ndarray.sum, np.ndarray.sum is GREATER, x + 1),
}


def in_segments(use: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: use(x * float(x.sum()))


@pytest.mark.parametrize("way", [lambda use: use, in_segments])
@pytest.mark.parametrize("name", USES)
def test_calls(name: str, way: Callable[..., Any]) -> None:
    function, x = way(USES[name]), np.arange(6.0).reshape(2, 3)
    jitted = rune_jit.jit(function)
    for _ in range(3):
        assert_matches(jitted(x), function(x))


def test_they_are_compiled() -> None:
    jitted = rune_jit.jit(USES["direct"], fallback="error")
    assert_matches(jitted(np.ones((2, 3))), np.full(3, 2.0))


@pytest.mark.parametrize("way", [lambda use: use, in_segments])
@pytest.mark.parametrize("method", [np.ndarray.sum, GREATER])
def test_numbers_are_refused(method: Callable[..., Any], way: Callable[..., Any]) -> None:
    function, x = way(lambda x: method(x.sum(), 1)), np.arange(3.0)
    jitted = rune_jit.jit(function)
    with pytest.raises(TypeError) as theirs:
        function(x)
    for _ in range(3):
        with pytest.raises(TypeError) as ours:
            jitted(x)
        assert str(ours.value) == str(theirs.value)


def test_methods_that_ndarray_lacks() -> None:
    assert not rune_jit.jit(lambda x: hasattr(x, "ptp"))(np.ones(3))
    with pytest.raises(AttributeError, match="ptp"):
        rune_jit.jit(lambda x: x.ptp())(np.ones(3))
