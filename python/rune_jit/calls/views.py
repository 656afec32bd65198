"""Results that share memory with arguments, captured arrays or each other, as in NumPy. Also
results that are lists, dicts and dataclasses of the caller."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from rune_jit import trees
from rune_jit.arrays.array import Array
from rune_jit.capture.guards import Watch
from rune_jit.capture.state import Path, Place, content, is_place, with_content
from rune_jit.tracing.array_numbers import Rows, kind_of_rows
from rune_jit.tracing.layouts_now import laid_out_now
from rune_jit.tracing.loop_plans import LoopRefused
from rune_jit.tracing.rows import origin_of, viewed, whole
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.storage import Step
from rune_jit.tracing.trace import Trace, Unless
from rune_jit.tracing.tracer import ATOMIC, Tracer, are_atomic, is_traced_array


class View(NamedTuple):
    """A result that is an output of the program, or a view of one."""

    output: int
    steps: tuple[Step, ...]  # an "element" has the number of the output with its position
    is_writeable: bool
    same_as: int  # the number of the first result that is the same array
    items: tuple[Any, ...] | None  # the index, if the view is one index of the array

    def of(self, outputs: tuple[Any, ...]) -> Any:
        """The result at one call. (Reshapes of views that are not C-contiguous copy, as in
        NumPy.)"""
        base = array = outputs[self.output]
        for step in self.steps:
            if step.kind == "element":
                axis, position = step.argument
                step = Step("index", (*[slice(None)] * axis, int(outputs[position]), ...))
            if step.kind in ("reshape", "ravel"):
                array = np.reshape(array, step.argument)
                array = np.ascontiguousarray(array) if step.kind == "ravel" else array
            else:
                array = step.of_array(array)
        if self.steps and not self.is_writeable and array is not base:
            array.flags.writeable = False
        return array


class Views(NamedTuple):
    """Makes the function's result of the program's outputs. (Only functions whose results have
    views need this.)"""

    views: list[View]
    unflatten: Callable[[Any], Any] | None  # None: the result is a leaf

    def __call__(self, outputs: tuple[Any, ...]) -> Any:
        leaves: list[Any] = []
        for i, view in enumerate(self.views):
            if view.same_as < i:
                leaves.append(leaves[view.same_as])
            elif view.items is not None:
                leaves.append(outputs[view.output][view.items])
            else:
                leaves.append(view.of(outputs))
        return leaves[0] if self.unflatten is None else self.unflatten(tuple(leaves))


class Choice(NamedTuple):
    """A result that is another one if a loop had no iteration. The numbers are those of results."""

    result: int
    has_run: int
    before: int


class Chosen(NamedTuple):
    """Makes the function's result of the leaves of the result and those that choices need."""

    choices: list[Choice]
    own: int  # the number of the leaves of the result
    unflatten: Callable[[Any], Any] | None

    def __call__(self, leaves: tuple[Any, ...]) -> Any:
        found = list(leaves)
        for choice in self.choices:
            if not found[choice.has_run]:
                found[choice.result] = found[choice.before]
        return found[0] if self.unflatten is None else self.unflatten(tuple(found[: self.own]))


def with_choices(
    trace: Trace, leaves: list[Any], unflatten: Callable[[Any], Any] | None
) -> Callable[[Any], Any] | None:
    """Makes the function's result also if some results are arrays from before a loop that has no
    iteration, and share memory then. Appends what else they need to the leaves."""
    count, storages = len(leaves), {id(x._storage) for x in leaves if type(x) is Tracer}
    found: list[Choice] = []  # an earlier loop's come first

    def unless_of(leaf: Any) -> Unless | None:
        unless = trace.unless.get(id(leaf._storage)) if type(leaf) is Tracer else None
        is_now = unless is not None and leaf._storage.version == unless.version
        return unless if is_now and not leaf._steps else None

    # How many results each array is, if loops have no iteration.
    known = {id(x._storage): unless for x in leaves if (unless := unless_of(x)) is not None}
    times = collections.Counter(id(unless.before._storage) for unless in known.values())

    def add(number: int) -> None:
        leaf = leaves[number]
        if (unless := unless_of(leaf)) is None:
            return
        behind = unless.before._storage
        is_seen = behind.is_outside or id(behind) in storages or times[id(behind)] > 1
        if is_seen or id(behind) in trace.unless:
            at = len(leaves)
            has_run = Tracer(trace, trace.operand(unless.has_run), scalar=True)
            leaves.extend((has_run, unless.before))
            add(at + 1)
            found.append(Choice(number, at, at + 1))

    for number in range(count if trace.unless else 0):
        add(number)
    chosen: Any = Chosen(found, count, unflatten)
    return chosen if found else unflatten


class Numbered(NamedTuple):
    """Makes the function's result of leaves some of which are one array if their numbers are equal
    (tracing/array_numbers.py)."""

    numbers: list[tuple[int, int]]  # the positions of arrays, and of their numbers
    rows: list[tuple[int, Rows] | None]  # with the positions of the arrays that have the rows
    own: int  # the number of the leaves of the result
    unflatten: Callable[[Any], Any] | None

    def __call__(self, leaves: tuple[Any, ...]) -> Any:
        found, arrays = list(leaves), dict[int, Any]()
        for at, where in self.numbers:
            if leaves[where] is None:  # (sharing.py asks for an example without arrays)
                continue
            number = int(leaves[where])
            if number not in arrays:
                arrays[number] = self._view(leaves, number, leaves[at])
            found[at] = arrays[number]
        return found[0] if self.unflatten is None else self.unflatten(tuple(found[: self.own]))

    def _view(self, leaves: tuple[Any, ...], number: int, array: Any) -> Any:
        """The view that the array with a number is in NumPy, if it is one at a position that an
        iteration has decided; else the array."""
        kind = kind_of_rows(number)
        rows = None if kind is None else self.rows[kind[0]]
        return array if kind is None or rows is None else rows[1].at(leaves[rows[0]], kind[1])


def with_numbers(
    trace: Trace, leaves: list[Any], unflatten: Callable[[Any], Any] | None
) -> Callable[[Any], Any] | None:
    """Makes the function's result also if data decide which of its leaves are one array, or an
    array from outside. Appends what else it needs to the leaves. Raises LoopRefused if the trace
    begins again to compute numbers of arrays."""
    arrays = [x for x in leaves if is_traced_array(x) and x._trace is trace]
    loops = trace.loops
    if loops is None or not arrays:
        return unflatten
    loops.check_numbers([x._storage for x in arrays])
    if (numbers := loops.numbers) is None:
        return unflatten
    asked = [(i, numbers.known(trace, x)) for i, x in enumerate(leaves) if is_traced_array(x)]
    own = [(i, number) for i, number in asked if number is not None]
    if not own:
        return unflatten
    count, storages = len(leaves), {id(x._storage) for x in arrays}

    def add(array: Tracer) -> int:
        leaves.append(array)
        return len(leaves) - 1

    def is_seen(array: Tracer) -> bool:
        return array._storage.is_outside or id(array._storage) in storages

    # Arrays from outside come first, because they are what results are if the numbers are equal.
    others = [(add(array), number) for array, number in numbers.outside_loops() if is_seen(array)]
    found = [(i, add(Tracer(trace, number, scalar=True))) for i, number in (*others, *own)]
    rows = [(add(x.array), x) if is_seen(x.array) else None for x in numbers.rows]
    return Numbered(found, rows, count, unflatten).__call__


def with_bases(
    trace: Trace, leaves: list[Any], given: list[Any]
) -> tuple[list[Any], list[View] | None]:
    """Plans results that share memory. Returns the arrays that the program computes, and each
    result as a view of these. The views are None if no results share memory. `given`: the leaves of
    the arguments. Raises LoopRefused."""
    if any(map(origin_of, leaves)):
        with trace.active():
            leaves = _not_copied(trace, leaves)
    by_storage: dict[int, list[Tracer]] = {}
    for leaf in leaves:
        if type(leaf) is Tracer and leaf._trace is trace and not leaf._storage.scalar:
            by_storage.setdefault(id(leaf._storage), []).append(leaf)
    if trace.loops is not None:
        trace.loops.check_selected([group[0]._storage for group in by_storage.values()])
    has_arrays = any(isinstance(x, Array) for x in (*given, *trace.captured))
    shared = {
        key: whole(trace, group[0])
        for key, group in by_storage.items()
        if _share_memory(group, given, has_arrays)
    }
    if not shared:
        return leaves, None
    computed: list[Any] = []
    places: dict[int, int] = {}  # of bases, by id of their storages
    first: dict[int, int] = {}
    views = []
    for i, leaf in enumerate(leaves):
        key = id(leaf._storage) if type(leaf) is Tracer else 0
        is_view = key in shared and leaf._trace is trace
        if not is_view or key not in places:
            if is_view:
                places[key] = len(computed)
            computed.append(shared[key] if is_view else leaf)
        at = places[key] if is_view else len(computed) - 1
        same = first.setdefault(id(leaf), i) if is_view else i
        steps = tuple(_with_outputs(trace, leaf._steps, computed)) if is_view else ()
        is_writeable = is_view and leaf._writeable
        views.append(View(at, steps, is_writeable, same, _items(steps) if is_writeable else None))
    return computed, views


def _items(steps: tuple[Step, ...]) -> tuple[Any, ...] | None:
    """The index that these steps are, if they are one index that neither data nor counters
    decide."""
    if len(steps) != 1 or steps[0].kind != "index" or steps[0].varies:
        return None
    items = tuple(steps[0].argument)
    return items if any(item is ... for item in items) else (*items, ...)


def _with_outputs(trace: Trace, steps: tuple[Step, ...], computed: list[Any]) -> Iterator[Step]:
    """The steps, with numbers of outputs in place of positions that data decide. Appends these
    positions to the outputs."""
    for step in steps:
        if step.kind == "element":
            axis, position = step.argument
            step = Step("element", (axis, len(computed)))
            computed.append(Tracer(trace, position, scalar=True))
        yield step


def _not_copied(trace: Trace, leaves: list[Any]) -> list[Any]:
    """The results, with views in place of rows that are views in NumPy of arguments, captured
    arrays or other results, or that overlap. Raises LoopRefused if the position of such a row is
    not known."""
    assert trace.loops is not None
    made = {id(leaf): leaf for leaf in leaves}  # (A result that is returned twice is one object.)
    others = {id(x._storage) for x in leaves if type(x) is Tracer and origin_of(x) is None}
    last: dict[int, tuple[int, Tracer]] = {}  # by memory: the last row, and its id
    for i, leaf in list(made.items()):
        origin = origin_of(leaf)
        if origin is None:
            continue
        view = viewed(leaf)
        storage = view._storage
        is_known = not any(step.varies for step in view._steps)
        if storage.is_outside or id(storage) in others:
            if not is_known:
                trace.loops.plans.refuse(
                    origin.loop, "it returns views of an array whose positions data decide"
                )
                raise LoopRefused
            made[i] = view
        elif is_known:
            before, other = last.get(id(storage), (i, view))
            if before != i and _may_overlap(other, view):
                made[before], made[i] = other, view
            last[id(storage)] = i, view
    return [made[id(leaf)] for leaf in leaves]


def _share_memory(group: list[Tracer], given: list[Any], has_arrays: bool) -> bool:
    """Whether results with one storage must be views of one array."""
    storage = group[0]._storage
    if not all(map(_is_fixed, group)):
        return False
    if storage.array is None and storage.is_outside:
        base = storage.captured if storage.leaf is None else given[storage.leaf]
        return type(base) is np.ndarray and any(x._steps for x in group)
    if has_arrays:
        return False
    if any(map(_is_read_only, group)):
        return True  # (a view can be read-only)
    if len(group) == 1:
        return False
    if all(not x._steps for x in group):  # one array is one output anyhow
        return storage.array is not None
    return any(_may_overlap(a, b) for a, b in itertools.combinations(group, 2))


def _is_read_only(x: Tracer) -> bool:
    is_numpys = any(step.kind == "broadcast_arrays" for step in x._steps)
    return bool(x._steps) and not (x._writeable or is_numpys)


def _may_overlap(a: Tracer, b: Tracer) -> bool:
    """Whether two views of one storage may share elements."""
    if any(step.kind == "element" for step in (*a._steps, *b._steps)):
        return True
    first, second = laid_out_now(a), laid_out_now(b)
    return first is None or second is None or bool(np.may_share_memory(first, second))


def _is_fixed(x: Tracer) -> bool:
    """Whether a view and its array have the same shapes at each call."""
    if any(isinstance(n, Size) for n in x._storage.shape):
        return False
    return not any(step.kind == "pad" for step in x._steps)


def with_places(
    trace: Trace, watch: Watch, given: dict[int, Path], x: Any, known: dict[int, Any] | None = None
) -> tuple[Any, bool]:
    """A result with Places in place of lists, dicts and dataclasses that the function did not make,
    and whether the arguments have such objects. `given`: the paths of these objects, by id.
    `known`: what this function has returned for lists and dicts, by id."""
    if type(x) in ATOMIC:
        return x, False
    known = {} if known is None else known
    if id(x) in known:
        return known[id(x)]  # type: ignore[no-any-return]
    if (path := given.get(id(x))) is not None:
        return Place(path), True
    if not (isinstance(x, tuple) or is_place(x)):
        return x, False
    if not isinstance(x, tuple) and (trace.rebind.is_copy(x) or watch.knows(x)):
        return Place(None, trace.rebind.outside(x)), False
    held = trees.fields_of(x) if isinstance(x, tuple) else content(x)
    if are_atomic(held.values()):
        return x, False
    found = {key: with_places(trace, watch, given, item, known) for key, item in held.items()}
    if all(found[key][0] is item for key, item in held.items()):
        return x, False
    made = with_content(x, {key: item for key, (item, _) in found.items()})
    replaced = made, any(is_given for _, is_given in found.values())
    if not isinstance(x, tuple):
        known[id(x)] = replaced
    return replaced
