"""Loops that write to an array before they replace it, as solvers with ghost cells do:
`u[0] = u[-2]`, then `u = u + ...`. Only the first iteration writes to an array from before the
loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune_jit


class Grid:
    def __init__(self, u: Any) -> None:
        self.u = u


def advected(u: Any, n: int) -> Any:
    for _ in range(n):
        u[0], u[-1] = u[-2], u[1]
        u = u - 0.5 * (u - np.roll(u, 1))
    return u


def of_a_copy(u: Any, n: int) -> Any:
    start, u = u, u.copy()
    for i in range(n):
        u[:2] = start[i % 3]
        u = u * 0.5
    return u, start


def until_it_is_small(u: Any, n: int) -> Any:
    error, count = 1.0, 0
    while error > 1e-3 and count < n:
        u[0], u[-1] = 1.0, 0.0
        old = u.copy()
        u = np.concatenate([u[:1], 0.5 * (u[2:] + u[:-2]), u[-1:]])
        error = np.abs(u - old).max()
        count += 1
    return u, count


def under_a_condition(u: Any, n: int) -> Any:
    for i in range(n):
        if u.sum() > 8:
            u[i % 4] = 0.0
        u = u * 1.5
    return u


def of_two(u: Any, n: int) -> Any:
    v = u * 3
    for _ in range(n):
        u[0] = v[-1]
        v[0] = u[-1]
        u, v = u + 0.5 * v, v - 0.25 * u
    return u, v


def by_a_function(u: Any, n: int) -> Any:
    def fill(a: Any) -> None:
        a[0] = a[1]
        a[-1] = a[-2]

    for _ in range(n):
        fill(u)
        u = u * u
    return u


def of_an_attribute(u: Any, n: int) -> Any:
    grid = Grid(u)
    for i in range(n):
        grid.u[0] = i
        grid.u = grid.u * 2
    return grid.u


# Another name, a list or an object sees what the next iteration writes.


def seen_by_a_name(u: Any, n: int) -> Any:
    seen, total = u, 0.0
    for i in range(n):
        u[1] = i
        total = total + seen[1] + 2 * seen[2]
        u = u * 2
        seen = u
    return u, seen, total


def seen_by_a_name_of_some_iterations(u: Any, n: int) -> Any:
    best, most = u, -1.0
    for i in range(n):
        u[0] = -2 * i
        u = u * 2 - 1
        if u.sum() > most:
            best, most = u, u.sum()
    return best, most, u


def seen_by_a_view(u: Any, n: int) -> Any:
    view, total = u[1:3], 0.0
    for i in range(n):
        u[1] = i
        total = total + view[0]
        u = u * 2
        view = u[1:3]
    return u, view, total


def seen_by_a_list(u: Any, n: int) -> Any:
    history = []
    for i in range(n):
        u[0] = i
        u = u * 2
        history.append(u)
    return u, history


def seen_by_an_attribute(u: Any, n: int) -> Any:
    held, total = Grid(u), 0.0
    for i in range(n):
        u[1] = i
        total = total + held.u[1]
        u = u * 2
        held.u = u
    return u, held.u, total


def seen_by_a_tuple(u: Any, n: int) -> Any:
    both, total = (u, u), 0.0
    for i in range(n):
        u[0] = i
        total = total + both[1][0]
        u = u * 2
        both = both[1], u
    return u, both, total


OF_THE_PROGRAM = [
    advected, of_a_copy, until_it_is_small, under_a_condition, of_two, by_a_function,
    of_an_attribute,
]  # fmt: skip
SEEN = [
    seen_by_a_name, seen_by_a_name_of_some_iterations, seen_by_a_view, seen_by_a_list,
    seen_by_an_attribute, seen_by_a_tuple,
]  # fmt: skip


def flat(x: Any) -> list[Any]:
    return [leaf for part in x for leaf in flat(part)] if isinstance(x, (tuple, list)) else [x]


@pytest.mark.parametrize("function", [*OF_THE_PROGRAM, *SEEN])
def test_results_and_writes(function: Callable[..., Any]) -> None:
    jitted = rune_jit.jit(function)
    for n in (9, 1, 2, 0, 12):
        theirs, ours = np.arange(6.0) / 8, np.arange(6.0) / 8
        wanted, found = flat(function(theirs, n)), flat(jitted(ours, n))
        np.testing.assert_array_equal(ours, theirs)
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14)
        shared = [[np.shares_memory(a, b) for a in (*x, y)] for x, y, b in (
            (wanted, theirs, theirs), (found, ours, ours)
        )]  # fmt: skip
        assert shared[0] == shared[1]


@pytest.mark.parametrize("function", OF_THE_PROGRAM)
def test_they_are_loops_of_the_program(function: Callable[..., Any]) -> None:
    jitted = rune_jit.jit(function)
    jitted(np.arange(6.0) / 8, 9)
    assert "is a loop of the program" in jitted.explain()
