"""Replacements for Python's max, min, any, all and sorted, whose arguments may be known only when
the program runs."""

from __future__ import annotations

import builtins
import operator
from collections import deque
from typing import Any

import numpy as np

from rune_jit.capture.loops.branches import convert, loops_now, may_choose, select, selected
from rune_jit.capture.loops.effects import ALLOWED
from rune_jit.capture.loops.folds import BETTER, FOUND, IS_PYTHONS
from rune_jit.capture.loops.kinds import UNSET
from rune_jit.capture.shim import STANDING_FOR
from rune_jit.capture.stand_ins import StandIn
from rune_jit.tracing.context import current_trace
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer


class Extreme(StandIn):
    """Replaces Python's max or min. If only the program knows the numbers, it selects one."""

    def __init__(self, real: Any, is_better: Any) -> None:
        super().__init__(real)
        self._is_better = is_better

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        real, is_better = self._real, self._is_better
        trace, loops = current_trace(), loops_now()
        items: Any = args[0] if len(args) == 1 else args
        if trace is not None and not kwargs and _is_row(items):
            return _extreme_of_row(trace, real, items)
        is_known = trace is None or type(items) not in (list, tuple, deque)
        if trace is None or is_known or kwargs or not may_choose(trace):
            return real(*args, **kwargs)
        if all(type(x) is not Tracer and type(x) is not Size for x in items):
            return real(*args)
        best, *others = items
        for x in others:
            better = is_better(x, best)
            if type(better) is Tracer and better.ndim == 0:
                holds = trace.builder.value(better._value_in(trace))
                if loops is not None:
                    best = select(trace, loops, real.__name__, holds, x, best)
                elif (chosen := selected(trace, holds, x, best)) is not None:
                    best = chosen
                elif better:
                    best = x
            elif better:
                best = x
        return best


class Decision(StandIn):
    """Replaces Python's any or all. For an array, it asks one condition, not one of each
    element."""

    def __call__(self, *args: Any) -> Any:
        if len(args) == 1 and current_trace() is not None and _is_row(args[0]):
            return convert(bool, args[0].any() if self._real is any else args[0].all())
        return self._real(*args)


# The most integers in a list that `sorted` sorts by comparing all pairs, and in an array.
_MOST_IN_LIST, _MOST_IN_ROW = 6, 64


class Sorted(StandIn):
    """Replaces Python's sorted. The program sorts traced integers."""

    def __call__(self, items: Any, /, **kwargs: Any) -> Any:
        trace, reverse = current_trace(), kwargs.get("reverse", False)
        if trace is None or trace.is_segmented or kwargs.keys() - {"reverse"}:
            return self._real(items, **kwargs)
        if type(reverse) is not bool:
            return self._real(items, **kwargs)
        if _is_row(items) and items.dtype.kind in "biu" and items.shape[0] <= _MOST_IN_ROW:
            found = [*np.sort(items)]
        elif _are_integers(trace, items) and len(items) <= _MOST_IN_LIST:
            found = list(items)
            least, greatest = EXTREMES["min"], EXTREMES["max"]
            for end in range(len(found) - 1, 0, -1):
                for i in range(end):
                    pair = found[i : i + 2]
                    found[i : i + 2] = least(*pair), greatest(*pair)
        else:
            return self._real(items, **kwargs)
        return found[::-1] if reverse else found


def _are_integers(trace: Trace, items: Any) -> bool:
    """Whether `items` is a list of traced integers of one type."""
    if type(items) not in (list, tuple) or not items:
        return False
    if any(type(x) is not Tracer or x.ndim or x.dtype.kind not in "iu" for x in items):
        return False
    return len({(x.dtype, trace.operand(x).weak is None) for x in items}) == 1


def _is_row(x: Any) -> bool:
    """Whether x is a traced array of real numbers with one axis and at least one element."""
    return (
        type(x) is Tracer
        and x._storage.array is None
        and x.ndim == 1
        and type(x.shape[0]) is int
        and x.shape[0] > 0
        and x.dtype.kind in "biuf"
    )


def _extreme_of_row(trace: Trace, real: Any, x: Tracer) -> Tracer:
    """Python's max or min of an array's elements. The result is NaN only if the first element is
    NaN, since no number is greater or less than NaN."""
    if x.dtype.kind != "f":
        return x.max() if real is max else x.min()  # type: ignore[no-any-return]
    first: Any = x[0]
    others: Any = (np.fmax if real is max else np.fmin).reduce(x)
    values = [v._value_in(trace) for v in (np.isnan(first), first, others)]
    return Tracer(trace, trace.builder.where(*values), scalar=True)


def _is_pythons(function: Any) -> bool:
    """Whether a function is Python's own, or its replacement here."""
    known = (sum, max, min, any, all, *DECISIONS.values(), *EXTREMES.values())
    return any(function is x for x in known)


def _better(function: Any, best: Any, x: Any) -> Any:
    """max(best, x) or min(best, x); x if `best` is not set."""
    return x if best is UNSET else EXTREMES[function.__name__](best, x)


def _found(function: Any, best: Any) -> Any:
    """The result of max or min; raises ValueError if there was no number."""
    return function(()) if best is UNSET else best


EXTREMES = {"max": Extreme(max, operator.gt), "min": Extreme(min, operator.lt)}
DECISIONS = {"any": Decision(any), "all": Decision(all)}
_BUILTINS = EXTREMES | DECISIONS | {"sorted": Sorted(sorted)}
# The functions that traced code calls, by name.
FOLDS = {IS_PYTHONS: _is_pythons, BETTER: _better, FOUND: _found, **_BUILTINS}
ALLOWED += FOLDS.values()
STANDING_FOR.update((id(f), getattr(builtins, n)) for n, f in _BUILTINS.items())
