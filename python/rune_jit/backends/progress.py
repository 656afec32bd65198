"""A line on the terminal, or in a notebook, that shows the progress of a long compilation."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

# Seconds before a compilation is shown, and between two updates.
_AFTER, _EVERY = 2.0, 0.5

_CLEAR = "\r\x1b[K"
_LONGEST = 110  # characters of a line

# Held by the compilation that is shown.
_shown = threading.Lock()


def is_watched() -> bool:
    """Whether stderr is a terminal or a notebook, so that somebody sees a line that is overwritten
    later."""
    stderr = sys.stderr
    if stderr is None:
        return False
    if type(stderr).__module__.partition(".")[0] == "ipykernel":
        return True
    try:
        return stderr.isatty()
    except (AttributeError, ValueError):  # stderr is another object, or closed
        return False


class Progress:
    """A context that shows `describe()` after two seconds. It needs a thread, so enter it only if
    `is_watched()`."""

    def __init__(self, describe: Callable[[], str]) -> None:
        self._describe = describe
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        if not _shown.acquire(blocking=False):
            return  # another compilation is shown
        self._thread = threading.Thread(target=self._run, name="rune_jit progress", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Removes the line."""
        if self._thread is None:
            return
        self._ended.set()
        self._thread.join()
        self._thread = None
        _shown.release()

    def _run(self) -> None:
        start = time.perf_counter()
        wait, is_shown = _AFTER, False
        while not self._ended.wait(wait):
            seconds = time.perf_counter() - start
            self._write(f"{_CLEAR}rune_jit: {self._describe()}"[:_LONGEST] + f" ({seconds:.0f} s)")
            wait, is_shown = _EVERY, True
        if is_shown:
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):  # stderr was closed
            self._ended.set()
