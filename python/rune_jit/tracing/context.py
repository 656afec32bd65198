"""The trace that runs on this thread, and the place in the user's code."""

from __future__ import annotations

import dis
import functools
import os
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from rune_jit import _core

if TYPE_CHECKING:
    from rune_jit.tracing.trace import Trace


_OWN_FOLDERS = tuple(
    os.path.join(os.path.dirname(os.path.abspath(path)), "")
    for path in (os.path.dirname(__file__), np.__file__)
)
_core.set_own_folders(_OWN_FOLDERS)
_PYTHON = os.path.join(os.path.dirname(os.__file__), "")

# File and line of the innermost frame outside rune_jit and numpy.
user_site: Callable[[], tuple[str, int]] = _core.user_site
# The innermost trace that runs on this thread, or None.
current_trace: Callable[[], Trace | None] = _core.current_trace
# The current trace, with the user's line noted. Raises TracerLeakError if there is none.
require_trace: Callable[[], Trace] = _core.require_trace


def is_own(filename: str) -> bool:
    """Whether a file of code is rune_jit's or NumPy's."""
    return filename.startswith(_OWN_FOLDERS) or filename.startswith("<frozen")


def is_own_file(filename: str) -> bool:
    """Whether a file of code is rune_jit's."""
    return filename.startswith(_OWN_FOLDERS[0])


def is_library_file(filename: str) -> bool:
    """Whether a file of code is NumPy's, or part of Python."""
    if filename.startswith(_PYTHON):
        return "-packages" not in filename
    return filename.startswith((_OWN_FOLDERS[1], "<frozen"))


@functools.cache
def may_handle_errors(code: types.CodeType) -> bool:
    """Whether code has a `try` or `with` statement."""
    if not getattr(code, "co_exceptiontable", True):
        return False
    # The handlers of comprehensions (Python 3.12) and generators do not count, because they raise
    # the error again. SETUP_...: Python 3.10.
    return any(
        i.opname == "PUSH_EXC_INFO" or i.opname.startswith("SETUP_")
        for i in dis.get_instructions(code)
    )


class ValuesNeeded(BaseException):
    """The trace needs the values of numbers among the arguments. It begins again with these numbers
    as constants. (This is no Exception, because the traced function must not handle it.)"""

    def __init__(self, leaves: frozenset[int]) -> None:
        self.leaves = leaves


@contextmanager
def active(trace: Trace) -> Iterator[None]:
    """Makes a trace the current one of this thread."""
    _core.trace_began(trace)
    try:
        yield
    finally:
        if current_trace() is trace:  # (see running_trace)
            _core.trace_ended()


# Traces run below frames of these files.
_RUNNING = frozenset(
    os.path.join(_OWN_FOLDERS[0], "calls", name) for name in ("call_trace.py", "segmented.py")
)


def running_trace() -> Trace | None:
    """The current trace. Ends a trace that no frame of this thread runs: Ctrl-C may come when a
    `with` statement is about to end it."""
    while (trace := current_trace()) is not None:
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename in _RUNNING:
                return trace
            frame = frame.f_back
        _core.trace_ended()
    return None


def user_site_of(error: BaseException) -> tuple[str, int] | None:
    """The user's file and line in the traceback of an error: the last frame outside rune_jit."""
    site = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if not frame.f_code.co_filename.startswith(_OWN_FOLDERS):
            site = frame.f_code.co_filename, line
    return site
