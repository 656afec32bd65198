"""Lists of numbers whose items a loop of the program reads and assigns. While the body of the loop
is traced, an array represents the list. A list of lists of equal lengths is an array with two axes.

    count = [0] * 5
    for v in x:                     .items(count)[v] += 1"""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
from typing import Any

import numpy as np

from rune_jit.capture.loops.effects import Refused, StandIn
from rune_jit.capture.loops.kinds import MOST_SMALL, assume_small, kind_of, unsure_pair
from rune_jit.tracing.context import current_trace
from rune_jit.tracing.loop_plans import LoopRefused
from rune_jit.tracing.loops import Loops
from rune_jit.tracing.rows import Run, row, runs_of
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer

# How many numbers such a list holds at most. Each becomes an operation of the trace after the loop.
_MOST_NUMBERS = 2500
# How often a loop may change a list at most, if the loop is in another one that is unrolled.
_MOST_TIMES = 8

# The kind of the Python numbers and the dtype of the NumPy numbers in a list; None if it has none.
Kinds = tuple[str | None, Any]


def items_of(x: Any) -> Any:
    """The object whose items `x[i]` reads and assigns: the stand-in for the list x if it has one,
    else x."""
    trace = current_trace() if type(x) is list else None
    found = trace.loops.lists.get(id(x)) if trace is not None and trace.loops is not None else None
    return x if found is None else found


class _Items(StandIn):
    """A stand-in whose numbers can be read and assigned by position, but not used otherwise."""

    def _refuse(self, *args: Any) -> Any:
        trace = current_trace()
        assert trace is not None and trace.loops is not None
        trace.loops.fail("it uses a list of which it assigns items")

    __iter__ = __contains__ = __array__ = __eq__ = __add__ = __radd__ = _refuse
    __mul__ = __rmul__ = __reversed__ = __delitem__ = __bool__ = _refuse
    __hash__ = None  # type: ignore[assignment]


class Numbers(_Items):
    """The stand-in for a list of numbers."""

    def __init__(self, trace: Trace, name: str, loop: int, items: list[Any], kinds: Kinds) -> None:
        """Raises Refused if an array cannot hold the list's items."""
        assert trace.loops is not None
        self._trace, self._key, self.items = trace, (loop, name), items
        self._is_table = type(items[0]) is list
        self._kinds = kinds = trace.loops.plans.kinds.get(self._key, kinds)
        if kinds[0] == "int" and not trace.may_guess:
            raise Refused
        dtype = kinds[1]
        if dtype is None:
            dtype = np.dtype({"bool": np.bool_, "int": np.int64}.get(str(kinds[0]), np.float64))
        self._array = self._array_of_items(dtype)
        self._pythons = self._flags() if are_unsure(kinds) else None

    def _small(self, x: Any) -> Any:
        """The number x, with a guard that it is small if it is a traced Python integer. Raises
        Refused for a known integer that is large."""
        if type(x) is int and abs(x) > MOST_SMALL:
            raise Refused
        return assume_small(self._trace, x)

    @property
    def _lists(self) -> list[list[Any]]:
        return self.items if self._is_table else [self.items]

    def _array_of_items(self, dtype: Any) -> Tracer:
        return self._stacked([self._values(items, dtype) for items in self._lists], dtype)

    def _values(self, items: list[Any], dtype: Any) -> Any:
        """The traced values of a list of numbers."""
        trace, runs = self._trace, runs_of(items)
        if len(runs) == 1 and type(runs[0]) is Run:
            return runs[0].value(trace)
        operands = [self._small(trace.operand(x)) for x in items]
        if not any(type(x) in (Tracer, Size) for x in items):
            return trace.constant(np.array(items, dtype))
        return self._row_of(operands, dtype)

    def _flags(self) -> Tracer:
        """For each item, whether it is Python's."""
        trace, dtype = self._trace, np.dtype(bool)
        flags = [
            [trace.builder.is_python(trace.operand(x)) for x in items] for items in self._lists
        ]
        return self._stacked([self._row_of(row, dtype) for row in flags], dtype)

    def _row_of(self, operands: list[Any], dtype: Any) -> Any:
        builder = self._trace.builder
        return builder.stack([builder.astype(builder.value(x), dtype) for x in operands], 0)

    def _stacked(self, rows: list[Any], dtype: Any) -> Tracer:
        builder = self._trace.builder
        rows = [builder.astype(builder.value(x), dtype) for x in rows]
        return Tracer(
            self._trace, builder.stack(rows, 0) if self._is_table else rows[0], scalar=False
        )

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, at: Any) -> Any:
        return _Row(self, at) if self._is_table else self.read((at,))

    def __setitem__(self, at: Any, value: Any) -> None:
        if self._is_table:
            self._refuse()
        self.write((at,), value)

    def read(self, at: tuple[Any, ...]) -> Any:
        at = self._positions(at)
        if all(type(x) is int for x in at) and not self.is_changed:
            return functools.reduce(operator.getitem, at, self.items)
        flag = None if self._pythons is None else self._part(self._pythons, at)
        return self._number(self._part(self._array, at), flag)

    def _positions(self, at: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            self._position(x, len(items))
            for x, items in zip(at, (self.items, self._lists[0]), strict=False)
        )

    def _position(self, x: Any, size: int) -> Any:
        """A position within bounds. If the real one is out of bounds, the program fails, and Python
        runs the call."""
        if type(x) in (int, Size) or issubclass(type(x), np.integer):
            return x
        if type(x) is not Tracer or x.ndim or x.dtype.kind not in "iu":
            self._refuse()
        trace, builder = self._trace, self._trace.builder
        assert trace.loops is not None
        value = builder.astype(builder.value(x._value_in(trace)), np.dtype(np.int64))
        kept = builder.clip(value, -size, size - 1)
        for body in trace.loops.open:
            body.raises = True
        trace.raise_if(builder.ufunc("not_equal", [value, kept])[0])
        return Tracer(trace, kept, scalar=True)

    def _part(self, array: Tracer, at: tuple[Any, ...]) -> Any:
        return array[at]._value_in(self._trace)

    @property
    def is_changed(self) -> bool:
        """Whether the trace of the body has assigned items so far."""
        return any(x.version for x in self.storages)

    def _number(self, value: Any, is_python: Any) -> Tracer:
        """The traced number of an item."""
        builder, kind = self._trace.builder, self._kinds[0]
        if self._pythons is not None:
            made = builder.astype(builder.value(value), value.dtype)
            builder.mark_unsure(made, kind, is_python)
        elif kind is None:
            made = value
        elif kind == "bool":
            made = builder.operator("not_equal", [builder.python_number(value, False), 0.0])
        else:
            made = builder.python_number(self._limited(value), kind == "int")
        return Tracer(self._trace, made, scalar=True)

    def _limited(self, value: Any) -> Any:
        """Limits Python integers to small ones. This changes no number, since a guard checks them
        when they are written; but the compiler then knows their range."""
        if self._kinds[0] != "int" or self._kinds[1] is not None:
            return value
        builder = self._trace.builder
        return builder.clip(value, -MOST_SMALL, MOST_SMALL)

    def write(self, at: tuple[Any, ...], value: Any) -> None:
        kinds = kinds_of(self._trace, [value])
        joined = None if kinds is None else joined_kinds(self._kinds, kinds)
        if joined is None:
            self._refuse()
        elif repr(joined) != repr(self._kinds):
            assert self._trace.loops is not None
            self._trace.loops.plans.kinds[self._key] = joined
            raise LoopRefused
        at = self._positions(at)
        trace, operand = self._trace, self._trace.operand(value)
        if self._pythons is not None:
            flag = trace.builder.value(trace.builder.is_python(operand))
            self._pythons[at] = Tracer(trace, flag, scalar=True)
        try:
            small = operand if type(value) is Size else self._small(operand)
        except Refused:
            self._refuse()
        self._array[at] = value if small is operand else Tracer(trace, small, scalar=True)

    @property
    def storages(self) -> list[Any]:
        arrays = (self._array,) if self._pythons is None else (self._array, self._pythons)
        return [x._storage for x in arrays]

    def write_back(self) -> None:
        """Copies the numbers from the array to the list."""
        trace, builder = self._trace, self._trace.builder
        assert trace.loops is not None
        times = trace.loops.written_back[self._key] = trace.loops.written_back.get(self._key, 0) + 1
        if times > _MOST_TIMES:
            why = "it changes a list in each iteration of a loop that is unrolled"
            trace.loops.plans.refuse(self._key[0], why)
            raise LoopRefused
        rows = self._limited(self._array._value_in(trace))
        flags = None if self._pythons is None else self._pythons._value_in(trace)
        is_row = flags is None and self._kinds[0] != "bool"

        def number(at: tuple[int, ...]) -> Tracer:
            flag = None if flags is None else builder.index(flags, list(at))
            return self._number(builder.index(rows, list(at)), flag)

        like = number((0, 0) if self._is_table else (0,))
        for r, items in enumerate(self._lists):
            places = [(r, k) if self._is_table else (k,) for k in range(len(items))]
            items[:] = [row(trace, rows, at, like) if is_row else number(at) for at in places]


class _Row(_Items):
    """The stand-in for one list of a list of lists."""

    def __init__(self, table: Numbers, at: Any) -> None:
        self._table, self._at = table, at

    def __len__(self) -> int:
        return len(self._table.items[0])

    def __getitem__(self, at: Any) -> Any:
        return self._table.read((self._at, at))

    def __setitem__(self, at: Any, value: Any) -> None:
        self._table.write((self._at, at), value)


def kinds_of(trace: Trace, items: list[Any]) -> Kinds | None:
    """The kinds of a list's numbers; None if one array cannot hold them."""
    found: Kinds | None = None
    for x in items:
        kind = kind_of(trace, x)
        if kind is None or kind[0] == "array" or kind[-1] == "complex":
            return None
        of = (
            None if kind[0] == "NumPy's" else kind[1],
            None if kind[0] == "Python's" else kind[-1],
        )
        found = of if found is None else joined_kinds(found, of)
        if found is None:
            return None
    return found


def are_unsure(kinds: Kinds) -> bool:
    """Whether numbers may be Python's or NumPy's, so that flags have to tell them apart."""
    return kinds[0] is not None and kinds[1] is not None  # (a dtype may be equal to None)


def joined_kinds(a: Kinds, b: Kinds) -> Kinds | None:
    """The kinds of numbers that are of the kinds a or b; None if one array cannot hold them."""
    pythons = {x for x in (a[0], b[0]) if x is not None}
    dtypes = {x for x in (a[1], b[1]) if x is not None}
    if len(pythons) > 1 or len(dtypes) > 1:
        return None
    pair = next(iter(pythons), None), next(iter(dtypes), None)
    return pair if not are_unsure(pair) or unsure_pair(pair) else None


def stand_in(trace: Trace, loop: int, name: str, items: list[Any]) -> Numbers | None:
    """The stand-in for a list in the body of a loop. None if an array cannot hold its items, or if
    a condition decides whether the loop runs."""
    loops = trace.loops
    assert loops is not None
    if id(items) in loops.lists:
        return loops.lists[id(items)]  # type: ignore[no-any-return]
    kinds = _kinds_of_list(trace, items)
    if kinds is None or loops.num_conditions > (loops.open[-1].conditions if loops.open else 0):
        return None
    with contextlib.suppress(Refused):
        return Numbers(trace, name, loop, items, kinds)
    return None


def are_known(trace: Trace, lists: list[Numbers], storages: list[Any]) -> bool:
    """Whether all storages hold items of lists, and none depends on the call's arguments."""
    of_lists = {id(storage) for x in lists for storage in x.storages}
    return all(
        id(x) in of_lists and not trace.builder.depends_on_arguments(x.current(trace))
        for x in storages
    )


def begin_lists(loops: Loops, lists: list[Numbers]) -> None:
    """Begins to represent the lists by arrays."""
    loops.lists |= {id(x.items): x for x in lists}


def leave_lists(loops: Loops, lists: list[Numbers]) -> None:
    """Ends the representation of the lists by arrays."""
    for x in lists:
        del loops.lists[id(x.items)]


def end_lists(loops: Loops, lists: list[Numbers]) -> None:
    """Ends the representation, and copies the numbers from the arrays to the lists."""
    leave_lists(loops, lists)
    for x in lists:
        if x.is_changed:
            x.write_back()


def _kinds_of_list(trace: Trace, items: list[Any]) -> Kinds | None:
    if not items:
        return None
    if type(items[0]) is not list:
        return kinds_of(trace, items) if len(items) <= _MOST_NUMBERS else None
    if any(type(x) is not list or len(x) != len(items[0]) for x in items) or not items[0]:
        return None
    is_one_twice = len({id(x) for x in items}) < len(items)
    if is_one_twice or len(items) * len(items[0]) > _MOST_NUMBERS:
        return None
    return kinds_of(trace, list(itertools.chain(*items)))
