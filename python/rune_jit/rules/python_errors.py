"""Operations of Python's numbers that raise where arrays would give NaN, an infinity, wrapped
integers or another array. A trace assumes that they do not raise, and the program checks it. If
the assumption is wrong, the call runs in another way."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from rune_jit.errors import UnsupportedOpError
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, is_number, tracers_in


def assume_nonzero(trace: Trace, divisor: Any) -> None:
    """That a Python number is not 0, which Python does not divide by. Raises UnsupportedOpError."""
    if trace.builder.may_be_zero(divisor):
        _guess(trace, "it divides by a Python number that may be 0")
        trace.builder.assume_nonzero(divisor)


def assume_defined(trace: Trace, result: Any, given: list[Any]) -> None:
    """That Python computes a float, too. It raises where the result is NaN and no operand is, and
    where it is infinite and all operands are finite (CPython's Modules/mathmodule.c, math_1 and
    math_2; powers overflow, and those of negative numbers are complex). Raises
    UnsupportedOpError."""
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
    """That signed integers hold the numbers that are assigned to elements of this dtype, one or
    those of a list: NumPy converts a number by int(), and raises where int() does and where the
    result is out of bounds. Unsigned integers wrap, as do elements of arrays. A Python integer that
    is assigned alone is checked where it is converted. Raises UnsupportedOpError."""
    if dtype.kind != "i" or is_number(assigned, "int"):
        return
    for x in tracers_in(assigned):
        if x._storage.scalar:
            _assume_number_fits(trace, trace.array(x), dtype)


def _assume_number_fits(trace: Trace, number: Any, dtype: np.dtype[Any]) -> None:
    given = number.dtype
    if given.kind not in "iuf" or np.can_cast(given, dtype):
        return
    if given.kind in "iu" and trace.builder.is_known_to_fit(number, dtype):
        return
    _guess(trace, f"it assigns a number of {given} to elements of {dtype}")
    limit = 1 << (8 * dtype.itemsize - 1)
    bounds: list[tuple[str, float]] = [("less", limit), ("greater", -limit - 1)]
    if given.kind == "f":
        number = trace.builder.astype(number, np.dtype(np.float64))
        if dtype.itemsize == 8:  # float64 does not have the number below
            bounds[1] = "greater_equal", -limit
        bounds = [(name, float(bound)) for name, bound in bounds]
    elif given.kind == "u":
        bounds.pop()
    for name, bound in bounds:
        trace.builder.assume(trace.builder.ufunc(name, [number, bound])[0])


def _guess(trace: Trace, otherwise: str) -> None:
    if trace.may_guess:
        trace.guess()
        return
    if trace.loops is not None:
        trace.loops.refuse(otherwise)
    raise UnsupportedOpError(f"number: {otherwise}, which raises in Python")


def with_sequence(trace: Trace, ufunc: str, number: Tracer, operands: tuple[Any, ...]) -> Any:
    """An operator of a number and a list or tuple; None if NumPy makes an array of that."""
    if ufunc == "multiply":
        if number.dtype.kind not in "iu":
            raise TypeError("can't multiply sequence by non-int")
        return operator.mul(
            *(operator.index(x) if x is number else x for x in operands)
        )  # repeats it
    value = trace.operand(number)
    if trace.builder.unsure_kind(value):
        raise UnsupportedOpError(f"{ufunc}: cannot trace it with a list and this number")
    if not value.weak:
        return None
    return ufunc == "not_equal" if ufunc in ("equal", "not_equal") else NotImplemented
