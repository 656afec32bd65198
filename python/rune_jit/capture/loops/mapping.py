"""A hash table of arrays for a dict or set of integers that a loop adds items to (dicts.py)."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from typing import Any

import numpy as np

from rune_jit.capture.loops.dicts import is_dict
from rune_jit.capture.loops.effects import ALLOWED
from rune_jit.capture.loops.growing import (
    Capacity,
    Filled,
    Growing,
    Leaf,
    Plan,
    in_place_of,
    put_together,
    running,
)
from rune_jit.capture.loops.reading import Stack, stack, stack_of
from rune_jit.tracing.loop_plans import LoopRefused
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer

_INT = np.dtype(np.int64)
# 2**64 / golden ratio. A product with it has all bits of a key mixed in its upper half.
_FACTOR = 0x9E3779B97F4A7C15 - 2**64


def stack_or_dict(name: str, initial: tuple[Any, ...], size: int) -> Any:
    """As `stack` (reading.py), for a list, queue, dict or set."""
    items, _ = running.lists[-1][name]
    if not is_dict(items):
        return stack(name, initial, size)
    return in_place_of(name, functools.partial(Mapping, initial=initial, of=items))


class Mapping(Stack):
    """A dict or set in a trace. An item's leaves are those of its key, then those of its value."""

    def __init__(
        self,
        trace: Trace,
        name: str,
        items: list[Any],
        capacity: Capacity,
        initial: tuple[Any, ...],
        of: Any,
    ) -> None:
        """`of` is the dict or set. `initial` has its items: keys, or pairs of key and value."""
        assert trace.loops is not None
        plan = trace.loops.plans.growing.setdefault(name, Plan())
        plan.sites["called"] = 2**50
        Growing.__init__(self, trace, name, items, capacity)
        self._is_set, self.counts = type(of) is set, type(of) is Counter
        # The value of a missing key that is read.
        self.default = (of.default_factory or int)() if type(of) is defaultdict else None
        if self.is_wanted and plan.leaves is not None:
            self._leaves = plan.leaves
            self._num = len(_parts(plan.structure[0]))  # leaves of the key
            self._make_table()
        for item in initial:
            key, value = (item, None) if self._is_set else item
            self._begin(key, value)

    def _make_table(self) -> None:
        trace = self._trace
        self._first, self._failed = (
            self._array([], np.dtype(dtype)) for dtype in (np.int64, np.bool_)
        )
        size = 4 << self._room.bit_length()  # at most half of the slots are taken
        self._mask = size - 1
        slots = trace.builder.full([size], -1, np.dtype(np.int32))
        self._slots = Tracer(trace, slots, scalar=False)

    def _begin(self, key: Any, value: Any) -> None:
        """Adds an item that the dict or set holds before the loop."""
        parts = self._known(key)
        if not self._is_set:
            self._known_value(value)
        builder = self._trace.builder
        at = self._hash(parts)
        for _ in range(self._initial):  # (there are few)
            taken = self._of("greater_equal", self._part(self._slots, (at,)), 0)
            other = builder.select(taken, self._next(at), at._value_in(self._trace))
            at = Tracer(self._trace, other, scalar=True)
        self._initial += 1
        self.insert(at, key)
        if not self._is_set:
            self.assign(at, value)

    _initial = 0

    # The kinds of keys and values.

    def _known(self, key: Any) -> list[Any]:
        """The numbers of a key, after recording their kinds. Raises LoopRefused."""
        self._require()
        structure, parts = self._parts(key)
        kinds = [self._kind(x) for x in parts]
        for leaf in kinds:
            assert leaf.kinds is not None
            if leaf.kinds[0] not in (None, "int") or not _is_integer(leaf.kinds[1]):
                self.refuse("a key of a dict is not an integer")
        self._note(structure, kinds, 0)
        return parts

    def _known_value(self, value: Any) -> list[Any]:
        structure, parts = self._parts(value)
        self._note(structure, [self._kind(x) for x in parts], 1)
        return parts

    def _note(self, structure: Any, kinds: list[Leaf], which: int) -> None:
        """Records the kinds of a key (`which` 0) or value (1). Raises LoopRefused, which restarts
        the trace, if this was news."""
        plan = self._plan
        assert plan is not None
        if plan.structure is None:  # (until a value is assigned)
            plan.structure = [structure, () if self._is_set else None]
            plan.leaves = [*kinds, *([] if self._is_set else [Leaf(("int", None))])]
            plan.is_guess = not self._is_set
            raise LoopRefused
        assert plan.leaves is not None
        num = len(_parts(plan.structure[0]))
        keys, values = plan.leaves[:num], plan.leaves[num:]
        known = values if which else keys
        if which and plan.is_guess:
            plan.is_guess = False
            new = kinds
        elif structure != plan.structure[which]:
            self.refuse("the keys or values of a dict are of different kinds")
        else:
            new = [self._joined(a, b) for a, b in zip(known, kinds, strict=True)]
        if repr(new) == repr(known) and structure == plan.structure[which]:
            return
        plan.structure[which] = structure
        plan.leaves = [*keys, *new] if which else [*new, *values]
        raise LoopRefused

    # The operations that the algorithms of hashing.py use.

    def _hash(self, parts: list[Any]) -> Tracer:
        mixed: Any = 0
        for x in parts:
            number = self._integer(self._trace.operand(x))
            mixed = self._of("multiply", self._of("bitwise_xor", mixed, number), _FACTOR)
            mixed = self._of("bitwise_xor", mixed, self._of("right_shift", mixed, 32))
        return Tracer(self._trace, self._of("bitwise_and", mixed, self._mask), scalar=True)

    def _integer(self, x: Any) -> Any:
        builder = self._trace.builder
        return builder.astype(builder.value(x), _INT)

    def first_slot(self, key: Any) -> Tracer:
        return self._hash(self._known(key))

    def _next(self, at: Tracer) -> Any:
        following = self._of("add", at._value_in(self._trace), 1)
        return self._of("bitwise_and", following, self._mask)

    def next_slot(self, at: Tracer) -> Tracer:
        return Tracer(self._trace, self._next(at), scalar=True)

    def _row_in(self, at: Tracer) -> Any:
        return self._integer(self._part(self._slots, (at,)))

    def _row_of_slot(self, at: Tracer) -> Tracer:
        """The row that a slot refers to; row 0 for a free slot."""
        return Tracer(self._trace, self._of("maximum", self._row_in(at), 0), scalar=True)

    def holds(self, at: Tracer, wanted: bool) -> Tracer:
        """Whether a slot is taken, if `wanted`; otherwise whether it is free."""
        builder = self._trace.builder
        found = self._of("greater_equal" if wanted else "less", self._row_in(at), 0)
        number = builder.python_number(found, False)
        return Tracer(self._trace, builder.operator("not_equal", [number, 0.0]), scalar=True)

    def is_other(self, at: Tracer, key: Any) -> Tracer:
        """Whether another key has taken the slot."""
        _, parts = self._parts(key)
        row = self._row_of_slot(at)
        same: Any = None
        for x, array in zip(parts, self._arrays, strict=False):
            mine = self._integer(self._part(array, (row,)))
            equal = self._of("equal", mine, self._integer(self._trace.operand(x)))
            same = equal if same is None else self._of("logical_and", same, equal)
        taken = self._of("greater_equal", self._row_in(at), 0)
        other = self._of("logical_and", taken, self._of("logical_not", same))
        return Tracer(self._trace, other, scalar=True)

    def insert(self, at: Tracer, key: Any) -> None:
        """Puts a key into a free slot."""
        builder, count = self._trace.builder, self._now(self._count)
        fits = self._of("less", count, self._room)
        row = self._at(count, fits)
        slot = builder.astype(builder.select(fits, count, -1), np.dtype(np.int32))
        self._slots[at] = Tracer(self._trace, slot, scalar=True)
        self._write_parts(row, self._known(key), 0)
        self._set(self._count, self._of("add", count, self._integer(fits)))

    def assign(self, at: Tracer, value: Any) -> None:
        row = self._row_of_slot(at)
        self._write_parts(row, self._known_value(value), self._num)

    def _write_parts(self, row: Tracer, parts: list[Any], first: int) -> None:
        arrays, pythons = self._arrays, self._pythons
        last = first + len(parts)
        self._arrays, self._pythons = arrays[first:last], pythons[first:last]
        try:
            self._write(row, list(map(self._small, parts)))
        finally:
            self._arrays, self._pythons = arrays, pythons

    def value_at(self, at: Tracer, is_there: bool) -> Any:
        """The value of the key in a slot. With `is_there` the slot must be taken: else the loop
        fails. Without it, a free slot gives any value."""
        assert self._plan is not None
        row = self._row_of_slot(at)
        if is_there:
            holds = self._of("greater_equal", self._row_in(at), 0)
            row = self._at(row._value_in(self._trace), holds)
        return put_together(self._plan.structure[1], self._numbers(row, self._num))

    def filled(self) -> Filled:
        self._require()
        plan = self._plan
        assert plan is not None
        if plan.leaves is None:
            return Filled(0, ())
        self._trace.raise_if(self._now(self._failed))
        rows = self._rows(plan.leaves)
        key = put_together(plan.structure[0], rows)
        if self._is_set:
            return Filled(self._count, key)
        return Filled(self._count, (key, put_together(plan.structure[1], rows)))


def _parts(structure: Any) -> list[Any]:
    return [*structure[1:]] if structure else [None]


def _is_integer(dtype: Any) -> bool:
    if dtype is None:
        return True
    of = np.dtype(dtype)
    return bool(of.kind == "i" or (of.kind == "u" and of.itemsize < 8))


# For the algorithms of hashing.py.


def on_dict(what: str, d: Any, *of: Any) -> Any:
    """Performs an operation of a loop on the dict or set itself."""
    if what == "contains":
        return (of[0] in d) is of[1]
    if what == "get":
        return d.get(*of)
    if what == "item":
        return d[of[0]]
    if what == "add":
        d.add(of[0])
    else:
        d[of[1]] = of[0]
    return None


def counts(d: Any) -> Any:
    return stack_of(d).counts


def first_slot(d: Any, key: Any) -> Any:
    return stack_of(d).first_slot(key)


def next_slot(d: Any, at: Any) -> Any:
    return stack_of(d).next_slot(at)


def is_other(d: Any, at: Any, key: Any) -> Any:
    return stack_of(d).is_other(at, key)


def holds(d: Any, at: Any, wanted: Any) -> Any:
    return stack_of(d).holds(at, wanted)


def insert(d: Any, at: Any, key: Any) -> None:
    stack_of(d).insert(at, key)


def assign(d: Any, at: Any, value: Any) -> None:
    stack_of(d).assign(at, value)


def default_of(d: Any) -> Any:
    return stack_of(d).default


def value_at(d: Any, at: Any, is_there: Any) -> Any:
    return stack_of(d).value_at(at, is_there)


ALLOWED += [on_dict, counts, default_of, first_slot, next_slot, is_other, holds]
ALLOWED += [insert, assign, value_at]
