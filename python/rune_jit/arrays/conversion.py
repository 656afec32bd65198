"""Replaces Arrays by NumPy arrays in containers, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.arrays.array import Array
from rune_jit.arrays.memory import from_numpy, to_host
from rune_jit.containers import leaves_in, replaced
from rune_jit.device import is_dtype


def to_numpy(x: Any) -> Any:
    """x with NumPy arrays in place of Arrays: their memory, or copies of a device's memory."""

    def array(item: Any) -> Any:
        return to_host(item) if isinstance(item, Array) else item

    return replaced(x, array)


def wrap(x: Any, device: str | None) -> Any:
    """NumPy's result with Arrays on a device in place of NumPy's arrays and scalars."""

    def leaf(value: Any) -> Any:
        if isinstance(value, (np.ndarray, np.generic)) and is_dtype(value.dtype):
            return from_numpy(np.asarray(value), device)
        return value

    return replaced(x, leaf)


def holds_array(args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether there are Arrays among the arguments."""
    if not _core.has_made_arrays():  # (It takes long to look at long lists.)
        return False
    return any(isinstance(x, Array) for x in leaves_in((args, kwargs)))


def call_numpy(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Calls function(*args, **kwargs) with NumPy arrays in place of Arrays. Writes to these reach
    the Arrays. NumPy arrays in the result become Arrays on the first Array's device."""
    if not _core.has_made_arrays():
        return function(*args, **kwargs)
    both: Any = (tuple(args), kwargs)
    arrays = {id(x): x for x in leaves_in(both) if isinstance(x, Array)}
    if not arrays:
        return function(*args, **kwargs)
    wholes: dict[int, tuple[Any, np.ndarray]] = {}  # by id of the Views
    values: dict[int, np.ndarray] = {}
    for key, x in arrays.items():
        array = to_host(x)
        if x._views is not None:
            array = wholes.setdefault(id(x._views), (x._views, to_host(x._views)))[1]
            array = x._views.view_of(x)(array)
        values[key] = array[...]  # a new object, which identifies the Array if it is returned
    both = replaced(both, lambda x: values.get(id(x), x))
    device = next(iter(arrays.values())).device
    try:
        result = function(*both[0], **both[1])
    finally:
        for views, whole in wholes.values():
            views.write_whole(whole)
        for key, x in arrays.items():
            if not isinstance(x._memory, np.ndarray) and x._views is None:
                _core.write_array(x, values[key])
    by_value = {id(value): arrays[key] for key, value in values.items()}

    def own(value: Any) -> Any:
        return by_value.get(id(value), value)  # the function returned an argument

    return wrap(replaced(result, own), device)
