"""Tracebacks of exceptions: without rune_jit's lines for those that leave a jitted function, and
without what their frames hold."""

from __future__ import annotations

import traceback
import types
from collections.abc import Iterator
from contextlib import contextmanager

from rune_jit.errors import InternalError
from rune_jit.tracing.context import is_library_file, is_own_file
from rune_jit.trees import package_of

# If rune_jit's own code raises one of these, it is a bug, and the traceback stays complete.
_BUGS = (InternalError, AssertionError, AttributeError, NameError, KeyError, RecursionError)


def shorten(error: BaseException) -> None:
    """Removes rune_jit's frames from the tracebacks of an exception and of its causes. Frames of
    NumPy that rune_jit called are removed, too. cpp/bindings/bind_dispatch.cpp calls this for each
    exception that leaves a jitted function, unless RUNE_JIT_TRACEBACKS is set."""
    for at in _with_causes(error):
        while at.__context__ is not None and _is_internal(at.__context__):
            if at.__context__ is at.__cause__:
                break
            at.__context__ = at.__context__.__context__
        if not _is_bug(at):
            at.__traceback__ = _without_own(at.__traceback__)


@contextmanager
def clearing_frames(clears: bool) -> Iterator[None]:
    """A block. If it raises, and `clears`, what its frames hold is freed at once: generators that
    have not ended are closed, and `__del__` of objects is called."""
    try:
        yield
    except BaseException as error:
        for at in _with_causes(error) if clears else ():
            traceback.clear_frames(at.__traceback__)
        raise


def forget_frames(error: BaseException) -> None:
    """Frees the frames in the tracebacks of an error of rune_jit that has been handled. A frame may
    refer to the error itself, and would keep what the frames that called it hold."""
    for at in _with_causes(error):
        if _is_internal(at):
            at.__traceback__ = None


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and all that led to it. The causes of one may change before the next."""
    seen: set[int] = set()
    open_: list[BaseException | None] = [error]
    while open_:
        at = open_.pop()
        if at is not None and id(at) not in seen:
            seen.add(id(at))
            yield at
            open_ += at.__cause__, at.__context__


def _is_internal(error: BaseException) -> bool:
    """Whether an exception is one of rune_jit's, which it may raise and handle itself."""
    return package_of(type(error)) == "rune_jit"


def _entries(entry: types.TracebackType | None) -> Iterator[types.TracebackType]:
    while entry is not None:
        yield entry
        entry = entry.tb_next


def _is_bug(error: BaseException) -> bool:
    entries = list(_entries(error.__traceback__))
    if not entries or not isinstance(error, _BUGS):
        return False
    return isinstance(error, InternalError) or is_own_file(entries[-1].tb_frame.f_code.co_filename)


def _without_own(whole: types.TracebackType | None) -> types.TracebackType | None:
    kept = []
    within = False  # whether rune_jit called this frame
    for entry in _entries(whole):
        filename = entry.tb_frame.f_code.co_filename
        if is_own_file(filename):
            within = True
        elif not (within and is_library_file(filename)):
            within = False
            kept.append(entry)
    shortened = None
    for entry in reversed(kept):
        shortened = types.TracebackType(shortened, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return shortened
