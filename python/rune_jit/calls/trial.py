"""Which way of two is faster, ours or NumPy's, by the times of a signature's first calls."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rune_jit import _core

# How many calls that compile nothing are timed, and how many of NumPy's; one of each if the slower
# one took so many seconds, and so many times the other's time.
_TIMED, _LONG, _CLEARLY = 2, 0.01, 3.0

FOR_TRIAL = "to find out whether NumPy is faster"  # why NumPy runs a call, for profiles


class Trial:
    """Which way of two is faster, ours or NumPy's, by the first calls, which take turns.

    If a program has loops and takes long, NumPy gets no turn. NumPy would run each iteration in
    Python, and a single call could take minutes."""

    def __init__(self, has_loops: bool = False) -> None:
        self._has_loops = has_loops
        self._ours: list[float] = []  # seconds
        self._numpys: list[float] = []

    @property
    def is_numpys_turn(self) -> bool:
        return len(self._ours) > len(self._numpys) and not self.is_over

    @property
    def is_over(self) -> bool:
        if not self._numpys:
            return self._has_loops and min(self._ours, default=0.0) > _LONG
        fast, slow = sorted((min(self._ours), min(self._numpys)))
        return len(self._numpys) == _TIMED or (slow > _LONG and slow > _CLEARLY * fast)

    def note(self, seconds: float) -> None:
        """Notes how long a call took, in the way whose turn it was."""
        if self.is_over:
            return
        (self._numpys if self.is_numpys_turn else self._ours).append(seconds)

    @contextmanager
    def numpys_turn(self) -> Iterator[None]:
        """Times a call of the function by NumPy.

        In the first one, jitted functions that the function calls run NumPy as well: they may not
        have found out yet that NumPy is faster, and would not while they are part of this
        function's programs. In the second one they run as they would if this function ran NumPy."""
        is_first = not self._numpys
        if is_first:
            _core.numpy_began()
        start = time.perf_counter()
        try:
            yield
        finally:
            self.note(time.perf_counter() - start)
            if is_first:
                _core.numpy_ended()

    def verdict(self) -> str | None:
        """Why NumPy is to be preferred, if it is."""
        ours, numpys = min(self._ours), min(self._numpys, default=math.inf)
        if ours <= numpys:
            return None
        return f"it takes {1e3 * numpys:.3g} ms there, {1e3 * ours:.3g} ms compiled"
