"""Collects notes of Python code for a profile (rune_jit/profiling).

Code that has something to note reads `active` once. It is None while no profile is taken."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from rune_jit import _core

# The most events of each kind that are kept. Totals include all events.
_MOST_KEPT = 100_000


class Event(NamedTuple):
    """Something that took time on a thread. `begin_ns` is a time of the profiler's clock.
    `Recorder.ended` makes it relative to the profile's begin."""

    name: str
    detail: str
    begin_ns: float
    ns: float
    thread: int


class Compilation(NamedTuple):
    """A trace and its outcome."""

    function: str
    site: str  # the line that called the function, "file.py:12"
    cause: str
    outcome: str  # "program", "segment", "segments: <reason>", "NumPy: <reason>"
    parts: dict[str, float]  # seconds, by part
    operations: int
    event: Event


class Total:
    """How often something happened, and how long it took."""

    def __init__(self) -> None:
        self.count = 0
        self.ns = 0.0


class Recorder:
    """Collects notes by kind. All threads may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._has_ended = False  # later notes of other threads are ignored
        self.compilations: list[Compilation] = []
        self.events: list[tuple[str, Event]] = []
        self.left_out = 0
        # By (kind, name, detail): "read" of a function at a line; "numpy" for a function's call
        # with its reason; "inside" for a NumPy function that a segmented one called at a line.
        self.totals: dict[tuple[str, str, str], Total] = {}

    def compiled(
        self,
        function: str,
        site: str,
        cause: str,
        outcome: str,
        parts: dict[str, float],
        operations: int,
        begin_ns: int,
    ) -> None:
        """Notes a compilation that began at `begin_ns` and has ended."""
        event = self._event(function, outcome, begin_ns)
        with self._lock:
            if self._has_ended:
                return
            self.compilations.append(
                Compilation(function, site, cause, outcome, parts, operations, event)
            )

    def note(self, kind: str, name: str, detail: str, begin_ns: int) -> None:
        """Notes something that began at `begin_ns` and has ended."""
        event = self._event(name, detail, begin_ns)
        with self._lock:
            if self._has_ended:
                return
            total = self.totals.setdefault((kind, name, detail), Total())
            total.count += 1
            total.ns += event.ns
            if len(self.events) < _MOST_KEPT:
                self.events.append((kind, event))
            else:
                self.left_out += 1

    def timed(self, kind: str, name: str, detail: str, function: Callable[[], Any]) -> Any:
        """Calls function() and notes its time."""
        begin_ns = _core.profile_clock_ns()
        try:
            return function()
        finally:
            self.note(kind, name, detail, begin_ns)

    def ended(self, begin_ns: int) -> None:
        """Makes all times relative to the profile's begin."""
        with self._lock:
            self._has_ended = True
            self.events = [(kind, _since(event, begin_ns)) for kind, event in self.events]
            self.compilations = [
                c._replace(event=_since(c.event, begin_ns)) for c in self.compilations
            ]

    def _event(self, name: str, detail: str, begin_ns: int) -> Event:
        ns = _core.profile_clock_ns() - begin_ns
        return Event(name, detail, begin_ns, ns, threading.get_ident())


def _since(event: Event, begin_ns: int) -> Event:
    return event._replace(begin_ns=event.begin_ns - begin_ns)


active: Recorder | None = None
