"""NumPy's functions that count elements by value: counts are sums scattered by index."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.errors import DataDependentShapeError
from rune_jit.numpy_dispatch import known, make_tracer, plain, traced
from rune_jit.registry import implements
from rune_jit.trace import contains_traced, require_trace
from rune_jit.tracer import Tracer


def _counted(at: Tracer, count: int, weights: Any = None) -> Tracer:
    """How often each of the numbers 0 .. count - 1 is among the int64 `at`, all of which are; with
    weights, the sum of theirs as float64."""
    trace = require_trace()
    builder = trace.builder
    dtype = np.dtype(np.intp if weights is None else np.float64)
    target = builder.full([count], 0, dtype)
    index = trace.array(at)
    if index.ndim and 0 in index.shape:
        return make_tracer(trace, target)
    builder.assume_range(index, 0, count - 1)
    what = builder.full(list(index.shape), 1, dtype)
    if weights is not None:
        what = builder.astype(trace.array(weights), dtype)
    return make_tracer(trace, builder.scatter(target, [index], what, "add"))


# Of numbers that are places themselves.


def _sample(x: Any) -> Any:
    """An array of zeros as x, but with at most one element: for NumPy's errors about types."""
    if x is None:
        return None
    x = traced(x)
    return np.zeros([min(n, 1) if isinstance(n, int) else 1 for n in x.shape], x.dtype)


@implements(np.bincount)
def _bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    if contains_traced(minlength):
        raise DataDependentShapeError(
            "bincount: cannot trace this call (the result's length depends on minlength)\n"
            "hint: pass minlength as static: jit(static_argnums=...)"
        )
    least = plain(minlength)
    of_types = np.bincount(_sample(x), _sample(weights), least)
    if weights is not None and np.shape(weights) != np.shape(x):
        raise ValueError("The weights and list don't have the same length.")
    if 0 in np.shape(x):
        return known(of_types)
    if contains_traced(x) or isinstance(x, _core.ArrayBase):
        x = traced(x).astype(np.int64)
        length = _length_of_counts(x, int(least))
        x = np.clip(x, 0, max(length - 1, 0))
    else:
        length = len(np.bincount(plain(x), minlength=least))
    return _counted(x, length, weights) if length else known(of_types[:0])


def _length_of_counts(x: Tracer, least: int) -> int:
    """The length of numpy.bincount(x, minlength=least), as it is at the call that is traced."""
    trace = require_trace()
    negative = "'list' argument must have no negative elements"
    trace.must_be_equal(trace.operand(np.any(x < 0)), False, negative)
    last = np.maximum(np.max(x), least - 1)
    return trace.assume(trace.operand(last), least - 1 if least else None) + 1
