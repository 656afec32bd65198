"""np.sort, np.argsort and np.median of a few elements in the bodies of loops. There, comparing all
elements with each other is faster than a call on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune_jit.rules.coercions import refuse_unless, traced
from rune_jit.rules.table import implements
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.tracer import Tracer

# The most elements that are sorted by comparing all of them with each other.
_MOST = 32


def _elements(name: str, a: Any, axis: Any) -> Tracer:
    """The elements to sort. Raises UnsupportedOpError if kernels cannot sort them."""
    refuse_unless(require_trace().is_in_loop, name)
    x = traced(a)
    is_whole = axis is None or (x.ndim == 1 and type(axis) is int and axis in (0, -1))
    is_known = all(type(n) is int and n > 0 for n in x.shape)
    fits = is_whole and is_known and x.size <= _MOST and x.dtype.kind in "iuf"
    refuse_unless(fits and x.dtype.itemsize >= 4 and x.dtype.isbuiltin == 1, name)
    flat: Tracer = x.reshape(-1)
    return flat


def _positions(x: Tracer) -> tuple[Any, Any]:
    """The position of each element in sorted order: stable, with NaN last. Also whether each
    element is equal to another one (or both are NaN)."""
    at = np.arange(x.size)
    own, other = x[:, None], x[None, :]
    is_earlier = at[None, :] < at[:, None]
    before, equal = other < own, other == own
    if x.dtype.kind == "f":
        before |= np.isnan(own) & ~np.isnan(other)
        equal |= np.isnan(own) & np.isnan(other)
    return (before | (equal & is_earlier)).sum(axis=1), equal & (at[None, :] != at[:, None])


def _sorted(x: Tracer) -> Any:
    """The sorted elements. (The order of 0.0 and -0.0 is kept; NumPy's sorts need not keep it.)"""
    at = np.arange(x.size)
    lowest: Any = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    position, _ = _positions(x)
    return np.where(position[None, :] == at[:, None], x[None, :], x.dtype.type(lowest)).max(axis=1)


@implements(np.sort)
def _sort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    refuse_unless(order is None, "sort")
    return _sorted(_elements("sort", a, axis))


@implements(np.argsort)
def _argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    refuse_unless(order is None, "argsort")
    trace, x = require_trace(), _elements("argsort", a, axis)
    at = np.arange(x.size)
    position, is_equal = _positions(x)
    if not stable and kind not in ("stable", "mergesort"):
        # NumPy's order of equal elements depends on the machine.
        refuse_unless(trace.may_guess, "argsort")
        trace.guess()
        is_unique: Any = ~is_equal.any()
        trace.builder.assume(is_unique._value_in(trace))
    return np.where(position[None, :] == at[:, None], at[None, :], 0).sum(axis=1)


@implements(np.median)
def _median(a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False) -> Any:
    refuse_unless(out is None, "median")
    x = _elements("median", a, axis)
    ordered = _sorted(x)
    middle = ordered[(x.size - 1) // 2 : x.size // 2 + 1].mean()
    return (
        np.where(np.isnan(ordered[-1]), ordered[-1], middle)[()] if x.dtype.kind == "f" else middle
    )
