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
    """A function that a program called on the host gave results of other shapes or dtypes than when
    it was traced: the call runs on NumPy."""


class _Refusals(threading.local):
    noted: list[_Refusal] | None = None


_refusals = _Refusals()


class _Refusal(RuneJitError):
    """What a trace cannot do. NumPy raises no error there, so the traced function must not be able
    to handle it: a trace in which one was raised is not used, unless `forgive` was told."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        if _refusals.noted is not None:
            _refusals.noted.append(self)


@contextmanager
def noted_refusals() -> Iterator[list[_Refusal]]:
    """The refusals that are raised by this thread in the context."""
    before, _refusals.noted = _refusals.noted, []
    try:
        yield _refusals.noted
    finally:
        _refusals.noted = before


def forgive(error: BaseException | None) -> None:
    """Forgets an error, and those that led to it, since what failed was done in another way."""
    met: list[BaseException] = []
    while error is not None and all(error is not other for other in met):
        met.append(error)  # a cause may lead back to its effect
        if _refusals.noted is not None and isinstance(error, _Refusal):
            _refusals.noted[:] = [noted for noted in _refusals.noted if noted is not error]
        error = error.__cause__ or error.__context__


class UnsupportedOpError(_Refusal, NotImplementedError):
    """NumPy can do this, a traced function cannot. Under ``fallback="warn"`` or ``"silent"`` the
    function runs on NumPy instead."""


class UnkeyedError(UnsupportedOpError):
    """No program can be kept for such arguments: the function runs in segments."""


class StateChangedError(UnsupportedOpError):
    """A traced function changed a global, an attribute or an item of a container. (At another call
    it may find nothing to change.) `slots` are these places (capture/state.py); None if they
    cannot be told."""

    slots: list[Any] | None = None


class NumPyOnlyError(UnsupportedOpError):
    """The function runs on NumPy as a whole: it would notice traced arrays."""


class ThreadStartedError(NumPyOnlyError):
    """A traced function started a thread, in which there is no trace."""


class ConcretizationError(_Refusal, TypeError):
    """The function asked for the value of a traced array, which is known only when the compiled
    program runs. The message says what to write instead; under ``fallback="warn"`` or ``"silent"``
    the function runs on NumPy."""


class DataDependentShapeError(UnsupportedOpError, ConcretizationError):
    """The shape of a result depends on values of traced arrays. The message says what to write
    instead; under ``fallback="warn"`` or ``"silent"`` the function runs on NumPy."""


class DynamicSizeError(UnsupportedOpError, ConcretizationError):
    """The function needs the value of a dynamic size (jit(dynamic=...)), which is known only when
    the compiled program runs; under ``fallback="warn"`` or ``"silent"`` it runs on NumPy."""


class TracerLeakError(RuneJitError, RuntimeError):
    """A traced array outlived the trace that made it, for example in a global variable."""


class DTypeError(RuneJitError, TypeError):
    """The device does not have this dtype."""


class ParseError(RuneJitError, ValueError):
    """IR text that does not parse; the message has line and column."""


class InternalError(RuneJitError, RuntimeError):
    """An invariant of rune_jit itself is broken: a bug, never the caller's fault."""


class JitFallbackWarning(UserWarning):
    """A jitted function runs on NumPy because something in it cannot be traced."""


class SlowCompilationWarning(UserWarning):
    """A jitted function took more than two seconds to compile. The message says what made it
    large."""
