"""Entries of signatures without a program. NumPy runs their calls, for good or until a program
pays."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rune_jit import _core
from rune_jit.calls.paths import Paths
from rune_jit.calls.segmented import Segmented


class Fallback:
    """A signature whose calls run on NumPy. `until_it_returns`: only until a call raises
    nothing."""

    def __init__(self, reason: str, until_it_returns: bool = False) -> None:
        self.use = _core.LastUse()
        self.reason = reason
        self.until_it_returns = until_it_returns

    @property
    def last_used(self) -> int:
        return self.use.tick


# How many seconds it takes to make a large program.
_PATIENCE = 3.0
_MOST_CALLS = 100_000


class Postponed(Fallback):
    """A signature whose program would take longer to make, `seconds`, than it saves in many calls.
    NumPy runs its calls until they have taken that long."""

    def __init__(self, reason: str, seconds: float | None = None) -> None:
        super().__init__(reason)
        self._seconds = _PATIENCE if seconds is None else seconds
        self._spent = self._last = 0.0  # seconds of all calls, and of the last one

    @property
    def is_due(self) -> bool:
        return self._spent >= self._seconds

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Times a call."""
        start = time.thread_time()
        try:
            yield
        finally:
            self._last = time.thread_time() - start
            self._spent += self._last

    @property
    def calls_without_look(self) -> int:
        """How many calls like the last one may follow without a look at their times."""
        left = 0.0 if self.is_due else (self._seconds - self._spent) / 2
        return min(int(left / max(self._last, 1e-7)), _MOST_CALLS)

    def note_more(self, calls: int) -> None:
        """Counts calls that were not timed."""
        self._spent += calls * self._last


class Untraced(Postponed):
    """A signature that is postponed before its first trace. It is also due if its first two calls
    take more than `most` seconds each."""

    def __init__(self, reason: str, seconds: float, most: float = math.inf) -> None:
        super().__init__(reason, seconds)
        self._most = most
        self._timed = 0
        self._shortest = math.inf

    @property
    def is_new(self) -> bool:
        """Whether there has been no call."""
        return self._timed == 0

    @property
    def shortest(self) -> float | None:
        """How many seconds the shortest call took. None if there was one call only, which takes
        longer than others, and it has not taken as long as a trace."""
        return self._shortest if self._timed > 1 or super().is_due else None

    @property
    def is_due(self) -> bool:
        return super().is_due or (self.shortest or 0.0) > self._most

    @property
    def calls_without_look(self) -> int:
        return super().calls_without_look if self._timed > 1 else 0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Times a call. Jitted functions that the first calls call run on NumPy as well, because
        their traces are not the time of a call."""
        is_alone = self.shortest is None
        if is_alone:
            _core.numpy_began()
        try:
            with super().timed():
                yield
        finally:
            self._timed += 1
            self._shortest = min(self._shortest, self._last)
            if is_alone:
                _core.numpy_ended()


def way(entry: Any) -> tuple[str, str]:
    """How the calls of a signature run, as a word and as a line of text."""
    if isinstance(entry, Fallback):
        return "NumPy", f"on NumPy: {_first_line(entry.reason)}"
    if isinstance(entry, Paths):
        each = ", one for each way through its conditions" if len(entry) > 1 else ""
        return (
            "program",
            f"as {'one program' if len(entry) == 1 else f'{len(entry)} programs'}{each}",
        )
    if not isinstance(entry, Segmented):
        return "program", "as one program"
    if entry.runs_on_numpy:
        return "NumPy", f"on NumPy: {_first_line(entry.runs_on_numpy)}"
    count = len(entry.programs)
    programs = f"{count} program{'' if count == 1 else 's'}"
    if loops := sum(x.is_used for x in entry.programs.apart.values()):
        programs += f", {loops} more of loops"
    if refusals := entry.programs.refusals:
        programs += f", some for one length each: {_first_line(refusals[0])}"
    return "segments", f"in segments ({programs}): {_first_line(entry.reason)}"


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
