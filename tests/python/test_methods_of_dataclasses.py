"""Jitted methods of dataclasses. Objects that differ in their arrays share a program."""

import copy
from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import rune_jit
from rune_jit.calls.trial import Trial


@pytest.fixture(autouse=True)
def never_numpy(monkeypatch):
    """Calls run their programs, however long they take."""
    monkeypatch.setattr(Trial, "verdict", lambda self: None)


def _classes(jit: Callable[[Any], Any]) -> tuple[type, type, type]:
    @dataclass(frozen=True)
    class Fixed:
        x: np.ndarray
        name: str = "fixed"

        @jit
        def scaled(self, k):
            return replace(self, x=self.x * k)

        @jit
        def dot(self, other):
            return (self.x * other.x).sum()

        @jit
        def write(self):
            self.x[0] += 1
            return self

        @jit
        def assign(self):
            self.x = 3

        @jit
        def key(self):
            return {self: 1}

        @jit
        def equals(self, other):
            return self == other

        @jit
        def force(self, v):
            object.__setattr__(self, "x", self.x + v)
            return self.x.sum()

        @jit
        def parts(self):
            return asdict(self), astuple(self)

    @dataclass
    class Moving:
        position: Any
        velocity: np.ndarray
        t: float = 0.0
        log: list = field(default_factory=list)

        @jit
        def step(self, dt):
            self.velocity += dt
            self.position = self.position.scaled(1.5)
            self.t += dt
            self.log.append(float(self.velocity.sum()))
            return self

        @jit
        def alias(self):
            self.velocity = self.position.x
            return self.velocity is self.position.x

    @dataclass(unsafe_hash=True)
    class Hashed:
        a: np.ndarray = field(hash=False, compare=False)
        k: int = 2

        @jit
        def times(self):
            return self.a * self.k

        @jit
        def find(self, table):
            return table.get(self)

    return Fixed, Moving, Hashed


def _outcomes(jit: Callable[[Any], Any]) -> list[str]:
    fixed, moving, hashed = _classes(jit)
    found: list[str] = []

    def note(function: Callable[[], Any]) -> None:
        try:
            found.append(repr(copy.deepcopy(function())))
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")

    for k in range(4):
        v, w = fixed(np.arange(4.0) + k), fixed(np.ones(4) * k)
        for function in (
            lambda v=v, k=k: v.scaled(k),
            lambda v=v, w=w: v.dot(w),
            lambda v=v: v.write() is v,
            v.assign,
            v.key,
            lambda v=v, w=w: v.equals(w),
            lambda v=v: v.equals(v),
            lambda v=v: v.force(2.0),
            v.parts,
        ):
            note(function)
            note(lambda v=v: v.x)
        v.x[1] = 77
        note(lambda v=v, w=w: v.dot(w))
        m = moving(v, np.arange(4.0))
        for _ in range(3):
            note(lambda m=m: m.step(0.5) is m)
        note(lambda m=m: m)
        note(m.alias)
        note(lambda m=m: m.velocity is m.position.x)
        h = hashed(np.arange(3.0) + k, 2 + k % 2)
        note(h.times)
        note(lambda h=h: h.find({h: 5, hashed(np.ones(1), 99): 6}))
        h.k = 7
        note(h.times)
        h.a[:] = 1
        note(h.times)
    return found


def test_results_and_changes():
    assert _outcomes(lambda f: rune_jit.jit(f, fallback="silent")) == _outcomes(lambda f: f)


@pytest.mark.parametrize("options", [{}, {"frozen": True}, {"eq": False}, {"unsafe_hash": True}])
def test_objects_share_a_program(options):
    @dataclass(**options)
    class Scaled:
        x: np.ndarray

        @rune_jit.jit
        def total(self, k):
            return (self.x * k).sum()

    for k in range(6):
        assert Scaled(np.arange(3.0) + k).total(2) == (np.arange(3.0) + k).sum() * 2
    info = vars(Scaled)["total"].cache_info()
    assert (info.misses, info.fallbacks, info.size) == (1, 0, 1)
