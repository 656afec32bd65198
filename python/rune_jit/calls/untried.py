"""Signatures whose first calls run on NumPy: those of functions whose calls mostly have new
signatures, and those whose programs would be too large."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

# How many calls of a signature run before its trace, and for how many signatures calls are counted.
_CALLS, _MOST = 8, 256
FEW = "most of its programs serve one call"
# Seconds of all calls of a signature after which it is traced: a trace takes about as long.
_LONG = 0.01


class _Untried(NamedTuple):
    why: str
    calls: int = 0
    seconds: float = 0.0


class Untried:
    """The signatures of a function that were called and have not been traced yet."""

    def __init__(self) -> None:
        self._known: dict[Any, _Untried] = {}  # by key

    def __len__(self) -> int:
        return len(self._known)

    @property
    def reasons(self) -> list[str]:
        return list(dict.fromkeys(x.why for x in self._known.values()))

    def why(self, key: Any) -> str | None:
        """Why NumPy runs calls with this key, or None if it need not."""
        return self._known[key].why if key in self._known else None

    def is_repeated(self, key: Any) -> bool:
        """Whether NumPy has run more than one call of this signature."""
        return key in self._known and self._known[key].calls > 1

    def takes(self, key: Any, why: str) -> bool:
        """Notes a call of a signature without a trace. Returns whether NumPy must run the call."""
        known = self._known.pop(key, _Untried(why))
        if known.calls == _CALLS or (known.seconds > _LONG and why == FEW):
            return False
        self._known[key] = known._replace(why=why, calls=known.calls + 1)
        for oldest in list(self._known)[: max(0, len(self._known) - _MOST)]:
            del self._known[oldest]
        return True

    @contextmanager
    def timed(self, key: Any) -> Iterator[None]:
        """Times a call of a signature on NumPy."""
        start = time.perf_counter()
        yield
        known = self._known.get(key)
        if known is not None:
            seconds = known.seconds + time.perf_counter() - start
            self._known[key] = known._replace(seconds=seconds)

    def clear(self) -> None:
        self._known.clear()
