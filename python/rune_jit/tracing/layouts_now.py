"""The layouts that NumPy would give to the arrays of a call."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rune_jit.containers import leaves_in, replaced
from rune_jit.tracing.sizes import with_bounds
from rune_jit.tracing.storage import Storage, has_c_order, layout, viewed
from rune_jit.tracing.tracer import Tracer

_Layouts = dict[Storage, np.ndarray | None]


def laid_out_now(tracer: Tracer, known: _Layouts | None = None) -> np.ndarray | None:
    """An array with the layout that this one has with NumPy. Its elements must not be read or
    written. None if the layout is not known. (In one program, the axes of arguments count, and not
    their strides.)"""
    base = base_laid_out_now(tracer, known)
    try:
        return None if base is None else viewed(base, tracer._steps)
    except (ValueError, AttributeError):  # a reshape that copies
        return None


def base_laid_out_now(tracer: Tracer, known: _Layouts | None = None) -> np.ndarray | None:
    """Like `laid_out_now`, for the array of which this one is a view."""
    if known is None:  # (In segments layouts change.)
        known = {} if tracer._trace.is_segmented else tracer._trace.layouts
    open_ = [(tracer, False)]
    while open_:
        x, has_operands = open_.pop()
        if has_operands:
            known[x._storage] = _base_laid_out(x, known)
        elif x._storage not in known:
            known[x._storage] = None  # (until then, for arrays of a loop that decide each other)
            open_.append((x, True))
            if not _has_own_layout(x._storage):
                open_ += [(operand, False) for operand in x._storage.order_from]
    return known[tracer._storage]


def _has_own_layout(storage: Storage) -> bool:
    return storage.is_outside or storage.array is not None or storage.laid_out_by is not None


def _base_laid_out(tracer: Tracer, known: _Layouts) -> np.ndarray | None:
    """Like `base_laid_out_now`, if the layouts of the arrays that decide are known."""
    storage, trace = tracer._storage, tracer._trace
    memory: Any = storage.captured if storage.array is None else storage.array
    if memory is not None:
        return memory if isinstance(memory, np.ndarray) else memory._laid_out()
    dtype = tracer.dtype
    for step in reversed(tracer._steps):
        dtype = step.dtype_before(dtype)
    shape = tuple(with_bounds(storage.shape))
    in_c_order = _in_c_order(shape, dtype)
    if sum(size != 1 for size in shape) < 2 or (storage.reshaped and not trace.is_segmented):
        return in_c_order  # (The trace has taken a reshaped array to be in C order.)
    if storage.leaf is not None:
        axes, has_gaps = trace.orders.get(storage.leaf, (range(len(shape)), False))
        return _with_axes(axes, shape, dtype, has_gaps)
    if storage.laid_out_by is not None:
        results, number = storage.laid_out_by
        for array in results()[number : number + 1]:
            if array.shape == shape and array.dtype == dtype:
                return array  # type: ignore[no-any-return]
        return None
    operands = [laid_out_now(x, known) for x in storage.order_from]
    laid_out = [x for x in operands if x is not None]
    if not storage.order_known or len(laid_out) < len(operands):
        return None
    if all(map(has_c_order, laid_out)) or 0 in shape:
        return in_c_order
    if any(x.shape != shape for x in laid_out) and not storage.in_order_of_operands:
        return None  # not an elementwise operation
    # What decides is which of the strides are larger, so that NumPy is asked about small arrays.
    small = [2 if size > 1 else 1 for size in shape]
    arrays: list[Any] = [*(_stretched(x, small) for x in laid_out), None]
    roles: list[Any] = [["readonly"]] * len(laid_out) + [["writeonly", "allocate"]]
    dtypes = [x.dtype for x in laid_out] + [dtype]
    made = np.nditer(arrays, [], roles, dtypes, itershape=small).operands[-1]
    return _with_axes(axes_in_memory(made) or range(len(shape)), shape, dtype)


@functools.lru_cache(maxsize=256)
def _in_c_order(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    return layout(shape, dtype, ())


def _with_axes(
    axes: Sequence[int], shape: tuple[int, ...], dtype: np.dtype[Any], has_gaps: bool = False
) -> np.ndarray:
    """An array with these axes in memory."""
    sizes = tuple(shape[axis] for axis in axes)
    whole = layout((*sizes, 2), dtype, ())[..., 0] if has_gaps else layout(sizes, dtype, ())
    return whole.transpose(np.argsort(axes))


def is_fortran(x: Tracer) -> bool:
    """Whether an array of one program surely is Fortran-contiguous, and not C-contiguous."""
    lies = _in_program(x)
    return lies is not None and lies.flags.fnc


def lies_in_c_order(x: Tracer) -> bool:
    """Whether an array of one program counts as one in C order."""
    lies = _in_program(x)
    return lies is not None and lies.flags.c_contiguous


def axes_of(x: Tracer) -> tuple[int, ...] | None:
    """The axes in memory of an array of one program. None if it counts as one in C order."""
    lies = _in_program(x)
    return None if lies is None else axes_in_memory(lies)


def _in_program(x: Tracer) -> np.ndarray | None:
    is_fixed = all(isinstance(n, int) for n in (*x._shape, *x._storage.shape))
    return laid_out_now(x) if is_fixed else None


def axes_in_memory(array: np.ndarray) -> tuple[int, ...] | None:
    """The axes of an array, from the largest stride to the smallest one, after those of size 1.
    None if this is C order, or if elements have one place in memory. (ArrayHeader::order of
    bindings.h finds the same.)"""
    if array.flags.c_contiguous:
        return None
    sides = [axis for axis, size in enumerate(array.shape) if size != 1]
    strides = [abs(array.strides[axis]) for axis in sides]
    ordered = sorted(sides, key=lambda axis: -abs(array.strides[axis]))
    if ordered == sides or 0 in strides:
        return None
    return (*(axis for axis, size in enumerate(array.shape) if size == 1), *ordered)


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
    it calls NumPy's function on zeros that lie as traced arrays among the arguments do now, and on
    identity matrices if that raises. It returns no arrays if both raise, or if such a layout is not
    known."""
    found = {id(x): laid_out_now(x) for x in leaves_in((args, kwargs)) if type(x) is Tracer}
    is_known = not any(x is None for x in found.values())
    args, kwargs = replaced((args, kwargs), lambda x: found.get(id(x), x))

    @functools.cache
    def results() -> list[Any]:
        for is_regular in (False, True) if is_known else ():
            ours = {id(x): _made_up(x, is_regular) for x in found.values() if x is not None}
            given = replaced((args, kwargs), functools.partial(_taken_from, ours))
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with contextlib.suppress(Exception):
                    return [np.asarray(x) for x in leaves_in(function(*given[0], **given[1]))]
        return []

    return results


def _taken_from(known: dict[int, Any], x: Any) -> Any:
    return known.get(id(x), x)


def _made_up(like: np.ndarray, is_regular: bool) -> np.ndarray:
    """Zeros, or identity matrices, with the layout of an array."""
    low, high = np.lib.array_utils.byte_bounds(like)
    memory = np.zeros(high - low, np.uint8)
    offset = like.__array_interface__["data"][0] - low
    made = np.ndarray(like.shape, like.dtype, memory.data, offset, like.strides)
    if is_regular:
        made[...] = np.eye(*like.shape[-2:]) if like.ndim > 1 else 1
    return made


def _stretched(array: np.ndarray, shape: list[int]) -> np.ndarray:
    """An array with the same strides of its axes, which are the last ones of `shape`."""
    strides = [0 if size == 1 else n for n, size in zip(array.strides, array.shape, strict=True)]
    strides = [0] * (len(shape) - array.ndim) + strides
    return np.lib.stride_tricks.as_strided(array, shape, strides)
