"""Functions that assign attributes of dataclasses among their arguments are programs."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_matches

import rune_jit
from rune_jit.calls.trial import Trial


@pytest.fixture(autouse=True)
def never_numpy(monkeypatch: Any) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)


@dataclasses.dataclass
class Body:
    x: Any
    v: float = 2.0
    count: int = 0
    past: list[Any] = dataclasses.field(default_factory=list)
    moon: Any = None


@dataclasses.dataclass
class Slotted:
    __slots__ = ("count", "x")
    x: Any
    count: int


def body() -> Body:
    return Body(np.arange(3.0), moon=Body(np.ones(3)))


def steps(b: Any, y: Any) -> Any:
    for _ in range(40):
        b.x = b.x + 0.1 * y
        b.v = b.v * 0.9
        b.count += 1
    b.past.append(b.x.copy())
    return b.v, b


def inner(b: Any, y: Any) -> Any:
    b.moon.x, b.moon.count = b.moon.x * 2 + y, 7
    b.extra = y * 2
    return b.moon


def new_parts(b: Any, y: Any) -> Any:
    b.moon = Body(y * 2, 3.0)
    b.past = [y.sum()]
    return b.x


def ways(b: Any, y: Any) -> Any:
    if y.sum() > 4:
        b.x = b.x + 1
    else:
        b.v = -b.v
    return b.v * y


def all_of(bodies: Any, y: Any) -> Any:
    for b in bodies:
        b.x, b.v = b.x + y * b.v, b.v * 0.5
    return sum(b.x.sum() for b in bodies)


def slots(s: Any, y: Any) -> Any:
    s.x, s.count = s.x + y, s.count * 2
    return s.count


PROGRAMS = {
    steps: body,
    inner: body,
    new_parts: body,
    ways: body,
    all_of: lambda: [body(), body()],
    slots: lambda: Slotted(np.ones(3), 5),
}


def parts(x: Any) -> Any:
    """A dataclass as a list of its attributes."""
    if isinstance(x, (list, tuple)):
        return [parts(item) for item in x]
    if isinstance(x, Slotted):
        return [x.x, x.count]
    return {name: parts(item) for name, item in vars(x).items()} if isinstance(x, Body) else x


@pytest.mark.parametrize("function", PROGRAMS)
def test_programs(function: Callable[..., Any]) -> None:
    jitted = rune_jit.jit(function, fallback="silent")
    ours, theirs = PROGRAMS[function](), PROGRAMS[function]()
    for k in range(9):
        y = np.full(3, float(k % 3))
        found, wanted = jitted(ours, y), function(theirs, y)
        assert_matches(parts(found), parts(wanted))
        assert_matches(parts(ours), parts(theirs))
        assert (found is getattr(ours, "moon", 0)) == (wanted is getattr(theirs, "moon", 0))
        if function is steps:
            assert found[1] is ours
    way = "2 programs" if function is ways else "one program"
    assert f"as {way}" in jitted.explain()


def test_calls_do_not_share_what_they_assign() -> None:
    jitted = rune_jit.jit(new_parts, fallback="error")
    one, other = body(), body()
    for b in (one, other, one, other):
        jitted(b, np.ones(3))
    assert one.moon is not other.moon and one.past is not other.past


def test_views_are_those_of_numpy() -> None:
    def shorten(b: Any) -> Any:
        b.x = b.x[1:]
        return b.x.sum()

    jitted = rune_jit.jit(shorten, fallback="silent")
    for _ in range(3):
        b = body()
        x = b.x
        jitted(b)
        assert np.shares_memory(b.x, x)


def first_of(a: Any, b: Any, y: Any) -> Any:
    a[0] = y * 2
    return b[0] + 1


def x_of(a: Any, b: Any, y: Any) -> Any:
    a.x = y * 2
    return b.x + 1


@pytest.mark.parametrize("function, make", [(first_of, lambda: [np.ones(2)]), (x_of, body)])
def test_one_object_as_two_arguments(function: Any, make: Any) -> None:
    jitted = rune_jit.jit(function, fallback="silent")
    y = np.ones(2)
    for _ in range(3):
        a = make()
        assert_matches(jitted(a, a, y), y * 2 + 1)
        b, c = make(), make()
        assert_matches(jitted(b, c, y), function(make(), make(), y))


def test_queues_that_change_beside_lists() -> None:
    def push(queue: Any, items: Any, y: Any) -> Any:
        queue.append(1.0)
        items.append(y.sum())
        return len(queue) * y

    jitted = rune_jit.jit(push, fallback="silent")
    ours, theirs = ((collections.deque([2.0]), [np.ones(2)]) for _ in range(2))
    for _ in range(3):
        assert_matches(jitted(*ours, np.ones(2)), push(*theirs, np.ones(2)))
        assert_matches([*ours[0], *ours[1]], [*theirs[0], *theirs[1]])
