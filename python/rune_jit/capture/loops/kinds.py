"""The kinds of values. In a loop of the program, a name must have a value of the same kind in each
iteration."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.tracing.sizes import Size, same_shape
from rune_jit.tracing.storage import same_steps
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer


class _Unset:
    """The value of `.result` if nothing has been returned."""


UNSET = _Unset()


class _Unbound:
    """The stand-in for the value of a name that has none."""


UNBOUND = _Unbound()


class GivenUp(Exception):
    """The loop cannot be a loop of the program, for this reason. It is unrolled."""


class Unstable(Exception):
    """The value of a name has another kind after an iteration, perhaps only after the first."""

    most_peeled = 1  # how many iterations may be peeled to get past the change


class Unsettled(Unstable):
    """The value is a number. It may take over the kind of another number in a later iteration."""

    most_peeled = 3


# The kinds of Python's numbers, and the dtypes that they may get when a number of NumPy's is added.
_SUMS = {
    ("float", np.dtype(np.float64)),
    ("int", np.dtype(np.float64)),
    ("int", np.dtype(np.int64)),
    ("bool", np.dtype(bool)),
}


def unsure_sum(a: Any, b: Any) -> tuple[str, Any] | None:
    """The common kind of two numbers if it is not known which of them a value is, and one is
    Python's and the other one NumPy's: Python's kind and NumPy's dtype. None if they have no common
    kind. `a` and `b` are kinds (kind_of)."""
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
    """Whether one traced number can be Python's of a kind or NumPy's of a dtype."""
    return pair in _SUMS


def is_one_of(pair: tuple[Any, Any], kind: Any) -> bool:
    """Whether each number of a kind (kind_of) is Python's of the kind pair[0] or NumPy's of the
    dtype pair[1]."""
    return kind in (("Python's", pair[0]), ("NumPy's", pair[1]), ("unsure", *pair))


def mixture(number: Any, a: Any, b: Any) -> tuple[str, Any] | None:
    """The common kind of a known int `number` and a number that may be Python's float; None if they
    have none. Only arithmetic with floats may use the result, since it gives the same for an int
    and for a float. `a` and `b` are the kinds of the two."""
    if type(number) is not int or abs(number) > 2**53:
        return None
    other = b if a == ("Python's", "int") else a
    if other == ("Python's", "float") or other == ("unsure", "float", np.dtype(np.float64)):
        return "int", np.dtype(np.float64)
    return None


# The largest magnitude of a small integer (cpp/graph/numpy/loops.h).
MOST_SMALL = 2**31


def assume_small(trace: Trace, operand: Any) -> Any:
    """A number of a list. If it is a traced Python integer, the program checks that it is small."""
    if getattr(operand, "weak", None) != "int" or trace.builder.unsure_kind(operand):
        return operand
    trace.guess()
    return trace.builder.assume_small(operand)


def is_view(x: Any, of: Any) -> bool:
    """Whether both are the same view of the same memory."""
    return (
        type(x) is Tracer
        and type(of) is Tracer
        and x._storage is of._storage
        and (x is of or same_steps(x._steps, of._steps))
    )


class _Shape:
    """A shape that is equal to others of the same sizes."""

    def __init__(self, sizes: tuple[Any, ...]) -> None:
        self._sizes = sizes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Shape) and same_shape(self._sizes, other._sizes)

    __hash__ = None  # type: ignore[assignment]


def kind_of(trace: Trace, x: Any) -> Any:
    """The kind of a value; None if it is neither an array nor a number. Two values of the same kind
    have the same dtype and shape, and both are Python's or NumPy's."""
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
    """A number or array of a kind, whose first two items (kind_of) are `kind` and `of`."""
    if kind == "Python's":
        return {"bool": False, "int": 0, "float": 0.0, "complex": 0j}[of]
    return Tracer(trace, trace.builder.full(list(shape), 0, of), scalar=kind != "array")


def counts_of(trace: Trace) -> dict[str, int]:
    """Counts the things in the trace that the body of a loop of the program must not add."""
    return {
        "calls on the host": len(trace.functions),
        "numbers that must be equal": len(trace._equal),
        "numbers that are assumed": len(trace._assumed),
    }
