"""x[index] of traced arrays: views, elements, and copies by arrays of indices."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from rune_jit import numpy_dispatch as _dispatch
from rune_jit import selection as _selection
from rune_jit import writes as _writes
from rune_jit.errors import DataDependentShapeError, UnsupportedOpError
from rune_jit.storage import Step
from rune_jit.trace import Trace, contains_traced, contains_tracer, require_trace
from rune_jit.tracer import Tracer


def index_items(trace: Trace, x: Tracer, items: tuple[Any, ...]) -> list[Any]:
    """What the builder takes for an index expression. A mask that is known while tracing is the
    arrays of indices where it is true."""
    parts: list[Any] = []
    consumed = sum(
        np.ndim(item) if _writes.is_mask(item) else item is not None and item is not Ellipsis
        for item in items
    )
    axis = 0
    for item in items:
        if _writes.is_mask(item) and np.ndim(item) and not contains_traced(item):
            mask = np.array(_dispatch.plain(item))
            _writes.check_mask(mask.shape, x.shape, axis)
            parts += [trace.constant(at) for at in np.nonzero(mask)]
            axis += mask.ndim
        else:
            (part,) = _index_item(trace, item)
            parts.append(part)
            axis += x.ndim - consumed if item is Ellipsis else item is not None
    return parts


def _index_item(trace: Trace, item: Any) -> list[Any]:
    """What the builder takes for one item of an index expression."""
    if item is None or item is Ellipsis:
        return [item]
    if isinstance(item, slice):
        bounds = (
            None if b is None else _dispatch.as_index(b) for b in (item.start, item.stop, item.step)
        )
        # Slices end where arrays do, however far they reach.
        most = np.iinfo(np.int64).max
        return [slice(*(None if b is None else max(-most, min(b, most)) for b in bounds))]
    if isinstance(item, (bool, np.bool_)):
        raise UnsupportedOpError("getitem: cannot trace a bool index")
    if isinstance(item, numbers.Integral):
        if not -(2**63) <= item < 2**63:  # type: ignore[operator]
            raise IndexError("cannot fit 'int' into an index-sized integer")
        return [int(item)]
    if isinstance(item, list) and contains_tracer(item):
        return [trace.array(item)]
    if isinstance(item, (list, range, np.ndarray)) and not contains_tracer(item):
        made = not isinstance(item, np.ndarray)
        item = np.asarray(item)
        if item.size == 0 and item.dtype == np.float64:
            item = item.astype(np.intp)  # an empty list
        if made and item.ndim and item.dtype.kind in "iu":
            return [trace.constant(item)]
    if isinstance(item, Tracer) and item._storage.array is not None:
        item = _dispatch.plain(item).copy()
        if item.ndim and item.dtype.kind in "iu":
            return [trace.constant(item)]
    if isinstance(item, (Tracer, np.ndarray)):
        if item.dtype == bool:
            raise DataDependentShapeError(
                "getitem: cannot trace an index of bool (the result's shape depends on data)\n"
                "hint: write np.where(mask, x, 0)"
            )
        if isinstance(item, np.ndarray) and item.ndim == 0 and item.dtype.kind in "iu":
            return [int(item)]
        return [trace.array(item)]
    if hasattr(item, "__index__"):
        return [_dispatch.as_index(item)]
    raise UnsupportedOpError(f"getitem: cannot trace an index of {type(item).__name__}")


def basic_view(trace: Trace, x: Tracer, items: tuple[Any, ...]) -> Tracer | None:
    """x[items] as a view if the items are slices and integers, some of which may be traced; None if
    there are arrays among them."""
    known_items: list[Any] = []
    elements: list[tuple[int, Any]] = []  # axes of the result that traced integers remove
    consumed = sum(item is not None and item is not Ellipsis for item in items)
    axis = 0
    for item in items:
        if isinstance(item, Tracer) and item.ndim == 0 and item.dtype.kind in "iu":
            if item._storage.array is None and not item._storage.scalar:
                return None
            if item._storage.array is None:
                elements.append((axis, trace.operand(item)))
                known_items.append(slice(None))
                axis += 1
                continue
        if _writes.is_mask(item):
            return None
        (part,) = _index_item(trace, item)
        if not (part is None or part is Ellipsis or isinstance(part, (int, slice))):
            return None
        known_items.append(part)
        if part is Ellipsis:
            axis += x.ndim - consumed
        elif not isinstance(part, int):
            axis += 1
    if elements and x._storage.array is not None:
        x._storage.write(trace, (), x._storage.current(trace))  # from now on traced
    view = _dispatch.make_view(
        "index", known_items, x, lambda t: t.builder.index(t.operand(x), known_items)
    )
    for along, at in reversed(elements):
        step = Step("element", (along, at))
        now = step.of(trace.builder, view._value_in(trace))
        view = view._view(step, tuple(now.shape), now)
    return view


def items_of(index: Any) -> tuple[Any, ...]:
    """The items of an index expression; lists of bools are masks."""
    items = index if isinstance(index, tuple) else (index,)

    def item(x: Any) -> Any:
        if not isinstance(x, list) or contains_tracer(x):
            return x
        array = np.asarray(x)
        return array if array.dtype == bool else x

    return tuple(map(item, items))


def getitem(x: Tracer, index: Any) -> Any:
    """x[index]."""
    if x._is_left_over():
        return _dispatch.plain(x)[_dispatch.plain(index)]
    trace = require_trace()
    items = items_of(index)
    if len(items) == 1 and _writes.is_mask(items[0]) and contains_traced(items[0]):
        return _selection.select(trace, x, items[0])
    array = x._array()
    if array is not None and not contains_traced(index):
        result = array[_dispatch.plain(index)]
        if not isinstance(result, np.ndarray):
            return result
        if not np.may_share_memory(result, array):
            return _dispatch.known(result)
    view = basic_view(trace, x, items)
    if view is not None:
        if view.ndim or any(item is Ellipsis for item in items):
            return view
        return _dispatch.make_tracer(trace, view._value_in(trace))  # an element: a scalar
    if any(_writes.is_mask(item) and contains_traced(item) for item in items):
        masked = _selection.masked_view(trace, x, items)
        if masked is not None and masked[2]:
            return _selection.select(trace, masked[0], masked[1])
    parts = index_items(trace, x, items)
    result = _dispatch.make_tracer(trace, trace.builder.index(trace.operand(x), parts))
    # Index arrays behind slices: NumPy lays their axes out before the slices'.
    selects = [not isinstance(part, slice) for part in parts]
    result._storage.order_known = selects == sorted(selects, reverse=True)
    return _dispatch.laid_out_as(result, (x,))
