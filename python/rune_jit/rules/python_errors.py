"""Operations on Python's numbers that raise, where arrays would give NaN, an infinity, wrapped
integers or another array. A trace assumes that they do not raise, and the program checks it. If the
assumption is wrong, the call runs in another way."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from rune_jit.errors import UnsupportedOpError
from rune_jit.rules.coercions import SAMPLES
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import NUMBERS, Tracer, tracers_in


def assume_nonzero(trace: Trace, divisor: Any) -> None:
    """Assumes that a Python number, a divisor, is not 0. Raises UnsupportedOpError if the trace
    must not assume anything."""
    if trace.builder.may_be_zero(divisor):
        _guess(trace, "it divides by a Python number that may be 0")
        trace.builder.assume_nonzero(divisor)


def assume_defined(trace: Trace, result: Any, given: list[Any]) -> None:
    """Assumes that Python computes a float, too. Python raises if the result is NaN and no operand
    is, or if it is infinite and all operands are finite (CPython's Modules/mathmodule.c, math_1 and
    math_2; powers overflow, and those of negative numbers are complex). Raises UnsupportedOpError
    if the trace must not assume anything."""
    _guess(trace, "it computes a power of Python numbers")
    ufunc = trace.builder.ufunc

    def of(name: str, *operands: Any) -> Any:
        return ufunc(name, list(operands))[0]

    may_be_nan, is_all_finite = of("isnan", given[0]), of("isfinite", given[0])
    for x in given[1:]:
        may_be_nan = of("logical_or", may_be_nan, of("isnan", x))
        is_all_finite = of("logical_and", is_all_finite, of("isfinite", x))
    nan_is_right = of("logical_or", of("logical_not", of("isnan", result)), may_be_nan)
    infinity_is_right = of("logical_not", of("logical_and", of("isinf", result), is_all_finite))
    trace.builder.assume(of("logical_and", nan_is_right, infinity_is_right))


def assume_fits(trace: Trace, assigned: Any, dtype: np.dtype[Any]) -> None:
    """Assumes that a number, or the numbers of a list, fit the dtype of the elements to which they
    are assigned. NumPy converts a number by int(). It raises if int() raises or if the result is
    out of bounds. NumPy's numbers wrap in unsigned integers, like elements of arrays.

    Raises UnsupportedOpError if the trace must not assume anything, and TypeError for Python's
    complex numbers."""
    for x in tracers_in(assigned) if dtype.kind in "iuf" else ():
        if not x._storage.scalar:
            continue
        value = x._value_in(trace)
        if value.weak == "complex":
            np.zeros((), dtype)[()] = SAMPLES[value.weak]  # raises
        if dtype.kind == "i" or (dtype.kind == "u" and value.weak):
            _assume_number_fits(trace, trace.array(x), dtype)
        elif dtype.kind == "u" and trace.builder.unsure_kind(value):
            _assume_number_fits(trace, trace.array(x), dtype, trace.builder.is_python(value))


def fitting(trace: Trace, assigned: Any, dtype: np.dtype[Any]) -> Any:
    """The values that are assigned to elements of this dtype. If the numbers are known, this is the
    array that NumPy makes. Raises what assume_fits and NumPy raise."""
    assume_fits(trace, assigned, dtype)
    is_list = isinstance(assigned, (list, tuple))
    if type(assigned) in NUMBERS or (is_list and _OF_LISTS.issuperset(map(type, assigned))):
        return np.array(assigned, dtype)
    return assigned


_OF_LISTS = {*NUMBERS} | {np.dtype(code).type for code in np.typecodes["AllInteger"] + "efdFD"}


def _assume_number_fits(
    trace: Trace, number: Any, dtype: np.dtype[Any], is_python: Any = None
) -> None:
    """`is_python` tells whether the number is Python's, if that is not certain."""
    if number.dtype.kind == "c":  # (int() takes the real part of NumPy's complex numbers)
        number = trace.builder.real(number)
    given = number.dtype
    if given.kind not in "iuf" or np.can_cast(given, dtype):
        return
    if given.kind in "iu" and trace.builder.is_known_to_fit(number, dtype):
        return
    _guess(trace, f"it assigns a number of {given} to elements of {dtype}")
    limits = np.iinfo(dtype)
    bounds: list[tuple[str, float]] = [("less", limits.max + 1), ("greater", limits.min - 1)]
    if given.kind == "f":
        number = trace.builder.astype(number, np.dtype(np.float64))
        if dtype == np.int64:  # float64 cannot represent the limit - 1
            bounds[1] = "greater_equal", limits.min
        bounds = [(name, float(bound)) for name, bound in bounds]
    elif given.kind == "u":
        bounds.pop()
    elif dtype == np.uint64:  # int64 cannot represent the limit
        bounds.pop(0)
    ufunc = trace.builder.ufunc
    for name, bound in bounds:
        fits = ufunc(name, [number, bound])[0]
        if is_python is not None:
            fits = ufunc("logical_or", [ufunc("logical_not", [is_python])[0], fits])[0]
        trace.builder.assume(fits)


def _guess(trace: Trace, otherwise: str) -> None:
    if trace.may_guess:
        trace.guess()
        return
    if trace.loops is not None:
        trace.loops.refuse(otherwise)
    raise UnsupportedOpError(f"number: {otherwise}, which raises in Python")


def with_sequence(trace: Trace, ufunc: str, number: Tracer, operands: tuple[Any, ...]) -> Any:
    """An operator on a number and a list or tuple. None if NumPy makes an array of the list."""
    if ufunc == "multiply":
        if number.dtype.kind not in "iu":
            raise TypeError("can't multiply sequence by non-int")
        return operator.mul(
            *(operator.index(x) if x is number else x for x in operands)
        )  # repeats the sequence
    value = trace.operand(number)
    if trace.builder.unsure_kind(value):
        raise UnsupportedOpError(f"{ufunc}: cannot trace it with a list and this number")
    if not value.weak:
        return None
    return ufunc == "not_equal" if ufunc in ("equal", "not_equal") else NotImplemented
