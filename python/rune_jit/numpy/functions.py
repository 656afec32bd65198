"""The standard's functions whose parameters or results differ from NumPy's."""

# mypy: disable-error-code=no-any-return
from __future__ import annotations

from typing import Any, Literal

import numpy as np

from rune_jit.arrays.array import Array
from rune_jit.numpy.namespace import finish as _finish


def broadcast_arrays(*arrays: Any) -> list[Array]:
    """numpy.broadcast_arrays, as a list."""
    return list(_finish(np.broadcast_arrays(*arrays)))


def meshgrid(*arrays: Any, indexing: Literal["xy", "ij"] = "xy") -> list[Array]:
    """numpy.meshgrid, as a list."""
    return list(_finish(np.meshgrid(*arrays, indexing=indexing)))


def diff(
    x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None
) -> Array:
    """numpy.diff."""
    ends = {"prepend": prepend, "append": append}
    given = {name: value for name, value in ends.items() if value is not None}
    return _finish(np.diff(x, n, axis, **given))


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """numpy.sort. NaN comes last, or first if descending."""
    result = _finish(np.sort(x, axis=axis, stable=stable))
    return np.flip(result, axis=axis) if descending else result


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """numpy.argsort. With stable=True equal elements keep their order, also if descending."""
    if not descending:
        return _finish(np.argsort(x, axis=axis, stable=stable))
    backwards = np.argsort(np.flip(x, axis=axis), axis=axis, stable=stable)
    return _finish(x.shape[axis] - 1 - np.flip(backwards, axis=axis))


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: str | None = None) -> Array:
    """x.astype(dtype), on another device if one is given."""
    result = x.astype(dtype, copy=copy)
    return result if device in (None, result.device) else result.to_device(device)


def unique_values(x: Any, /) -> Array:
    """numpy.unique, in ascending order, without merging NaN. (The standard and numpy.unique_values
    leave the order open, but libraries rely on it.)"""
    return _finish(np.unique(x, equal_nan=False))
