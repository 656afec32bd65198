"""np.sort and np.median of a few elements in the bodies of loops, where a call on the host for each
iteration takes longer than comparing all elements with each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune_jit.rules.coercions import refuse_unless, traced
from rune_jit.rules.table import implements
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.tracer import Tracer

# Of so many elements, or fewer, each is compared with each other.
_MOST = 32


def _elements(name: str, a: Any, axis: Any) -> Tracer:
    """The elements to be sorted, if kernels sort them. Raises UnsupportedOpError."""
    refuse_unless(require_trace().is_in_loop, name)
    x = traced(a)
    is_whole = axis is None or (x.ndim == 1 and type(axis) is int and axis in (0, -1))
    is_known = all(type(n) is int and n > 0 for n in x.shape)
    fits = is_whole and is_known and x.size <= _MOST and x.dtype.kind in "iuf"
    refuse_unless(fits and x.dtype.itemsize >= 4 and x.dtype.isbuiltin == 1, name)
    flat: Tracer = x.reshape(-1)
    return flat


def _sorted(x: Tracer) -> Any:
    """The elements in order, NaN last: each one's position is the number of those before it. (Of
    0.0 and -0.0 the first one stays first; NumPy's sorts are not stable.)"""
    at = np.arange(x.size)
    own, other = x[:, None], x[None, :]
    is_earlier = at[None, :] < at[:, None]
    before = (other < own) | ((other == own) & is_earlier)
    lowest: Any = -np.inf
    if x.dtype.kind == "f":
        before |= np.isnan(own) & (~np.isnan(other) | is_earlier)
    else:
        lowest = np.iinfo(x.dtype).min
    position = before.sum(axis=1)
    return np.where(position[None, :] == at[:, None], x[None, :], x.dtype.type(lowest)).max(axis=1)


@implements(np.sort)
def _sort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    refuse_unless(order is None, "sort")
    return _sorted(_elements("sort", a, axis))


@implements(np.median)
def _median(a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False) -> Any:
    refuse_unless(out is None, "median")
    x = _elements("median", a, axis)
    ordered = _sorted(x)
    middle = ordered[(x.size - 1) // 2 : x.size // 2 + 1].mean()
    return (
        np.where(np.isnan(ordered[-1]), ordered[-1], middle)[()] if x.dtype.kind == "f" else middle
    )
