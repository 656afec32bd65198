"""Loops whose iterations all run, one by one: outside of traces, and if a trace unrolls them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rune_jit.capture.loops.branches import Conditions


class Plain:
    """The iterable of such a `for` loop."""

    __slots__ = ("_iterable",)
    rebinds = False

    def __init__(self, iterable: Any) -> None:
        self._iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        return iter(self._iterable)

    def stops(self, flag: Any) -> Any:
        return flag


class PlainWhile(Conditions):
    """The object that such a `while` loop asks whether it goes on."""

    rebinds = False

    def __init__(self) -> None:
        super().__init__(lambda x: False)

    def goes_on(self, test: Any) -> Any:
        return test

    def stops(self, flag: Any) -> Any:
        return flag


PLAIN = PlainWhile()
