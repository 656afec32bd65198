"""Structures for tests of loops, and comparisons of the loops' results with NumPy's."""

from __future__ import annotations

import copy
import dataclasses
from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
from compare import assert_same
from loop_checks import ROLLED

import rune_jit

X = np.random.default_rng(3).normal(size=30)
Y = np.random.default_rng(4).normal(size=30)
Pair = namedtuple("Pair", "x v")


class Orbit(NamedTuple):
    x: Any
    v: Any
    count: int = 0

    def step(self, h: float) -> Orbit:
        v = self.v - h * self.x
        return Orbit(self.x + h * v, v, self.count + 1)


@dataclasses.dataclass
class State:
    x: Any
    v: Any
    t: float = 0.0


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: Any
    v: Any
    names: list[str] = dataclasses.field(default_factory=list)


class Base:
    def __init__(self, x: Any) -> None:
        self.x = x

    def pull(self) -> Any:
        return self.x * 0.5


class Body(Base):
    """Its methods make new objects, and call those that they override."""

    mass = 2.0

    def __init__(self, x: Any, v: Any) -> None:
        super().__init__(x)
        self.v = v

    @property
    def momentum(self) -> Any:
        return self.mass * self.v

    def pull(self) -> Any:
        return super().pull() + 0.01 * self.v

    def __add__(self, other: Any) -> Any:
        return Body(self.x + other.x, self.v + other.v)

    def step(self, h: float) -> Any:
        return Body(self.x + h * self.momentum, self.v - h * self.pull())


def as_data(x: Any) -> Any:
    """x with its objects' classes and attributes."""
    if isinstance(x, (list, tuple)):
        return type(x).__name__, [as_data(item) for item in x]
    if isinstance(x, dict):
        return [(key, as_data(value)) for key, value in x.items()]
    return (type(x).__name__, as_data(vars(x))) if hasattr(x, "__dict__") else x


def compare(function: Any, *args: Any) -> list[str]:
    """Compares a function's results, and what it leaves in its arguments, with NumPy's; how its
    loops run."""
    jitted = rune_jit.jit(function)
    wanted = copy.deepcopy(args)
    expected = as_data(function(*wanted))
    for _ in range(3):
        given = copy.deepcopy(args)
        assert_same(as_data(jitted(*given)), expected, ulps=8, scaled=True)
        assert_same(as_data(given), as_data(wanted), ulps=8, scaled=True)
    lines = [line.strip() for line in jitted.explain().splitlines()]
    return [line for line in lines if line.startswith("loop at")]


def rolled(function: Any, *args: Any) -> None:
    lines = compare(function, *args)
    assert lines and all(line.endswith(ROLLED) for line in lines), lines


def unrolled(reason: str, function: Any, *args: Any) -> None:
    lines = compare(function, *args)
    assert any(reason in line for line in lines), lines
