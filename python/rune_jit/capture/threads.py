"""Finds out whether a traced function, or a library that it calls, gives work to other threads. A
trace belongs to one thread, and its arrays cannot be used in another one."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rune_jit.capture.foreign import in_memory
from rune_jit.capture.replacing import Place, Replacing
from rune_jit.errors import ThreadStartedError
from rune_jit.tracing.context import current_trace, is_library_file, is_own
from rune_jit.tracing.segments import SegmentedTrace


@contextmanager
def noticed() -> Iterator[None]:
    """A block in which a trace of this thread raises ThreadStartedError if code outside of rune_jit
    gives work to another thread. In segments, NumPy runs the rest of the call instead, and the
    other thread gets NumPy's arrays."""
    with _stand_ins.block():
        yield


def _methods() -> Iterator[Place]:
    """The methods that give work to other threads, with their replacements."""
    found = [(threading.Thread, "__init__")]
    if (module := sys.modules.get("concurrent.futures.thread")) is not None:
        found.append((module.ThreadPoolExecutor, "submit"))
    for kind, name in found:
        real = getattr(kind, name)
        yield kind, name, real, _noticing(kind, real)


_stand_ins = Replacing(_methods)


@functools.cache
def _noticing(kind: type, real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        if trace is None or _is_called_by_us():
            return real(self, *args, **kwargs)
        name = f"{kind.__module__}.{kind.__name__}"
        if not isinstance(trace, SegmentedTrace):
            raise ThreadStartedError(
                f"{name}: cannot trace work of another thread\nhint: call it outside"
            )
        trace.give_up(f"{name}: it gives work to another thread")
        return real(self, *in_memory(trace, args), **in_memory(trace, kwargs))

    return method


def _is_called_by_us() -> bool:
    """Whether rune_jit or NumPy has called `method`, perhaps through Python's own code."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        filename = frame.f_code.co_filename
        if is_own(filename) or not is_library_file(filename):
            return is_own(filename)
        frame = frame.f_back
    return False
