"""What a trace notes of the objects that a function reaches."""

import sys
from typing import Any

import numpy as np
import pytest

import rune_jit
from rune_jit.capture.guards import Watch


class Counting(Watch):
    notes = 0

    def guard(self, *what: Any) -> None:
        self.notes += 1
        super().guard(*what)


def chain(length: int) -> Any:
    """Objects of one class, each of which reaches the next one by a function of its own."""

    class Unit:
        scale = 2.0

        def __init__(self, name: str, convert: Any) -> None:
            self.name, self.convert = name, convert

        def __mul__(self, other: Any) -> Any:
            return self.convert(getattr(self, "scale") * other)  # noqa: B009

    unit = None
    for i in range(length):
        namespace: dict[str, Any] = {f"unit_{i}": unit}
        exec(f"def convert(x):\n    return unit_{i}.name_{i} if x is None else x", namespace)
        unit = Unit(f"u{i}", namespace["convert"])
    return unit


def test_objects_are_read_once() -> None:
    """Not again for each function that is met: packages reach thousands of both."""
    notes = []
    for length in (40, 80):
        watch = Counting(test_objects_are_read_once)
        watch.look(chain(length))
        notes.append(watch.notes)
    assert 40 < notes[0] < notes[1] < 2.5 * notes[0]


class Meter:
    """An object without arrays: its methods are not copied, but searched."""

    __slots__ = ("factor",)
    offset = 1.0

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def read(self, x: Any) -> Any:
        return x * getattr(self, "fac" + "tor") + self.offset


METERS = {"one": Meter(1.0), "two": Meter(2.0)}


class Plain:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def read(self, x: Any) -> Any:
        return x * vars(self)["factor"]


PLAIN = Plain(3.0)


def through_slots(x: Any) -> Any:
    return METERS["two"].read(x) + METERS["one"].read(x)


def through_attributes(x: Any) -> Any:
    return PLAIN.read(x)


@pytest.mark.parametrize(
    "function, change",
    [
        (through_slots, lambda: setattr(METERS["two"], "factor", 5.0)),
        (through_slots, lambda: setattr(Meter, "offset", 7.0)),
        (through_slots, lambda: setattr(Meter, "read", lambda self, x: x - self.factor)),
        (through_attributes, lambda: setattr(PLAIN, "factor", 11.0)),
        (through_attributes, lambda: setattr(Plain, "read", lambda self, x: x + self.factor)),
    ],
)
def test_what_is_read_later_is_watched(function: Any, change: Any) -> None:
    jitted, x = rune_jit.jit(function), np.arange(3.0)
    for _ in range(2):
        np.testing.assert_array_equal(jitted(x), function(x))
    change()
    for _ in range(2):
        np.testing.assert_array_equal(jitted(x), function(x))


class _Cell:
    pass


class _Grid:
    def __init__(self, size, cell=_Cell()):  # noqa: B008
        self.cells, self.scale = [cell] * size, 1.5

    def scaled(self, i):
        return self.scale * i


def test_an_object_that_a_list_holds_often_is_looked_at_once():
    def steps(function, *args):
        """How many functions a call calls."""
        events = []
        sys.setprofile(lambda frame, event, _: events.append(event))
        try:
            function(*args)
        finally:
            sys.setprofile(None)
        return events.count("call")

    size = 20_000
    scaled, made = rune_jit.jit(_Grid.scaled), rune_jit.jit(_Grid.__init__)
    for i in range(3):
        assert steps(scaled, _Grid(size), i) < size
        grid = _Grid.__new__(_Grid)
        assert steps(made, grid, size) < 30 * size
        assert grid.cells == _Grid(size).cells
