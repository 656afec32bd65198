"""The layouts that NumPy would give to the arrays of a call that runs in segments."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit.containers import leaves_in, replaced
from rune_jit.tracing.sizes import with_bounds
from rune_jit.tracing.storage import has_c_order, layout, viewed
from rune_jit.tracing.tracer import Tracer


def laid_out_now(tracer: Tracer) -> np.ndarray | None:
    """An array with the layout that this one has with NumPy, in a trace in segments. Its elements
    must not be read or written. None if the layout is not known."""
    base = base_laid_out_now(tracer)
    return None if base is None else viewed(base, tracer._steps)


def base_laid_out_now(tracer: Tracer) -> np.ndarray | None:
    """Like `laid_out_now`, for the array of which this one is a view."""
    storage = tracer._storage
    known: Any = storage.captured if storage.array is None else storage.array
    if known is not None:
        return known if isinstance(known, np.ndarray) else known._laid_out()
    dtype = tracer.dtype
    for step in reversed(tracer._steps):
        dtype = step.dtype_before(dtype)
    in_c_order = layout(storage.shape, dtype, ())
    shape = tuple(with_bounds(storage.shape))
    if sum(size != 1 for size in shape) < 2:
        return in_c_order
    if storage.laid_out_by is not None:
        results, number = storage.laid_out_by
        for array in results()[number : number + 1]:
            if array.shape == shape and array.dtype == dtype:
                return array  # type: ignore[no-any-return]
        return None
    operands = [laid_out_now(x) for x in storage.order_from]
    laid_out = [x for x in operands if x is not None]
    if not storage.order_known or len(laid_out) < len(operands):
        return None
    if all(map(has_c_order, laid_out)):
        return in_c_order
    if any(x.shape != shape for x in laid_out):  # not an elementwise operation
        if not storage.in_order_of_operands or any(x.ndim != len(shape) for x in laid_out):
            return None
        laid_out = [_stretched(x, shape) for x in laid_out]
    roles: list[Any] = [["readonly"]] * len(laid_out) + [["writeonly", "allocate"]]
    arrays: list[Any] = [*laid_out, None]
    made = np.nditer(arrays, ["zerosize_ok"], roles, [x.dtype for x in laid_out] + [dtype])
    return made.operands[-1]


def laid_out_as_numpys(tracer: Tracer, memory: np.ndarray) -> np.ndarray:
    """An array of the elements of `memory`, with the layout that NumPy would give to the array of
    which `tracer` is a view."""
    lies = None if memory.ndim < 2 else base_laid_out_now(tracer)
    if lies is None or lies.flags.c_contiguous or lies.shape != memory.shape:
        return memory
    made = np.empty_like(lies, memory.dtype, subok=False)
    made[...] = memory
    return made


def by_numpy(function: Callable[..., Any], args: Any, kwargs: Any) -> Callable[[], list[Any]]:
    """A function that returns arrays with the layouts of the results of function(*args, **kwargs):
    it calls NumPy's function on zeros that lie as traced arrays among the arguments do now. It
    returns no arrays if that raises, or if such a layout is not known."""
    found = {id(x): laid_out_now(x) for x in leaves_in((args, kwargs)) if type(x) is Tracer}
    is_known = not any(x is None for x in found.values())
    args, kwargs = replaced((args, kwargs), lambda x: found.get(id(x), x))

    @functools.cache
    def results() -> list[Any]:
        ours = {id(x): _zeros(x) for x in found.values() if x is not None}
        given = replaced((args, kwargs), lambda x: ours.get(id(x), x))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(Exception):
                made = leaves_in(function(*given[0], **given[1])) if is_known else []
                return [np.asarray(x) for x in made]
        return []

    return results


def _zeros(like: np.ndarray) -> np.ndarray:
    """Zeros with the layout of an array."""
    low, high = np.lib.array_utils.byte_bounds(like)
    memory = np.zeros(high - low, np.uint8)
    offset = like.__array_interface__["data"][0] - low
    return np.ndarray(like.shape, like.dtype, memory.data, offset, like.strides)


def _stretched(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """An array with the same strides, and with this shape where it has several elements."""
    sizes = [1 if old == 1 else new for old, new in zip(array.shape, shape, strict=True)]
    return np.lib.stride_tricks.as_strided(array, sizes, array.strides)
