"""Decides which values a name may have from iteration to iteration of a loop of the program: values
of the same kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.tracing.sizes import Size, same_shape
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer


class _Unset:
    """The value of `.result` if nothing has been returned."""


UNSET = _Unset()


class GivenUp(Exception):
    """The loop runs all iterations, for this reason."""


class Unstable(Exception):
    """The value of a name has another kind after an iteration, perhaps only after the first."""

    most_peeled = 1  # how many iterations may run apart because of that


class Unsettled(Unstable):
    """The same of a number, which may take over another one's kind after some iterations more."""

    most_peeled = 3


# What a number of Python may become in an iteration that adds a number of NumPy to it.
_SUMS = {
    ("float", np.dtype(np.float64)),
    ("int", np.dtype(np.float64)),
    ("int", np.dtype(np.int64)),
    ("bool", np.dtype(bool)),
}


def unsure_sum(a: Any, b: Any) -> tuple[str, Any] | None:
    """Of the kinds of two numbers, one of which may be Python's where the other one is NumPy's: the
    kind of Python's and NumPy's dtype. None if one number cannot stand for both."""
    kinds = (a, b)
    if any(kind is None or kind[0] == "array" for kind in kinds):
        return None
    pythons = {kind[1] for kind in kinds if kind[0] != "NumPy's"}
    dtypes = {kind[-1] for kind in kinds if kind[0] != "Python's"}
    if len(pythons) != 1 or len(dtypes) != 1:
        return None
    pair = (*pythons, *dtypes)
    return pair if unsure_pair(pair) else None


def unsure_pair(pair: tuple[Any, Any]) -> bool:
    """Whether one number can stand for Python's of a kind and for NumPy's of a dtype."""
    return pair in _SUMS


def mixture(number: Any, a: Any, b: Any) -> tuple[str, Any] | None:
    """The same where one of the two is an int that is known, and the other one may be Python's
    float. Nothing but arithmetic with floats takes the result: it would be the same of a float."""
    if type(number) is not int or abs(number) > 2**53:
        return None
    other = b if a == ("Python's", "int") else a
    if other == ("Python's", "float") or other == ("unsure", "float", np.dtype(np.float64)):
        return "int", np.dtype(np.float64)
    return None


def is_array(x: Any) -> bool:
    return type(x) is Tracer and not x._storage.scalar


def is_view(x: Any, of: Any) -> bool:
    """Whether both are the same view of the same memory."""
    return (
        type(x) is Tracer
        and type(of) is Tracer
        and x._storage is of._storage
        and (x is of or _same_steps(x._steps, of._steps))
    )


def _same_steps(a: Any, b: Any) -> bool:
    return len(a) == len(b) and all(
        x.kind == y.kind == "transpose" and tuple(x.argument) == tuple(y.argument)
        for x, y in zip(a, b, strict=True)
    )


def lay_out_as(made: Tracer, like: Tracer) -> None:
    """Notes that an array is laid out in memory as another one."""
    if made.ndim > 1:
        storage = like._storage
        made._storage.order_from = storage.order_from
        made._storage.order_known = storage.order_known and not like._steps
        made._storage.in_order_of_operands = storage.in_order_of_operands and not like._steps


class _Shape:
    """A shape that is equal to others of the same sizes."""

    def __init__(self, sizes: tuple[Any, ...]) -> None:
        self._sizes = sizes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Shape) and same_shape(self._sizes, other._sizes)

    __hash__ = None  # type: ignore[assignment]


def kind_of(trace: Trace, x: Any) -> Any:
    """What must be the same for what a name stands for in all iterations; None for what is neither
    an array nor a number."""
    if type(x) is Tracer:
        if not x._storage.scalar:
            return "array", x.dtype, _Shape(x.shape)
        value = x._value_in(trace)
        if value.weak:
            return "Python's", value.weak
        unsure = trace.builder.unsure_kind(value)
        return ("unsure", unsure, x.dtype) if unsure else ("NumPy's", x.dtype)
    if type(x) in (bool, int, float, complex):
        return "Python's", type(x).__name__
    if type(x) is Size:
        return "Python's", "int"
    if isinstance(x, np.generic) and _core.is_supported_dtype(x.dtype):
        return "NumPy's", x.dtype
    return None


def zero_like(trace: Trace, value: Any) -> Any:
    """Zeros of the type and shape of an operand."""
    if type(value) in (bool, int, float, complex):
        return type(value)()
    if value.weak is not None:
        return {"bool": False, "int": 0, "float": 0.0, "complex": 0j}[value.weak]
    return trace.builder.full(list(value.shape), 0, value.dtype)


def any_value(trace: Trace, kind: str, of: Any, shape: tuple[int, ...]) -> Any:
    """A number or array of a kind, as kind_of gives it."""
    if kind == "Python's":
        return {"bool": False, "int": 0, "float": 0.0, "complex": 0j}[of]
    return Tracer(trace, trace.builder.full(list(shape), 0, of), scalar=kind != "array")


def counts_of(trace: Trace) -> dict[str, int]:
    """How many there are of what a loop of the program must not have."""
    return {
        "calls on the host": len(trace.functions),
        "numbers that must be equal": len(trace._equal),
        "numbers that are assumed": len(trace._assumed),
    }
