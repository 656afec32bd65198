"""Lists whose final length depends on data: a compiled loop appends to them under a condition, or
the number of its iterations depends on data. The program represents such a list, called a growing
list, by arrays of a fixed number of rows and a count of the filled rows. After the run the rows
become items of the list. A growing list that the loop also reads is called a stack (reading.py). A
loop that runs apart (apart.py) uses growing lists so:

    for i in range(n):                      out = growing(7, "out")
        if x[i] > 0:                        for i in range(n):
            out.append(i)                       if x[i] > 0:
                                                    out.append(i)
                                            return filled(out)"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

import numpy as np

from rune_jit.capture.loops.kinds import kind_of
from rune_jit.capture.loops.lists import Kinds, are_unsure, joined_kinds, kinds_of
from rune_jit.errors import UnsupportedOpError
from rune_jit.tracing.context import current_trace
from rune_jit.tracing.loop_plans import LoopRefused
from rune_jit.tracing.segments import SegmentedTrace
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, is_traced_array

# The most bytes and rows of the arrays of a list whose final length is not known yet.
_FIRST_BYTES, _FIRST_ROWS = 2**20, 2**16
_MOST_BYTES = 2**30
# The most rows of the arrays of a stack. They grow after more than _MOST_WITHOUT calls in a row
# in which no program ran (a trial of NumPy makes two such calls).
_MOST_ROWS = 2**22
_MOST_WITHOUT = 3


class Rows(NamedTuple):
    """An array of items, or of one part of each item; all have the same kind."""

    kind: str  # "Python's", "NumPy's", "unsure" or "array"
    values: Any
    pythons: Any = None  # for the kind "unsure": whether a number is Python's


class Filled(NamedTuple):
    """The items that a program has put into a list: the rows from `first` to `count`."""

    count: Any
    items: Any  # Rows, or a tuple or list of such
    first: Any = 0  # (the loop has removed the rows before it)


class Capacity:
    """The number of rows that a list has room for. `is_stack`: the loop also reads the list."""

    def __init__(self, is_stack: bool = False, likely: int = _FIRST_ROWS) -> None:
        self.is_stack = is_stack
        self.learned = 0  # rows that earlier calls needed
        self.last = 0  # rows in the last program
        self.before = 0  # length of the list before a loop that runs without a program
        self.likely = likely  # an estimate of the rows, for the first program
        self._without = 0  # number of calls in a row in which no program ran

    def note_program(self) -> None:
        self._without = 0

    def note(self, count: int, is_decided: bool) -> None:
        """Records that a list grew by `count` items in a call without a program. `is_decided`: no
        program ran because NumPy is faster."""
        if self.is_stack:  # (it may have been longer than at the end)
            self._without += 1
            if self._without > _MOST_WITHOUT and self.last > 0 and not is_decided:
                self.learned = max(self.learned, min(8 * self.last, _MOST_ROWS))
                self._without = 0
        elif count > self.last > 0:
            self.learned = max(self.learned, 2 ** (2 * count - 1).bit_length())


Lists = dict[str, tuple[Any, Capacity]]  # lists; stacks may be deques


class _Given(threading.local):
    """The lists of the running loops, innermost loop last."""

    def __init__(self) -> None:
        self.lists: list[Lists] = []


running = _Given()


@contextmanager
def growing_lists(lists: Lists) -> Iterator[None]:
    """Makes these lists, by name, available to the loop's function inside of the `with` block."""
    running.lists.append(lists)
    try:
        yield
    finally:
        running.lists.pop()


def growing(name: str) -> Any:
    """The list `name` of the running loop. While the loop is traced, an empty list replaces it."""
    return in_place_of(name, Growing)


def in_place_of(name: str, make: Callable[..., Growing]) -> Any:
    """The container `name` of the running loop. While the loop is traced, a new empty list, which
    make(trace, name, list, capacity) represents by arrays."""
    items, capacity = running.lists[-1][name]
    trace = current_trace()
    if trace is None or isinstance(trace, SegmentedTrace):
        capacity.before = len(items)
        return items
    new: list[Any] = []
    if trace.loops is not None:
        trace.loops.growing[id(new)] = make(trace, name, new, capacity)
    return new


def watch(trace: Trace, name: str, items: list[Any], least: int) -> None:
    """Lets arrays represent a list of the trace if its final length depends on data. The arrays
    have at least `least` rows."""
    assert trace.loops is not None
    capacity = Capacity()
    capacity.learned = least
    trace.loops.growing[id(items)] = Growing(trace, name, items, capacity)


def result_of(trace: Trace, items: list[Any]) -> Filled | list[Any]:
    """The items that the program puts into a list that was given to watch()."""
    assert trace.loops is not None
    return trace.loops.growing[id(items)].filled()  # type: ignore[no-any-return]


def items_of(x: Filled) -> list[Any]:
    """The items as Python objects, after a run."""
    if x.count is None:  # (an example of a result, without values)
        return []
    return _items(x.items, slice(int(x.first), int(x.count)))


def array_of(x: Filled) -> np.ndarray | None:
    """np.array(items_of(x)) without making the items. None if that needs the items."""
    columns = x.items if type(x.items) is tuple else (x.items,)
    are_rows = all(
        type(c) is Rows and c.kind != "unsure" and type(c.values) is np.ndarray for c in columns
    )
    is_tuple_of_arrays = columns is x.items and any(c.kind == "array" for c in columns)
    if not are_rows or is_tuple_of_arrays or not columns or int(x.count) == int(x.first):
        return None
    parts = [c.values[int(x.first) : int(x.count)] for c in columns]
    return np.stack(parts, 1) if columns is x.items else np.array(parts[0])


def filled(name: str, items: list[Any]) -> Filled | list[Any] | int:
    """The items that the program puts into the list. Without a program: by how many it grew."""
    trace = current_trace()
    if trace is None or isinstance(trace, SegmentedTrace):
        return len(items) - running.lists[-1][name][1].before
    found = trace.loops.growing.get(id(items)) if trace.loops is not None else None
    return items if found is None else found.filled()


def fill(lists: Lists, found: tuple[Any, ...], is_decided: bool) -> None:
    """Appends to each list the items that filled() returned for it, in the order of the lists. For
    `is_decided` see Capacity.note."""
    for (items, capacity), new in zip(lists.values(), found, strict=True):
        if type(new) is int:
            capacity.note(new, is_decided)
        elif isinstance(new, tuple):
            count, rows, first = new
            capacity.note_program()
            made = _items(rows, slice(int(first), int(count)))
            if isinstance(items, dict):
                dict.update(items, made)  # (a Counter would add)
            elif isinstance(items, set):
                items.update(made)
            else:
                if capacity.is_stack:
                    items.clear()
                items += made
        else:
            items += new


def _items(of: Any, filled: slice) -> list[Any]:
    if type(of) is not Rows:
        return list(map(type(of), zip(*[_items(part, filled) for part in of], strict=True)))
    values = of.values[filled]
    if of.kind == "array":
        return [x.copy() for x in values]
    if of.kind == "NumPy's":
        return list(values)
    made: list[Any] = values.tolist()
    if of.kind == "unsure":
        pythons = of.pythons[filled].tolist()
        made = [
            p if is_python else x for p, x, is_python in zip(made, values, pythons, strict=True)
        ]
    return made


class Leaf(NamedTuple):
    """The kind of one part of each item: numbers or arrays."""

    kinds: Kinds | None  # the kinds of numbers; None for arrays
    dtype: Any = None  # the dtype of arrays
    shape: tuple[int, ...] = ()


class Plan:
    """The facts about a list that earlier traces of the loop have found."""

    def __init__(self) -> None:
        self.sites: dict[Any, int] = {}  # by place that appends: how often it appends at most
        self.structure: Any = None  # the structure of an item (taken_apart)
        self.leaves: list[Leaf] | None = None
        self.is_refused = False
        self.is_guess = False  # no value of a dict is known yet; they are assumed to be integers


class Growing:
    """A growing list in a trace."""

    def __init__(self, trace: Trace, name: str, items: list[Any], capacity: Capacity) -> None:
        assert trace.loops is not None
        self._trace, self._loops, self._name, self._items = trace, trace.loops, name, items
        self._capacity = capacity
        self._plan: Plan | None = trace.loops.plans.growing.get(name)
        if self._plan is not None and self.is_wanted and self._plan.leaves is not None:
            self._make_arrays(self._plan.leaves)

    @property
    def is_wanted(self) -> bool:
        """Whether arrays represent the list."""
        return self._plan is not None and not self._plan.is_refused

    @property
    def is_refused(self) -> bool:
        """Whether arrays cannot represent the list."""
        return self._plan is not None and self._plan.is_refused

    def want(self) -> None:
        """Makes the next trace represent the list by arrays, and raises LoopRefused to begin it.
        Does nothing if the list has a plan already."""
        if self._plan is not None:
            return
        self._loops.plans.growing[self._name] = Plan()
        raise LoopRefused

    def _make_arrays(self, leaves: list[Leaf]) -> None:
        assert self._plan is not None
        bound = sum(self._plan.sites.values())
        bound = min(bound, self._capacity.likely)
        width = sum(np.dtype(_dtype(x)).itemsize * int(np.prod(x.shape)) + 1 for x in leaves)
        first = max(16, min(_FIRST_BYTES // width, _FIRST_ROWS))
        self._room = self._capacity.last = max(1, min(bound, first), self._capacity.learned)
        if self._room * width > _MOST_BYTES:
            self.refuse("it appends large arrays to a list under a condition")
        # (Items for which there is no room are written to the last row.)
        self._arrays = [self._array([self._room + 1, *x.shape], _dtype(x)) for x in leaves]
        self._pythons = [
            self._array([self._room + 1], np.dtype(bool)) if _is_unsure(x) else None for x in leaves
        ]
        self._count = self._array([], np.dtype(np.int64))

    def _array(self, shape: list[int], dtype: Any) -> Tracer:
        return Tracer(self._trace, self._trace.builder.full(shape, 0, dtype), scalar=False)

    def append(self, value: Any, site: Any) -> None:
        """Appends a value."""
        leaves: list[Any] = []
        structure = taken_apart(value, leaves)
        self._learn(structure, list(map(self._kind, leaves)), site)
        position = self._part(self._count, ())
        builder = self._trace.builder
        self._write(Tracer(self._trace, builder.clip(position, 0, self._room), scalar=True), leaves)
        self._count[()] = Tracer(self._trace, builder.ufunc("add", [position, 1])[0], scalar=True)

    def _write(self, row: Any, leaves: list[Any]) -> None:
        builder = self._trace.builder
        for x, array, pythons in zip(leaves, self._arrays, self._pythons, strict=True):
            operand = self._trace.operand(x)
            if pythons is not None:
                flag = builder.value(builder.is_python(operand))
                pythons[row] = Tracer(self._trace, flag, scalar=True)
            made = builder.astype(builder.value(operand), array.dtype)
            array[row] = Tracer(self._trace, made, scalar=not array.ndim > 1)

    def _part(self, array: Tracer, at: tuple[Any, ...]) -> Any:
        return array[at]._value_in(self._trace)

    def _learn(self, structure: Any, leaves: list[Leaf], site: Any) -> None:
        """Records the kinds of an item's parts and the place that appends it (None: the item
        replaces another one). Raises LoopRefused, which restarts the trace, if this was news."""
        plan = self._plan
        assert plan is not None
        # (For peeled iterations, the count is not known.)
        times = 1 if len(self._loops.open) == len(self._loops.within) > 0 else 2**50
        for body in self._loops.open:
            low, high = (x if type(x) is int else 0 for x in (body.counter.low, body.counter.high))
            times = min(times * max(high - low + 1, 1), 2**50)
        known = plan.leaves
        if known is None:
            new = leaves
        elif structure != plan.structure:
            self.refuse("it appends values of different kinds to a list")
        else:
            new = [self._joined(a, b) for a, b in zip(known, leaves, strict=True)]
        # (A dtype may be equal to None.)
        if repr(new) == repr(known) and (site is None or plan.sites.get(site, 0) >= times):
            return
        plan.structure, plan.leaves = structure, new
        if site is not None:
            plan.sites[site] = max(times, plan.sites.get(site, 0))
        raise LoopRefused

    def _joined(self, a: Leaf, b: Leaf) -> Leaf:
        if a.kinds is None or b.kinds is None:
            if a != b:
                self.refuse("it appends arrays of different shapes to a list")
            return a
        kinds = joined_kinds(a.kinds, b.kinds)
        return Leaf(self._checked(kinds, "values of different kinds"))

    def _kind(self, x: Any) -> Leaf:
        if is_traced_array(x):
            storage = x._storage
            is_new = not x._steps and all(
                not body.is_older(storage) and all(storage is not y for y in body.given)
                for body in self._loops.open[-1:]
            )
            if not is_new or any(type(n) is Size for n in x.shape):
                self.refuse("it appends an array to a list that it has not made")
            if x.ndim > 1:
                try:
                    storage.require_c_order()
                except UnsupportedOpError:
                    self.refuse("it appends an array to a list that is not in C order")
            return Leaf(None, x.dtype, tuple(x.shape))
        kinds = kinds_of(self._trace, [x]) if kind_of(self._trace, x) is not None else None
        return Leaf(self._checked(kinds, f"a {type(x).__name__} under a condition"))

    def _checked(self, kinds: Kinds | None, what: str) -> Kinds:
        if kinds is None:
            self.refuse(f"it appends {what} to a list")
        if kinds[0] == "int" and kinds[1] is not None and kinds[1].kind != "i":
            self.refuse("it appends a number to a list that may be an int or a float")
        return kinds

    def refuse(self, why: str) -> NoReturn:
        """Refuses to represent the list by arrays, or the loop that appends to it. Raises
        LoopRefused."""
        assert self._plan is not None
        within = self._loops.within
        self._plan.is_refused = not within or self._loops.plans.refuse(within[-1], why)
        raise LoopRefused

    def filled(self) -> Filled | list[Any]:
        """The items that the program puts into the list."""
        plan, builder = self._plan, self._trace.builder
        if not self.is_wanted or plan is None or plan.leaves is None:
            return self._items
        count = self._part(self._count, ())
        self._trace.raise_if(builder.ufunc("greater", [count, self._room])[0])
        return Filled(self._count, put_together(plan.structure, self._rows(plan.leaves)))

    def _rows(self, leaves: list[Leaf]) -> Iterator[Rows]:
        parts = zip(leaves, self._arrays, self._pythons, strict=True)
        return (Rows(_kind_of_rows(leaf), *arrays) for leaf, *arrays in parts)


def taken_apart(value: Any, leaves: list[Any]) -> Any:
    """Returns the structure of a value of nested tuples and lists. Appends its leaves to
    `leaves`."""
    if type(value) in (tuple, list):
        return (type(value), *[taken_apart(x, leaves) for x in value])
    leaves.append(value)
    return None


def put_together(structure: Any, rows: Iterator[Rows]) -> Any:
    """A value with this structure and with the leaves `rows`: the inverse of `taken_apart`."""
    if structure is None:
        return next(rows)
    return structure[0]([put_together(x, rows) for x in structure[1:]])


def _dtype(leaf: Leaf) -> Any:
    if leaf.kinds is None:
        return leaf.dtype
    kind, dtype = leaf.kinds
    if dtype is not None:
        return dtype
    return np.dtype({"bool": np.bool_, "int": np.int64}.get(str(kind), np.float64))


def _is_unsure(leaf: Leaf) -> bool:
    return leaf.kinds is not None and are_unsure(leaf.kinds)


def _kind_of_rows(leaf: Leaf) -> str:
    """The kind of the Rows for a leaf."""
    if leaf.kinds is None:
        return "array"
    if _is_unsure(leaf):
        return "unsure"
    return "NumPy's" if leaf.kinds[0] is None else "Python's"
