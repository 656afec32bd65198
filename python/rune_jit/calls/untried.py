"""Signatures whose first calls run on NumPy: those of functions whose calls mostly have new
signatures, or whose calls NumPy mostly runs after a trace, and those whose programs would be too
large."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# How many calls of a signature run before its trace, and for how many signatures calls are counted.
_CALLS, _MOST = 8, 256
FEW = "most of its programs serve one call"
LOST = "NumPy runs most of its signatures"
# Seconds of a call after which the next one is traced: a trace takes about as long.
_LONG = 0.01


class Untried:
    """The signatures of a function that were called and have not been traced yet."""

    def __init__(self) -> None:
        self._calls: dict[Any, tuple[int, str]] = {}  # by key: the number of calls, and why

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def reasons(self) -> list[str]:
        return list(dict.fromkeys(why for _, why in self._calls.values()))

    def why(self, key: Any) -> str | None:
        """Why NumPy runs calls with this key, or None if it need not."""
        return self._calls[key][1] if key in self._calls else None

    def is_repeated(self, key: Any) -> bool:
        """Whether NumPy has run more than one call of this signature."""
        return self._calls.get(key, (0, ""))[0] > 1

    def takes(self, key: Any, why: str) -> bool:
        """Notes a call of a signature without a trace. Returns whether NumPy must run the call."""
        calls = self._calls.pop(key, (0, why))[0] + 1
        if calls > _CALLS:
            return False
        self._calls[key] = calls, why
        for oldest in list(self._calls)[: max(0, len(self._calls) - _MOST)]:
            del self._calls[oldest]
        return True

    @contextmanager
    def timed(self, key: Any) -> Iterator[None]:
        """Times a call of a signature on NumPy. If it took long, the next one is traced, unless its
        program would be too large."""
        start = time.perf_counter()
        yield
        why = self.why(key)
        if why in (FEW, LOST) and time.perf_counter() - start > _LONG:
            self._calls[key] = _CALLS, why

    def clear(self) -> None:
        self._calls.clear()
