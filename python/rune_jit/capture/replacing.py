"""Replaces attributes of Python's own modules and classes while traces run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

Place = tuple[Any, str, Any, Any]  # the owner, the attribute's name, its value, its stand-in


class Replacing:
    """Puts stand-ins in place while at least one block runs in any thread. Afterwards it restores
    the attributes, except those that other code has replaced meanwhile."""

    def __init__(self, places: Callable[[], Iterable[Place]]) -> None:
        self._places = places
        self._lock = threading.Lock()
        self._blocks = 0  # how many blocks run
        self._replaced: list[Place] = []

    @contextmanager
    def block(self) -> Iterator[None]:
        with self._lock:
            self._blocks += 1
            if self._blocks == 1:
                self._begin()
        try:
            yield
        finally:
            with self._lock:
                self._blocks -= 1
                if not self._blocks:
                    self._end()

    def _begin(self) -> None:
        for place in self._places():
            owner, name, real, stand_in = place
            if getattr(owner, name) is real:
                setattr(owner, name, stand_in)
                self._replaced.append(place)

    def _end(self) -> None:
        for owner, name, real, stand_in in self._replaced:
            if getattr(owner, name) is stand_in:
                setattr(owner, name, real)
        self._replaced.clear()
