"""The functions of Python's module math inside of a trace. If a number is known only when the
program runs, the program computes them.

They raise where NumPy's functions return NaN or an infinity (rules/python_errors.py)."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from rune_jit.capture import integer_functions
from rune_jit.capture.algorithms import as_users
from rune_jit.capture.stand_ins import StandIn
from rune_jit.rules.python_errors import assume_defined
from rune_jit.tracing.context import current_trace
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer

# Functions of floats, and the names of the NumPy functions that compute them.
_OF_FLOATS = {
    **{name: name for name in ("sqrt", "exp", "expm1", "log", "log2", "log10", "log1p", "fabs")},
    **{name: name for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "degrees", "radians")},
    **{f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")},
    **{"hypot": "hypot", "copysign": "copysign", "fmod": "fmod", "pow": "power"},
    **{"exp2": "exp2", "cbrt": "cbrt"},  # from Python 3.11 on
}
_TO_INTEGERS = ("floor", "ceil", "trunc")
_OF_INTEGERS = ("gcd", "lcm")
_BINARY = ("atan2", "hypot", "copysign", "fmod", "pow")


def functions() -> Iterator[tuple[Any, Any]]:
    """The functions, each with its stand-in."""
    names = (*_OF_FLOATS, *_TO_INTEGERS, *_OF_INTEGERS, "isnan", "isinf", "isfinite")
    return ((f, _Function(f)) for f in (getattr(math, name, None) for name in names) if f)


def is_of_math(x: Any) -> bool:
    """Whether x is the module math, or a function of it."""
    return x is math or getattr(x, "__module__", None) == "math"


class _Function(StandIn):
    """The stand-in for a function of math."""

    def __call__(self, *args: Any) -> Any:
        trace = current_trace()
        if trace is None or not trace.may_guess or not any(_is_unknown(trace, x) for x in args):
            return self._real(*args)
        name = self._real.__name__
        if name == "log" and len(args) == 2:
            return self(args[0]) / self(args[1])
        if name in _OF_INTEGERS and trace.is_in_loop and all(map(_is_integer, args)):
            algorithm = trace.rebind(as_users(integer_functions)[name])
            return functools.reduce(algorithm, args) if len(args) > 1 else self._real(*args)
        if len(args) != 1 + (name in _BINARY) or not all(_is_real(x) for x in args):
            return self._real(*args)  # (raises, or asks for the value)
        given = [trace.builder.value(_as_float(trace, x)) for x in args]
        if name in _TO_INTEGERS:
            if not trace.loops or not trace.loops.within:
                return self._real(*args)
            trace.guess()
            value = trace.builder.ufunc(name, given)[0]
            return _number(trace, trace.builder.python_number(value, True))
        if name not in _OF_FLOATS:
            return _classify(name, _number(trace, _as_float(trace, args[0])))
        value = trace.builder.ufunc(_OF_FLOATS[name], given)[0]
        assume_defined(trace, value, given)
        return _number(trace, trace.builder.python_number(value, False))


def _is_unknown(trace: Trace, x: Any) -> bool:
    """Whether a number is known only when the program runs."""
    if type(x) is Size:
        return trace.is_in_loop
    return type(x) is Tracer and x._storage.array is None and x.ndim == 0


def _is_real(x: Any) -> bool:
    if type(x) is Tracer:
        return x.ndim == 0 and x.dtype.kind in "biuf"
    return isinstance(x, (bool, int, float, Size, np.floating, np.integer, np.bool_))


def _is_integer(x: Any) -> bool:
    if type(x) is Tracer:
        return x.ndim == 0 and x.dtype.kind in "biu"
    return isinstance(x, (bool, int, Size, np.integer))


def _as_float(trace: Trace, x: Any) -> Any:
    """Python's float(x)."""
    return trace.builder.python_number(trace.operand(x), False)


def _number(trace: Trace, value: Any) -> Tracer:
    return Tracer(trace, value, scalar=True)


def _classify(name: str, x: Tracer) -> Any:
    """isnan, isinf or isfinite of a number, as Python's bool."""
    if name == "isnan":
        return x != x
    return abs(x) == math.inf if name == "isinf" else abs(x) < math.inf
