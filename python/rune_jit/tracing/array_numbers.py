"""Numbers of arrays: equal numbers mean the same array. A program computes them if data decide in a
loop which of several arrays a name stands for, and more than one of these arrays leave the
function. Calls then return one array for results with equal numbers, as NumPy does:

    a = b = x * 2
    for v in x:
        if v > 0:
            b = b + 1
    return a, b                   # one array, if no element is positive

A number counts the arrays that the trace makes, in steps that leave room for views. A loop that
carries arrays also carries the number from which its body counts, so that each iteration makes
other numbers. Arguments and captured arrays have negative numbers. A row at a position that an
iteration decides (`x[i]`) has a number that contains the position."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from rune_jit.errors import UnsupportedOpError
from rune_jit.tracing.loop_plans import LoopRefused
from rune_jit.tracing.rows import whole
from rune_jit.tracing.sizes import Size, has_sizes
from rune_jit.tracing.storage import Step, Storage, next_serial
from rune_jit.tracing.tracer import Tracer

if TYPE_CHECKING:
    from rune_jit.tracing.trace import Trace


# The numbers of an array and of its views are in a range of this size.
_MOST_VIEWS = 1000
# The numbers of rows of one kind are in a range of this size. (Positions may be negative.)
_MOST_ROWS = 2**40


class _From(NamedTuple):
    """Storages with greater serials than `serial` have the numbers that follow `base`."""

    serial: int
    base: Any  # None: zero


class _Numbered(NamedTuple):
    array: Tracer  # (which keeps its storage alive)
    number: Any  # None: it cannot be computed, and `of` refuses the loop
    is_in_loop: bool  # whether it exists in an iteration only


class _Position:
    """Stands in an index for the position that an iteration decides."""


_POSITION = _Position()


class Rows(NamedTuple):
    """The views of an array that differ in one position."""

    array: Tracer
    before: tuple[Step, ...]
    items: tuple[Any, ...]  # an index with _POSITION
    after: tuple[Step, ...]

    def at(self, array: np.ndarray, position: int) -> np.ndarray:
        """The view of `array` at a position."""
        items = tuple(position if item is _POSITION else item for item in self.items)
        for step in (*self.before, Step("index", items), *self.after):
            array = step.of_array(array)
        return array


def kind_of_rows(number: int) -> tuple[int, int] | None:
    """Which of `ArrayNumbers.rows` the array with a number is in, and its position. None if it is
    in none of them."""
    kind, position = divmod(-number, _MOST_ROWS)
    return (kind - 1, position - _MOST_ROWS // 2) if kind > 0 else None


class ArrayNumbers:
    """The numbers of the arrays of one trace."""

    def __init__(self) -> None:
        self._froms = [_From(next_serial(), None)]
        self._known: dict[int, _Numbered] = {}  # by id of a storage, or of a view
        self._places: dict[int, int] = {}  # of arrays from outside, by id of their storages
        self._views: dict[int, int] = {}  # by id of a storage: how many views of it have numbers
        self.rows: list[Rows] = []

    def of(self, trace: Trace, array: Tracer) -> Any:
        """The number of an array. A view is an array of its own."""
        key = id(array) if array._steps else id(array._storage)
        if (known := self._known.get(key)) is not None:
            if known.number is None:
                self._refuse(trace)
            return known.number
        storage, view = array._storage, 0
        if array._steps and self._is_in_loop(storage):
            self._refuse(trace)
        if any(step.varies for step in array._steps):
            number = self._number_of_row(trace, array)
            self.note(trace, array, number)
            return number
        if array._steps:
            view = self._views[id(storage)] = self._views.get(id(storage), 0) + 1
            if view >= _MOST_VIEWS:
                raise UnsupportedOpError(
                    f"{trace.name}: cannot trace more than {_MOST_VIEWS - 1} views of one array"
                    " if data decide in a loop which of them is returned\nhint: return copies"
                )
        if storage.is_outside:
            place = self._places.setdefault(id(storage), len(self._places))
            number = trace.builder.constant(np.int64((-1 - place) * _MOST_VIEWS + view))
        elif (of := self._known.get(id(storage))) is not None:
            if of.number is None:
                self._refuse(trace)
            number = _sum(trace, of.number, view)
        else:
            number = self._number(trace, storage.serial, view)
        self.note(trace, array, number)
        return number

    def _number_of_row(self, trace: Trace, array: Tracer) -> Any:
        for i, step in enumerate(array._steps):
            if not step.varies:
                continue
            before, after = array._steps[:i], array._steps[i + 1 :]
            found = _position_in(trace, step)
            if found is None or any(x.varies for x in after):
                break
            items, position = found
            self.rows.append(Rows(whole(trace, array), before, items, after))
            first = trace.builder.constant(np.int64(-len(self.rows) * _MOST_ROWS - _MOST_ROWS // 2))
            return trace.builder.ufunc("subtract", [first, position])[0]
        self._refuse(trace)

    def _refuse(self, trace: Trace) -> NoReturn:
        """Refuses the loop whose body is being traced, or all loops if they have been traced."""
        assert trace.loops is not None
        why = "it returns a view of an array, and data decide which view"
        if not trace.loops.within:
            trace.loops.plans.refuse_all(why)
            raise LoopRefused
        trace.loops.fail(why)

    def note(self, trace: Trace, array: Tracer, number: Any, is_given: bool = False) -> None:
        """Gives an array this number. `is_given`: whether it is a carried array of a body whose
        trace begins."""
        key = id(array) if array._steps else id(array._storage)
        bodies = trace.loops.open if trace.loops is not None else []
        varies = any(step.varies for step in array._steps)
        is_own = bool(bodies) and (varies or not bodies[0].is_older(array._storage))
        self._known[key] = _Numbered(array, number, is_given or is_own)

    def select(self, trace: Trace, holds: Any, a: Tracer, b: Tracer, made: Tracer) -> None:
        """Gives `made` the number of a if `holds`, else that of b."""
        if any(x._steps and self._is_in_loop(x._storage) for x in (a, b)):
            self.note(trace, made, None)  # (the trace may replace it by a view of a selection)
            return
        numbers = self.of(trace, a), self.of(trace, b)
        self.note(trace, made, trace.builder.select(holds, *numbers))

    def _is_in_loop(self, storage: Storage) -> bool:
        known = self._known.get(id(storage))
        return known is not None and known.is_in_loop

    def known(self, trace: Trace, array: Tracer) -> Any:
        """The number of an array that exists after all loops, if it has been asked for."""
        found = self._known.get(id(array) if array._steps else id(array._storage))
        if found is None or found.is_in_loop:
            return None
        return self.of(trace, array)

    def outside_loops(self) -> Iterator[tuple[Tracer, Any]]:
        """The arrays that exist outside of loops whose numbers have been asked for, and these
        numbers."""
        for array, number, is_in_loop in self._known.values():
            if not is_in_loop and number is not None:
                yield array, number

    def now(self, trace: Trace) -> Any:
        """A number such that all arrays made from now on can have greater ones."""
        return self._number(trace, next_serial(), 0)

    def begin(self, base: Any) -> None:
        """Lets the arrays made from now on have the numbers that follow `base`."""
        self._froms.append(_From(next_serial(), base))

    @property
    def num_bases(self) -> int:
        """How many calls of `begin` have not been taken back."""
        return len(self._froms)

    def end(self, num_bases: int) -> None:
        """Takes back the calls of `begin` since there were so many."""
        del self._froms[num_bases:]

    def _number(self, trace: Trace, serial: int, view: int) -> Any:
        of = next(x for x in reversed(self._froms) if x.serial < serial)
        return _sum(trace, of.base, (serial - of.serial) * _MOST_VIEWS + view)


def _position_in(trace: Trace, step: Step) -> tuple[tuple[Any, ...], Any] | None:
    """The index that a step is, with _POSITION in place of its only position that differs from
    iteration to iteration; and the position. None if the step is nothing of the kind."""
    if step.kind == "element":
        axis, at = step.argument
        return (*[slice(None)] * axis, _POSITION, ...), trace.builder.astype(at, np.int64)
    items = step.argument if step.kind == "index" else ()
    sizes = [i for i, item in enumerate(items) if has_sizes(item)]
    if len(sizes) != 1 or type(items[sizes[0]]) is not Size:
        return None
    at = trace.builder.astype(trace.operand(items[sizes[0]]), np.int64)
    known = [_POSITION if i in sizes else item for i, item in enumerate(items)]
    return (*known, *([] if ... in known else [...])), at


def _sum(trace: Trace, base: Any, count: int) -> Any:
    number = trace.builder.constant(np.int64(count))
    return number if base is None else trace.builder.ufunc("add", [base, number])[0]
