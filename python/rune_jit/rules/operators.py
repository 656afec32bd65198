"""Python's operators on traced arrays and numbers."""

from __future__ import annotations

import numbers
import operator as op
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.errors import UnsupportedOpError, forgive
from rune_jit.rules import ufuncs
from rune_jit.rules.coercions import as_laid_out, laid_out_as
from rune_jit.rules.indexing.selection import Selection
from rune_jit.rules.known import run_known
from rune_jit.rules.python_errors import assume_defined, assume_nonzero, with_sequence
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import NUMBERS, Tracer, contains_traced

# Types of other operands that an operator of a tracer accepts.
_OPERANDS = (
    *(Tracer, Size, Selection, numbers.Number, np.ndarray, np.generic, _core.ArrayBase),
    *(list, tuple),
)


def is_operand(kind: type) -> bool:
    return issubclass(kind, _OPERANDS)


def operator(ufunc: str, operands: tuple[Any, ...]) -> Any:
    """A Python operator on tracers and numbers."""
    is_traced = has_array = False
    for x in operands:
        kind = type(x)
        if kind is Tracer:
            is_traced = is_traced or x._storage.array is None
            has_array = has_array or bool(x._shape)
        elif kind is Selection:
            return getattr(np, ufunc)(*operands)
        elif issubclass(kind, (list, tuple)):
            number = next(x for x in operands if type(x) is Tracer)
            if number._storage.scalar:
                made = with_sequence(require_trace(), ufunc, number, operands)
                if made is not None:
                    return made
            is_traced = is_traced or contains_traced(x)
    if not is_traced:  # the operator ** squares bools as int8, but numpy.power as int64
        function = op.pow if ufunc == "power" else getattr(np, ufunc)
        return run_known(function, operands, {})
    trace = require_trace()
    values = [x._value_in(trace) if type(x) is Tracer else trace.operand(x) for x in operands]
    if not has_array or ufunc == "power":
        return _operator_of_numbers(trace, ufunc, operands, values)
    try:
        result = Tracer(trace, trace.builder.operator(ufunc, values))
    except UnsupportedOpError as error:
        return _operator_on_host(ufunc, operands, error)
    return laid_out_as(result, operands)


def _operator_on_host(ufunc: str, operands: tuple[Any, ...], error: UnsupportedOpError) -> Any:
    forgive(error)
    made = ufuncs.run_on_host(getattr(np, ufunc), "__call__", operands, {})
    return as_laid_out(ufunc, made, operands)


def _operator_of_numbers(
    trace: Trace, ufunc: str, operands: tuple[Any, ...], values: list[Any]
) -> Any:
    """Like `operator`, where traced operands may be numbers."""
    if _is_python_complex(values[0]) and len(values) == 2 and _is_float64(operands[1], values[1]):
        values[1] = trace.builder.python_number(values[1], False)
        operands = operands[0], Tracer(trace, values[1])
    are_pythons = all(type(v) in NUMBERS or v.weak or trace.builder.unsure_kind(v) for v in values)
    if ufunc == "power" and not are_pythons and _is_numpy_scalar(operands[0], values[0]):
        return _power_of_scalar(trace, *operands)
    try:
        if are_pythons:
            return _python_operator(trace, ufunc, operands, values)
        result = Tracer(trace, trace.builder.operator(ufunc, values))
    except OverflowError as error:
        if not are_pythons:
            raise
        raise UnsupportedOpError(
            f"{ufunc}: cannot compute with Python integers that may exceed 64 bits"
        ) from error
    except UnsupportedOpError as error:
        if are_pythons:  # NumPy's arithmetic would wrap where Python's does not
            trace.need_numbers([v for v in values if type(v) not in NUMBERS and v.weak])
            raise
        return _operator_on_host(ufunc, operands, error)
    return laid_out_as(result, operands)


_DIVIDE = ("divide", "floor_divide", "remainder")


def _python_operator(trace: Trace, ufunc: str, operands: tuple[Any, ...], values: list[Any]) -> Any:
    """An operator on Python's numbers, of which some are traced. A loop may have turned some of
    them into NumPy's numbers, which only the program knows."""
    divisor = operands[-1]
    may_raise = ufunc in _DIVIDE and type(divisor) is Tracer
    if may_raise and (divisor._storage.leaf is not None or divisor._storage.is_nonzero):
        may_raise = False
    if trace.is_segmented and (may_raise or ufunc == "power"):
        return getattr(op, _OF_PYTHON[ufunc])(*map(_python_number, operands))
    if may_raise:
        assume_nonzero(trace, values[1])
    result = trace.builder.operator(ufunc, values)
    is_float = result.weak == "float" or trace.builder.unsure_kind(result) == "float"
    if ufunc == "power" and is_float:
        assume_defined(trace, result, [trace.builder.value(v) for v in values])
    return Tracer(trace, result)


_OF_PYTHON = {
    **{"divide": "truediv", "floor_divide": "floordiv", "remainder": "mod"},
    "power": "pow",
}


def _python_number(x: Any) -> Any:
    """Python's number for a number that is traced in segments."""
    return x.item() if type(x) is Tracer else op.index(x) if type(x) is Size else x


def _is_numpy_scalar(x: Any, value: Any) -> bool:
    return type(x) is Tracer and x._storage.scalar and value.weak is None


def _is_python_complex(value: Any) -> bool:
    return type(value) is complex or getattr(value, "weak", None) == "complex"


def _is_float64(x: Any, value: Any) -> bool:
    """Whether x is a numpy.float64, which Python's complex numbers accept as a float."""
    return type(x) is np.float64 or (_is_numpy_scalar(x, value) and value.dtype == np.float64)


def _power_of_scalar(trace: Trace, base: Tracer, exponent: Any) -> Any:
    """base ** exponent for NumPy's scalar. (For arrays the operator uses square roots, but for
    scalars it calls pow.)"""
    if type(exponent) is float and base.dtype.kind == "f":
        exponent = Tracer(trace, trace.builder.full([], exponent, base.dtype))
    return ufuncs.call(np.power, "__call__", (base, exponent), {})
