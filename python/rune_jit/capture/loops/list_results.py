"""Lists that the traced function makes, appends to, and returns (made_lists.py). If data decide how
long such a list is, arrays represent it in the program (growing.py). The result of the trace has a
MadeList in its place, and each call makes the list of the MadeList's arrays. Numbers that a loop
has appended to a list of known length are one array among the results, too (PackedList)."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from rune_jit.capture.loops.effects import ALLOWED
from rune_jit.capture.loops.growing import Capacity, Filled, Growing, Leaf, array_of, items_of
from rune_jit.capture.loops.made_lists import CONVERTED, MADE_LIST, MADE_STACK, REVERSED
from rune_jit.capture.loops.reading import Stack
from rune_jit.capture.loops.source import STACK_CODES
from rune_jit.capture.shim import original
from rune_jit.tracing.context import current_trace, is_own
from rune_jit.tracing.loop_plans import LoopRefused
from rune_jit.tracing.rows import RowStorage, Run, pack, runs_of, unpack
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import ATOMIC, Tracer, are_atomic, is_traced_array

# How many items a list has room for at first, if more may be appended. Programs with room for more
# follow if calls need it.
_LIKELY = 2**12
_CONVERSIONS: dict[str, Any] = {
    "array": np.array,
    "asarray": np.asarray,
    REVERSED: lambda items: items[::-1],
}


class MadeList(NamedTuple):
    """A list among the results of a trace, or what a conversion makes of it."""

    number: int  # equal for one list that is returned several times
    before: list[Any]  # the items with which the function has made it
    appended: Filled
    conversion: str  # a name in _CONVERSIONS, or ""


class PackedList(NamedTuple):
    """A list among the results of a trace whose length is known. For its parts see
    tracing.rows.pack."""

    number: int  # equal for one list that is returned several times
    leaves: list[Any]
    hows: list[Any]


# The position in tuples and lists, and the keys of dicts, that lead to an object.
Path = tuple[Any, ...]


class _Converted(NamedTuple):
    """What a conversion makes of a list."""

    conversion: str
    items: list[Any]


class _Made(Growing):
    """Such a list in a trace."""

    def __init__(self, trace: Trace, name: str, items: list[Any], are_new: bool) -> None:
        """For `are_new` see made_list."""
        capacity = Capacity(likely=_LIKELY)
        capacity.learned = trace.room
        super().__init__(trace, f"made {name}", items, capacity)
        self._are_new = are_new

    def _kind(self, x: Any) -> Leaf:
        if is_traced_array(x) and not self._are_new:
            self.refuse("it appends an array for which another name may stand")
        return super()._kind(x)

    def refuse(self, why: str) -> NoReturn:
        """Refuses to represent the list by arrays. Raises LoopRefused."""
        assert self._plan is not None
        self._plan.is_refused = True
        raise LoopRefused


def made_list(name: str, are_new: bool, items: list[Any]) -> list[Any]:
    """The list `items` that the function assigns to `name`. `are_new`: whether appended arrays
    surely are new ones."""
    trace = current_trace()
    if trace is None or not _may_represent(trace):
        return items
    is_simple = all(type(x) is Tracer or type(x) in ATOMIC for x in items)
    if is_simple and is_outermost(trace, sys._getframe(1)):
        assert trace.loops is not None
        trace.loops.growing[id(items)] = _Made(trace, name, items, are_new)
    return items


class _MadeStack(Stack):
    """A list that the function also reads, in a trace."""

    def __init__(
        self,
        trace: Trace,
        name: str,
        items: list[Any],
        initial: tuple[Any, ...],
        size: int,
        code: Any,
    ) -> None:
        self._code = code  # of the function
        capacity = Capacity(is_stack=True, likely=_LIKELY)
        capacity.learned = trace.room
        super().__init__(trace, f"made {name}", items, capacity, initial, size)

    def refuse(self, why: str) -> NoReturn:
        """Refuses to represent the function's lists that are read. Raises LoopRefused."""
        self._loops.plans.without_stacks(self._code)
        raise LoopRefused


def made_stack(name: str, size: int, items: Any) -> Any:
    """The list or deque `items` that the function assigns to `name`, and reads. `size` is that of
    the tuples that are its items, or 0 if these are numbers. Raises LoopRefused if arrays cannot
    represent it: the calls in place of operations on the list need them."""
    trace, frame = current_trace(), sys._getframe(1)
    if trace is None or trace.is_segmented or trace.loops is None:
        return items
    code = STACK_CODES[frame.f_code]
    is_known = type(items) in (list, deque) and _are_of_one_size(items)
    if not is_known or not is_outermost(trace, frame) or not _may_represent(trace):
        trace.loops.plans.without_stacks(code)
        raise LoopRefused
    made: list[Any] = []  # (instead of a deque, too)
    trace.loops.growing[id(made)] = _MadeStack(trace, name, made, tuple(items), size, code)
    return made


def _may_represent(trace: Trace) -> bool:
    """Whether arrays may represent a list that the traced function makes now. In the body of a loop
    of the program, each iteration makes another list."""
    if trace.is_segmented or trace.loops is None or not trace.decides or trace.in_chunks:
        return False
    return not trace.loops.within and not trace.loops.num_conditions


def _are_of_one_size(items: Any) -> bool:
    """Whether all items are numbers, or tuples of equally many numbers."""
    sizes = {len(x) if type(x) is tuple else None for x in items}
    parts = [y for x in items for y in (x if type(x) is tuple else (x,))]
    return len(sizes) < 2 and all(_is_number(x) for x in parts)


def _is_number(x: Any) -> bool:
    if type(x) is Tracer:
        return not is_traced_array(x)
    return isinstance(x, (bool, int, float, np.bool_, np.number))


def is_outermost(trace: Trace, frame: Any) -> bool:
    """Whether a frame is that of the traced function, not of one that it calls. (Another function
    could read a list that this one returns.)"""
    frame = frame.f_back
    while frame is not None and frame.f_code is not trace.caller:
        if not is_own(frame.f_code.co_filename):
            return False
        frame = frame.f_back
    return frame is not None


def converted(how: Any, items: list[Any]) -> Any:
    """how(items), where `how` is a function, or REVERSED for `items[::-1]`."""
    trace = current_trace()
    loops = trace.loops if trace is not None else None
    found = loops.growing.get(id(items)) if loops is not None else None
    if found is None or not found.is_wanted:
        return items[::-1] if how == REVERSED else how(items)
    for name, function in _CONVERSIONS.items():
        if how == name or original(how) is function:
            return _Converted(name, items)
    return found.refuse("a function reads a list to which it appends")


def with_made_lists(trace: Trace, result: Any) -> tuple[Any, list[Path]]:
    """The result of a trace with MadeLists in place of lists that arrays represent, and the places
    of these. Called while the trace is active."""
    growing = trace.loops.growing if trace.loops is not None else {}
    if not growing:
        return result, []
    made: dict[int, Filled] = {}

    def of(x: Any) -> Any:
        conversion, items = x if type(x) is _Converted else ("", x)
        found = growing.get(id(items)) if type(items) is list else None
        if found is None or type(filled := made.get(id(items)) or found.filled()) is not Filled:
            return x
        made[id(items)] = filled
        before = [] if isinstance(found, Stack) else [*items]
        return MadeList([*made].index(id(items)), before, filled, conversion)

    return _replaced(result, of)


def with_packed_lists(trace: Trace, result: Any) -> tuple[Any, list[Path]]:
    """The result of a trace with PackedLists in place of lists with many numbers that a loop has
    appended, and the places of these. The result must have no list from outside."""

    numbers: dict[int, int] = {}

    def of(x: Any) -> Any:
        if type(x) is not list or len(x) < _MANY or are_atomic(x):
            return x
        packed = PackedList(numbers.setdefault(id(x), len(numbers)), [], [])
        for part in runs_of(x):
            is_long = type(part) is Run and len(part.items) >= _MANY
            if is_long and _is_number_of_loop(part.items[0]):
                for into, more in zip(packed[1:], pack(trace, part.items), strict=True):
                    into += more
            else:
                items = part.items if type(part) is Run else [part]
                packed.leaves.extend(items)
                packed.hows.extend([None] * len(items))
        return x if len(packed.leaves) == len(x) else packed

    with trace.active():
        return _replaced(result, of)


# Lists of fewer numbers are not packed.
_MANY = 8


def _is_number_of_loop(x: Any) -> bool:
    return type(x) is Tracer and type(x._storage) is RowStorage and x._storage.scalar


def _replaced(result: Any, replace: Callable[[Any], Any]) -> tuple[Any, list[Path]]:
    """A result with other objects in its tuples, lists and dicts, and the places of these."""
    paths: list[Path] = []
    known: dict[int, Any] = {}  # what lists and dicts have become

    def of(x: Any, path: Path) -> Any:
        if id(x) in known:
            return known[id(x)]
        if (new := replace(x)) is not x:
            paths.append(path)
            return new
        if type(x) not in (tuple, list, dict):
            return x
        if are_atomic(x.values() if type(x) is dict else x):
            return x
        pairs = x.items() if type(x) is dict else enumerate(x)
        parts = {key: of(part, (*path, key)) for key, part in pairs}
        if all(part is x[key] for key, part in parts.items()):
            return x
        new = parts if type(x) is dict else type(x)(parts.values())
        if type(x) is not tuple:
            known[id(x)] = new
        return new

    return of(result, ()), paths


def with_lists(unflatten: Any, paths: list[Path], outputs: tuple[Any, ...]) -> Any:
    """The result that `unflatten` makes of a program's outputs, with lists in place of MadeLists
    and PackedLists."""
    lists: dict[int, list[Any]] = {}
    unpacked: dict[int, list[Any]] = {}

    def made(x: Any) -> Any:
        if type(x) is PackedList:
            if x.number not in unpacked:
                unpacked[x.number] = unpack(x.leaves, x.hows)
            return unpacked[x.number]
        if x.conversion in ("array", "asarray") and not x.before and x.appended.count is not None:
            array = array_of(x.appended)
            if array is not None:
                return array
        if x.number not in lists:
            lists[x.number] = [*x.before, *items_of(x.appended)]
        items = lists[x.number]
        return _CONVERSIONS[x.conversion](items) if x.conversion else items

    def replaced(x: Any, path: Path) -> Any:
        if not path:
            return made(x)
        key, *rest = path
        parts = list(x) if type(x) is tuple else x
        parts[key] = replaced(parts[key], tuple(rest))
        return tuple(parts) if type(x) is tuple else x

    result = unflatten(outputs)
    for path in paths:
        result = replaced(result, path)
    return result


ALLOWED += [made_list, made_stack, converted]

MADE_LISTS = {MADE_LIST: made_list, MADE_STACK: made_stack, CONVERTED: converted}
