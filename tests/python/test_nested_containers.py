"""Containers that hold themselves, or hold one container in so many places that a walk through all
of them would not end."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune_jit
from rune_jit import JitFallbackWarning

X = np.arange(12.0).reshape(3, 4)
LEVELS = 60

pytestmark = pytest.mark.filterwarnings("ignore::rune_jit.JitFallbackWarning")


def with_itself(x: Any) -> list[Any]:
    """A list that holds itself and x."""
    items: list[Any] = [x]
    items.append({"items": items})
    return items


def test_containers_that_hold_themselves() -> None:
    """They are walked through before a loop, and at the beginning and the end of a call."""

    def in_a_loop(x: Any) -> Any:
        items = with_itself(x)
        for _ in range(5):
            items[0] = items[0] + 1
        return items[0]

    rune_jit.asarray(X)  # (calls look for Arrays among their arguments once there is one)
    np.testing.assert_array_equal(rune_jit.jit(in_a_loop, fallback="error")(X), X + 5)
    with pytest.warns(JitFallbackWarning, match="holds itself"):
        result = rune_jit.jit(lambda items: items[0] + 1)(with_itself(X))
    np.testing.assert_array_equal(result, X + 1)
    items = rune_jit.jit(with_itself)(X)
    assert items[1]["items"] is items


@dataclasses.dataclass
class Pair:
    first: Any
    second: Any


# Each makes a container that holds two others, which are the same.
TWICE: dict[str, Callable[[Any], Any]] = {
    "list": lambda x: [x, x],
    "tuple": lambda x: (x, x),
    "dict": lambda x: {"first": x, "second": x},
    "queue": lambda x: deque([x, x]),
    "dataclass": lambda x: Pair(x, x),
    "all": lambda x: [X, x, (x, {"first": x})],
}


def many_times(x: Any, twice: Callable[[Any], Any]) -> Any:
    for _ in range(LEVELS):
        x = twice(x)
    return x


def innermost(x: Any) -> Any:
    for _ in range(LEVELS):
        if isinstance(x, Pair):
            x = x.first
        elif isinstance(x, dict):
            x = x["first"]
        else:
            x = x[len(x) == 3]
    return x


class Holder:
    def __init__(self, tree: Any) -> None:
        self.tree, self.total = tree, X.copy()

    def add(self, x: Any) -> Any:
        self.total = self.total + x
        return self.total * innermost(self.tree)

    def keep(self, x: Any) -> Any:
        self.tree = [x * 2]
        for _ in range(LEVELS):
            self.tree = [self.tree, self.tree]
        return x + 1


@pytest.mark.parametrize("twice", TWICE.values(), ids=TWICE)
@pytest.mark.parametrize("x", [X, 2.0], ids=["array", "number"])
def test_arguments(x: Any, twice: Callable[[Any], Any]) -> None:
    tree = many_times(x, twice)
    rune_jit.asarray(X)

    def in_segments(tree: Any, y: Any) -> Any:
        return innermost(tree) * y.sum().item()

    jitted = rune_jit.jit(in_segments)
    for f in (rune_jit.jit(lambda tree, y: innermost(tree) + y), jitted):
        for _ in range(3):
            np.testing.assert_array_equal(f(tree, X), f.__wrapped__(tree, X))


@pytest.mark.parametrize("twice", TWICE.values(), ids=TWICE)
def test_what_is_outside(twice: Callable[[Any], Any]) -> None:
    outside = many_times(X, twice)

    def f(x: Any, tree: Any = outside) -> Any:
        return innermost(outside) + x - innermost(tree)

    held, other = Holder(outside), Holder(outside)
    f, add, keep = rune_jit.jit(f), rune_jit.jit(Holder.add), rune_jit.jit(Holder.keep)
    for _ in range(3):
        np.testing.assert_array_equal(f(X), X)
        np.testing.assert_array_equal(add(held, X), other.add(X))
        np.testing.assert_array_equal(keep(Holder([X]), X), X + 1)


@pytest.mark.parametrize("twice", TWICE.values(), ids=TWICE)
@pytest.mark.parametrize("in_segments", [False, True])
def test_results(twice: Callable[[Any], Any], in_segments: bool) -> None:
    def f(x: Any) -> Any:
        if in_segments and x.sum().item() < 0:
            return None
        return many_times(x + 1, twice)

    jitted = rune_jit.jit(f)
    for _ in range(3):
        found = jitted(X)
        assert type(found) is type(f(X))
        np.testing.assert_array_equal(innermost(found), X + 1)


@pytest.mark.parametrize("in_segments", [False, True])
def test_arguments_of_numpy(in_segments: bool) -> None:
    def f(x: Any) -> Any:
        axes = many_times(x, TWICE["list"])
        x = x + (x.sum().item() if in_segments else 1)
        try:
            return np.sum(x, axis=axes)
        except TypeError as error:
            return str(error)

    assert rune_jit.jit(f)(X) == f(X)
