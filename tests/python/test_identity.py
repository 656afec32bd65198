"""Functions that ask which object they are given: by `is`, by equality, by what holds it, by its
address."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
from compare import assert_matches
from new_objects import Layer, Settings, X, follow, scaled

import rune_jit

CURRENT = Settings()


def both(f: Any, g: Any, x: Any) -> Any:
    return f(x) + g(x) * (2 if f is g else 3)


def test_identity_of_arguments() -> None:
    a, b, c = Layer(1), Layer(2), Layer(3)
    follow(both, [(a, b, X), (b, c, X), (a, a, X), (b, b, X), (c, a, X)])


def test_identity_of_globals(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_current(s: Any, x: Any) -> Any:
        return x * 2 if s is CURRENT else x * 3

    for first in (True, False):
        jitted = rune_jit.jit(is_current)
        for same in (first, True, False, False, True):
            given = CURRENT if same else Settings()
            assert_matches(jitted(given, X), is_current(given, X))
        monkeypatch.setitem(globals(), "CURRENT", given)
        assert_matches(jitted(given, X), X * 2)


def test_identity_in_containers() -> None:
    known: list[Any] = []
    by_object: dict[Any, float] = {}
    members: set[Any] = set()

    def looked_up(s: Any, x: Any) -> Any:
        return x * by_object.get(s, 1.0) + (s in known) * 10 + (s in members) * 100

    jitted = rune_jit.jit(looked_up)
    for i in range(12):
        s = Settings()
        if i % 2:
            by_object[s] = float(i)
        if i % 3 == 0:
            known.append(s)
        if i % 5 == 0:
            members.add(s)
        for given in (s, Settings()):
            assert_matches(jitted(given, X), looked_up(given, X))


class Equal(Settings):
    """Equal by a part of what it holds."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class EqualSlots:
    __slots__ = ("factor", "name")

    def __init__(self, factor: Any, name: str = "") -> None:
        self.factor, self.name = factor, name

    __eq__ = lambda self, other: self.name == other.name  # noqa: E731
    __hash__ = lambda self: hash(self.name)  # type: ignore[assignment]  # noqa: E731


@pytest.mark.parametrize("kind", [Equal, EqualSlots])
def test_equality_of_users(kind: Any) -> None:
    follow(scaled, [(kind(f, name), X) for f in (2.0, 3.0, X, X + 1) for name in ("a", "a", "b")])

    def compared(s: Any, t: Any, x: Any) -> Any:
        return x * (2 if s == t else 3)

    pairs = [("a", "a"), ("a", "b"), ("b", "b"), ("b", "a"), ("c", "c")]
    follow(compared, [(kind(1.0, a), kind(2.0, b), X) for a, b in pairs])


def test_addresses() -> None:
    def numbered(s: Any, x: Any) -> Any:
        return x + id(s) % 1000

    def hashed(s: Any, x: Any) -> Any:
        return x + hash(s) % 1000

    def named(s: Any, x: Any) -> Any:
        return x, repr(s), f"{s}"

    for function in (numbered, hashed, named):
        jitted = rune_jit.jit(function)
        kept = [Settings() for _ in range(5)]
        for s in kept:
            assert_matches(jitted(s, X), function(s, X))


def test_weak_references() -> None:
    of: Any = weakref.WeakKeyDictionary()

    def looked_up(s: Any, x: Any) -> Any:
        return x * of.get(s, 1.0)

    def called(s: Any, x: Any) -> Any:
        return x * s.factor().factor

    jitted, jitted_call = rune_jit.jit(looked_up), rune_jit.jit(called)
    for i in range(5):
        s = Settings()
        if i % 2:
            of[s] = float(i)
        assert_matches(jitted(s, X), looked_up(s, X))
        s = Settings(weakref.ref(of_value := Settings(float(i))))
        assert_matches(jitted_call(s, X), X * of_value.factor)
