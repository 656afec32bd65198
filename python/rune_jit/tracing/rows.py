"""Arrays and numbers that are rows of one array. A loop of the program that appends to a list makes
such an array, with a row for each iteration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rune_jit.tracing.sizes import Size
from rune_jit.tracing.storage import Step, Storage, same_steps
from rune_jit.tracing.tracer import Tracer

if TYPE_CHECKING:
    from rune_jit.tracing.trace import Trace


class Origin(NamedTuple):
    """The view that a row is in NumPy, if its memory is older than the loop."""

    like: Tracer  # the view in the loop's body
    counter: Size
    number: Any  # the counter's value in the row's iteration; it may contain outer counters
    loop: int


class RowStorage(Storage):
    """The memory of a row. Its value is computed when it is first read."""

    __slots__ = ("origin", "position", "rows")

    def __init__(self, rows: Any, position: tuple[int, ...], origin: Origin | None) -> None:
        super().__init__()
        self.rows, self.position, self.origin = rows, position, origin

    def current(self, trace: Trace) -> Any:
        if self.value is None:
            self.value = trace.builder.index(self.rows, list(self.position))
        return self.value

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.rows.shape[len(self.position) :])


def row(
    trace: Trace, rows: Any, position: tuple[int, ...], like: Tracer, origin: Origin | None = None
) -> Tracer:
    """The row rows[position] of a value, as an array or number of the same kind as `like`."""
    made = Tracer.__new__(Tracer)
    storage = RowStorage(rows, position, origin)
    made._init(trace, storage, (), storage.shape, rows.dtype)
    storage.scalar = like._storage.scalar
    weak = like._value_in(trace).weak
    if weak is not None:
        made._value = trace.builder.python_number(storage.current(trace), weak == "int")
        storage.value, made._version = made._value, storage.version
    return made


def origin_of(x: Any) -> Origin | None:
    """The origin of an array, if it is a row with an origin."""
    return x._storage.origin if type(x) is Tracer and type(x._storage) is RowStorage else None


def storage_viewed(x: Tracer) -> Storage:
    """The memory that an array has in NumPy. For a row with an origin, this is the origin's."""
    origin = origin_of(x)
    return x._storage if origin is None else storage_viewed(origin.like)


def viewed(x: Tracer) -> Tracer:
    """The view that an array is in NumPy. For a row with an origin, this is the view in the loop's
    body, with the counter replaced by its value in the row's iteration."""
    origin = origin_of(x)
    if origin is None:
        return x
    like, counter, number, _ = origin
    inner = viewed(like)

    def at(item: Any) -> Any:
        if type(item) is Size:
            times = item.coefficients.get(counter.names[0], 0)
            return item + (number - counter) * times
        if type(item) is slice:
            return slice(at(item.start), at(item.stop), item.step)
        return type(item)(map(at, item)) if type(item) in (tuple, list) else item

    made = Tracer.__new__(Tracer)
    steps = (*(Step(step.kind, at(step.argument)) for step in inner._steps), *x._steps)
    made._init(x._trace, inner._storage, steps, x._shape, x._dtype)
    made._writeable = inner._writeable and x._writeable
    return made


def part(
    whole: Tracer, steps: tuple[Step, ...], like: Tracer, into: Tracer | None = None
) -> Tracer:
    """The view of an array through `steps`, with the shape of `like`. `into` is an array that
    becomes this view."""
    made = Tracer.__new__(Tracer) if into is None else into
    made._init(whole._trace, whole._storage, (*whole._steps, *steps), like._shape, like._dtype)
    made._writeable = like._writeable
    return made


def steps_within(whole: Tracer, x: Tracer) -> tuple[Step, ...] | None:
    """The steps from an array to a part of it. None if x is no such part."""
    count = len(whole._steps)
    is_part = x._storage is whole._storage and same_steps(whole._steps, x._steps[:count])
    return x._steps[count:] if is_part else None


class Run(NamedTuple):
    """Consecutive rows of one value. Each item is a traced array or number, or a list of the items
    that the row consists of."""

    items: list[Any]
    rows: Any
    position: tuple[int, ...]  # of the first row

    def value(self, trace: Trace) -> Any:
        """The value of the rows."""
        *outer, start = self.position
        if not outer and self.is_complete:
            return self.rows
        return trace.builder.index(self.rows, [*outer, slice(start, start + len(self.items))])

    def stacked(self, trace: Trace, axis: int) -> Any:
        """The rows, stacked along a new axis."""
        value = self.value(trace)
        order = list(range(1, value.ndim))
        order.insert(axis % value.ndim, 0)
        return trace.builder.transpose(value, order)

    def concatenated(self, trace: Trace, axis: int) -> Any:
        """The rows, joined along one of their axes."""
        ndim = self.rows.ndim - len(self.position)
        value = self.stacked(trace, axis % ndim)
        shape = list(value.shape)
        count = shape.pop(axis % ndim)
        shape[axis % ndim] *= count
        return trace.builder.reshape(value, shape)

    @property
    def is_complete(self) -> bool:
        """Whether these are all rows."""
        return bool(len(self.items) == self.rows.shape[len(self.position) - 1])

    def is_before(self, rows: Any, position: tuple[int, ...]) -> bool:
        """Whether rows[position] is the row after the last one."""
        *outer, start = self.position
        return bool(rows is self.rows and position == (*outer, start + len(self.items)))


def runs_of(items: Iterable[Any]) -> list[Any]:
    """The items, with Runs in place of consecutive, unchanged rows of one value."""
    found: list[Any] = []
    run: Run | None = None
    for item in items:
        place = _place(item)
        if place is None:
            run = None
            found.append(item)
        elif run is not None and run.is_before(*place):
            run.items.append(item)
        else:
            run = Run([item], *place)
            found.append(run)
    return found


# From so many rows on, a Run is one result of a program.
_MANY = 8


def pack(trace: Trace, items: list[Any]) -> tuple[list[Any], list[Any]]:
    """The items as results of a program, in which long Runs are arrays. Also returns, for each
    result, how `unpack` makes items of it: "Python's" numbers, "NumPy's" numbers or arrays, or None
    (it is the item)."""
    leaves: list[Any] = []
    hows: list[Any] = []
    for part in runs_of(items):
        if type(part) is not Run:
            leaves.append(part)
            hows.append(None)
        elif len(part.items) < _MANY or type(part.items[0]) is not Tracer:
            leaves += part.items
            hows += [None] * len(part.items)
        else:
            is_python = part.items[0]._value_in(trace).weak is not None
            leaves.append(Tracer(trace, part.value(trace), scalar=False))
            hows.append("Python's" if is_python else "NumPy's")
    return leaves, hows


def unpack(leaves: list[Any], hows: list[Any]) -> list[Any]:
    """The items of which `pack` made the results of a program."""
    made: list[Any] = []
    for leaf, how in zip(leaves, hows, strict=True):
        if how is None or leaf is None:
            made.append(leaf)
        else:
            made += leaf.tolist() if how == "Python's" else map(_alone, leaf)
    return made


def _alone(x: Any) -> Any:
    """A row with its own memory."""
    return x.copy() if isinstance(x, np.ndarray) else x


def runs_along(arrays: Iterable[Any], axis: Any, new: int) -> list[Any]:
    """The arrays, with Runs in place of rows of one array, if there are such Runs and `axis` is
    valid for arrays with `new` more axes."""
    arrays = list(arrays)
    runs = runs_of(arrays)
    ndim = np.ndim(arrays[0]) + new if arrays else 0
    is_axis = isinstance(axis, (int, np.integer)) and -ndim <= axis < ndim
    return runs if len(runs) < len(arrays) and is_axis else arrays


def _place(x: Any) -> tuple[Any, tuple[int, ...]] | None:
    """The value and the position of the row that x is, or None."""
    if type(x) in (list, tuple):
        runs = runs_of(x)
        if len(runs) != 1 or type(runs[0]) is not Run or not runs[0].is_complete:
            return None
        outer = runs[0].position[:-1]
        return (runs[0].rows, outer) if outer else None
    if type(x) is not Tracer or x._steps or type(x._storage) is not RowStorage:
        return None
    storage = x._storage
    return (storage.rows, storage.position) if storage.version == 0 else None


def whole(trace: Trace, view: Tracer) -> Tracer:
    """The whole array of a view."""
    dtype = view.dtype
    for step in reversed(view._steps):
        dtype = step.dtype_before(dtype)
    base = Tracer.__new__(Tracer)
    base._init(trace, view._storage, (), view._storage.shape, dtype)
    return base
