"""Lists, dicts, queues and dataclasses that a function returns or stores in several places are one
object each, as in Python."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune_jit


@dataclasses.dataclass
class Pair:
    first: Any
    second: Any


class State:
    kept: Any = None
    again: Any = None


def returned_twice(x: Any, state: State) -> Any:
    items = [x + 1]
    return items, {"in": (items, [items])}, items


def holding_another(x: Any, state: State) -> Any:
    inner = [x + 1]
    outer = [inner, (inner, 2)]
    return outer, inner, [outer]


def of_each_kind(x: Any, state: State) -> Any:
    queue = collections.deque([x + 1], maxlen=2)
    pair = Pair(queue, {"queue": queue})
    return queue, pair, [pair], pair.second


def stored_and_returned(x: Any, state: State) -> Any:
    state.kept = []
    state.kept.append(x + 1)
    return state.kept


def stored_twice(x: Any, state: State) -> Any:
    state.kept = state.again = {"x": x + 1}


def stored_in_an_argument(x: Any, state: State) -> Any:
    state.kept = {"list": [x + 1]}
    state.again = [state.kept["list"]]
    return state.again


def of_a_loop(x: Any, state: State) -> Any:
    numbers, rows = [], []
    for i in range(20):
        numbers.append(x[0] * i)
        rows.append(x * i)
    state.kept = rows
    return numbers, [numbers], rows


def with_views(x: Any, state: State) -> Any:
    y = x + 1
    items = [y, y[1:]]
    return items, y, (items,)


def with_an_argument(x: Any, state: State) -> Any:
    made = [state, x + 1]
    return made, made[:1], [made]


def of_unknown_length(x: Any, state: State) -> Any:
    items, i = [], 0
    while x[0] + i < 6:
        items.append(x[0] * i)
        i += 1
    return items, [items]


def _identities(*held: Any) -> list[int]:
    """The containers in some objects, in their order, as numbers: equal ones for one object."""
    numbers: dict[int, int] = {}
    found = []
    open_ = list(held)
    while open_:
        x = open_.pop(0)
        if isinstance(x, (list, dict, collections.deque, Pair, np.ndarray)):
            found.append(numbers.setdefault(id(x), len(numbers)))
        if isinstance(x, (list, tuple, collections.deque)):
            open_ += x
        elif isinstance(x, dict):
            open_ += x.values()
        elif isinstance(x, (Pair, State)):
            open_ += vars(x).values()
    return found


PROGRAMS = [
    returned_twice,
    holding_another,
    of_each_kind,
    stored_and_returned,
    stored_twice,
    stored_in_an_argument,
    of_a_loop,
    with_views,
    with_an_argument,
    of_unknown_length,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_repeated_objects_are_one(program: Callable[..., Any]) -> None:
    jitted = rune_jit.jit(program)
    state, expected_state = State(), State()
    for call in range(5):
        x = np.arange(3.0) + call
        result, expected = jitted(x, state), program(x, expected_state)
        assert _identities(result, state) == _identities(expected, expected_state)
    assert "as one program" in jitted.explain()


def test_a_list_that_is_stored_and_returned_changes_with_the_result() -> None:
    state = State()
    jitted = rune_jit.jit(stored_and_returned)
    for call in range(4):
        jitted(np.arange(3.0), state).append(call)
        assert state.kept[1] == call
