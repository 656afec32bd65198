"""x[index] of traced arrays: views, single elements, and copies by arrays of positions."""

from __future__ import annotations

import operator as op
from typing import Any

import numpy as np

from rune_jit.errors import UnsupportedOpError
from rune_jit.rules.coercions import laid_out_as, may_ask
from rune_jit.rules.indexing.items import (
    NO_MASKS,
    basic_view,
    index_items,
    is_mask,
    items_of,
)
from rune_jit.rules.indexing.selection import (
    Selection,
    masked_view,
    select,
    with_masks,
    with_settled,
)
from rune_jit.rules.indexing.write import scatter, write_where
from rune_jit.rules.known import known, plain
from rune_jit.rules.writes import check_writeable, converted
from rune_jit.tracing.context import current_trace, require_trace
from rune_jit.tracing.frames import is_shuffling, user_frame
from rune_jit.tracing.layouts_now import by_numpy
from rune_jit.tracing.sizes import Size, check_fits
from rune_jit.tracing.storage import Step, same_steps
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, contains_traced, is_number


def getitem(x: Tracer, index: Any) -> Any:
    """x[index]."""
    if type(index) is int and len(x._shape) > 1 and is_shuffling(user_frame()):
        return _getitem(x, index).copy()  # shuffle swaps rows, and expects copies of them
    try:
        return _getitem(x, index)
    except IndexError:
        if x._storage.scalar:
            raise IndexError("invalid index to scalar variable.") from None
        raise


def _getitem(x: Tracer, index: Any) -> Any:
    is_known = x._storage.array is not None
    if is_known and current_trace() is None:
        return plain(x)[plain(index)]
    trace = require_trace()
    index = with_settled(index) if trace.is_segmented else with_masks(x, index)
    items = items_of(index)
    if (
        len(items) == 1
        and type(items[0]) not in NO_MASKS
        and is_mask(items[0])
        and contains_traced(items[0])
    ):
        return select(trace, x, items[0])
    if is_known and not contains_traced(index):
        trace.note_steps()
        array = plain(x)
        result = array[plain(index)]
        if not isinstance(result, np.ndarray):
            return result
        if trace.gave_up or not np.may_share_memory(result, array):
            return known(result)
    view = basic_view(trace, x, items)
    if view is not None:
        if view._shape or any(item is Ellipsis for item in items):
            return view
        return Tracer(trace, view._value_in(trace))  # an element: a scalar
    if any(is_mask(item) and contains_traced(item) for item in items):
        masked = masked_view(trace, x, items)
        if masked is not None and masked[2]:
            return select(trace, masked[0], masked[1])
    parts = index_items(trace, x, items)
    result = Tracer(trace, trace.builder.index(trace.operand(x), parts))
    # If index arrays follow slices, their axes come first in NumPy's memory.
    selects = [not isinstance(part, slice) and part is not Ellipsis for part in parts]
    result._storage.order_known = selects == sorted(selects, reverse=True)
    selected = sum(is_array for is_array in selects) - parts.count(None)
    if len(x._shape) - selected > 1:
        laid_out_as(result, (x,))
    result._storage.in_order_of_operands = False  # it depends on index arrays, too
    is_other = bool(result._storage.order_from) or not result._storage.order_known
    if is_other and len(result._shape) > 1 and may_ask([x], result):
        result._storage.laid_out_by = by_numpy(op.getitem, (x, items), {}), 0
    return result


def setitem(x: Tracer, index: Any, value: Any) -> None:
    """x[index] = value."""
    if type(value) is Size:
        if not (x._trace.may_guess and x._trace.is_in_loop):  # the program checks it there
            check_fits(value, x.dtype)
        value = require_trace().traced(value)
    elif (
        type(value) is Tracer
        and is_number(value, "int")
        and x.dtype.itemsize < 8
        and x._trace.loops is not None
        and not x._trace.may_guess
    ):
        x._trace.loops.refuse("it writes a Python integer of unknown size")
    is_known = x._storage.array is not None
    if is_known and current_trace() is None:
        plain(x)[plain(index)] = plain(value)
        return
    trace = require_trace()
    x._check_trace(trace)
    index = with_settled(index) if trace.is_segmented else with_masks(x, index)
    if not x._writeable or x._storage.scalar:
        check_writeable(x)
    if is_known and trace.loops is not None:
        trace.loops.before_known_write(trace, x._storage)
        is_known = x._storage.array is not None
    is_selection = type(value) is Selection
    if is_known and not (is_selection or contains_traced(index) or contains_traced(value)):
        trace.note_steps()
        plain(x)[plain(index)] = plain(value)
        x._storage.touched()
        return
    items = items_of(index)
    masks = [] if NO_MASKS.issuperset(map(type, items)) else list(filter(is_mask, items))
    if masks and (is_selection or contains_traced(masks)):
        _set_masked(trace, x, items, value)
        return
    if is_selection:
        raise value.refusal("setitem")
    of_same_array = type(value) is Tracer and value._storage is x._storage
    if of_same_array and same_steps(value._steps, (*x._steps, Step("index", items))):
        return  # the end of x[index] += ..., which has written to the view
    view = basic_view(trace, x, items, is_read=False)
    if view is None:
        scatter(trace, x, items, value)
        return
    if of_same_array and same_steps(value._steps, view._steps):
        return
    if not view._shape and not any(item is Ellipsis for item in items):
        _check_element(view.dtype, value)
    new = converted(trace, value, view._shape, view._dtype)
    view._storage.write(trace, view._steps, new)


def _check_element(dtype: np.dtype[Any], value: Any) -> None:
    """Raises NumPy's error for an array that is assigned to one element. Since NumPy 2.4, arrays of
    one element are refused, too, except those of bools."""
    shape = np.shape(value)
    if shape and not any(isinstance(n, Size) for n in shape):
        np.zeros(1, dtype)[0] = np.ones(shape, getattr(value, "dtype", dtype))


def _set_masked(trace: Trace, x: Tracer, items: tuple[Any, ...], value: Any) -> None:
    """x[items] = value, with a mask among the items."""
    if len(items) == 1:
        write_where(trace, x, items[0], value)
        return
    view = masked_view(trace, x, items)
    if view is None:
        raise UnsupportedOpError(
            "setitem: cannot trace a write at a mask and arrays of indices together\n"
            "hint: write np.where(mask, new, x)"
        )
    target, mask, leads = view
    if not leads and np.ndim(value) > 0:
        raise UnsupportedOpError(
            "setitem: cannot trace a write of an array at a mask that is not the first index\n"
            "hint: write np.where(mask, new, x)"
        )
    write_where(trace, target, mask, value)
