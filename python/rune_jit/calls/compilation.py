"""How long compilations take, and what makes them long."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rune_jit.backends import llvm

_SLOW = 2.0  # seconds
_MOST_LINES = 3


class Stopwatch:
    """The times of a compilation's parts."""

    def __init__(self) -> None:
        llvm.take_waits()
        self._last = time.perf_counter()
        self._parts: dict[str, float] = {}

    def note(self, part: str) -> None:
        """What has been done since the last note was this part, but for waits for other threads."""
        now = time.perf_counter()
        self._parts[part] = now - self._last - llvm.take_waits()
        self._last = now

    def report(self, graph: Any, loops: Sequence[str] = ()) -> str | None:
        """What made the compilation of a graph slow, if it was."""
        total = sum(self._parts.values())
        if total < _SLOW:
            return None
        parts = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in self._parts.items())
        lines = sorted((count, line) for line, count in graph.lines() if line)
        most = ", ".join(f"{line} ({count:,})" for count, line in lines[: -_MOST_LINES - 1 : -1])
        text = f"compiled in {total:.1f} s ({parts}): it has {len(graph):,} operations"
        text += f", most of them of {most}" if most else ""
        unrolled = [line for line in loops if "runs all iterations" in line]
        return "; ".join([text, *unrolled[:_MOST_LINES]])
