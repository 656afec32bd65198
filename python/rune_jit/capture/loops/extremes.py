"""Python's max and min of the elements of a traced array."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer


def is_row(x: Any) -> bool:
    """Whether x is a traced array of real numbers with one axis and at least one element."""
    return (
        type(x) is Tracer
        and x._storage.array is None
        and x.ndim == 1
        and type(x.shape[0]) is int
        and x.shape[0] > 0
        and x.dtype.kind in "biuf"
    )


def extreme_of_row(trace: Trace, real: Any, x: Tracer) -> Tracer:
    """Python's max or min of an array's elements. The result is NaN only if the first element is
    NaN, since no number is greater or less than NaN."""
    if x.dtype.kind != "f":
        return x.max() if real is max else x.min()  # type: ignore[no-any-return]
    first: Any = x[0]
    others: Any = (np.fmax if real is max else np.fmin).reduce(x)
    values = [v._value_in(trace) for v in (np.isnan(first), first, others)]
    return Tracer(trace, trace.builder.where(*values), scalar=True)
