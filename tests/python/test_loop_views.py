"""Arrays and views of them that a loop makes share memory after it, as in NumPy, however the loop
has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit


def at_the_end(x: Any, most: int) -> Any:
    a, u, v = x, x, x
    for i in range(5):
        a = a * 2 - i
        u = a[::-1]
        v = u[1:]
    return v, u, a


def after_a_break(x: Any, most: int) -> Any:
    a, u = x, x
    for i in range(9):
        a = a * 2 - i
        u = a[::-1]
        if a.sum() > most:
            break
    return a, u


def on_two_ways(x: Any, most: int) -> Any:
    a, u = x, x
    for i in range(9):
        a = a * 2 - i
        u = a[::-1]
        if a.sum() > most:
            return u, a
    a = a + 1
    return a[::-1], a


def on_one_way(x: Any, most: int) -> Any:
    a, u = x, x
    for i in range(9):
        a = a * 2 - i
        u = a
        if a.sum() > most:
            return u, a
    return a, a * 2


def of_the_argument(x: Any, most: int) -> Any:
    a = x * 2
    for i in range(9):
        a = a * 2 - i
        if a.sum() > most:
            return a
    return x


def taken_over(x: Any, most: int) -> Any:
    a, b, u = x * 2, x * 3, x
    for _ in range(5):
        u = a[1:]
        a, b = b, a + b
    return u, a, b[1:], b


def before_as_well(x: Any, most: int) -> Any:
    a = x * 2
    u = a[::-1]
    while a.sum() < most:
        a = a * 2 + 3
        u = a[::-1]
    return u, a


def written_to(x: Any, most: int) -> Any:
    a, u = x, x
    for i in range(5):
        a = a * 2 - i
        u = a[::-1]
    u[0] = 77
    return a


@pytest.mark.parametrize("most", [60, 10**6])
@pytest.mark.parametrize(
    "function",
    [
        *(at_the_end, after_a_break, on_two_ways, on_one_way, of_the_argument),
        *(taken_over, before_as_well, written_to),
    ],
)
def test_results(function: Callable[..., Any], most: int) -> None:
    def f(x: Any, most: int) -> Any:
        return function(x, most)

    jitted = rune_jit.jit(f)
    for _ in range(3):
        found = []
        for run in (jitted, f):
            x = np.arange(4)
            result = run(x, most)
            arrays = [x, *(result if type(result) is tuple else [result])]
            shared = [[np.may_share_memory(a, b) for a in arrays] for b in arrays]
            found.append((arrays, shared))
        assert_same(*found)
    assert "is a loop of the program" in jitted.explain()


class Model:
    def __init__(self, x: Any) -> None:
        self.a, self.u = x * 2, x * 3

    def step(self, n: int) -> Any:
        for i in range(n):
            self.a = self.a * 2 - i
            self.u = self.a[::-1]
            if self.a.sum() > 1000:
                return i
        return n


def test_attributes() -> None:
    models = [Model(np.arange(4)), Model(np.arange(4))]
    step = rune_jit.jit(lambda model, n: model.step(n), fallback="silent")
    for n in (5, 9, 5):
        assert step(models[0], n) == models[1].step(n)
        assert_same(models[0].a, models[1].a)
        models[0].u[0] = models[1].u[0] = 5
        assert_same(*((model.u, model.a) for model in models))


def apart(x: Any) -> Any:
    a = q = x
    for i in range(4):
        a = a + i
        q = a[::-1]
        a = a[::-1]
    return a, q


def together(x: Any) -> Any:
    a = q = x
    for i in range(4):
        a = a + i
        a = q = a[::-1]
    return a, q


def of_one_array(x: Any) -> Any:
    a = p = q = x
    for i in range(4):
        a = a + i
        p = a[1:]
        q = a[1:]
    return a, p, q


@pytest.mark.parametrize("function", [apart, together, of_one_array])
def test_objects(function: Callable[..., Any]) -> None:
    """Two views of the same elements are two objects. Two names may have one of them."""

    def f(x: Any) -> Any:
        arrays = function(x)
        return arrays, [[a is b for a in arrays] for b in arrays]

    jitted = rune_jit.jit(f)
    for _ in range(3):
        (found, inside), (wanted, wanted_inside) = jitted(np.arange(4)), f(np.arange(4))
        assert_same(found, wanted)
        assert inside == wanted_inside == [[a is b for a in found] for b in found]
        assert all(np.shares_memory(found[0], x) for x in found)
    assert "is a loop of the program" in jitted.explain()


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_an_array_from_before_the_loop(count: int) -> None:
    def f(x: Any) -> Any:
        v, q, w = x, x[:2], x[1:3]
        lengths = []
        for _ in range(count):
            inner = []
            for m in range(5):
                inner.append(m)
            lengths.append(inner)
            v = q[::-1]
            q, w = w, w * 2
        return v, q, w, lengths

    jitted = rune_jit.jit(f)
    for _ in range(2):
        x, y = np.arange(4), np.arange(4)
        (*found, _), (*wanted, _) = jitted(x), f(y)
        assert_same(found, wanted)
        assert [np.shares_memory(x, a) for a in found] == [np.shares_memory(y, a) for a in wanted]
    assert ("is a loop of the program" in jitted.explain()) == (count > 2)
