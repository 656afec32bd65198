"""Converts the items of an index expression for the builder."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from rune_jit.errors import DataDependentShapeError, UnsupportedOpError
from rune_jit.rules.coercions import as_index, view_in
from rune_jit.rules.indexing.in_loops import bound_items
from rune_jit.rules.known import plain
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.sizes import Size, mismatch, same_size
from rune_jit.tracing.storage import Step
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, contains_traced, contains_tracer


def items_of(index: Any) -> tuple[Any, ...]:
    """The items of an index expression. A tuple among them is a list of positions. Lists of bools
    are masks."""
    items = index if issubclass(type(index), tuple) else (index,)

    def item(x: Any) -> Any:
        x = list(x) if issubclass(type(x), tuple) else x
        if not isinstance(x, list) or contains_tracer(x):
            return x
        if any(type(i) is Size for i in x):
            return [require_trace().traced(i) if type(i) is Size else i for i in x]
        array = np.asarray(x)
        return array if array.dtype == bool else x

    return tuple(map(item, items)) if any(isinstance(x, (list, tuple)) for x in items) else items


def index_items(trace: Trace, x: Tracer, items: tuple[Any, ...]) -> list[Any]:
    """The items of an index expression for the builder. A mask that is known while tracing becomes
    arrays of the positions where it is True."""
    parts: list[Any] = []
    consumed = sum(
        np.ndim(item) if is_mask(item) else item is not None and item is not Ellipsis
        for item in items
    )
    axis = 0
    for item in items:
        if is_mask(item) and np.ndim(item) and not contains_traced(item):
            mask = np.array(plain(item))
            check_mask(mask.shape, x.shape, axis)
            parts += [trace.constant(at) for at in np.nonzero(mask)]
            axis += mask.ndim
        else:
            part = _index_item(trace, item)
            parts.append(part)
            axis += x.ndim - consumed if item is Ellipsis else item is not None
    if trace.is_segmented and not contains_traced(items):
        _check_positions(x, items)
    return parts


# Larger arrays of positions are checked only by the program.
_MOST_CHECKED = 10_000


def _check_positions(x: Tracer, items: tuple[Any, ...]) -> None:
    """Raises NumPy's IndexError for known positions that are out of bounds. (In segments, other
    code would run before the program checks them.)"""
    least = min(x.shape, default=0)
    for item in items:
        if isinstance(item, (list, range, Tracer, np.ndarray)):
            at = np.asarray(plain(item))
            if at.dtype.kind not in "iu" or not 0 < at.size <= _MOST_CHECKED:
                continue
            if at.min() < -least or at.max() >= least:
                # An array of this shape that takes one byte.
                np.broadcast_to(np.zeros((), np.bool_), x.shape)[plain(items)]
                return


def _slice(given: slice) -> slice:
    """A slice for the builder, whose bounds are None, ints and Sizes."""
    bounds = given.start, given.stop, given.step
    if _PLAIN_BOUNDS.issuperset(map(type, bounds)):
        return given
    return slice(*(b if type(b) in _PLAIN_BOUNDS else as_index(b) for b in bounds))


_PLAIN_BOUNDS = frozenset((type(None), int, Size))


def _index_item(trace: Trace, item: Any) -> Any:
    """Converts one item of an index expression for the builder."""
    if item is None or item is Ellipsis or type(item) is Size:
        return item
    if isinstance(item, slice):
        return _slice(item)
    kind = type(item)  # isinstance would not tell traced numbers from known ones
    if kind is int and -(2**63) <= item < 2**63:
        return item
    if issubclass(kind, (bool, np.bool_)):
        raise UnsupportedOpError("getitem: cannot trace a bool index")
    if issubclass(kind, numbers.Integral):
        if not -(2**63) <= item < 2**63:
            raise IndexError("cannot fit 'int' into an index-sized integer")
        return int(item)
    if isinstance(item, list) and contains_tracer(item):
        return trace.array(item)
    if isinstance(item, (list, range, np.ndarray)) and not contains_tracer(item):
        made = not isinstance(item, np.ndarray)
        item = np.asarray(item)
        if item.size == 0 and item.dtype == np.float64:
            item = item.astype(np.intp)  # an empty list
        if made and item.ndim and item.dtype.kind in "iu":
            return trace.constant(item)
    if isinstance(item, Tracer) and item._storage.array is not None:
        item = plain(item).copy()
        if item.ndim and item.dtype.kind in "iu":
            return trace.constant(item)
    if isinstance(item, (Tracer, np.ndarray)):
        if type(item) is Tracer and item._storage.scalar and item.dtype.kind in "fc":
            raise IndexError(_NO_INDEX)
        if item.dtype == bool:
            raise DataDependentShapeError(
                "getitem: cannot trace an index of bool (the result's shape depends on data)\n"
                "hint: write np.where(mask, x, 0)"
            )
        if isinstance(item, np.ndarray) and item.ndim == 0 and item.dtype.kind in "iu":
            return int(item)
        return trace.array(item)
    if hasattr(item, "__index__"):
        return as_index(item)
    raise UnsupportedOpError(f"getitem: cannot trace an index of {type(item).__name__}")


def basic_view(
    trace: Trace, x: Tracer, items: tuple[Any, ...], is_read: bool = True
) -> Tracer | None:
    """x[items] as a view, if the items are slices and integers, which may be traced. None if there
    are arrays among them. `is_read` is that of view_in."""
    known_items: list[Any] = []
    # For each traced integer: the axis that it removes, of the view and of x, and the integer.
    elements: list[tuple[int, int, Any]] = []
    untraced: list[Any] = []  # the items that are known
    axis = of_x = 0
    if trace.loops is not None and trace.loops.open:
        x, items = bound_items(trace, trace.loops, x, items)
    has_positions = trace.is_segmented and x._storage.array is None
    for item in items:
        part: Any
        if type(item) is slice:
            part = _slice(item)
            untraced.append(part)
            known_items.append(part)
            axis, of_x = axis + 1, of_x + 1
            continue
        if type(item) is Tracer and item.ndim == 0 and item.dtype.kind in "iu":
            if item._storage.array is None and not item._storage.scalar:
                return None
            if trace.is_segmented and x._storage.array is not None:
                item = int(trace.value_of(item))  # (NumPy reads the array)
            elif item._storage.array is None:
                elements.append((axis, of_x, trace.operand(item)))
                known_items.append(slice(None))
                axis, of_x = axis + 1, of_x + 1
                continue
        if type(item) not in NO_MASKS and is_mask(item):
            return None
        part = _index_item(trace, item)
        if not (part is None or part is Ellipsis or isinstance(part, (int, slice, Size))):
            return None
        untraced.append(part)
        if has_positions and type(part) is int and of_x < x.ndim:
            at = trace.position(part, of_x, x.shape[of_x])
            if at is not None:
                elements.append((axis, of_x, at))
                known_items.append(slice(None))
                axis, of_x = axis + 1, of_x + 1
                continue
        known_items.append(part)
        if part is Ellipsis:
            spanned = x.ndim - sum(item is not None and item is not Ellipsis for item in items)
            axis, of_x = axis + spanned, of_x + spanned
            continue
        axis += not isinstance(part, (int, Size))
        of_x += part is not None
    if x._storage.array is not None and contains_traced(known_items):
        x._storage.embed(trace)
    if elements and x._storage.array is not None:
        x._storage.write(trace, (), x._storage.current(trace))  # from now on traced
    part = None
    if is_read and elements and len(untraced) == len(items):
        part = trace.part_in_memory(Step("index", untraced), x._value_in(trace))
    view = view_in(trace, Step("index", known_items), x, is_read and part is None)
    if part is not None:
        for count, (axis, _, at) in enumerate(elements):
            along = axis - count
            shape = (*view.shape[:along], *view.shape[along + 1 :])
            view = view._view(Step("element", (along, at)), shape)
        view._value, view._version = part, view._storage.version
        return view
    for count, (axis, reported, at) in enumerate(elements):
        along = axis - count
        now = trace.builder.take(view._value_in(trace), at, along, reported)
        view = view._view(Step("element", (along, at)), tuple(now.shape), now)
    return view


# NumPy's text for a number that is no integer.
_NO_INDEX = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean"
    " arrays are valid indices"
)
# Types of items that are not masks.
NO_MASKS = frozenset((int, slice, type(None), type(Ellipsis)))


def is_mask(item: Any) -> bool:
    """Whether an item of an index is a mask (an array of bools)."""
    if type(item) is Tracer or isinstance(item, np.ndarray):
        return item.dtype == bool
    return False


def check_mask(mask: tuple[int, ...], shape: tuple[int, ...], axis: int = 0) -> None:
    """Raises NumPy's IndexError unless a mask of this shape fits an array's axes from `axis` on."""
    if axis + len(mask) > len(shape):
        raise IndexError(
            f"too many indices for array: array is {len(shape)}-dimensional, but"
            f" {axis + len(mask)} were indexed"
        )
    for i, (have, want) in enumerate(zip(mask, shape[axis:], strict=False)):
        if not same_size(have, want):
            raise mismatch(
                f"boolean index did not match indexed array along axis {axis + i}; size of axis is"
                f" {want} but size of corresponding boolean axis is {have}",
                [have, want],
                error=IndexError,
            )


def aligned_mask(trace: Trace, x: Tracer, mask: Any) -> Any:
    """A mask over the first axes of x, as a value that broadcasts against x."""
    shape = tuple(mask.shape)
    check_mask(shape, x.shape)
    value = trace.operand(mask)
    return trace.builder.reshape(value, [*shape, *([1] * (x.ndim - len(shape)))])
