"""Loops that may have no iteration: names then stand for what they stood for before the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit


class Holder:
    value: Any = None


def counted(x: Any, n: int, held: Any) -> Any:
    w, i = x, 0
    while i < n:
        w = w + 1
        i += 1
    return w


def by_data(x: Any, n: int, held: Any) -> Any:
    w, i = x, 0
    while x[i] < n:
        w = w * 2
        i += 1
    return {"w": w, "i": i}


def of_a_range(x: Any, n: int, held: Any) -> Any:
    w = x
    for _ in range(int(x[n])):
        w = w + 1
    return w


def with_a_break(x: Any, n: int, held: Any) -> Any:
    w, i = x, 0
    while x[i] < n:
        w = w + 1
        if w.sum() > 12:
            break
        i += 1
    return w


def of_new_arrays(x: Any, n: int, held: Any) -> Any:
    u = w = np.zeros(3)
    v, i = x * 2, 0
    z = v
    while i < n:
        w, v = w + 1, v * 2
        i += 1
    return u, [w, v], z


def of_views(x: Any, n: int, held: Any) -> Any:
    w, i = x[1:], 0
    while i < n:
        w = w + 1
        i += 1
    return w, x


def of_two_loops(x: Any, n: int, held: Any) -> Any:
    w, i = x, 0
    while i < n:
        w = w + 1
        i += 1
    middle, i = w, 0
    while i < n - 2:
        w = w * 2
        i += 1
    return w, middle


def of_an_attribute(x: Any, n: int, held: Any) -> Any:
    held.value, i = x, 0
    while i < n:
        held.value = held.value + 1
        i += 1


def written_later(x: Any, n: int, held: Any) -> Any:
    w, i = x, 0
    while i < n:
        w = w + 1
        i += 1
    w[0] = 7
    return w


USES = [
    *(counted, by_data, of_a_range, with_a_break, of_new_arrays, of_views, of_two_loops),
    *(of_an_attribute, written_later),
]


def arrays_of(x: Any) -> list[np.ndarray]:
    if isinstance(x, (tuple, list, dict)):
        return [a for y in (x.values() if isinstance(x, dict) else x) for a in arrays_of(y)]
    return [x] if isinstance(x, np.ndarray) else []


def same(arrays: list[np.ndarray]) -> list[list[tuple[bool, bool]]]:
    return [[(a is b, np.shares_memory(a, b)) for b in arrays] for a in arrays]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("counts", [(2, 0, 3, 0, 1), (0, 2, 0, 3, 0)])
def test_results_are_the_arrays_from_before(
    use: Callable[..., Any], counts: tuple[int, ...]
) -> None:
    jitted = rune_jit.jit(use)
    for n in (*counts, *counts):
        outcomes = []
        for function in (jitted, use):
            x, held = np.arange(4.0), Holder()
            result = function(x, n, held)
            outcomes.append((result, x, held.value))
        found, wanted = outcomes
        assert_same(found, wanted)
        assert same(arrays_of(found)) == same(arrays_of(wanted))
