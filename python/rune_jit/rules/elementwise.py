"""NumPy's elementwise functions that are not ufuncs, on traced arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune_jit.errors import DataDependentShapeError
from rune_jit.rules.coercions import (
    NO_VALUE,
    as_index,
    call_builder,
    is_float,
    make_view,
    refuse_unless,
    traced,
)
from rune_jit.rules.indexing.selection import NONZERO_HINT, nonzero
from rune_jit.rules.table import implements
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.tracer import Tracer


@implements(np.where)
def _where(condition: Any, x: Any = NO_VALUE, y: Any = NO_VALUE) -> Any:
    if x is NO_VALUE or y is NO_VALUE:
        if x is y is NO_VALUE and not require_trace().is_segmented and np.ndim(condition):
            return nonzero(traced(condition))
        raise DataDependentShapeError(
            "where: cannot trace one argument (the result's shape depends on data)\n"
            f"hint: {NONZERO_HINT}"
        )
    for number, other in ((x, y), (y, x)):
        if type(number) is int and isinstance(other, Tracer) and other.dtype.kind in "iu":
            # Numbers that are out of bounds wrap before NumPy 2.5. Later versions refuse them.
            np.where([], number, np.zeros(0, other.dtype))
    trace = require_trace()
    operands = [trace.operand(v) for v in (condition, x, y)]
    return Tracer(trace, trace.builder.where(*operands), scalar=False)


@implements(np.clip)
def _clip(
    a: Any,
    a_min: Any = NO_VALUE,
    a_max: Any = NO_VALUE,
    *,
    min: Any = NO_VALUE,
    max: Any = NO_VALUE,
    dtype: Any = None,
) -> Tracer:
    if a_min is NO_VALUE and a_max is NO_VALUE:
        low, high = (None if bound is NO_VALUE else bound for bound in (min, max))
    elif a_min is NO_VALUE or a_max is NO_VALUE:
        missing = "a_min" if a_min is NO_VALUE else "a_max"
        raise TypeError(f"clip() missing 1 required positional argument: '{missing}'")
    elif min is not NO_VALUE or max is not NO_VALUE:
        raise ValueError(
            "Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is"
            " forbidden."
        )
    else:
        low, high = a_min, a_max
    trace = require_trace()
    value = trace.array(a)
    if dtype is not None:
        value = trace.builder.astype(value, dtype)
    if np.dtype(value.dtype).kind in "iu":
        # Python ints beyond the dtype's range have no effect.
        limits = np.iinfo(value.dtype)
        if type(low) is int and low <= limits.min:
            low = None
        if type(high) is int and high >= limits.max:
            high = None
    bounds = [None if bound is None else trace.operand(bound) for bound in (low, high)]
    return Tracer(trace, trace.builder.clip(value, *bounds))


@implements(np.round, np.around)
def _round(a: Any, decimals: Any = 0) -> Any:
    decimals = as_index(decimals)
    if a.dtype.kind == "c":
        parts = [require_trace().operand(_round(x, decimals)) for x in (a.real, a.imag)]
        return Tracer(require_trace(), require_trace().builder.complex(*parts))
    if not is_float(a.dtype):
        refuse_unless(a.dtype != bool, "round of bool")
        if decimals >= 0:
            return a.copy() if a.ndim else a[()]  # a number for a 0-d array
        return (np.rint(a / 10.0**-decimals) * 10.0**-decimals).astype(a.dtype)
    if decimals == 0:
        return np.rint(a)
    scale = 10.0 ** abs(decimals)
    there, back = (np.multiply, np.divide) if decimals > 0 else (np.divide, np.multiply)
    return back(np.rint(there(a, scale)), scale)


@implements(np.fix)
def _fix(x: Any) -> Any:
    return np.trunc(x)


@implements(np.real)
def _real(val: Any) -> Any:
    return _part("real", val) if np.iscomplexobj(val) else val


def _part(name: str, x: Any) -> Tracer:
    """The real or imaginary part of complex numbers. For an array it is a view."""
    is_scalar = isinstance(x, Tracer) and x._storage.scalar
    return call_builder(name, x, scalar=True) if is_scalar else make_view(name, None, x)


@implements(np.imag)
def _imag(val: Any) -> Any:
    if np.iscomplexobj(val):
        return _part("imag", val)
    if isinstance(val, Tracer) and val._storage.scalar:
        zero = val.dtype.type(0)
        return zero if require_trace().operand(val).weak is None else zero.item()
    zeros: Any = np.zeros_like(val)[...]  # (a view, since these can be read-only)
    zeros._writeable = False
    return zeros


@implements(np.real_if_close)
def _real_if_close(a: Any, tol: float = 100) -> Any:
    refuse_unless(not np.iscomplexobj(a), "real_if_close of complex numbers")
    return a


@implements(np.allclose)
def _allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    return call_builder("python_bool", np.all(np.isclose(a, b, rtol, atol, equal_nan)))


@implements(np.array_equal)
def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    if np.shape(a1) != np.shape(a2):
        return False
    equal = np.equal(a1, a2)
    if equal_nan:
        equal = equal | (np.not_equal(a1, a1) & np.not_equal(a2, a2))
    return call_builder("python_bool", np.all(equal))


@implements(np.array_equiv)
def _array_equiv(a1: Any, a2: Any) -> Any:
    try:
        np.broadcast_shapes(np.shape(a1), np.shape(a2))
    except ValueError:
        return False
    return call_builder("python_bool", np.all(np.equal(a1, a2)))
