"""The stand-ins for the functions of Python's module bisect. In a loop of the program, the program
itself searches, since the numbers are known only when it runs."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from typing import Any

from rune_jit.capture import bisection
from rune_jit.capture.algorithms import as_users
from rune_jit.capture.stand_ins import StandIn
from rune_jit.tracing.context import current_trace
from rune_jit.tracing.tracer import Tracer, contains_tracer


def functions() -> Iterator[tuple[Any, Any]]:
    """The functions, each with its stand-in."""
    return ((f, _Function(f)) for f in (bisect.bisect_left, bisect.bisect_right))


class _Function(StandIn):
    """The stand-in for a function of bisect."""

    def __call__(self, a: Any, x: Any, lo: Any = 0, hi: Any = None, **key: Any) -> Any:
        trace: Any = current_trace()
        is_row = isinstance(a, (list, tuple)) or (type(a) is Tracer and a.ndim == 1)
        is_known = not contains_tracer([a, x, lo, hi])
        is_usual = is_row and not key and (type(lo) is Tracer or lo >= 0)
        if trace is None or is_known or not (is_usual and trace.is_in_loop):
            return self._real(a, x, lo, hi, **key)
        algorithm = trace.rebind(as_users(bisection)[self._real.__name__])
        return algorithm(a, x, lo, len(a) if hi is None else hi)
