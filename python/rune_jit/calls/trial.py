"""Finds out whether rune_jit or NumPy is faster, by the times of a signature's first calls."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rune_jit import _core

# So many calls of each are timed (calls that compile something do not count). One of each is enough
# if the slower one took so many seconds and so many times the other's time.
_TIMED, _LONG, _CLEARLY = 2, 0.01, 3.0

FOR_TRIAL = "to find out whether NumPy is faster"  # why NumPy runs a call, for profiles


class Trial:
    """Compares the times of first calls, in which rune_jit and NumPy take turns.

    If a program has loops and takes long, NumPy gets no turn. Python would run each iteration, and
    a single call could take minutes."""

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

    @property
    def calls(self) -> int:
        """How many calls of rune_jit were timed."""
        return len(self._ours)

    def note(self, seconds: float, of_numpy: bool = False) -> None:
        """Notes the time of a call. (Calls of several threads may end in any order.)"""
        if not self.is_over:
            (self._numpys if of_numpy else self._ours).append(seconds)

    @contextmanager
    def numpys_turn(self) -> Iterator[None]:
        """Times a call on NumPy.

        In the first such call, jitted functions that the function calls run on NumPy as well. They
        may not have found out yet that NumPy is faster, because inside of this function's programs
        they have no trials. In the second call they run as they would if this function ran on
        NumPy."""
        is_first = not self._numpys
        if is_first:
            _core.numpy_began()
        start = time.perf_counter()
        try:
            yield
        finally:
            self.note(time.perf_counter() - start, of_numpy=True)
            if is_first:
                _core.numpy_ended()

    def verdict(self) -> str | None:
        """Why NumPy should run the calls, or None if it is not faster."""
        ours, numpys = min(self._ours), min(self._numpys, default=math.inf)
        if ours <= numpys:
            return None
        return f"it takes {1e3 * numpys:.3g} ms there, {1e3 * ours:.3g} ms compiled"
