"""Python's round(x) and round(x, digits) of traced numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune_jit.rules.coercions import as_index
from rune_jit.tracing.tracer import Tracer

# Powers of ten up to this one are floats.
_MOST_DIGITS = 22
# The product of a float and _SPLITTER divides it into two floats of half as many bits.
_SPLITTER = 2.0**27 + 1
# A product of at most this size is at most a quarter away from the next float.
_MOST_EXACT = 2.0**51


def rounded(x: Tracer, ndigits: Any = None) -> Any:
    """round(x, ndigits)."""
    if not x._storage.scalar:
        raise TypeError("type numpy.ndarray doesn't define __round__ method")
    if x.dtype.kind == "c":
        raise TypeError(f"type {x._type_name()} doesn't define __round__ method")
    trace = x._trace
    value = x._value_in(trace)
    if ndigits is not None and value.weak is None:
        return np.round(x, ndigits)
    ndigits = as_index(ndigits) if type(ndigits) is Tracer else ndigits
    is_float = value.weak == "float" and value.dtype == np.float64
    is_possible = is_float and type(ndigits) is int and 0 <= ndigits <= _MOST_DIGITS
    is_known = x._storage.array is not None or trace.builder.unsure_kind(value)
    if not is_possible or is_known or trace.done or not trace.may_guess:
        return round(x._element("round"), ndigits)
    trace.guess()
    return _to_digits(x, 10.0**ndigits)


def _to_digits(x: Any, scale: float) -> Any:
    """The multiple of 1 / scale next to a float, or the even one of two. Assumes that the product
    with `scale` is not large.

    The product and its rounding error (T. J. Dekker's product) tell which multiple is next. The
    division rounds it to a float as Python does, since it is one of two whole numbers."""
    trace = x._trace
    product = x * scale
    (high, low), (scale_high, scale_low) = _halves(x), _halves(scale)
    error = ((high * scale_high - product) + high * scale_low + low * scale_high) + low * scale_low
    whole = Tracer(trace, trace.builder.ufunc("rint", [trace.operand(product)])[0], scalar=True)
    distance = product - whole
    above = np.logical_and(np.equal(distance, 0.5), np.greater(error, 0.0))
    below = np.logical_and(np.equal(distance, -0.5), np.less(error, 0.0))
    is_exact = np.logical_or(np.abs(product) < _MOST_EXACT, np.logical_not(np.isfinite(x)))
    trace.builder.assume(trace.operand(is_exact))
    step = np.where(above, 1.0, np.where(below, -1.0, 0.0))
    moved = np.where(np.logical_or(above, below), whole + step, whole)
    made = trace.builder.ufunc("divide", [trace.operand(moved), scale])[0]
    return Tracer(trace, trace.builder.python_number(made, False), scalar=True)


def _halves(x: Any) -> tuple[Any, Any]:
    large = x * _SPLITTER
    high = large - (large - x)
    return high, x - high


Tracer.__round__ = rounded  # type: ignore[assignment, method-assign]
