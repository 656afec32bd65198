"""Guards against effects in code that a trace does not copy: special methods, properties, methods
of objects without arrays. Such code calls Python's own functions with effects, and clocks. While a
trace runs, these functions are replaced by ones that refuse calls in the trace's thread."""

from __future__ import annotations

import builtins
import functools
import gc
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from rune_jit.capture.replacing import Place, Replacing
from rune_jit.capture.shim import replacements, warn
from rune_jit.errors import UnsupportedOpError
from rune_jit.tracing.context import current_trace, is_library_file, is_own
from rune_jit.tracing.trace import Trace

_MODULES = ("time", "os", "uuid", "warnings", "logging", "threading", "secrets")


@contextmanager
def refused(trace: Trace) -> Iterator[None]:
    """A block in which the user's code, in this thread, raises UnsupportedOpError if it calls a
    function that must run at each call. Does nothing in segments, where such functions run at each
    call."""
    if trace.is_segmented:
        yield
        return
    with _stand_ins.block():
        yield


@functools.cache
def _functions() -> list[Place]:
    """The functions that must run at each call: module, name, function, replacement."""
    modules = [sys.modules[name] for name in _MODULES if name in sys.modules]
    named = [(module, name) for module in modules for name in vars(module)]
    named += [(builtins, name) for name in ("print", "open", "input")]
    named.append((np.random, "default_rng"))
    found = []
    for module, name in named:
        real = getattr(module, name)
        refusing = replacements().get(id(real))
        if isinstance(refusing, types.FunctionType) and not isinstance(real, type):
            found.append((module, name, real, _for_users(real, refusing)))
    return found


_stand_ins = Replacing(_functions)


def refuse(x: Any) -> None:
    """Raises UnsupportedOpError if code that is not copied names such a function itself."""
    if id(x) in _ids() and (trace := current_trace()) is not None and trace.decides:
        raise UnsupportedOpError(
            f"{x.__name__}: cannot trace this function in a method of an object without arrays (it"
            " would run once, not at each call)\nhint: call it outside"
        )


@functools.cache
def _ids() -> set[int]:
    """The ids of the functions, except for default_rng, which may have a seed."""
    return {id(real) for module, _, real, _ in _functions() if module is not np.random}


def _collects(frame: types.FrameType | None) -> bool:
    """Whether a frame is in a callback of the garbage collector, which may run at any time."""
    codes = [getattr(f, "__code__", None) for f in gc.callbacks]
    while frame is not None and codes:
        if frame.f_code in codes:
            return True
        frame = frame.f_back
    return False


def _for_users(real: Any, refusing: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def function(*args: Any, **kwargs: Any) -> Any:
        caller = sys._getframe(1).f_code.co_filename
        is_users = not (is_own(caller) or is_library_file(caller))
        if is_users and current_trace() is not None and not _collects(sys._getframe(1)):
            return refusing(*args, **kwargs)
        return call(*args, **kwargs)

    call = warn if real is warnings.warn else real
    return function
