"""The trace that runs on this thread, and the place in the user's code."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from rune_jit import _core
from rune_jit.errors import TracerLeakError

if TYPE_CHECKING:
    from rune_jit.tracing.trace import Trace


_OWN_FOLDERS = tuple(
    os.path.join(os.path.dirname(os.path.abspath(path)), "")
    for path in (os.path.dirname(__file__), np.__file__)
)


class ValuesNeeded(BaseException):
    """The trace needs the values of numbers among the arguments: it begins again with them as
    constants. (No Exception: the traced function must not handle it.)"""

    def __init__(self, leaves: frozenset[int]) -> None:
        self.leaves = leaves


class _Active(threading.local):
    def __init__(self) -> None:
        self.stack: list[Trace] = []


_active = _Active()


def current_trace() -> Trace | None:
    """The innermost trace that runs on this thread, or None."""
    return _active.stack[-1] if _active.stack else None


@contextmanager
def active(trace: Trace) -> Iterator[None]:
    """Makes a trace the current one of this thread."""
    _active.stack.append(trace)
    _core.trace_began()
    try:
        yield
    finally:
        _core.trace_ended()
        _active.stack.pop()


def require_trace() -> Trace:
    """The current trace, with the user's line noted. Raises TracerLeakError if there is none."""
    trace = current_trace()
    if trace is None:
        raise TracerLeakError(
            "a traced array is used outside the function that was traced\n"
            "hint: return it from the function instead of storing it"
        )
    trace.builder.set_location(user_location())
    return trace


def user_site() -> tuple[str, int]:
    """File and line of the innermost frame outside rune_jit and numpy."""
    frame = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        if not filename.startswith(_OWN_FOLDERS) and not filename.startswith("<frozen"):
            return filename, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return "<unknown>", 0


def user_site_of(error: BaseException) -> tuple[str, int] | None:
    """The user's file and line in the traceback of an error: the last frame outside rune_jit."""
    site = None
    traceback = error.__traceback__
    while traceback is not None:
        filename = traceback.tb_frame.f_code.co_filename
        if not filename.startswith(_OWN_FOLDERS):
            site = (filename, traceback.tb_lineno)
        traceback = traceback.tb_next
    return site


def user_location() -> str:
    """`file.py:12` of the user's code that runs now."""
    filename, line = user_site()
    return f"{os.path.basename(filename)}:{line}"
