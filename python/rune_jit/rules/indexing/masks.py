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
    """For each element of a mask, the number of True elements up to and including it, in row-major
    order, as int64."""
    flat = trace.builder.reshape(mask, [-1])
    return trace.builder.scan("add", trace.builder.astype(flat, np.dtype(np.int64)), 0)


def spread(
    trace: Trace, x: Tracer, mask: Any, rows: Any, count: Any, message: str = WRONG_COUNT
) -> Any:
    """An array like x whose elements under the mask are the first `count` rows, as a value. `count`
    is an int or a traced number. A call raises ValueError if the mask has another number of True
    elements. A single traced row is used for all."""
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
    """The rows of `full` under the mask, which covers its first axes, followed by zeros up to
    `count` rows."""
    builder = trace.builder
    shape = tuple(full.shape)
    rest = shape[mask.ndim :]
    rows = builder.reshape(full, [math.prod(mask.shape), *rest])
    ranks = builder.ufunc("subtract", [running_count(trace, mask), 1])[0]
    flat = builder.reshape(mask, [math.prod(mask.shape)])
    at = builder.where(flat, ranks, count)  # rows beyond the end go to a further row
    target = builder.full([count + 1, *rest], 0, full.dtype)
    builder.assume_range(at, 0, count)
    written = builder.scatter(target, [at], rows, "set")
    return builder.index(written, [slice(0, count, 1)])
