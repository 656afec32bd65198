"""What Python raises where NumPy gives NaN or an infinity: a trace assumes that Python's numbers do
not raise, which the program checks. A call for which that is wrong runs in another way."""

from __future__ import annotations

from typing import Any

from rune_jit.errors import UnsupportedOpError
from rune_jit.tracing.trace import Trace


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


def _guess(trace: Trace, otherwise: str) -> None:
    if trace.may_guess:
        trace.guess()
        return
    if trace.loops is not None:
        trace.loops.refuse(otherwise)
    raise UnsupportedOpError(f"number: {otherwise}, which raises in Python")
