"""Sizes that differ between calls of the same compiled program (calls/dynamic.py)."""

from __future__ import annotations

import functools
import numbers
import operator as op
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from rune_jit import _core
from rune_jit.errors import DynamicSizeError, UnsupportedOpError
from rune_jit.methods import COMPARISONS, install_operators
from rune_jit.tracing.context import current_trace, require_trace


class AxisSize(NamedTuple):
    """A dynamic axis of one argument of a call."""

    leaf: int  # position among the leaves of the arguments
    axis: int
    name: str
    low: int  # of the program that takes the call
    high: int
    least: int  # smaller sizes have another program


Size: Any = _core.Size
"""A dynamic size in a traced function: an item of x.shape, or a sum of such items and ints, with
int factors.

It can be the size of an axis of new arrays. In computations with traced arrays it acts like a
Python int. Comparisons give a result if the bounds of the sizes, `low` and `high`, decide them.
Other uses of the value raise DynamicSizeError. """


def _refuse(size: Any, what: str) -> NoReturn:
    names = ", ".join(f'"{name}"' for name in size.names)
    raise DynamicSizeError(
        f"{what}: cannot take the value of the dynamic size {size!r} while tracing (one program"
        f" runs all values from {size.low} to {size.high})\n"
        f"hint: compute with it as with an array, or leave the axes of {names} out of"
        " jit(dynamic=...)"
    )


def _refusal(what: str) -> Callable[..., NoReturn]:
    return lambda self, *args, **options: _refuse(self, what)


def _array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    return getattr(ufunc, method)(*map(_traced, inputs), **kwargs)


def _traced(x: Any) -> Any:
    """The traced array of a Size's value. Returns anything else unchanged."""
    if not isinstance(x, Size):
        return x
    return require_trace().traced(x)


def _affine(name: str, a: Any, b: Any) -> Any:
    """The result of an operator if it is a Size or an int, otherwise None."""
    both_are_sizes = isinstance(a, Size) and isinstance(b, Size)
    if not both_are_sizes and not (type(a) is int or type(b) is int):
        return None
    size = a if isinstance(a, Size) else b
    if size.is_traced:
        require_trace()  # raises if its trace has ended
    if name in ("add", "sub"):
        factor = 1 if name == "add" else -1
        return a.plus(b, factor) if isinstance(a, Size) else b.times(factor).plus(a)
    if name == "mul" and not both_are_sizes:
        return a.times(b) if isinstance(a, Size) else b.times(a)
    return None


def check_fits(size: Any, dtype: np.dtype[Any]) -> None:
    """Raises DynamicSizeError if a size may not fit an integer dtype."""
    if dtype.kind in "iu" and dtype.itemsize < 8:
        info = np.iinfo(dtype)
        if size.low < info.min or size.high > info.max:
            _refuse(size, f"setitem of {dtype}")


def _compare(name: str, size: Any, other: Any) -> Any:
    function = getattr(op, name)
    trace = current_trace()
    loops = trace.loops if trace is not None else None
    if isinstance(other, Size):
        difference = size.plus(other, -1)
        if not isinstance(difference, Size):
            return function(difference, 0)
        low, high = loops.bounds(difference) if loops else (difference.low, difference.high)
    elif issubclass(type(other), numbers.Real):
        low, high = loops.bounds(size) if loops else (size.low, size.high)
        low, high = low - other, high - other
    else:
        return function(_traced(size), other)
    outcomes = {function(sign, 0) for sign in _signs(low, high)}
    if len(outcomes) > 1:
        if loops is not None and loops.open and size.is_traced:
            compared = function(_traced(size), _traced(other))
            compared._storage.of_counters = True
            return compared
        _refuse(size, name)
    return outcomes.pop()


def _signs(low: Any, high: Any) -> list[int]:
    """The signs of the numbers from low to high."""
    found = {-1: low < 0, 0: low <= 0 <= high, 1: high > 0}
    return [sign for sign, is_there in found.items() if is_there]


def _is_operand(kind: type) -> bool:
    return issubclass(kind, numbers.Number) or hasattr(kind, "__array_ufunc__")


def _apply(name: str, operands: tuple[Any, ...]) -> Any:
    """A Python operator."""
    if name in COMPARISONS:
        return _compare(name, *operands)
    if name == "neg":
        return operands[0] * -1
    result = _affine(name, *operands) if len(operands) == 2 else None
    if result is None:
        traced = [_traced(x) for x in operands]
        if name in ("truediv", "floordiv", "mod") and isinstance(operands[1], Size):
            # Python raises ZeroDivisionError where NumPy does not.
            signs = _signs(operands[1].low, operands[1].high)
            traced[1]._storage.is_nonzero = 0 not in signs
        result = getattr(op, f"__{name}__")(*traced)
    return result


install_operators(
    Size,
    _is_operand,
    lambda name: functools.partial(_apply, name),
    lambda name, size, other: _apply(name, (size, other)),
)


def _bool(self: Any) -> bool:
    return not bool(self == 0)


def _with_object(self: Any, name: str, other: Any, reflected: bool) -> Any:
    return NotImplemented  # like an int: Python asks the other operand, then compares or raises


Size._with_object = _with_object
for _name in ("index", "int", "float", "complex", "divmod", "rdivmod"):
    setattr(Size, f"__{_name}__", _refusal(_name))
Size.__bool__ = _bool
Size.__array__ = _refusal("numpy.asarray")
Size.__array_ufunc__ = _array_ufunc


def same_size(a: Any, b: Any) -> bool:
    """Whether two sizes are equal at every call."""
    if type(a) is type(b) is int:
        return bool(a == b)
    if isinstance(a, Size) or isinstance(b, Size):
        return isinstance(a, Size) and isinstance(b, Size) and bool(a.is_same(b))
    return bool(a == b)


def same_shape(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(map(same_size, a, b))


def has_sizes(x: Any) -> bool:
    """Whether x is a Size, or a tuple, list or slice that holds one."""
    if isinstance(x, (tuple, list)):
        return any(map(has_sizes, x))
    if isinstance(x, slice):
        return has_sizes((x.start, x.stop))
    return isinstance(x, Size)


def mismatch(
    message: str, *shapes: Sequence[Any], error: type[Exception] = ValueError
) -> Exception:
    """The error for shapes that do not fit: `error`, or UnsupportedOpError if they contain Sizes,
    because these may fit when the program runs."""
    sizes = [n for shape in shapes for n in shape if isinstance(n, Size)]
    names = dict.fromkeys(name for size in sizes for name in size.names)
    if not names:
        return error(message)
    bounds = ", ".join(f'Dim("{name}", min=..., max=...)' for name in names)
    return UnsupportedOpError(
        f"{message}\nhint: give closer bounds, {bounds}, or leave an axis out of jit(dynamic=...)"
    )


def with_bounds(shape: Any) -> Any:
    """A shape with upper bounds in place of Sizes, for questions to NumPy about layouts."""
    if not any(isinstance(n, Size) for n in shape):
        return shape
    return type(shape)(n.high if isinstance(n, Size) else n for n in shape)


def broadcast_shapes(*shapes: Sequence[Any]) -> tuple[Any, ...]:
    """numpy.broadcast_shapes, for shapes that may contain Sizes. A Size fits only the same Size and
    1. Raises UnsupportedOpError if a Size does not fit, and ValueError if ints do not fit."""
    if not any(isinstance(n, Size) for shape in shapes for n in shape):
        return np.broadcast_shapes(*shapes)
    rank = max(map(len, shapes))
    result: list[Any] = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, rank - len(shape)):
            if same_size(result[axis], 1):
                result[axis] = size
            elif not same_size(size, 1) and not same_size(size, result[axis]):
                raise mismatch(
                    f"broadcast_shapes: cannot broadcast {size} with {result[axis]} (dimension"
                    f" {axis - rank})",
                    [size, result[axis]],
                )
    return tuple(result)


class TracedSizes:
    """The dynamic sizes of one trace. `axes` are the dynamic axes of the call's arguments."""

    def __init__(self, builder: Any, axes: Sequence[AxisSize]) -> None:
        by_name: dict[str, Any] = {}
        for a in axes:
            if a.name not in by_name:
                by_name[a.name] = builder.define_size(a.name, a.low, a.high)
        self._by_axis = {(a.leaf, a.axis): by_name[a.name] for a in axes}

    def shape_of(self, leaf: Any, position: int) -> tuple[Any, ...]:
        """The shape of an argument, with Sizes."""
        shape = getattr(leaf, "shape", ())
        return tuple(self._by_axis.get((position, axis), n) for axis, n in enumerate(shape))
