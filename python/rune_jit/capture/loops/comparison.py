"""Compares the values that a loop carries with the values after an iteration, and finds those that
differ in kind."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rune_jit.capture.loops.changing_shapes import ChangingShape, changing_shape, is_alike
from rune_jit.capture.loops.effects import Effects
from rune_jit.capture.loops.jumps import is_result
from rune_jit.capture.loops.kinds import (
    UNSET,
    GivenUp,
    Unsettled,
    Unstable,
    is_one_of,
    is_view,
    kind_of,
    unsure_sum,
)
from rune_jit.capture.loops.optionals import is_last
from rune_jit.capture.loops.ranges import Range
from rune_jit.capture.loops.structures import Structures, holder_of
from rune_jit.capture.loops.syntax import Loop
from rune_jit.capture.objects import can_be_copied
from rune_jit.tracing.loops import Body, Loops
from rune_jit.tracing.rows import part, steps_within
from rune_jit.tracing.sizes import Size, has_sizes
from rune_jit.tracing.storage import Step, same_steps
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, is_traced_array, tracers_in


class Made(NamedTuple):
    """An array that a name stands for after a loop."""

    storage: int  # the id of the storage that the body made for it
    earlier: int  # how many iterations before the last one it did so
    steps: tuple[Step, ...]  # the part of the storage
    # Tells apart the view objects of one part: the id of the view that an iteration made, and how
    # many iterations before the last one it did so. None for the array itself.
    view: tuple[int, int] | None


class Comparison:
    """The part of an Attempt that compares the carried names before and after an iteration."""

    _trace: Trace
    _loops: Loops
    _loop: Loop
    _range: Range
    _body: Body
    _structures: Structures
    _effects: Effects
    _before: dict[str, Any]
    _given: dict[str, Any]
    counter: Any
    _numbers: dict[str, int]
    _counted: dict[str, Any]
    _unsure: dict[str, tuple[str, Any]]
    _changing: dict[str, ChangingShape]
    _by_value: set[str]
    _carried: list[str]
    _results: list[str]
    _same_memory: list[tuple[str, str]]
    _runs: bool
    _is_decided_by_data: bool
    _lists: list[Any]
    # The kinds of names that have no value before the loop, and may have any (`any_value`).
    zeros: dict[str, Any]
    is_settled = False  # whether Python's numbers may become NumPy's in any iteration
    follows_peeled = False  # whether iterations were peeled before the loop
    _goes_on: Any

    def _compare_number(self, name: str, new: Any) -> bool:
        """Whether the loop can carry a name that is no array now, without another trace."""
        trace, before = self._trace, self._before[name]
        kind, new_kind = kind_of(trace, before), kind_of(trace, new)
        if before is UNSET and is_last(name) and new_kind is not None:
            if new_kind[0] == "unsure" or any(type(n) is Size for n in np.shape(new)):
                raise Unstable(f"{name} has no value before the first iteration")
            self.zeros[name] = new_kind[0], new_kind[1], np.shape(new)
            return False
        if kind is None:
            if new is not before and not self._structures.replaces(name, before, new):
                raise Unstable(f"{name} is another object after an iteration")
            return new is before
        if name in self._unsure:
            if new_kind is None or not is_one_of(self._unsure[name], new_kind):
                raise Unstable(f"{name} has another type after an iteration")
            return True
        if new_kind == kind:
            return True
        is_unsure = new_kind is not None and new_kind[0] == "unsure"
        may_be_either = is_unsure or self._is_decided_by_data or self.is_settled
        unsure = unsure_sum(kind, new_kind) if may_be_either else None
        if unsure is not None:
            # (All items of a queue get the same kind, since numbers move through them.)
            for other in self._carried:
                is_beside = holder_of(other) == holder_of(name) is not None
                if is_beside and kind_of(trace, self._before[other]) == kind:
                    self._unsure[other] = unsure
            self._unsure[name] = unsure
            return False
        raise Unsettled(f"{name} has another type after an iteration")

    def _compare_array(self, name: str, given: Tracer, after: Any, finals: dict[int, str]) -> bool:
        """Whether the loop carries an array in the right way now, without another trace."""
        before, new = self._before[name], after[name]
        if name not in self._by_value:
            if is_view(new, before):
                return True
            self._by_value.add(name)
            return False
        shape = self._changing.get(name)
        is_same = is_alike(self._trace, shape, self._body.row, given, new)
        may_end_before = not self._runs or self._goes_on is not None
        if may_end_before and (shape is not None or not is_same):  # (its last shape is unknown)
            raise Unstable(f"{name} has another type or shape after an iteration")
        if not is_same:
            changing = changing_shape(self._range, self.counter, before, new)
            if shape is not None or self._body.row is None or changing is None:
                raise Unstable(f"{name} has another type or shape after an iteration")
            self._changing[name] = changing
            return False
        if self._body.has_written(given._storage):
            if new is given or is_view(new, given):
                self._by_value.discard(name)  # (the name always stands for the same array)
                return False
            if not self._is_alone(before, new, after):
                raise Unstable(f"{name} is written to before it stands for another array")
        if new is given:
            self._by_value.discard(name)
            return False
        if self._body.has_written(before._storage):
            raise Unstable(f"{name} is a view of an array that is written to")
        self._check_new(name, new, finals)
        return True

    def _is_alone(self, before: Tracer, new: Tracer, after: Any) -> bool:
        """Whether an iteration may write to the array that a name stands for at its start, as if
        that was a copy: the iteration before has made the array, and nothing else refers to it.
        `before` and `new` are the arrays after a peeled iteration and after one of the loop."""
        if not self.follows_peeled or self._loops.growing or self._lists:
            return False
        appended = [values for _, values, *_ in self._body.appended.values()]
        for array, values, kept in ((before, self._before, []), (new, after, appended)):
            storage = array._storage
            if array._steps or storage.is_outside or self._loops.sharing(storage):
                return False
            held = [tracers_in([values[name]]) for name in self._carried] + [tracers_in(kept)]
            if sum(any(x._storage is storage for x in found) for found in held) != 1:
                return False
        return True

    def _check_new(self, name: str, new: Tracer, finals: dict[int, str]) -> None:
        """Raises Unstable unless the body has made the array and never writes to its memory. Notes
        which other names share the memory."""
        storage = new._storage
        if self._body.is_older(storage):
            raise Unstable(f"{name} is a view of an array from outside")
        for one in (storage, *self._loops.sharing(storage)):
            if self._body.has_written(one):
                raise Unstable(f"{name} may be a view of an array that is written to")
            other = finals.setdefault(id(one), name)
            if other != name:
                self._same_memory.append((name, other))

    def _givers(self) -> dict[int, str]:
        """The names that are carried as values, by the ids of their storages at the start of an
        iteration."""
        return {
            id(self._given[name]._storage): name for name in self._by_value if name in self._numbers
        }

    def _sharing_after(self, name: str, after: Any) -> list[Any]:
        """The storages that the array of a name may share memory with after the loop. If a name
        takes over the array of another name, as `u` does in `u, w = w, x[i] if b else u`, these
        include the storages that the other name may share memory with."""
        givers = self._givers()
        found: dict[int, Any] = {}
        met = {id(after[name]._storage): after[name]._storage}
        open_ = list(met.values())
        while open_:
            storage = open_.pop()
            nearby = self._loops.sharing(storage)
            found |= {id(x): x for x in nearby}
            if (giver := givers.get(id(storage))) is not None:
                nearby = [*nearby, after[giver]._storage]
            open_ += [x for x in nearby if id(x) not in met]
            met |= {id(x): x for x in nearby}
        return list(found.values())

    def _made_by(self, name: str, after: Any) -> Made | None:
        """The array that a name stands for after the loop. None if the body has not made it, or if
        it is a part of one that differs from iteration to iteration."""
        steps: tuple[Step, ...] = ()
        givers, earlier, new = self._givers(), 0, after.get(name)
        view: tuple[int, int] | None = None
        while is_traced_array(new):
            if new._steps and not steps:
                view = id(new), earlier
            steps = (*new._steps, *steps)
            giver = givers.get(id(new._storage))
            if giver is None:
                varies = any(x.varies for x in steps) or (steps and has_sizes(after[name].shape))
                is_own = not (varies or self._body.is_older(new._storage))
                return Made(id(new._storage), earlier, steps, view) if is_own else None
            new, earlier = after[giver], earlier + 1
        return None

    def _unite(self, values: dict[str, Any], after: Any) -> None:
        """Gives names that share an array after the loop one array of the trace, or views of it. If
        perhaps no iteration runs, they must have shared one before, too."""
        arrays = [x for x in dict.fromkeys([*self._numbers, *values]) if x in values]
        found = {x: self._made_by(x, after) for x in arrays if is_traced_array(values[x])}
        made = {name: x for name, x in found.items() if x is not None}
        known: dict[tuple[int, int], list[str]] = {}
        for name in sorted(made, key=lambda name: len(made[name].steps)):
            storage, earlier, steps, view = made[name]
            if not self._runs and earlier:
                continue
            others = known.setdefault((storage, earlier), [])
            for other in sorted(others, key=lambda x: made[x].view != view):
                count = len(made[other].steps)
                if not same_steps(made[other].steps, steps[:count]):
                    continue
                rest: tuple[Step, ...] | None = None
                if made[other].view != view:
                    rest = steps[count:] or (Step("index", [...]),)
                if self._runs or self._had_before(other, name, rest):
                    of = values[other]
                    values[name] = of if rest is None else part(of, rest, after[name])
                    break
            others.append(name)

    def _had_before(self, other: str, name: str, steps: tuple[Step, ...] | None) -> bool:
        """Whether one name stood for a part of another name's array before the loop, too. `steps`
        is None if both names stand for one array."""
        of, now = (self._structures.part(x, self._before) for x in (other, name))
        if not (is_traced_array(of) and is_traced_array(now)):
            return False
        if steps is None:
            return of is now or (of._storage is now._storage and not (of._steps or now._steps))
        found = steps_within(of, now)
        return found is not None and same_steps(found, steps)

    def _check_exchanges(self, after: Any) -> None:
        """Raises GivenUp unless all names stand for arrays that the body has made after the loop.
        Names may take over arrays of others, as in `a, b = b, a + b`; then the loop must run often
        enough for that."""
        givers = self._givers()
        for name in self._by_value:
            giver, depth = givers.get(id(after[name]._storage)), 0
            while giver is not None:
                depth += 1
                if (
                    self._goes_on is not None
                    or not self._runs
                    or depth > len(givers)
                    or not self._range.has_more_than(depth)
                ):
                    raise GivenUp(f"{name} and {giver} exchange arrays")
                giver = givers.get(id(after[giver]._storage))
        for name in self._results:
            made = self._made_by(name, after)
            if (
                made is not None
                and made.earlier > 1
                and not self._range.has_more_than(made.earlier)
            ):
                raise GivenUp(f"{name} is an array from before the loop")

    def _check_result(self, name: str, after: Any, finals: dict[int, str]) -> None:
        trace = self._trace
        if name not in after:
            raise GivenUp(f"{name} has no value after an iteration")
        new, shown = after[name], "what it returns" if is_result(name) else name
        kind = kind_of(trace, new)
        if is_traced_array(new) and any(self._varies(n) for n in new.shape):
            raise GivenUp(f"{shown} has another shape in each iteration")
        # (An object from before the loop is the same in all iterations: `return self`.)
        is_object = kind is None and can_be_copied(new) and self._effects.reaches(new)
        if is_result(name) and (new is UNSET or kind is not None or is_object):
            # The result is only read if an iteration has set it. A peeled one may have.
            first = self._structures.part(name, self._before)
            is_other = new is UNSET or self._is_of_before(new) or kind_of(trace, first) != kind
            is_other |= is_object and first is not new
            if first is not UNSET and is_other:
                raise GivenUp("the first iteration returns something else")
            return
        if not self._runs and (
            name not in self._before or kind_of(trace, self._before[name]) != kind
        ):
            raise GivenUp(f"{shown} is read after the loop, which may not run")
        if is_traced_array(new):
            if any(type(n) is Size for n in new.shape):
                raise GivenUp(f"{shown} is read after the loop, and its shape changes")
            self._check_new(name, new, finals)
        elif kind is None and not isinstance(new, (str, type(None), np.dtype)):
            raise GivenUp(f"{shown} is read after the loop, and is a {type(new).__name__}")
        elif kind is None and not self._runs and new is not self._before.get(name):
            raise GivenUp(f"{shown} is read after the loop, which may not run")

    def _varies(self, size: Any) -> bool:
        """Whether a size depends on the loop's counter."""
        return type(size) is Size and self.counter.names[0] in size.names

    def _is_of_before(self, x: Any) -> bool:
        """Whether x is an array that a name stood for before the loop."""
        return is_traced_array(x) and any(x is value for value in self._before.values())

    def _is_traced(self, after: Any) -> bool:
        if self._goes_on is not None or self._body.decides:
            return True
        names = {*self._carried, *self._loop.results} - {self._loop.target, *self._counted}
        appended = tracers_in([values for _, values, *_ in self._body.appended.values()])
        if any(is_traced_array(x) or self._is_data(x._value_in(self._trace)) for x in appended):
            return True
        if not names:
            return False
        return any(
            type(after[name]) is Tracer
            and (is_traced_array(after[name]) or self._is_data(after[name]._value_in(self._trace)))
            for name in names
            if name in after
        ) or any(
            type(after[name]) is Tracer and type(self._before.get(name)) is Tracer
            for name in self._carried
        )

    def _is_data(self, number: Any) -> bool:
        return number.weak is None or self._trace.builder.depends_on_arguments(number)
