"""The body of a loop of the program. The body is traced repeatedly, until the loop carries all that
the body changes from iteration to iteration."""

from __future__ import annotations

from typing import Any

from rune_jit.capture.loops.appends import Appends
from rune_jit.capture.loops.carried_numbers import CarriedNumbers
from rune_jit.capture.loops.changing_shapes import ChangingShape
from rune_jit.capture.loops.comparison import Comparison
from rune_jit.capture.loops.effects import Effects
from rune_jit.capture.loops.host_calls import call_for_all, stack_operands
from rune_jit.capture.loops.jumps import is_flag, is_result
from rune_jit.capture.loops.kinds import (
    UNSET,
    GivenUp,
    Unstable,
    counts_of,
    kind_of,
    zero_like,
)
from rune_jit.capture.loops.lists import are_known, begin_lists, end_lists, leave_lists
from rune_jit.capture.loops.ranges import Range
from rune_jit.capture.loops.structures import Structures
from rune_jit.capture.loops.syntax import Loop
from rune_jit.rules.coercions import laid_out_as
from rune_jit.tracing.loop_plans import LoopRefused
from rune_jit.tracing.loops import Body, Integer
from rune_jit.tracing.sizes import Size, same_size
from rune_jit.tracing.storage import next_serial
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer, is_traced_array, tracers_in

# A loop that a condition ends is one kernel on one core. Larger operations are faster on all cores,
# outside of such a kernel.
_LARGE = 2**22


class Attempt(Comparison):
    """An attempt to find all that a loop carries. Each trace of the body may find more of it."""

    def __init__(
        self,
        trace: Trace,
        loop: Loop,
        numbers: Range,
        before: dict[str, Any],
        effects: Effects,
        replaced: set[str],
        first: Any = True,
    ) -> None:
        """`numbers` is the loop's range and `before` has the values of names before the loop.
        `effects` are those of the body. For `replaced` see Structures, which adds names to it.
        `first` tells whether the first iteration runs: True, or a traced bool."""
        assert trace.loops is not None
        self._trace, self._loops, self._loop = trace, trace.loops, loop
        self._range, self._before, self._first = numbers, dict(before), first
        self._runs = numbers.has_some and first is True  # whether an iteration surely runs
        self._effects = effects
        self._returned: list[list[Any]] = []  # by host call: its results for all iterations
        self._same_memory: list[tuple[str, str]] = []  # names that share memory after an iteration
        self._goes_on: Any = None  # a traced bool: whether another iteration follows; or None
        missing = [name for name in loop.carried if name not in before]
        if missing:
            raise Unstable(f"{missing[0]} has no value before the first iteration")
        self._structures = Structures(replaced, effects.reaches)
        self._carried = self._structures.begin(loop.carried, self._before)
        # The arrays that the body writes to: those that an earlier trace of it in this call wrote
        # to, and those that it writes to according to its source.
        known = {id(x._storage) for x in tracers_in(list(before.values()))}
        hints = self._loops.hints.get(loop.number, [])
        self._storages = [s for s in hints if id(s) in known or s.captured is not None]
        for name in sorted(loop.written):  # in the order of every process
            value: Any = before.get(name)
            if is_traced_array(value) and all(value._storage is not s for s in self._storages):
                self._storages.append(value._storage)
        # The names that stand for other arrays after an iteration. The loop carries them as values.
        self._by_value = {
            name
            for name in self._carried
            if name not in loop.updated and is_traced_array(self._before[name])
        }
        self._changing: dict[str, ChangingShape] = {}  # of these, those whose shape changes
        # The numbers that are Python's before the loop and NumPy's after an iteration: the kind of
        # Python's number, and the dtype of NumPy's.
        self._unsure: dict[str, tuple[str, Any]] = {}
        for name in self._carried:
            kind = kind_of(trace, self._before[name])
            if kind is not None and kind[0] == "unsure":
                self._unsure[name] = kind[1:]
        bounds = [x for x in (numbers.start, numbers.stop) if type(x) is Size]
        self._is_decided_by_data = first is not True or any(
            name in self._loops.data_sizes for x in bounds for name in x.names
        )
        self._lists = [x for x in effects.stand_ins if id(x.items) not in trace.loops.lists]
        self._serial = next_serial()
        self._integers_before = len(trace.loops.integers)
        self._numbers_arrays = False  # whether it carries numbers of arrays of inner loops

    def begin(self, low: int, high: int) -> tuple[Any, ...]:
        """Begins a trace of the body. Returns the values that the carried names have in it."""
        trace, builder = self._trace, self._trace.builder
        self.counter = builder.begin_loop(low, high)
        self._body = Body(self._loop.number, self.counter, self._range.symbolic_bounds)
        self._body.oldest = self._serial
        self._body.lists = self._effects.appended
        self._body.conditions = self._loops.num_conditions
        self._body.returned = self._returned
        self._body.row = self._range.iterations_before(self.counter)
        self._limits = counts_of(trace)
        self._shared = self._loops.shared
        self._initial: list[Any] = []
        # By name: the value at the start of an iteration; the number of the carried value; a Python
        # integer at the start of an iteration; the number of the carried flag that tells whether a
        # number is Python's; and the value after the loop of a name that counts iterations.
        self._given: dict[str, Any] = {}
        self._numbers: dict[str, int] = {}
        self._integers: dict[str, Any] = {}
        self._pythons: dict[str, int] = {}
        self._counted: dict[str, Any] = {}
        self._array_numbers = CarriedNumbers(trace, self._loops.numbers)
        if self._by_value or self._numbers_arrays:
            self._array_numbers.begin(self.counter, self._initial)
        for name in self._carried:
            value = self._before[name]
            if type(value) is int and value.bit_length() > 63:
                why = f"{name} is a Python integer of more than 64 bits"
                self._loops.plans.refuse(self._loop.number, why)
                raise LoopRefused
            if name in self._loop.steps and type(value) in (int, Size):
                now = self._range.counted(self.counter, value, self._loop.steps[name])
                if now is not None:
                    self._given[name], self._counted[name] = now
                    continue
            if name in self._unsure:
                kind, dtype = self._unsure[name]
                start = trace.operand(value)
                number = builder.astype(builder.value(start), dtype)
                self._given[name] = self._carry(name, number, value, True)
                self._pythons[name] = len(self._initial)
                self._initial.append(builder.is_python(start))
                is_python = builder.carry(self.counter, self._pythons[name], self._initial[-1])
                builder.mark_unsure(self._given[name]._value_in(trace), kind, is_python)
            elif not is_traced_array(value) and kind_of(trace, value) is not None:
                given = self._carry(name, trace.operand(value), value, True)
                if kind_of(trace, given) == ("Python's", "int"):
                    self._integers[name] = given._value_in(trace)
                    if (self._loop.number, name) in self._loops.plans.small:
                        trace.guess()
                        small = builder.assume_small(self._integers[name])
                        given = Tracer(trace, small, scalar=True)
                self._given[name] = given
            elif name in self._by_value:
                self._given[name] = given = self._carry_array(name, value)
                self._array_numbers.carry(name, value, given)
            else:
                self._given[name] = value
        self._first_storage = len(self._initial)
        for body in (*self._loops.open, self._body):
            for storage in self._storages:
                body.before_write(storage)
        for storage in self._storages:
            now = storage.current(trace)
            storage.drop_array()
            storage.value = builder.carry(self.counter, len(self._initial), now)
            storage.version += 1
            self._initial.append(now)
        begin_lists(self._loops, self._lists)
        self._loops.open.append(self._body)
        self._loops.within.append(self._loop.number)
        return tuple(self._structures.given(name, self._given) for name in self._loop.carried)

    def _carry(self, name: str, value: Any, like: Any, scalar: bool) -> Tracer:
        index = self._numbers[name] = len(self._initial)
        self._initial.append(value)
        carried = self._trace.builder.carry(self.counter, index, value)
        tracer = Tracer(self._trace, carried, scalar=scalar)
        self._body.given.append(tracer._storage)
        if type(like) is Tracer:
            laid_out_as(tracer, [like])
        return tracer

    def _carry_array(self, name: str, array: Tracer) -> Tracer:
        value = array._value_in(self._trace)
        shape = self._changing.get(name)
        if shape is None:
            return self._carry(name, value, array, False)
        builder = self._trace.builder
        memory = self._carry(name, shape.embed(builder, value), None, False)
        part = shape.part(builder, memory._value_in(self._trace), self._body.row)
        given = Tracer(self._trace, part)
        self._body.given.append(given._storage)
        return given

    def check_effects(self) -> None:
        """Refuses the loop if its body did something that a loop of the program cannot do."""
        if self._loops.open[-1] is not self._body or self._loops.within[-1] != self._loop.number:
            self._loops.fail("an inner loop has ended in a way that cannot be traced")
        now = counts_of(self._trace)
        for (what, before), after in zip(self._limits.items(), now.values(), strict=True):
            if after != before:
                self._loops.fail(f"it has {what}")

    def compare(self, after: Any, goes_on: Any) -> bool:
        """Whether the loop carries all that the body changes. `after` are the values of names after
        the iteration. `goes_on` is a traced bool that tells whether another iteration follows, if
        the range has one; it is None if that is certain. Raises GivenUp, Unstable."""
        self._goes_on, self._same_memory = goes_on, []
        after, self._results = self._structures.after(after, self._loop.results)
        if goes_on is not None:
            largest = self._trace.builder.largest_operation(self.counter)
            if largest > _LARGE:
                raise GivenUp(f"an iteration is large ({largest:.0f} operations at once)")
        is_complete = not self._array_numbers.lacks_base
        self._numbers_arrays |= not is_complete
        for storage in self._body.written:
            if not any(storage is known for known in self._storages):
                self._storages.append(storage)
                is_complete = False
        finals: dict[int, str] = {}  # names of arrays, by the ids of their storages
        for name in self._carried:
            given, new = self._given[name], after[name]
            if name in self._counted:
                # (A number that a condition has selected differs only if the loop ends.)
                if type(new) is not Tracer and not same_size(new, given + self._loop.steps[name]):
                    raise GivenUp(f"{name} does not count the iterations")
                continue
            if is_traced_array(self._before[name]):
                is_complete &= self._compare_array(name, given, after, finals)
            else:
                is_complete &= self._compare_number(name, new)
        self._check_exchanges(after)
        finals = {}
        for name in self._results:
            if name in self._by_value and is_traced_array(after[name]):
                self._check_new(name, after[name], finals)
        for name in self._results:
            if name not in self._carried and not self._is_last(name, after):
                self._check_result(name, after, finals)
        is_known = are_known(self._trace, self._lists, self._storages)
        if is_complete and is_known and not self._body.raises and not self._is_traced(after):
            raise GivenUp("it computes with Python's numbers only")
        if is_complete and self._body.appended:
            self._appends = Appends(
                self._trace,
                self._body,
                self._range,
                self._effects.reaches,
                self._structures.given_now,
            )
            self._appends.check(
                self._runs and goes_on is None,
                {id(self._given[name]._storage): name for name in self._by_value},
                self._before,
                after,
            )
        return is_complete

    def end(self, after: Any) -> tuple[dict[str, Any], tuple[Any, ...]]:
        """Ends the loop. Returns the values of the carried names after it, and those of the names
        that are read after it."""
        trace, builder = self._trace, self._trace.builder
        after, self._results = self._structures.after(after, self._loop.results)
        finals, initial = self._finals(after), list(self._initial)
        values, others = self._add_results(after, finals, initial)
        if self._body.appended:
            self._appends.carry(initial, finals)
        goes_on = None
        may_not_end = self._is_decided_by_data and self._loops.num_conditions > 0
        if self._goes_on is not None or self._first is not True or may_not_end:
            goes_on = len(initial)
            finals.append(True if self._goes_on is None else trace.operand(self._goes_on))
            initial.append(self._loops.runs(trace, trace.operand(self._first)))
        r = self._range
        results = builder.end_loop(self.counter, r.start, r.stop, r.step, finals, initial, goes_on)
        self._close(results)
        self._array_numbers.end(results)
        for name, shape in self._changing.items():
            memory = results[self._numbers[name]]
            results[self._numbers[name]] = shape.part(builder, memory, self._range.count)
        for name, index in (self._numbers | others).items():
            values[name] = self._made(name, results, index, after)
        self._unite(values, after)
        for name, other in self._same_memory:
            if name in values and other in values:
                self._loops.share_selected(
                    *(values[x]._storage for x in (name, other)), loop=self._loop.number
                )
        made = {name: x for name, x in values.items() if is_traced_array(x)}
        if self._body.appended:
            self._appends.extend(results, values)
        for name in self._carried:
            values.setdefault(name, self._counted.get(name, after[name]))
        for name in self._loop.carried:
            self._structures.whole(name, values)
        for name in sorted(set(self._loop.results).difference(self._loop.carried)):
            self._structures.whole(name, values)
        identities = self._loops.identities
        if self._body.appended:
            self._appends.take_over(values, after)
        for name, x in made.items():  # what shares memory with x does so with a list's item, too
            if values[name] is not x and (beside := self._loops.sharing(x._storage)):
                self._loops.share(values[name]._storage, *beside, loop=self._loop.number)
        same = self._structures.may_be_same(values, after, identities, self._runs)
        if same:
            identities.note(self._loop.number, same)
        return values, tuple(values[name] for name in self._loop.results)

    def _finals(self, after: Any) -> list[Any]:
        """The values of the carried numbers, arrays and storages at the end of an iteration."""
        trace, builder = self._trace, self._trace.builder
        finals: list[Any] = [None] * self._first_storage
        for name, index in self._numbers.items():
            finals[index] = trace.operand(after[name])
            if name in self._changing:
                finals[index] = self._changing[name].embed(builder, finals[index])
            if name in self._unsure:
                dtype = self._unsure[name][1]
                finals[self._pythons[name]] = builder.is_python(finals[index])
                finals[index] = builder.astype(builder.value(finals[index]), dtype)
        self._array_numbers.finals(finals, after)
        return finals + [storage.current(trace) for storage in self._storages]

    def _add_results(
        self, after: Any, finals: list[Any], initial: list[Any]
    ) -> tuple[dict[str, Any], dict[str, int]]:
        """Lets the loop carry the values of names that are read after it and that no iteration
        reads. Returns the values of names that are known without the loop's results, and the
        numbers of the others."""
        trace, builder = self._trace, self._trace.builder
        known: dict[str, Any] = {}
        others: dict[str, int] = {}
        for name in self._results:
            if self._is_last(name, after):
                known[name] = self._last()
            elif name in self._counted and self._goes_on is None:
                known[name] = self._counted[name]
            elif name not in self._numbers:
                kind = kind_of(trace, after[name])
                in_place = name in self._carried and is_traced_array(after[name])
                is_same = is_result(name) and self._is_of_before(after[name])
                if kind is None or in_place or is_same:
                    known[name] = after[name]
                    continue
                others[name] = len(initial)
                finals.append(trace.operand(after[name]))
                initial.append(self._stand_in(name, finals[-1]))
                if self._loops.numbers is not None:
                    before = None if self._runs else self._structures.part(name, self._before)
                    self._array_numbers.add(name, before, after[name], finals, initial)
                if kind is not None and kind[0] == "unsure":
                    self._pythons[name] = len(initial)
                    finals.append(builder.is_python(finals[-1]))
                    initial.append(builder.is_python(initial[-1]))
        return known, others

    def _close(self, results: list[Any]) -> None:
        """Gives arrays that the body writes to the loop's results, and tells the trace that the
        loop has ended."""
        self._loops.open.pop()
        for name, carried in self._integers.items():
            self._loops.integers.append(Integer(self._loop.number, name, carried))
        self._loops.within.pop()
        self._loops.check_integers(self._trace.builder, self._loop.number, self._trace.may_guess)
        for i, storage in enumerate(self._storages):
            storage.value = results[self._first_storage + i]
            storage.version += 1
        end_lists(self._loops, self._lists)
        self._body.forget_own(self._loops.hints)  # a name may keep such an array after the loop
        arrays = [x for x in self._storages if not any(x in y.storages for y in self._lists)]
        self._loops.hints[self._loop.number] = arrays

    def _made(self, name: str, results: list[Any], index: int, after: Any) -> Tracer:
        """The value of a name after the loop: result number `index` of the loop."""
        trace, value = self._trace, after[name]
        made = Tracer(trace, results[index], scalar=not is_traced_array(value))
        if name in self._pythons:
            is_unsure = name in self._unsure
            kind = self._unsure[name][0] if is_unsure else kind_of(trace, value)[1]
            trace.builder.mark_unsure(results[index], kind, results[self._pythons[name]])
        if is_traced_array(value):
            laid_out_as(made, [value])
            self._array_numbers.made(name, made, results)
            # A condition may select the array, perhaps the one from before the loop.
            shared = self._sharing_after(name, after)
            if shared:
                self._loops.share_selected(made._storage, *shared)
            is_as_before = bool(shared) or not self._runs
            before: Any = self._before.get(name)
            if is_as_before and name in self._results and is_traced_array(before):
                self._loops.share(made._storage, before._storage)
            if is_result(name) and self._body.is_older(value._storage):
                self._loops.share_selected(made._storage, value._storage)
        elif is_flag(name):
            made._storage.flag_of = self._loop.number
        return made

    def _is_last(self, name: str, after: Any) -> bool:
        """Whether a name has the last number of the loop's range after the loop."""
        is_counter = name == self._loop.target and type(after[name]) is Size
        return is_counter and self._goes_on is None and same_size(after[name], self.counter)

    def _last(self) -> Any:
        if (last := self._range.last) is None or not self._runs:
            self._loops.fail(f"{self._loop.target} is read after the loop, which may not run")
        return last

    def _stand_in(self, name: str, value: Any) -> Any:
        """The value before the loop of a name that the loop only assigns: its own value if perhaps
        no iteration runs, else any value of its type."""
        before = self._structures.part(name, self._before)
        if self._runs or before is UNSET:
            return zero_like(self._trace, value)
        storage = before._storage if is_traced_array(before) else None
        for i, written in enumerate(self._storages):
            if written is storage:
                return self._initial_part(before, self._initial[self._first_storage + i])
        return self._trace.operand(before)

    def _initial_part(self, view: Tracer, initial: Any) -> Any:
        """What a view of an array that the loop writes to shows of the array's `initial` value."""
        storage = view._storage
        now = storage.value
        storage.value = initial
        storage.version += 1
        part = self._trace.operand(view)
        storage.value = now
        storage.version += 1
        return part

    def iterations_of(self, items: list[Any]) -> Any:
        """The numbers of the iterations that append to a list."""
        return self._appends.iterations_of(items)

    def hoist_call(self) -> bool:
        """Moves the next host call of the body, if there is one, before the loop, as one call for
        all iterations. Returns whether there was one: then the body must be traced again. Raises
        GivenUp."""
        number = len(self._returned)
        if number == len(self._body.calls):
            return False
        body, runs_all = self._body, self._runs and self._goes_on is None
        stacked = stack_operands(self._trace, body, self._range, runs_all, body.calls[number])
        self._leave()
        self._returned.append(call_for_all(self._trace, self._range, body.calls[number], stacked))
        return True

    @property
    def has_called(self) -> bool:
        """Whether host calls of the body are made before the loop."""
        return bool(self._returned)

    def give_up(self) -> None:
        """Restores the state from before the trace of the body."""
        self._leave()
        self._trace.builder.give_up_loop()

    def _leave(self) -> None:
        self._array_numbers.leave()
        leave_lists(self._loops, self._lists)
        self._loops.open.pop()
        self._loops.within.pop()
        del self._loops.integers[self._integers_before :]
        self._body.restore()
        self._body.forget_own(self._loops.hints)
        self._loops.shared = self._shared
