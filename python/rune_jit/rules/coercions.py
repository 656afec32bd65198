"""Converts the arguments and results of rules: Python ints, axes, shapes, traced arrays, views."""

from __future__ import annotations

import math
import numbers
import operator as op
from typing import Any, NoReturn

import numpy as np

from rune_jit.containers import leaves_in
from rune_jit.errors import UnsupportedOpError
from rune_jit.rules.callbacks import may_have_effects
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.layouts_now import axes_of, by_numpy
from rune_jit.tracing.sizes import Size, with_bounds
from rune_jit.tracing.storage import Step
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, is_array, order_of, tracers_in

NO_VALUE = np._NoValue
# A number for each weak type of operands. NumPy is called with it to find the dtype of a result, or
# an error. None of them is zero, so that integers are not divided by zero.
SAMPLES = {"bool": True, "int": 1, "float": 1.0, "complex": 1j}


def refuse(what: str) -> NoReturn:
    raise UnsupportedOpError(f"{what}: cannot trace this\nhint: compute it outside")


def refuse_unless(condition: bool, what: str) -> None:
    if not condition:
        refuse(what)


def traced(x: Any) -> Tracer:
    """numpy.asarray, as a traced array."""
    trace = require_trace()
    return Tracer(trace, trace.array(x), scalar=False)


def as_index(x: Any) -> int:
    return op.index(x)


def as_ints(x: Any) -> list[int]:
    """A Python int, or a sequence of them, as a list."""
    if type(x) is int:
        return [x]
    if isinstance(x, numbers.Integral) or (isinstance(x, Tracer) and x.ndim == 0):
        return [as_index(x)]
    return [as_index(i) for i in x]


def as_shape(x: Any) -> list[Any]:
    """A size, or a sequence of them, as a list of Python ints and Sizes."""
    if type(x) is int:
        return [x]
    if type(x) is not tuple and (
        isinstance(x, (Size, numbers.Integral)) or (isinstance(x, Tracer) and x.ndim == 0)
    ):
        x = [x]
    if any(type(n) is bool for n in x):
        raise TypeError("an integer is required")
    return [n if isinstance(n, Size) else as_index(n) for n in x]


def as_axes(axis: Any) -> list[int] | None:
    """The axes of a reduction, which may be an integer or a tuple, but no list."""
    if axis is None:
        return None
    if any([type(x) is bool for x in (axis if isinstance(axis, tuple) else (axis,))]):
        raise TypeError("an integer is required")
    return as_ints(axis) if isinstance(axis, tuple) else [as_index(axis)]


def as_axis(axis: Any) -> int | None:
    if type(axis) is bool:
        raise TypeError("an integer is required for the axis")
    return None if axis is None else as_index(axis)


def check_mask(where: Any) -> None:
    """Raises NumPy's TypeError if an array that is given as `where` has no bools."""
    if is_array(where) and where.dtype.kind != "b":
        mask = np.ones((1,) * rank(where), where.dtype)
        np.positive(np.zeros(mask.shape), out=np.zeros(mask.shape), where=mask)


def rank(x: Any) -> int:
    """numpy.ndim. (NumPy's own function takes longer for a traced array.)"""
    return len(x._shape) if type(x) is Tracer else np.ndim(x)


def is_axis_of_scalar(a: Any, axis: Any) -> bool:
    """Whether this is an axis that NumPy's reductions allow for 0-d arrays."""
    return axis is not None and rank(a) == 0 and axis in (0, -1)


def is_numpys_number(a: Any) -> bool:
    """Whether a is NumPy's number. Its methods that move axes return numbers. Python's numbers have
    no such methods, so NumPy's functions make arrays of them."""
    return type(a) is Tracer and a._storage.scalar and not a._value_in(a._trace).weak


def is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "fV"  # bfloat16 has kind V


def is_inexact(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype has floats or complex numbers."""
    return dtype.kind in "fVc"


def as_flag(keepdims: Any) -> bool:
    return keepdims is not NO_VALUE and op.index(keepdims) != 0


def laid_out_as(result: Tracer, operands: Any) -> Tracer:
    """A result to which NumPy may give the layout of its operands with several axes."""
    if len(result._shape) > 1:
        result._storage.order_from = order_of(operands)
        result._storage.in_order_of_operands = True
    return result


# Functions whose results are in C order, whatever the order of their operands, and those whose
# rules note the order.
_IN_C_ORDER = {
    *(np.reshape, np.ravel, np.array, np.take, np.repeat, np.tile, np.tensordot),
    *(np.argmax, np.argmin, np.argsort, np.take_along_axis, np.select, np.kron),
    *(np.dot, np.inner, np.outer, np.zeros_like, np.ones_like, np.empty_like, np.full_like),
}


_IN_ORDER_OF_THEIR_OWN = {np.einsum, np.apply_along_axis, np.histogram2d, np.histogramdd}


# Functions that are not elementwise, and compositions, whose results have the order "K".
_IN_ORDER_OF_OPERANDS = {
    *(np.concatenate, np.vstack, np.hstack, np.diff, np.copy),
    *(np.sort, np.cumsum, np.cumprod, np.where, np.clip, np.nan_to_num),
}


def as_laid_out(function: Any, result: Any, operands: Any, call: Any = None) -> Any:
    """A function's result. Notes for its new arrays that NumPy gives them the layout of the
    operands. `call`: NumPy's function, its arguments and its keywords. It is asked for the layouts
    of results that are not elementwise."""
    made = tracers_in(result)
    if not any([len(x._shape) > 1 for x in made]) or function in _IN_C_ORDER:
        return result
    arrays = [x for x in tracers_in(operands) if len(x._shape) > 1]
    given = [x._storage for x in arrays]
    has_own = function in _IN_ORDER_OF_THEIR_OWN
    asked = None
    for number, x in enumerate(made if arrays or has_own else ()):
        storage = x._storage
        if len(x._shape) > 1 and storage.value is not None and storage not in given:
            storage.order_from += order_of(arrays)
            storage.order_known = not has_own
            storage.in_order_of_operands |= function in _IN_ORDER_OF_OPERANDS
            is_asked = has_own or (storage.order_from and function not in _IN_ORDER_OF_OPERANDS)
            if call is None or not is_asked or any(map(may_have_effects, leaves_in(call[1:]))):
                continue
            if may_ask(arrays, x):
                what, args, kwargs = call
                asked = asked or by_numpy(what, args, kwargs)
                storage.laid_out_by = asked, number
    return result


def as_laid_out_by(function: Any, args: Any, kwargs: Any, result: Any) -> Any:
    """The result of a function of another package, which writes to no argument. Notes for its
    arrays that the function is asked for their layouts."""
    asked = None
    given = tracers_in((args, kwargs))
    for number, x in enumerate(tracers_in(result)):
        if len(x._shape) > 1 and _are_small((*given, x)):
            asked = asked or by_numpy(function, args, kwargs)
            x._storage.laid_out_by = asked, number
    return result


# In one program NumPy is asked for layouts of arrays of at most so many elements.
_MOST_ASKED = 1 << 16


def may_ask(arrays: list[Tracer], made: Tracer) -> bool:
    """Whether NumPy may be asked for the layout of a result that is made of these arrays."""
    if made._trace.is_segmented:
        return True
    is_other = not made._storage.order_known or any(axes_of(x) is not None for x in arrays)
    return is_other and _are_small((*arrays, made))


def _are_small(arrays: Any) -> bool:
    return all(math.prod(with_bounds(x._shape)) <= _MOST_ASKED for x in arrays)


def call_builder(name: str, *arguments: Any, scalar: bool | None = None) -> Tracer:
    """Calls the builder's method `name` on the first argument. `scalar` is that of Tracer."""
    trace = require_trace()
    method = getattr(trace.builder, name)
    return Tracer(trace, method(trace.operand(arguments[0]), *arguments[1:]), scalar=scalar)


def make_view(kind: str, argument: Any, a: Any) -> Tracer:
    """A view of a. Making its step checks the argument."""
    return view_in(require_trace(), Step(kind, argument), a)


def view_in(trace: Trace, step: Step, a: Any, is_read: bool = True) -> Tracer:
    """The same in a given trace. Unless `is_read`, the view's value is computed when it is first
    needed."""
    if type(a) is not Tracer or a._storage.scalar:
        return Tracer(trace, step.of(trace.builder, trace.operand(a)), scalar=False)
    if a._storage.array is not None:
        array: Any = a._array()
        return a._view(step, step.of_array(array).shape)
    if not is_read and step.kind == "index":
        return a._view(step, trace.builder.indexed_shape(a._value_in(trace), step.argument))
    value = a._value_in(trace)
    in_parts = trace.is_segmented and step.kind == "index"
    now = trace.part_in_memory(step, value) if in_parts else None
    if now is None:
        now = step.of(trace.builder, value)
    return a._view(step, now.shape, now)
