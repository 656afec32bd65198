"""Finds out which results of NumPy's functions are views of Arrays in a device's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optree

from rune_jit.arrays.array import Array
from rune_jit.arrays.views import View, note_view
from rune_jit.rules.table import VIEWS_OF_ANY_LAYOUT
from rune_jit.tracing.storage import reshaped_view


def note_views(function: Callable[..., Any], args: Any, kwargs: Any, result: Any) -> None:
    """Makes the Arrays in a function's result views of the Arrays among its arguments, where NumPy
    returns views. `function` is one of VIEWS_BY_LAYOUT."""
    both: Any = (args, kwargs)
    leaves, tree = optree.tree_flatten(both, none_is_leaf=True)
    by_layout = VIEWS_BY_LAYOUT[function]
    laid_out = [x._laid_out() if isinstance(x, Array) else x for x in leaves]

    def found(position: int, array: np.ndarray) -> list[Any]:
        given = [*laid_out[:position], array, *laid_out[position + 1 :]]
        both: Any = optree.tree_unflatten(tree, given)
        args, kwargs = both
        return optree.tree_leaves(by_layout(*args, **kwargs), none_is_leaf=True)

    def select(position: int, number: int) -> View:
        return lambda array: found(position, array)[number]

    for position, array in enumerate(laid_out):
        if not isinstance(leaves[position], Array):
            continue
        try:
            arrays = found(position, array)
        except (ValueError, AttributeError):  # NumPy copies
            return
        for number, own in enumerate(optree.tree_leaves(result, none_is_leaf=True)):
            if own is not leaves[position] and np.may_share_memory(arrays[number], array):
                note_view(leaves[position], own, select(position, number))


def _reshape(a: Any, /, shape: Any, order: Any = "C", *, copy: Any = None) -> np.ndarray:
    """numpy.reshape. Raises ValueError or AttributeError if the result would be a copy."""
    if copy:
        raise ValueError("a copy is asked for")
    return reshaped_view(a, shape) if order == "C" else np.reshape(a, shape, order, copy=False)


def _ravel(a: Any, order: Any = "C") -> np.ndarray:
    return _reshape(a, -1, order)


def _diag(v: Any, k: Any = 0) -> np.ndarray:
    """numpy.diag. Raises ValueError if the result would be a copy."""
    if v.ndim != 2:
        raise ValueError("it is made")
    return np.diag(v, k)


def _einsum(subscripts: Any, *operands: Any, **options: Any) -> np.ndarray:
    """numpy.einsum. Raises ValueError if the result would be a copy."""
    one = np.zeros((1,) * operands[0].ndim)
    if len(operands) > 1 or not np.may_share_memory(one, np.einsum(subscripts, one, **options)):
        raise ValueError("it is computed")
    return np.einsum(subscripts, *operands, **options)  # type: ignore[no-any-return]


# Functions for which the layout alone decides whether they return views. Each has a function that
# makes the view of an array without reading elements.
VIEWS_BY_LAYOUT = {
    np.reshape: _reshape,
    np.ravel: _ravel,
    np.diag: _diag,
    np.einsum: _einsum,
    **{function: function for function in VIEWS_OF_ANY_LAYOUT},
}
