"""jit(dynamic=...): sizes of arguments that may differ between calls of one program."""

from __future__ import annotations

import dataclasses
import operator as op
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rune_jit import trees
from rune_jit.arrays.array import Array
from rune_jit.tracing.sizes import AxisSize

# The largest size for the first program of a Dim without max. Each further program has the next
# power of two as its largest size.
_FIRST_MAX = 256


@dataclasses.dataclass(frozen=True)
class Dim:
    """A size that may differ from call to call, for `jit(dynamic=...)`.

    Args:
        name: an identifier. Axes with the same name have the same size at each call.
        min: the smallest size, at least 0. (A call with size 0 is traced separately.)
        max: the largest size. Without it, the first program takes sizes up to 256, and each
            further program takes sizes up to the next power of two. Temporaries have room for the
            largest size.

    Raises:
        ValueError: if `name` is no identifier, or if not 0 <= min <= max.

    Examples:
        >>> import numpy as np, rune_jit
        >>> rows = rune_jit.Dim("rows", max=100)
        >>> f = rune_jit.jit(lambda x: x.sum(axis=0) / x.shape[0], dynamic={0: {0: rows}})
        >>> f(np.ones((3, 2))), f(np.ones((70, 2)))  # one program
        (array([1., 1.]), array([1., 1.]))
        >>> f.cache_info().misses
        1
    """

    name: str
    min: int = 0
    max: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise ValueError(f"Dim: cannot use {self.name!r} as a name (not an identifier)")
        low = op.index(self.min)
        high = None if self.max is None else op.index(self.max)
        if low < 0 or (high is not None and high < low):
            raise ValueError(f"Dim: cannot bound {self.name} by [{low}, {high}]")

    def __repr__(self) -> str:
        return f"Dim({self.name!r}, min={self.min}, max={self.max})"


class DynamicAxes:
    """The dynamic axes of a function's parameters, from jit(dynamic=...).

    `spec`: by parameter (name or position), a mapping of axes to Dims or their names. It holds for
    every array in the argument. Raises TypeError or ValueError if it is not such a mapping."""

    def __init__(self, function: str, spec: Any, parameters: list[str]) -> None:
        self._function = function
        self._parameters = parameters
        self._axes: dict[str, dict[int, Dim]] = {}
        self._dims: dict[str, Dim] = {}
        if not isinstance(spec, Mapping):
            raise TypeError(
                f"jit: cannot use dynamic={spec!r} of {function} (not a mapping of parameters)\n"
                'hint: jit(dynamic={"x": {0: "n"}})'
            )
        for key, axes in spec.items():
            name = _parameter(function, key, parameters)
            if not isinstance(axes, Mapping):
                raise TypeError(
                    f"jit: cannot use {axes!r} as the dynamic axes of {name} (not a mapping of axes"
                    ' to names)\nhint: jit(dynamic={"' + name + '": {0: "n"}})'
                )
            self._axes[name] = {op.index(axis): self._dim(dim) for axis, dim in axes.items()}

    def _dim(self, given: Any) -> Dim:
        dim = Dim(given) if isinstance(given, str) else given
        if not isinstance(dim, Dim):
            raise TypeError(f"jit: cannot use {given!r} as a dynamic size (neither a name nor Dim)")
        known = self._dims.setdefault(dim.name, dim)
        if isinstance(given, Dim) and known != dim:
            if known != Dim(dim.name):
                raise ValueError(f"jit: cannot use both {known} and {dim} (one name, two ranges)")
            self._dims[dim.name] = dim
        return dim

    def by_position(self) -> list[list[int]]:
        """The axes of each parameter."""
        return [list(self._axes.get(name, {})) for name in self._parameters]

    def of(
        self, arguments: Mapping[str, Any], leaves: Sequence[Any], receiver: Any
    ) -> tuple[AxisSize, ...]:
        """The dynamic axes of a call. Raises ValueError if a size is out of bounds, if axes with
        one name have different sizes, or if an array lacks such an axis."""
        result: list[AxisSize] = []
        sizes: dict[str, tuple[int, str]] = {}  # by name, with where it was seen
        position = 0
        for parameter, value in arguments.items():
            count = trees.count(value, receiver)
            for leaf in range(position, position + count):
                for axis, name in self._axes_of(parameter, leaves[leaf]):
                    size = leaves[leaf].shape[axis]
                    where = f"axis {axis} of argument {parameter}"
                    before, there = sizes.setdefault(name, (size, where))
                    if before != size:
                        raise ValueError(
                            f"{self._function}: cannot use {before} and {size} as the dynamic size"
                            f' "{name}" ({there}, {where})'
                        )
                    dim = self._dims[name]
                    if size < dim.min or (dim.max is not None and size > dim.max):
                        most = "" if dim.max is None else f" and at most {dim.max}"
                        raise ValueError(
                            f'{self._function}: cannot use {size} as the dynamic size "{name}"'
                            f" ({where}; it is at least {dim.min}{most})"
                        )
                    if size > 0:
                        low = max(dim.min, 1)
                        least, high = (low, dim.max) if dim.max else _between_powers(size, low)
                        result.append(AxisSize(leaf, axis, name, low, high, least))
            position += count
        return tuple(result)

    def _axes_of(self, parameter: str, leaf: Any) -> Iterable[tuple[int, str]]:
        if not isinstance(leaf, (np.ndarray, Array)):
            return
        for axis, dim in self._axes.get(parameter, {}).items():
            if not -leaf.ndim <= axis < leaf.ndim:
                raise ValueError(
                    f'{self._function}: cannot find the dynamic size "{dim.name}" (axis {axis} of'
                    f" argument {parameter}, which has {leaf.ndim} dimensions)"
                )
            yield axis % leaf.ndim, dim.name


def _parameter(function: str, key: Any, parameters: list[str]) -> str:
    if isinstance(key, str) and key in parameters:
        return key
    if isinstance(key, int) and -len(parameters) <= key < len(parameters):
        return parameters[key]
    raise ValueError(
        f"jit: cannot use {key!r} in dynamic= of {function} (its parameters:"
        f" {', '.join(parameters)})"
    )


def _between_powers(size: int, low: int) -> tuple[int, int]:
    """The smallest and largest size of the program, of a Dim without max, that takes this size."""
    if size <= _FIRST_MAX:
        return low, _FIRST_MAX
    high = 1 << (size - 1).bit_length()
    return high // 2 + 1, high
