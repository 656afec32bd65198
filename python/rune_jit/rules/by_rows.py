"""NumPy's functions that treat each line along an axis, or each matrix of a stack, alone. For
arrays in chunks, a host call gets some of the lines or matrices at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rune_jit.rules.host import call_on_host
from rune_jit.rules.table import named
from rune_jit.tracing.tracer import Tracer, contains_traced

# By function: the position of its parameter `axis`.
QUANTILES: dict[Any, int] = {
    **dict.fromkeys(named(np, "percentile quantile nanpercentile nanquantile"), 2),
    **dict.fromkeys((np.median, np.nanmedian), 1),
}
# The same for functions whose results keep the axis.
_KEEPING: dict[Any, int] = {
    **dict.fromkeys((np.sort, np.argsort), 1),
    **dict.fromkeys((np.partition, np.argpartition), 2),
    **dict.fromkeys(named(np.fft, "fft ifft rfft irfft hfft ihfft"), 2),
}
_OF_STACKS = named(
    np.linalg, "inv cholesky det slogdet eigh eigvalsh svd svdvals qr pinv matrix_rank cond"
)


class ByRows(NamedTuple):
    """A call on an array whose first `rows` axes are the first axes of the results, too."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    name: str
    rows: int
    restore: Callable[[Any], Any]  # puts the result's axes into the order that the user wants

    def call(self, probe: Callable[[Any], np.ndarray], may_raise: bool, are_data: bool) -> Any:
        found = call_on_host(
            self.function,
            self.args,
            self.kwargs,
            probe,
            self.name,
            may_raise,
            ints_are_data=are_data,
            rows=self.rows,
        )
        return self.restore(found)


def by_rows(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ByRows | None:
    """The call by rows, or None. It is possible if the first argument is the only traced array, has
    elements, and the call is along one axis or on a stack of matrices."""
    if not args or not isinstance(args[0], Tracer) or contains_traced((args[1:], kwargs)):
        return None
    x: Any = args[0]
    name = f"{function.__module__}.{function.__name__}"
    if x.size == 0:
        return None
    if function in _OF_STACKS:
        if x.ndim < 3:
            return None
        return ByRows(function, args, kwargs, name, x.ndim - 2, lambda found: found)
    position = {**QUANTILES, **_KEEPING}.get(function)
    if position is None or x.ndim < 2:
        return None
    given = dict(kwargs)
    rest = list(args[1:])
    axis: Any = -1 if function in _KEEPING else None
    if len(rest) >= position:
        axis, rest[position - 1] = rest[position - 1], -1
    else:
        axis, given["axis"] = given.get("axis", axis), -1
    if not isinstance(axis, (int, np.integer)) or not -x.ndim <= axis < x.ndim:
        return None
    keeps = function in _KEEPING or bool(given.get("keepdims", False))
    q = rest[0] if position == 2 and rest else given.get("q", 0)
    has_several = function in QUANTILES and position == 2 and np.ndim(q) > 0
    if has_several and np.ndim(q) > 1:
        return None

    def restore(found: Any) -> Any:
        if has_several:
            found = np.moveaxis(found, -1, 0)
        return np.moveaxis(found, -1, axis % x.ndim + has_several) if keeps else found

    moved = (np.moveaxis(x, axis, -1), *rest)
    called = functools.partial(_with_quantiles_last, function) if has_several else function
    return ByRows(called, moved, given, name, x.ndim - 1, restore)


# Transforms along several axes. Each has the transform along one axis, the transform along the last
# axis, and whether the last axis is transformed first.
_FOURIER: dict[Any, tuple[Any, Any, bool]] = {
    np.fft.fftn: (np.fft.fft, np.fft.fft, True),
    np.fft.ifftn: (np.fft.ifft, np.fft.ifft, True),
    np.fft.rfftn: (np.fft.fft, np.fft.rfft, True),
    np.fft.irfftn: (np.fft.ifft, np.fft.irfft, False),
}
_OF_PLANES: dict[Any, Any] = {
    np.fft.fft2: np.fft.fftn,
    np.fft.ifft2: np.fft.ifftn,
    np.fft.rfft2: np.fft.rfftn,
    np.fft.irfft2: np.fft.irfftn,
}


def along_axes(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A Fourier transform along several axes, as a sequence of transforms along one axis each.
    These need only whole lines. None for other functions."""
    names = ("a", "s", "axes", "norm")
    given = {"s": None, "norm": None, **dict(zip(names, args, strict=False)), **kwargs}
    if (whole := _OF_PLANES.get(function)) is not None:
        given.setdefault("axes", (-2, -1))
    if (whole or function) not in _FOURIER:
        return None
    one, last, is_first = _FOURIER[whole or function]
    x, axes = given["a"], given.get("axes")
    if given["s"] is not None or given.keys() - {*names} or not isinstance(x, Tracer):
        return None
    *others, end = range(x.ndim) if axes is None else axes
    steps = [(one, axis) for axis in others]
    steps = [(last, end), *reversed(steps)] if is_first else [*steps, (last, end)]
    for step, axis in steps:
        x = step(x, axis=axis, norm=given["norm"])
    return x


def _with_quantiles_last(function: Any, *args: Any, **kwargs: Any) -> Any:
    """numpy.quantile and similar functions, with the axis of quantiles moved from first to last."""
    return np.moveaxis(function(*args, **kwargs), 0, -1)
