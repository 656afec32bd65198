"""Sizes that differ between calls of the same compiled program (calls/dynamic.py)."""

from __future__ import annotations

import numbers
import operator as op
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from rune_jit.errors import DynamicSizeError, TracerLeakError, UnsupportedOpError
from rune_jit.tracing.context import require_trace


class AxisSize(NamedTuple):
    """A dynamic axis of one argument of a call."""

    leaf: int  # position among the leaves of the arguments
    axis: int
    name: str
    low: int  # of the program that takes the call
    high: int
    least: int  # for which this program is taken, not one for smaller sizes


def next_prime(low: int, taken: Collection[int] = ()) -> int:
    """The least prime >= low that is not among `taken`."""
    prime = max(low, 2)
    while prime in taken or any(prime % d == 0 for d in range(2, int(prime**0.5) + 1)):
        prime += 1
    return prime


class Size:
    """A dynamic size in a traced function: what x.shape has for its axis.

    It can be the size of an axis of new arrays, and a number in computations with traced arrays
    (as a Python int that is known when the program runs). Comparisons are answered where `low` and
    `high` decide them. Raises DynamicSizeError where its value is needed.
    """

    __slots__ = ("bound", "high", "low", "name")

    def __init__(self, name: str, low: int, high: int, bound: int) -> None:
        self.name, self.low, self.high = name, low, high
        self.bound = bound  # what stands for it in the graph's shapes

    def __repr__(self) -> str:
        return self.name

    def _refuse(self, what: str) -> NoReturn:
        raise DynamicSizeError(
            f'{what}: cannot take the value of the dynamic size "{self.name}" while tracing (one'
            f" program runs all sizes from {self.low} to {self.high})\n"
            "hint: compute with it as with an array, or leave its axis out of jit(dynamic=...)"
        )

    def __index__(self) -> int:
        self._refuse("index")

    def __int__(self) -> int:
        self._refuse("int")

    def __float__(self) -> float:
        self._refuse("float")

    def __complex__(self) -> complex:
        self._refuse("complex")

    def __bool__(self) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(self.name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self._refuse("numpy.asarray")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*map(_traced, inputs), **kwargs)


def _traced(x: Any) -> Any:
    """A Size as the traced array of its value; anything else as it is."""
    if not isinstance(x, Size):
        return x
    return require_trace().traced(x)


def _binary(name: str, reflected: bool) -> Callable[[Size, Any], Any]:
    function = getattr(op, name)

    def operator(self: Size, other: Any) -> Any:
        if name == "mul" and type(other) is int and other == 1:
            return self  # the product of a shape
        a, b = _traced(self), _traced(other)
        return function(b, a) if reflected else function(a, b)

    return operator


def _unary(name: str) -> Callable[[Size], Any]:
    function = getattr(op, name)
    return lambda self: function(_traced(self))


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(Size, f"__{_name}__", _binary(_name, False))
    setattr(Size, f"__r{_name}__", _binary(_name, True))
for _name in ("neg", "pos", "abs"):
    setattr(Size, f"__{_name}__", _unary(_name))


def _comparison(name: str) -> Callable[[Size, Any], Any]:
    function = getattr(op, name)

    def operator(self: Size, other: Any) -> Any:
        if self is other:
            return name in ("eq", "le", "ge")
        if isinstance(other, Size):
            low, high = other.low, other.high
        elif isinstance(other, numbers.Real):
            low = high = other  # type: ignore[assignment]
        elif hasattr(other, "dtype"):
            return function(_traced(self), other)
        else:
            return NotImplemented
        corners = {function(a, b) for a in (self.low, self.high) for b in (low, high)}
        meet = self.low <= high and low <= self.high and not self.low == self.high == low == high
        if len(corners) > 1 or (name in ("eq", "ne") and meet):
            self._refuse(name)
        return corners.pop()

    return operator


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Size, f"__{_name}__", _comparison(_name))


def same_size(a: Any, b: Any) -> bool:
    """Whether two sizes are equal at every call."""
    return a is b or (not isinstance(a, Size) and not isinstance(b, Size) and a == b)


def same_shape(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(map(same_size, a, b))


def with_bounds(shape: Any) -> Any:
    """A shape with numbers in the place of Sizes: for asking NumPy about layouts."""
    if not any(isinstance(n, Size) for n in shape):
        return shape
    return type(shape)(n.bound if isinstance(n, Size) else n for n in shape)


def broadcast_shapes(*shapes: Sequence[Any]) -> tuple[Any, ...]:
    """numpy.broadcast_shapes. (A Size is not taken for 1.)"""
    sizes = {n.bound: n for shape in shapes for n in shape if isinstance(n, Size)}
    return tuple(sizes.get(n, n) for n in np.broadcast_shapes(*map(with_bounds, shapes)))


class TracedSizes:
    """The dynamic sizes of one trace; `leaves` and `axes` are those of the call."""

    def __init__(self, builder: Any, leaves: Sequence[Any], axes: Sequence[AxisSize]) -> None:
        self._by_axis: dict[tuple[int, int], Size] = {}
        self._values: dict[str, tuple[Size, Any]] = {}
        dynamic = {(a.leaf, a.axis) for a in axes}
        # No bound is or divides a size that is a number.
        fixed = {
            divisor
            for position, leaf in enumerate(leaves)
            for axis, size in enumerate(getattr(leaf, "shape", ()))
            if axes and (position, axis) not in dynamic
            for divisor in _divisors(size)
        }
        for a in axes:
            if a.name not in self._values:
                bound = next_prime(a.high, fixed)
                fixed.add(bound)
                size = Size(a.name, a.low, a.high, bound)
                value = builder.define_size(a.name, a.low, bound, size)
                self._values[a.name] = size, value
            self._by_axis[a.leaf, a.axis] = self._values[a.name][0]

    def shape_of(self, leaf: Any, position: int) -> tuple[Any, ...]:
        """The shape of an argument, with Sizes."""
        shape = getattr(leaf, "shape", ())
        return tuple(self._by_axis.get((position, axis), n) for axis, n in enumerate(shape))

    def value(self, size: Size) -> Any:
        """The value of a Size in the graph: a Python int. Raises TracerLeakError if it belongs to
        another trace."""
        known, value = self._values.get(size.name, (None, None))
        if known is not size:
            raise TracerLeakError(
                f'the dynamic size "{size.name}" is used outside the function that was traced\n'
                "hint: return it from the function instead of storing it"
            )
        return value

    def refuse(self, error: Exception) -> None:
        """Names the sizes in a message of the core. What cannot be done with the bound of a size
        may be possible at some of its values: raises UnsupportedOpError for such an error."""
        before = text = str(error)
        for size, _ in self._values.values():
            text = re.sub(rf"\b{size.bound}\b", size.name, text)
        if text == before and "the symbolic size" not in text:
            return
        if "\nhint:" not in text:
            names = ", ".join(f'"{name}"' for name in self._values)
            text += f"\nhint: an axis less in jit(dynamic=...) (now {names}) makes its size known"
        if isinstance(error, UnsupportedOpError):
            error.args = (text,)
        elif isinstance(error, (ValueError, IndexError)):
            raise UnsupportedOpError(text) from None


def _divisors(n: int) -> set[int]:
    small = {d for d in range(1, int(n**0.5) + 1) if n % d == 0}
    return small | {n // d for d in small}
