"""Times compilations, finds out why they are slow, and reports their progress."""

from __future__ import annotations

import sys
import threading
import time
import types
from collections.abc import Callable, Sequence
from typing import Any

from rune_jit import _core
from rune_jit.backends import llvm
from rune_jit.backends.progress import Progress, is_watched

_SLOW = 2.0  # seconds
_MOST_LINES = 3

_DOING = {"trace": "tracing", "passes": "dividing it into kernels", "code": "making machine code"}


class Stopwatch:
    """The times of a compilation's parts. In its context, a long compilation is shown on the
    terminal (progress.py)."""

    def __init__(
        self,
        name: str,
        parts: Sequence[str] = ("trace", "passes", "code"),
        is_own: Callable[[str], bool] = lambda file: False,
    ) -> None:
        """`is_own` tells whether a file is not the user's."""
        self._name, self._all, self._is_own = name, parts, is_own
        llvm.take_waits()
        self.begin_ns = _core.profile_clock_ns()
        self._last = time.perf_counter()
        self.parts: dict[str, float] = {}  # seconds
        self._progress: Progress | None = None

    def __enter__(self) -> Stopwatch:
        if is_watched():
            thread = threading.get_ident()
            self._progress = Progress(lambda: self._describe(thread))
            self._progress.begin()
        return self

    def __exit__(self, *error: object) -> None:
        if self._progress is not None:
            self._progress.end()

    def note(self, part: str) -> None:
        """Counts the time since the last note as time of this part, without waits for other
        threads."""
        now = time.perf_counter()
        self.parts[part] = now - self._last - llvm.take_waits()
        self._last = now

    def finished(self) -> dict[str, float]:
        """The times of all parts. If a part failed, it has lasted until now."""
        if not self.parts:
            self.note(self._all[0])
        return self.parts

    def _describe(self, thread: int) -> str:
        """Describes what the compiling thread is doing."""
        part = next((p for p in self._all if p not in self.parts), self._all[-1])
        text = f"compiling {self._name}: {_DOING[part]}"
        if part == "trace" and (line := self._line(sys._current_frames().get(thread))):
            return f"{text}, at {line}"
        done, all_parts = llvm.progress
        if part == "code" and all_parts > 1:
            return f"{text}, part {done + 1} of {all_parts}"
        return text

    def _line(self, frame: types.FrameType | None) -> str | None:
        """The user's line that a thread is running."""
        while frame is not None and self._is_own(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None:
            return None
        name = frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
        return f"{name}:{frame.f_lineno}"

    def report(self, graph: Any, loops: Sequence[str] = ()) -> str | None:
        """A text that says why the compilation of a graph was slow. None if it was not."""
        total = sum(self.parts.values())
        if total < _SLOW:
            return None
        parts = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in self.parts.items())
        lines = sorted((count, line) for line, count in graph.lines() if line)
        most = ", ".join(f"{line} ({count:,})" for count, line in lines[: -_MOST_LINES - 1 : -1])
        text = f"compiled in {total:.1f} s ({parts}): it has {len(graph):,} operations"
        text += f", most of them of {most}" if most else ""
        unrolled = [line for line in loops if "is unrolled" in line]
        return "; ".join([text, *unrolled[:_MOST_LINES]])
