"""Arrays whose elements are known while tracing. NumPy itself computes with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.containers import leaves_in, replaced
from rune_jit.errors import UnsupportedOpError
from rune_jit.methods import BINARY
from rune_jit.rules.warned import warn_of_lost_part
from rune_jit.tracing.context import current_trace, require_trace
from rune_jit.tracing.segments import SegmentedTrace
from rune_jit.tracing.storage import is_empty_mask
from rune_jit.tracing.tracer import ATOMIC, Tracer, tracers_in

_NOTHING_INSIDE = ATOMIC | {slice, type(Ellipsis)}


def _has_parts(x: Any) -> bool:
    return type(x) not in _NOTHING_INSIDE or (
        type(x) is slice and any(map(_has_parts, (x.start, x.stop, x.step)))
    )


def plain(x: Any) -> Any:
    """x with NumPy's arrays in place of known tracers."""
    if type(x) is Tracer:  # the most frequent case; trees take ten times as long
        return x._array()
    if not _has_parts(x) or (type(x) is tuple and not any(map(_has_parts, x))):
        return x

    def array(item: Any) -> Any:
        return item._array() if isinstance(item, Tracer) else item

    return replaced(x, array)


def known(array: np.ndarray, fill: Any = None) -> Any:
    """A tracer for an array that was made while tracing. Returns the array itself if its dtype
    cannot be traced or the trace has given up."""
    if current_trace() is None or type(array) is not np.ndarray:
        return array
    trace = require_trace()
    if trace.gave_up or not _core.is_supported_dtype(array.dtype):
        return array
    trace.note_computed()
    if trace.gave_up or (trace.is_segmented and is_empty_mask(array)):
        return array
    return Tracer.known(trace, array, fill)


# Operations on arrays of so many elements take longer than tracing them.
WORTH_TRACING = 200_000


def of_data(trace: SegmentedTrace, array: Any) -> Any:
    """An array whose shape depends on data, in segments. Unless it is large, NumPy computes the
    operations that use only such arrays."""
    is_large = type(array) is np.ndarray and array.size >= WORTH_TRACING
    return trace.result(array) if is_large else known(array)


def numbers_as(x: Tracer, dtype: np.dtype[Any]) -> Any:
    """dtype.type(x): a scalar, or an array if x has axes. If x is an array with this dtype, it is x
    itself."""
    if x.ndim and x.dtype == dtype:
        return x
    array = x._array()
    if array is not None:
        result = dtype.type(array)
        return known(result) if result.ndim else result
    trace = require_trace()
    warn_of_lost_part(x.dtype, dtype)
    value = trace.operand(x)
    if value.weak == "int" and dtype.kind in "iu" and dtype != value.dtype:
        value = trace.builder.full([], value, dtype)  # checked to fit
    return Tracer(trace, trace.builder.astype(value, dtype))


def _is_container(x: Any) -> bool:
    return isinstance(x, (list, tuple))


def run_known(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Calls NumPy's function on arguments whose elements are all known."""
    trace = current_trace()
    if trace is not None and trace.gave_up and not tracers_in((args, kwargs)):
        return function(*args, **kwargs)
    if type(function) is np.ufunc and not kwargs and len(args) == function.nin:
        operands = [x._array() if type(x) is Tracer else x for x in args]
        if function.nout == 1 and not any(map(_is_container, operands)):
            return known(function(*operands))  # the result has its own memory
    given: dict[int, tuple[Tracer, Any]] = {}  # by id of the tracer, with its array

    def array(x: Any) -> Any:
        return given.setdefault(id(x), (x, plain(x)))[1] if isinstance(x, Tracer) else x

    def wrap(result: Any) -> Any:
        if not isinstance(result, np.ndarray):
            return result
        for tracer, array in given.values():
            if result is array:
                return tracer
        trace = current_trace()
        if trace is None or trace.gave_up:
            return result
        # NumPy's own array, for example of `out=`, or a view of it: others see what is written.
        numpys = [x for x in leaves_in(both) if isinstance(x, np.ndarray)]
        if any(result is x for x in numpys):
            return result
        arrays = [array for _, array in given.values()]
        if any(np.may_share_memory(result, array) for array in arrays):
            name = getattr(function, "__name__", function)
            raise UnsupportedOpError(f"{name} (a view): cannot trace this")
        return result if any(np.may_share_memory(result, x) for x in numpys) else known(result)

    both: Any = (tuple(args), kwargs)
    args, kwargs = replaced(both, array)
    result = replaced(function(*args, **kwargs), wrap)
    if kwargs.get("out") is not None or getattr(function, "__name__", "") in WRITERS:
        for tracer, _ in given.values():
            tracer._storage.touched()
    return result


# Names of functions that write to their first argument. The last ones are from the module operator.
WRITERS = (
    *("copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis", "at", "setitem"),
    "_put_flat",
    *(f"i{name}" for name in (*BINARY, "matmul")),
)
