"""Arrays that represent a list or queue that a loop both reads and changes (stacks.py)."""

from __future__ import annotations

import functools
import heapq
import itertools
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from rune_jit.capture.loops.effects import ALLOWED
from rune_jit.capture.loops.growing import (
    Capacity,
    Filled,
    Growing,
    Leaf,
    Plan,
    in_place_of,
    put_together,
    taken_apart,
)
from rune_jit.capture.loops.kinds import MOST_SMALL, assume_small
from rune_jit.capture.loops.lists import are_unsure
from rune_jit.capture.loops.unfold import ITEM, LENGTH, POPPED, PUT
from rune_jit.errors import UnsupportedOpError
from rune_jit.tracing.context import current_trace
from rune_jit.tracing.loop_plans import LoopRefused
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, is_traced_array


def stack(name: str, initial: tuple[Any, ...], size: int) -> Any:
    """The list `name` of the running loop. While the loop is traced, an empty list replaces it.
    `initial` has its items, each a tuple of `size` numbers, or one number if `size` is 0."""
    return in_place_of(name, functools.partial(Stack, initial=initial, size=size))


class Stack(Growing):
    """A list or queue in a trace. Its items are the rows from `_first` to `_count`."""

    def __init__(
        self,
        trace: Trace,
        name: str,
        items: list[Any],
        capacity: Capacity,
        initial: tuple[Any, ...],
        size: int,
    ) -> None:
        assert trace.loops is not None
        plan = trace.loops.plans.growing.setdefault(name, Plan())
        plan.sites["initial"] = len(initial)
        super().__init__(trace, name, items, capacity)
        for value in initial if plan.leaves is None else ():
            parts: list[Any] = []
            structure = taken_apart(value, parts)
            kinds = [self._kind(x) for x in parts]
            if plan.leaves is not None:
                kinds = [self._joined(a, b) for a, b in zip(plan.leaves, kinds, strict=True)]
            plan.structure, plan.leaves = structure, kinds
        self._structure, self._leaves = plan.structure, plan.leaves
        if plan.leaves is None:  # until something is appended
            self._leaves = [Leaf(("int", None))] * max(size, 1)
            self._structure = (tuple, *[None] * size) if size else None
        if not self.is_wanted:
            return
        self._make_arrays(self._leaves)
        self._first, self._failed = (
            self._array([], np.dtype(dtype)) for dtype in (np.int64, np.bool_)
        )
        for row, value in enumerate(initial):
            parts = []
            taken_apart(value, parts)
            self._write(row, list(map(self._small, parts)))
        if initial:
            self._count[()] = len(initial)

    def _require(self) -> None:
        if not self.is_wanted:
            raise UnsupportedOpError(f"list: cannot trace what a loop does with {self._name}")

    def _kind(self, x: Any) -> Leaf:
        if is_traced_array(x):
            self.refuse("it appends an array to a list that it reads")
        return super()._kind(x)

    def _parts(self, value: Any) -> tuple[Any, list[Any]]:
        """The structure of an item, and its numbers. Refuses a value that is no number or tuple of
        numbers."""
        parts: list[Any] = []
        structure = taken_apart(value, parts)
        are_atoms = structure is None or structure == (tuple, *[None] * len(parts))
        if not are_atoms:
            self.refuse(
                "it appends an object that is neither a number nor a tuple to a list that it reads"
            )
        return structure, parts

    def _small(self, x: Any) -> Any:
        """The number x, with a guard that it is small if it is a traced Python integer."""
        limits = (x.low, x.high) if type(x) is Size else (x, x) if type(x) is int else (0, 0)
        if max(map(abs, limits)) > MOST_SMALL:
            self.refuse("it appends a large integer to a list that it reads")
        if type(x) is not Tracer:
            return x
        operand = self._trace.operand(x)
        is_int = operand.weak == "int" and not self._trace.builder.unsure_kind(operand)
        if is_int and not self._trace.may_guess:
            self.refuse("it appends a Python integer of unknown size to a list")
        return Tracer(self._trace, assume_small(self._trace, operand), scalar=True) if is_int else x

    # Operations on traced numbers with NumPy's dtypes.

    def _of(self, name: str, *operands: Any) -> Any:
        return self._trace.builder.ufunc(name, list(operands))[0]

    def _set(self, array: Tracer, value: Any) -> None:
        array[()] = Tracer(self._trace, value, scalar=True)

    def _now(self, array: Tracer) -> Any:
        return self._part(array, ())

    @property
    def _size(self) -> Any:
        return self._of("subtract", self._now(self._count), self._now(self._first))

    def _at(self, position: Any, holds: Any) -> Tracer:
        """The row at a position. Unless `holds`, the program fails, with a row out of bounds."""
        failed = self._of("logical_or", self._now(self._failed), self._of("logical_not", holds))
        self._set(self._failed, failed)
        made = self._trace.builder.select(holds, position, self._room + 1)
        return Tracer(self._trace, made, scalar=True)

    # The operations of the loop on the list.

    def append(self, value: Any, site: Any) -> None:
        self._require()
        structure, parts = self._parts(value)
        self._learn(structure, list(map(self._kind, parts)), site)
        position = self._now(self._count)
        row = self._at(position, self._of("less", position, self._room))
        self._write(row, list(map(self._small, parts)))
        self._set(self._count, self._of("add", position, 1))

    def push(self, value: Any) -> None:
        """Appends a value, for code that may do so any number of times."""
        assert self._plan is not None
        if "called" not in self._plan.sites:
            self._plan.sites["called"] = 2**50
            raise LoopRefused
        self.append(value, None)

    def less(self, a: Any, b: Any) -> Tracer:
        """a < b. For tuples with NaN the program fails, since Python compares items by identity
        first."""
        operands = [[self._trace.operand(x) for x in self._parts(y)[1]] for y in (a, b)]
        pairs = [
            tuple(map(self._trace.builder.value, pair)) for pair in zip(*operands, strict=True)
        ]
        result = self._of("less", *pairs[-1])
        for x, y in reversed(pairs[:-1]):
            result = self._of(
                "logical_or",
                self._of("less", x, y),
                self._of("logical_and", self._of("equal", x, y), result),
            )
        for x in [x for pair in pairs for x in pair] if type(a) is tuple else ():
            if x.dtype.kind == "f":
                failed = self._of("logical_or", self._now(self._failed), self._of("isnan", x))
                self._set(self._failed, failed)
        return Tracer(self._trace, result, scalar=True)

    def length(self) -> Tracer:
        self._require()
        builder = self._trace.builder
        size = builder.select(self._now(self._failed), 0, builder.clip(self._size, 0, self._room))
        return Tracer(self._trace, builder.python_number(size, True), scalar=True)

    def popped(self, is_last: bool) -> Any:
        self._require()
        count, first = self._now(self._count), self._now(self._first)
        last = self._of("subtract", count, 1)
        row = self._at(last if is_last else first, self._of("greater", count, first))
        value = self._read(row)
        if is_last:
            self._set(self._count, last)
        else:
            self._set(self._first, self._of("add", first, 1))
        return value

    def item(self, position: Any) -> Any:
        self._require()
        return self._read(self._row(position))

    def put(self, position: Any, value: Any) -> None:
        self._require()
        structure, parts = self._parts(value)
        self._learn(structure, list(map(self._kind, parts)), None)
        self._write(self._row(position), list(map(self._small, parts)))

    def _row(self, position: Any) -> Tracer:
        is_number = type(position) in (int, Size) or isinstance(position, np.integer)
        if not is_number and (
            type(position) is not Tracer or position.ndim or position.dtype.kind not in "iu"
        ):
            self.refuse("it reads a list at a position that is not an integer")
        builder = self._trace.builder
        at = builder.astype(builder.value(self._trace.operand(position)), np.dtype(np.int64))
        size = self._size
        at = builder.select(self._of("less", at, 0), self._of("add", at, size), at)
        holds = self._of(
            "logical_and", self._of("greater_equal", at, 0), self._of("less", at, size)
        )
        return self._at(self._of("add", at, self._now(self._first)), holds)

    def _read(self, row: Tracer) -> Any:
        return put_together(self._structure, self._numbers(row))

    def _numbers(self, row: Tracer, first: int = 0) -> Iterator[Any]:
        """The leaves of an item, beginning with this one."""
        columns = zip(self._leaves, self._arrays, self._pythons, strict=True)
        for leaf, array, pythons in itertools.islice(columns, first, None):
            flag = None if pythons is None else self._part(pythons, (row,))
            yield self._number(leaf, self._part(array, (row,)), flag)

    def _number(self, leaf: Leaf, value: Any, is_python: Any) -> Tracer:
        builder, kinds = self._trace.builder, leaf.kinds
        assert kinds is not None
        if are_unsure(kinds):
            made = builder.astype(builder.value(value), value.dtype)
            builder.mark_unsure(made, kinds[0], is_python)
        elif kinds[0] is None:
            made = value
        elif kinds[0] == "bool":
            made = builder.operator("not_equal", [builder.python_number(value, False), 0.0])
        elif kinds[0] == "int":
            made = builder.python_number(builder.clip(value, -MOST_SMALL, MOST_SMALL), True)
        else:
            made = builder.python_number(value, False)
        return Tracer(self._trace, made, scalar=True)

    def filled(self) -> Filled:
        self._require()
        self._trace.raise_if(self._now(self._failed))
        items = put_together(self._structure, self._rows(self._leaves))
        return Filled(self._count, items, self._first)


def stack_of(items: Any) -> Any:
    """The Stack that represents a list; None if no Stack does."""
    trace = current_trace()
    loops = trace.loops if trace is not None else None
    return loops.growing.get(id(items)) if loops is not None else None


def length(items: Any) -> Any:
    """len(items)"""
    found = stack_of(items)
    return len(items) if found is None else found.length()


def popped(items: Any, is_last: bool) -> Any:
    """items.pop() or items.pop(0)"""
    found = stack_of(items)
    if found is not None:
        return found.popped(is_last)
    if is_last:
        return items.pop()
    return items.popleft() if type(items) is deque else items.pop(0)


def item(items: Any, position: Any) -> Any:
    """items[position]"""
    found = stack_of(items)
    return items[position] if found is None else found.item(position)


def put(items: Any, position: Any, value: Any) -> None:
    """items[position] = value"""
    found = stack_of(items)
    if found is None:
        items[position] = value
    else:
        found.put(position, value)


# For the algorithms of heaps.py.


def are_items(items: Any) -> bool:
    """Whether no Stack represents the list, so that it is the list itself."""
    return stack_of(items) is None


def native(name: str, *arguments: Any) -> Any:
    """Calls a function of heapq."""
    return getattr(heapq, name)(*arguments)


def push(items: Any, value: Any) -> None:
    """Appends a value to a list that a Stack represents."""
    stack_of(items).push(value)


def less(items: Any, a: Any, b: Any) -> Any:
    """a < b, for items of a list that a Stack represents."""
    return stack_of(items).less(a, b)


ALLOWED += [length, popped, item, put, are_items, native, push, less]

# The functions that loops call, by name.
STACKS = {LENGTH: length, POPPED: popped, ITEM: item, PUT: put}
