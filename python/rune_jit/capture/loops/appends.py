"""Lists that a loop of the program appends to. Each iteration appends the same number of values, or
each iteration in which a condition on the counter holds (`if i % 10 == 0`). The loop writes the
values to the rows of arrays. After the loop, the list gets these rows."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rune_jit.capture.grown import Grown, changes_list, is_list
from rune_jit.capture.loops.aliases import Aliases, appended_only
from rune_jit.capture.loops.effects import ALLOWED
from rune_jit.capture.loops.kinds import UNSET, GivenUp, kind_of
from rune_jit.capture.loops.ranges import Range
from rune_jit.capture.loops.shared_rows import SharedRows
from rune_jit.capture.loops.source import LOOPS
from rune_jit.capture.loops.structures import is_mutable, made_like, parts_of
from rune_jit.capture.loops.unfold import APPEND, APPENDED, COLLECT, EXTENDED, LAST, LAST_OF
from rune_jit.rules.coercions import laid_out_as
from rune_jit.tracing.context import current_trace
from rune_jit.tracing.loops import Body
from rune_jit.tracing.rows import Origin, Run, row, runs_of, storage_viewed
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, is_traced_array

# The most values that a loop may append to a list: each becomes an object of the trace.
_MOST_ITEMS = 100_000
# The most Python numbers that a loop may append to a list: each becomes an operation of the trace.
_MOST_NUMBERS = 1000
# A loop of at least this many iterations had better run apart than be unrolled.
_MANY = 100
# Types of values that are the same in all iterations, because they are not traced.
_CONSTANTS = (bool, int, float, complex, str, type(None), np.generic, np.dtype)


def append(items: Any, value: Any) -> Any:
    """items.append(value)"""
    grown = items if type(items) is Grown else None
    items = items.new if grown is not None else items
    trace = current_trace()
    loops = trace.loops if trace is not None else None
    if loops is None or not (loops.within or loops.growing):
        return items.append(value)
    if type(items) is not list:
        if type(items) is not deque:
            loops.refuse("it calls the method append")
        return items.append(value)
    if trace is not None and trace.decides and trace.rebind.knows(items):
        raise changes_list(items)
    if (found := loops.growing.get(id(items))) is not None and found.is_wanted:
        caller = sys._getframe(1)
        found.append(value, (caller.f_code, caller.f_lasti))
        return None
    if is_better_apart(trace, items, sys._getframe(1).f_locals):
        loops.plans.apart = "it appends to a list under a condition"
    if not loops.append(items, [value], False):
        if grown is not None and loops.open:  # (the loop has code that reads the list)
            grown.refuse()
        items.append(value)
    return None


def is_better_apart(trace: Any, items: list[Any], names: dict[str, Any]) -> bool:
    """Whether the loop that appends to a list had better run apart: a condition decides whether an
    iteration appends, and there are many iterations, which would otherwise be unrolled. `names` are
    the local variables; one of them must be the list."""
    loops = trace.loops
    growing = loops.growing.get(id(items))
    is_growing = growing is not None and not growing.is_refused
    if not loops.open or not trace.builder.must_pay or is_growing:
        return False
    body = loops.open[0]
    low, high = (x if type(x) is int else 0 for x in (body.counter.low, body.counter.high))
    loop = LOOPS[body.loop]
    if len(loops.open) == 1 and loops.is_decided_by_counter(trace.builder):
        return False
    if high - low < _MANY or loops.num_conditions <= body.conditions or loop.original is None:
        return False
    if all(names.get(name) is not items for name in appended_only(loop.original)):
        return False
    return not Aliases(loop.original, loop.results).are_possible(names, names.__getitem__)


def collect(items: list[Any], value: Any) -> None:
    """Appends to the list of a comprehension, which the comprehension's loop has made."""
    trace = current_trace()
    loops = trace.loops if trace is not None else None
    if loops is None or not loops.append(items, [value], True):
        items.append(value)


def extended(items: Any, values: list[Any]) -> Any:
    """items += values"""
    if not is_list(items):
        items += values
        return items
    for value in values:
        append(items, value)
    return items


def appended(items: Any, value: Any) -> Any:
    """Appends a value to a list and returns the value."""
    append(items, value)
    return value


def last(items: Any, kept: Any) -> Any:
    """items[-1], or `kept` while the trace is in a loop of the program that appends to the list."""
    trace = current_trace()
    loops = trace.loops if trace is not None else None
    is_kept = loops is not None and loops.open and id(items) in loops.open[-1].lists
    return kept if is_kept else items[-1]


def last_of(name: str) -> Any:
    """The last item of the list in the caller's local variable `name`. UNSET if the variable is no
    list or the list is empty."""
    items = sys._getframe(1).f_locals.get(name)
    return items[-1] if type(items) is list and items else UNSET


class _Array(NamedTuple):
    """The values that the iterations write to one array."""

    value: Tracer | Run | list[Tracer]  # what an iteration writes: one row, or several
    carried: int = -1  # the array's number among the values that the loop carries
    is_flat: bool = False  # whether each iteration appends several rows (else, it appends one)


class _Item(NamedTuple):
    """A traced array or number that each iteration appends."""

    array: int  # the number of the _Array
    like: Tracer  # the value in the traced iteration
    part: tuple[int, ...] = ()  # its index in what an iteration writes to the array
    first: Any = None  # what the first iteration appends, if it existed before the loop


class _Structure(NamedTuple):
    """A dict, object or named tuple that each iteration appends."""

    like: Any  # the object in the traced iteration
    parts: list[Any]  # the plans of its parts
    first: Any = None  # what the first iteration appends, if it existed before the loop


class Appends:
    """The values that the iterations of a loop append to lists."""

    def __init__(
        self,
        trace: Trace,
        body: Body,
        numbers: Range,
        reaches: Callable[[Any], bool],
        replaced: list[tuple[Any, Any]],
    ) -> None:
        """`reaches` tells whether the body can reach an object from outside of the body. `replaced`
        has a pair for each list, dict or object that iterations replace: its stand-in in the body,
        and the object before the loop."""
        self._trace, self._body, self._range, self._reaches = trace, body, numbers, reaches
        self._replaced = replaced
        # By the id of a structure in the traced iteration: the structures of all iterations.
        self._made: dict[int, list[Any]] = {}
        # Each list, the plans of what an iteration appends to it, whether the list is a
        # comprehension's, and the iterations that append.
        self._lists: list[tuple[list[Any], list[Any], bool, list[int] | range]] = []
        # Of the list that is planned now: whether some iterations do not append to it, and whether
        # its values are only printed.
        self._is_partial = False
        self._is_printed = False
        self._arrays: list[_Array] = []
        self._seen: set[int] = set()  # ids of the objects and storages that are appended
        self._taken: set[int] = set()  # ids of the storages that the next iteration appends

    def check(
        self, runs_all: bool, given: dict[int, str], before: dict[str, Any], after: dict[str, Any]
    ) -> None:
        """Plans the arrays. Raises GivenUp if arrays of rows cannot hold the appended values.
        `runs_all` tells whether all iterations surely run. `given` has the names of the arrays that
        the loop carries as values, by the ids of their storages at the start of an iteration.
        `before` and `after` are the values of names before the loop and after an iteration."""
        appended = self._body.appended.values()
        iterations = [self._iterations(items, conditions) for items, *_, conditions in appended]
        if not runs_all or type(self._range.count) is not int:
            self._grow()
            raise GivenUp("it appends to a list, and how often it runs is not known")
        if self._range.iterations_before(self._body.counter) is None:
            self._grow()
            raise GivenUp("it appends to a list, and its steps are not 1")
        self._given, self._before, self._after = given, before, after
        prints = self._trace.prints
        for (items, values, is_new, _), runs in zip(appended, iterations, strict=True):
            self._is_partial = len(runs) < self._range.count
            self._is_printed = prints is not None and prints.has(items)
            self._check_count(len(values), _MOST_ITEMS)
            is_flat = len(values) > 1 and self._are_alike(values)
            planned = self._plan_rows(values, values) if is_flat else self._plan_list(values)
            if is_flat:
                self._arrays[-1] = self._arrays[-1]._replace(is_flat=True)
            self._lists.append((items, planned, is_new, runs))
        if not self._seen.isdisjoint(self._taken):
            raise GivenUp("it appends an array twice")

    def _iterations(self, items: list[Any], conditions: list[Any]) -> list[int] | range:
        """The iterations that append to a list: those in which the conditions hold. Raises GivenUp
        if that is not known now."""
        numbers, builder = self._range, self._trace.builder
        found: list[int] | range = range(numbers.count if type(numbers.count) is int else 0)
        for condition in conditions:
            of = (numbers.start, numbers.count, numbers.step) if numbers.is_known else None
            holds = of and builder.holds_at(self._body.counter, condition, *of)
            if holds is None:
                assert self._trace.loops is not None
                self._trace.loops.grow(items)
                raise GivenUp("it appends to a list under a condition")
            found = [k for k in found if holds[k]]
        return found

    def iterations_of(self, items: list[Any]) -> list[int] | range:
        """The numbers of the iterations that append to a list."""
        return next(runs for known, *_, runs in self._lists if known is items)

    def _grow(self) -> None:
        """Asks for the lists to be traced as growing lists. Raises LoopRefused if one of them can
        be such a list, so that the trace begins again."""
        for items, *_ in self._body.appended.values():
            assert self._trace.loops is not None
            self._trace.loops.grow(items)

    def _are_alike(self, values: list[Any]) -> bool:
        if not all(type(x) is Tracer for x in values):
            return False
        if any(map(self._is_from_outside, values)):
            return False
        kind = kind_of(self._trace, values[0])
        return all(kind_of(self._trace, x) == kind for x in values[1:])

    def _check_count(self, values: int, most: int) -> None:
        if self._range.count * values > most:
            self._grow()
            raise GivenUp(f"it appends more than {most} values to a list")

    def _plan_list(self, values: list[Any]) -> list[Any]:
        """The plan of each value: an _Item for a traced array or number, a _Structure or _Known for
        others."""
        made: list[Any] = []
        for part in runs_of(values):
            if type(part) is not Run:
                made.append(self._plan(part))
            elif len(part.items) == 1 or type(part.items[0]) is not Tracer:
                made += map(self._plan, part.items)
            else:
                made += self._plan_rows(part.items, part)
        return made

    def _plan_rows(self, items: list[Any], value: Any) -> list[Any]:
        self._check_count(len(items), _MOST_ITEMS)
        made = [_Item(len(self._arrays), x, (k,), self._check(x)) for k, x in enumerate(items)]
        self._arrays.append(_Array(value))
        return made

    def _plan(self, value: Any) -> Any:
        if type(value) is tuple:
            return tuple(self._plan_list(list(value)))
        if (parts := parts_of(value)) is not None:
            if self._is_partial:
                raise GivenUp(f"it appends a {type(value).__name__} under a condition")
            if is_mutable(value):
                if id(value) in self._seen or self._reaches(value):
                    raise GivenUp(f"it appends a {type(value).__name__} that it has not made")
                self._seen.add(id(value))
            first = next((x for given, x in self._replaced if given is value), None)
            return _Structure(value, self._plan_list(list(parts.values())), first)
        if type(value) is not Tracer or self._is_from_outside(value):
            return _Known(self._known(value))
        first = self._check(value)
        self._arrays.append(_Array(value))
        return _Item(len(self._arrays) - 1, value, (), first)

    def _is_from_outside(self, x: Tracer) -> bool:
        """Whether x is an array that existed before the iteration, the same one in all of them."""
        if not is_traced_array(x) or not self._body.is_older(x._storage):
            return False
        return not x._steps or any(x is value for value in self._before.values())

    def _known(self, value: Any) -> list[Any]:
        """The value in each iteration, if it is no traced number or array of the iteration."""
        if type(value) is not Size:
            if type(value) is not Tracer and not isinstance(value, _CONSTANTS):
                raise GivenUp(f"it appends a {type(value).__name__} to a list")
            return [value] * int(self._range.count)
        times = value.coefficients.get(self._body.counter.names[0], 0)
        rest = value - self._body.counter * times
        if type(rest) is not int or not self._range.is_known:
            raise GivenUp("it appends a size to a list")
        return [rest + times * number for number in self._range.known]

    def _check(self, value: Tracer) -> Any:
        """Raises GivenUp for a number that may or may not be Python's. Raises it for an array whose
        memory is not the iteration's alone. Returns what the first iteration appends if that is an
        array from before the loop, else None."""
        if is_traced_array(value):
            return self._check_array(value)
        kind = kind_of(self._trace, value)
        if kind[0] == "unsure" or kind[-1] in ("bool", "complex"):
            if kind[0] != "NumPy's":
                raise GivenUp("it appends a number to a list that may be Python's")
        elif kind[0] == "Python's":
            self._check_count(1, _MOST_NUMBERS)
            # (The code that follows may need the value of an integer.)
            is_data = self._trace.builder.depends_on_arguments(value._value_in(self._trace))
            if kind[-1] != "float" and not (is_data or self._is_printed):
                raise GivenUp("it appends a number to a list that no array decides")
        return None

    def _check_array(self, value: Tracer) -> Any:
        storage, loops = value._storage, self._trace.loops
        assert loops is not None
        if any(type(n) is Size for n in value.shape):
            raise GivenUp("it appends arrays of different shapes to a list")
        if loops.sharing(storage):
            raise GivenUp("it appends an array to a list that may be the same as another one")
        if self._body.has_written(storage):
            raise GivenUp("it appends an array to a list that it writes to")
        if id(storage) in self._seen:
            raise GivenUp("it appends an array twice")
        self._seen.add(id(storage))
        name = self._given.get(id(storage))
        others = (x._storage for x in self._after.values() if is_traced_array(x))
        if self._is_partial and (name is not None or any(x is storage for x in others)):
            raise GivenUp("it appends an array under a condition for which a name stands")
        if name is None:
            return None
        new = self._after[name]._storage
        self._taken.add(id(new))
        if value._steps or id(new) in self._given or self._body.is_older(new):
            raise GivenUp(f"it appends {name} to a list, which stands for another name's array")
        return self._before[name]

    def carry(self, initial: list[Any], finals: list[Any]) -> None:
        """Adds the arrays to the values that the loop carries."""
        builder, counter = self._trace.builder, self._body.counter
        position = self._range.iterations_before(counter)
        for number, array in enumerate(self._arrays):
            value = self._value(array.value)
            if value.weak is not None:
                value = builder.astype(value, value.dtype)
            empty = builder.full([self._range.count, *value.shape], 0, value.dtype)
            self._arrays[number] = array._replace(carried=len(initial))
            rows = builder.carry(counter, len(initial), empty)
            initial.append(empty)
            finals.append(builder.put(rows, [position], value))

    def _value(self, written: Tracer | Run | list[Tracer]) -> Any:
        trace = self._trace
        if type(written) is Run:
            return written.value(trace)
        if type(written) is not list:
            return trace.operand(written)
        runs = runs_of(written)
        if len(runs) == 1 and type(runs[0]) is Run:
            return runs[0].value(trace)
        return trace.builder.stack([trace.operand(x) for x in written], 0)

    def extend(self, results: list[Any], made: dict[str, Any]) -> None:
        """Appends the rows to the lists. `results` are the loop's results, `made` the values of
        names after it."""
        loops, builder = self._trace.loops, self._trace.builder
        assert loops is not None
        self._results = [results[array.carried] for array in self._arrays]
        for number, array in enumerate(self._arrays):
            if array.is_flat:
                rows = self._results[number]
                self._results[number] = builder.reshape(rows, [-1, *rows.shape[2:]])
        # By the id of a storage in the traced iteration: its array there, and in all iterations.
        self._rows: dict[int, tuple[Tracer, list[Tracer]]] = {}
        new = [
            [x for k in runs for x in self._of(planned, k)] for _, planned, _, runs in self._lists
        ]
        SharedRows(loops, self._body, self._rows, self._given, self._after).share(made)
        for (items, _, is_new, _), values in zip(self._lists, new, strict=True):
            if not loops.append(items, values, is_new):
                items += values

    def _of(self, planned: Any, k: int) -> Any:
        """The value that iteration k appends, made as planned."""
        if type(planned) in (list, tuple):
            return type(planned)([self._of(x, k) for x in planned])
        if type(planned) is _Structure:
            made = made_like(planned.like, [self._of(x, k) for x in planned.parts])
            if k == 0 and planned.first is not None:
                made = planned.first
            self._made.setdefault(id(planned.like), []).append(made)
            return made
        if type(planned) is _Known:
            return planned.values[k]
        number, like, part, first = planned
        array = self._arrays[number]
        if first is not None and k == 0:
            x = first
        else:
            at = (k * len(array.value) + part[0],) if array.is_flat else (k, *part)
            x = row(self._trace, self._results[number], at, like, self._origin(like, k))
            if is_traced_array(like):
                laid_out_as(x, [like])
        if is_traced_array(like):
            self._rows.setdefault(id(like._storage), (like, []))[1].append(x)
        return x

    def _origin(self, like: Tracer, k: int) -> Origin | None:
        """The view that iteration k's array is in NumPy, if its memory is older than the loop."""
        if not is_traced_array(like) or not self._body.is_older(storage_viewed(like)):
            return None
        number = self._range.start + k * self._range.step
        return Origin(like, self._body.counter, number, self._body.loop)

    def take_over(self, made: dict[str, Any], after: dict[str, Any]) -> None:
        """Assigns to names the object that the last iteration has appended, if a name and a list
        share it. `made` are the values of names after the loop, `after` those after the traced
        iteration."""
        for name in made:
            if found := self._made.get(id(after.get(name))):
                made[name] = found[-1]


class _Known(NamedTuple):
    """A value that is no traced array or number of the iteration."""

    values: list[Any]  # by iteration


ALLOWED += [append, appended, collect, extended, last, deque]

# By the names under which loops find them.
APPENDS = {
    APPEND: append,
    APPENDED: appended,
    COLLECT: collect,
    EXTENDED: extended,
    LAST: last,
    LAST_OF: last_of,
}
