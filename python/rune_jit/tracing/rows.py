"""Arrays and numbers that are rows of one array: the values that a loop of the program has appended
to a list, one row for each iteration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rune_jit.tracing.sizes import Size
from rune_jit.tracing.storage import Step, Storage
from rune_jit.tracing.tracer import Tracer

if TYPE_CHECKING:
    from rune_jit.tracing.trace import Trace


class Origin(NamedTuple):
    """What NumPy's row is a view of, if it is one of memory that is older than the loop."""

    like: Tracer  # the view in the loop's body
    counter: Size
    number: Any  # the counter in the row's iteration, perhaps in terms of others
    loop: int


class RowStorage(Storage):
    """The memory of a row, whose value is computed when somebody asks for it."""

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
    """An array or number of its own: rows[position] of a value, of the kind of `like`."""
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
    """What an array is a view of, if it is a row."""
    return x._storage.origin if type(x) is Tracer and type(x._storage) is RowStorage else None


def storage_viewed(x: Tracer) -> Storage:
    """The memory that NumPy's array is in: in the place of a row, what that is a view of."""
    origin = origin_of(x)
    return x._storage if origin is None else storage_viewed(origin.like)


def viewed(x: Tracer) -> Tracer:
    """The view that NumPy's array is, in the place of a row. Positions that the counter does not
    decide remain as they are in the body."""
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


class Run(NamedTuple):
    """Rows of one value, one after the other. Each is a traced array or number, or a list of
    all that the row consists of."""

    items: list[Any]
    rows: Any
    position: tuple[int, ...]  # of the first one

    def value(self, trace: Trace) -> Any:
        """Those rows."""
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
        """The rows, one after the other along an axis of theirs."""
        ndim = self.rows.ndim - len(self.position)
        value = self.stacked(trace, axis % ndim)
        shape = list(value.shape)
        count = shape.pop(axis % ndim)
        shape[axis % ndim] *= count
        return trace.builder.reshape(value, shape)

    @property
    def is_complete(self) -> bool:
        """Whether there are no rows before and behind them."""
        return bool(len(self.items) == self.rows.shape[len(self.position) - 1])

    def is_before(self, rows: Any, position: tuple[int, ...]) -> bool:
        """Whether rows[position] follows them."""
        *outer, start = self.position
        return bool(rows is self.rows and position == (*outer, start + len(self.items)))


def runs_of(items: Iterable[Any]) -> list[Any]:
    """The items, with Runs in the place of those that are rows, as they were made, of one value."""
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


# So many rows are results of a program as one array rather than one by one.
_MANY = 8


def pack(trace: Trace, items: list[Any]) -> tuple[list[Any], list[Any]]:
    """The items as results of a program: Runs of many are arrays. With what tells `unpack` about
    each: "Python's" numbers, "NumPy's" numbers or arrays, or None."""
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
    """What `pack` has been given, of a program's results."""
    made: list[Any] = []
    for leaf, how in zip(leaves, hows, strict=True):
        if how is None:
            made.append(leaf)
        else:
            made += leaf.tolist() if how == "Python's" else map(_alone, leaf)
    return made


def _alone(x: Any) -> Any:
    """A row in memory of its own."""
    return x.copy() if isinstance(x, np.ndarray) else x


def runs_along(arrays: Iterable[Any], axis: Any, new: int) -> list[Any]:
    """The arrays, with Runs in the places of rows of one array, if there are such Runs, and the
    axis is one of the arrays' with `new` further ones."""
    arrays = list(arrays)
    runs = runs_of(arrays)
    ndim = np.ndim(arrays[0]) + new if arrays else 0
    is_axis = isinstance(axis, (int, np.integer)) and -ndim <= axis < ndim
    return runs if len(runs) < len(arrays) and is_axis else arrays


def _place(x: Any) -> tuple[Any, tuple[int, ...]] | None:
    """Which row of which value x is."""
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
