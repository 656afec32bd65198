"""The positions of the elements that a mask selects."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer

WRONG_COUNT = (
    "NumPy boolean array indexing assignment cannot assign {} input values to the {} output values"
    " where the mask is true"
)


def running_count(trace: Trace, mask: Any) -> Any:
    """How many elements of a mask are true up to and including each, in row-major order: int64."""
    flat = trace.builder.reshape(mask, [-1])
    return trace.builder.scan("add", trace.builder.astype(flat, np.dtype(np.int64)), 0)


def spread(
    trace: Trace, x: Tracer, mask: Any, rows: Any, count: Any, message: str = WRONG_COUNT
) -> Any:
    """The value of an array like x whose elements under the mask are the first `count` rows, an
    int or a traced number. A call raises ValueError if there are not as many; one traced row is
    for all."""
    builder = trace.builder
    if math.prod(mask.shape) == 0 or rows.shape[0] == 0:
        found = builder.reduce("sum", mask, None, False, np.dtype(np.int64))
        if rows.shape[0] == 0 or isinstance(count, int):
            trace.must_be_equal(0 if rows.shape[0] == 0 else count, found, message)
        return trace.operand(x)
    counts = running_count(trace, mask)
    found = builder.index(counts, [-1])
    if isinstance(count, int):
        trace.must_be_equal(count, found, message)
    else:
        is_one = builder.ufunc("equal", [count, 1])[0]
        trace.must_be_equal(builder.where(is_one, found, count), found, message)
        counts = builder.where(is_one, 1, counts)
    last = rows.shape[0] - 1
    at = builder.clip(builder.ufunc("subtract", [counts, 1])[0], 0, last)
    builder.assume_range(at, 0, last)
    return builder.astype(builder.reshape(builder.take(rows, at, 0), list(x.shape)), x.dtype)


def compressed(trace: Trace, full: Any, mask: Any, count: int) -> Any:
    """The rows of `full` (the mask's axes lead) where the mask is true, and zeros up to `count`."""
    builder = trace.builder
    shape = tuple(full.shape)
    rest = shape[mask.ndim :]
    rows = builder.reshape(full, [math.prod(mask.shape), *rest])
    ranks = builder.ufunc("subtract", [running_count(trace, mask), 1])[0]
    flat = builder.reshape(mask, [math.prod(mask.shape)])
    at = builder.where(flat, ranks, count)  # what is beyond the end goes to a row of its own
    target = builder.full([count + 1, *rest], 0, full.dtype)
    builder.assume_range(at, 0, count)
    written = builder.scatter(target, [at], rows, "set")
    return builder.index(written, [slice(0, count, 1)])
