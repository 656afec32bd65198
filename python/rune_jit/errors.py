"""The exceptions and warnings of rune_jit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = [
    "ConcretizationError",
    "DTypeError",
    "DataDependentShapeError",
    "DynamicSizeError",
    "InternalError",
    "JitFallbackWarning",
    "NumPyOnlyError",
    "ParseError",
    "RuneJitError",
    "SlowCompilationWarning",
    "StateChangedError",
    "ThreadStartedError",
    "TracerLeakError",
    "UnsupportedOpError",
]


class RuneJitError(Exception):
    """Base of the exceptions that only rune_jit raises."""


class ResultsChangedError(RuneJitError):
    """A function that a program called on the host returned other shapes or dtypes than during the
    trace. NumPy runs the call."""


class _Refusals(threading.local):
    noted: list[_Refusal] | None = None


_refusals = _Refusals()


class _Refusal(RuneJitError):
    """Something that a trace cannot do. NumPy would not raise an error, so the traced function must
    not handle this one. A trace in which one was raised is not used, unless `forgive` forgets the
    error."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        if _refusals.noted is not None:
            _refusals.noted.append(self)


@contextmanager
def noted_refusals() -> Iterator[list[_Refusal]]:
    """Collects the refusals that this thread raises in the context."""
    before, _refusals.noted = _refusals.noted, []
    try:
        yield _refusals.noted
    finally:
        _refusals.noted = before


def forgive(error: BaseException | None) -> None:
    """Forgets an error and its causes, because another way has succeeded."""
    met: list[BaseException] = []
    while error is not None and all(error is not other for other in met):
        met.append(error)  # a chain of causes may be a cycle
        if _refusals.noted is not None and isinstance(error, _Refusal):
            _refusals.noted[:] = [noted for noted in _refusals.noted if noted is not error]
        error = error.__cause__ or error.__context__


class UnsupportedOpError(_Refusal, NotImplementedError):
    """The function does something that NumPy can do and a compiled program cannot.

    With ``fallback="warn"`` (the default) or ``"silent"`` the function runs in segments or on
    NumPy. The message says what to write instead."""


class UnkeyedError(UnsupportedOpError):
    """No program can be kept for the arguments. The function runs in segments."""


class StateChangedError(UnsupportedOpError):
    """The function changes a global, an attribute or an item of a container in a way that a program
    cannot repeat at each call.

    `slots` are these places (capture/state.py), or None if they are not known."""

    slots: list[Any] | None = None


class NumPyOnlyError(UnsupportedOpError):
    """The function would notice traced arrays. NumPy runs it as a whole."""


class ThreadStartedError(NumPyOnlyError):
    """The function starts a thread, which a trace cannot follow. NumPy runs it as a whole."""


class ConcretizationError(_Refusal, TypeError):
    """The function asks for the value of a traced array, which is known only when the program runs.

    With ``fallback="warn"`` (the default) or ``"silent"`` the function runs in segments instead.
    The message names the line and says what to write instead."""


class DataDependentShapeError(UnsupportedOpError, ConcretizationError):
    """The shape of a result depends on values of traced arrays.

    With ``fallback="warn"`` (the default) or ``"silent"`` the function runs in segments instead.
    The message says what to write instead."""


class DynamicSizeError(UnsupportedOpError, ConcretizationError):
    """The function needs the value of a dynamic size (jit(dynamic=...)), which is known only when
    the program runs.

    With ``fallback="warn"`` (the default) or ``"silent"`` the function runs in segments instead."""


class TracerLeakError(RuneJitError, RuntimeError):
    """A traced array is used after its trace has ended, or in another trace. The function may have
    stored it in a global variable: return it instead."""


class DTypeError(RuneJitError, TypeError):
    """The device does not have this dtype. The message names the array."""


class ParseError(RuneJitError, ValueError):
    """The text of an IR does not parse. The message has the line and the column."""


class InternalError(RuneJitError, RuntimeError):
    """An invariant of rune_jit itself is broken. This is a bug of rune_jit: please report it."""


class JitFallbackWarning(UserWarning):
    """NumPy runs a jitted function, because something in it cannot be traced. The message says
    what. ``fallback="silent"`` turns this warning off."""


class SlowCompilationWarning(UserWarning):
    """A jitted function took more than two seconds to compile. The message names the lines that
    made the program large."""
