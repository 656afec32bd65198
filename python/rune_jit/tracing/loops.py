"""The loops whose bodies are being traced, what these bodies have written, and when a trace begins
again because of a loop. (capture/loops/rolling.py traces the bodies.)"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from rune_jit.errors import RuneJitError, StateChangedError
from rune_jit.tracing.array_numbers import ArrayNumbers
from rune_jit.tracing.context import ValuesNeeded
from rune_jit.tracing.identities import Identities
from rune_jit.tracing.loop_plans import BetterApart, LoopPeeled, LoopPlans, LoopRefused
from rune_jit.tracing.storage import Step, Storage, next_serial
from rune_jit.tracing.tracer import Tracer, tracers_in

if TYPE_CHECKING:
    from rune_jit.tracing.trace import Trace


# (Versions are not restored, because views have cached values by version.)
_RESTORED = [name for name in Storage.__annotations__ if name not in ("version", "serial")]


class _Saved(NamedTuple):
    """The state of a storage before the body wrote to it."""

    storage: Storage
    fields: dict[str, Any]


class HostCall(NamedTuple):
    """A call on the host in the body of a loop."""

    name: str
    function: Callable[..., Any]
    operands: list[Any]
    types: list[tuple[Any, Any]]
    may_raise: bool
    side_by_side: bool  # whether calls may run at the same time


class Body:
    """The body of a loop that is being traced, and what it has used so far."""

    def __init__(self, loop: int, counter: Any, bounds: tuple[Any, Any]) -> None:
        self.loop = loop
        self.counter = counter
        self.bounds = bounds  # of the counter; they may contain outer counters
        self.oldest = next_serial()  # storages that were made later are the body's own
        self._began = self.oldest  # `oldest` of the body's first trace
        self.given: list[Storage] = []  # the carried arrays at the start of an iteration
        self.decides = False  # whether it has an `if` whose condition data decide
        self.raises = False  # whether it has a `raise` under such a condition
        self._written: dict[int, _Saved] = {}
        self.lists: dict[int, list[Any]] = {}  # outside lists to which it may append, by id
        # By id: the list, what was appended, whether the list is a comprehension's, the conditions.
        self.appended: dict[int, tuple[list[Any], list[Any], bool, list[Any]]] = {}
        self.conditions = 0  # around the loop
        self.calls: list[HostCall] = []  # in order
        # The results of the first of these calls, with a row for each iteration; and the row of
        # this iteration.
        self.returned: list[list[Any]] = []
        self.row: Any = None

    def is_older(self, storage: Storage) -> bool:
        """Whether the storage was made before the loop. (The storage of a captured array counts as
        older even if the body is the first to use the array.)"""
        return storage.serial <= self.oldest or storage.captured is not None

    def before_write(self, storage: Storage) -> None:
        is_given = any(storage is given for given in self.given)
        if (is_given or self.is_older(storage)) and id(storage) not in self._written:
            fields = {name: getattr(storage, name) for name in _RESTORED}
            self._written[id(storage)] = _Saved(storage, fields)

    @property
    def written(self) -> list[Storage]:
        """The storages that are older than the loop and have been written to."""
        found = [saved.storage for saved in self._written.values()]
        return [storage for storage in found if self.is_older(storage)]

    def has_written(self, storage: Storage) -> bool:
        return id(storage) in self._written

    def forget_own(self, hints: dict[int, list[Storage]]) -> None:
        """Removes storages that the body has made from the hints."""
        for loop, storages in hints.items():
            hints[loop] = [s for s in storages if s.serial <= self._began]

    def restore(self) -> None:
        """Restores the storages to their state before the body."""
        for storage, fields in self._written.values():
            for name, field in fields.items():
                setattr(storage, name, field)
            storage.version += 1
        self._written.clear()


class Integer(NamedTuple):
    """A Python integer that a loop carries."""

    loop: int
    name: str
    value: Any  # at the start of an iteration


class Loops:
    """The loops of one trace."""

    def __init__(self, plans: LoopPlans) -> None:
        self.plans = plans
        self.open: list[Body] = []  # bodies that are being traced, outer ones first
        # The numbers of their loops, and of loops around code for which `part_of` is called.
        self.within: list[int] = []
        self._conditions: list[tuple[Any, int]] = []  # and the last serial before
        self._decided_by_counters = 0  # how many of the conditions
        # Operands of `and` and `or` that are being traced: an object that `end_operand` returns,
        # and whether counters alone decide if the operand matters.
        self._operands: list[tuple[Any, bool]] = []
        self.rolled = 0  # loops that have become loops of the program
        self.lists: dict[int, Any] = {}  # by id: arrays for lists of numbers
        self.growing: dict[int, Any] = {}  # by id: lists whose length data may decide
        self.data_sizes: set[str] = set()  # names of Sizes that bodies compute
        self.integers: list[Integer] = []  # of the outermost loop and its inner loops
        # How often a loop has changed a list so far, by (loop, name).
        self.written_back: dict[tuple[int, str], int] = {}
        self.hints: dict[int, list[Storage]] = {}  # by loop: what its last trace wrote to
        # By id of a storage: storages that may be the same memory, depending on data; and these
        # storages themselves, to keep them alive.
        self._sharing: dict[int, list[Storage]] = {}
        self._may_share: dict[int, Storage] = {}
        self._shared_by: dict[int, int] = {}  # by id of a storage: the loop that is the reason
        # By number of an `if` behind a loop, which may get a program for each side instead: the
        # storages of the arrays on both sides, and those of the arrays that the program selects.
        self.selected: dict[int, list[tuple[Storage, Storage, Storage]]] = {}
        self.identities = Identities()
        self.numbers = ArrayNumbers() if plans.numbers_arrays else None
        self._selects: set[int] = set()  # ids of storages of arrays that data select
        # Arrays that may share memory with items of lists, and do not, with the loop of both.
        self.parts: list[tuple[int, Tracer, list[Tracer]]] = []

    def bounds(self, size: Any) -> tuple[int, int]:
        """The least and the greatest value of a Size. (Counters may depend on outer counters.)"""
        return self._least(size, 1), -self._least(size, -1)

    def _least(self, size: Any, sign: int) -> int:
        """The least value of sign * size."""
        size = size * sign
        least: int = size.low
        for body in reversed(self.open):  # inner ones first: their bounds have outer counters
            if type(size) is int:
                break
            times = size.coefficients.get(body.counter.names[0], 0)
            if times:
                bound = body.bounds[times < 0]
                size = size + (bound - body.counter) * times
        return max(least, size if type(size) is int else size.low)

    def share(self, made: Storage, *others: Storage, loop: int | None = None) -> None:
        """Notes that data decide whether a storage is the same memory as others. From now on, none
        of them may be written to. `loop`: a loop that is the reason. It is unrolled if one of them
        is written to."""
        group = {id(x): x for x in (made, *others)}
        if len(group) == 1:
            return
        for storage in list(group.values()):
            group |= {id(x): x for x in self.sharing(storage)}
        together = list(group.values())
        self._sharing |= {key: together for key in group}
        self._may_share |= group
        if loop is not None:
            self._shared_by |= dict.fromkeys(group, loop)

    def share_selected(self, made: Storage, *others: Storage, loop: int | None = None) -> None:
        """As `share`, for an array that is one of the others, or a new one, as data decide."""
        self.share(made, *others, loop=loop)
        if any(x is not made for x in others):
            self._selects.add(id(made))

    def check_numbers(self, results: list[Storage]) -> None:
        """Called with the storages of the results at the end of the trace. If data select one of
        them that may be another one, or an array from outside, raises LoopRefused: the next trace
        computes numbers of arrays."""
        if self.numbers is not None:
            return
        ids = {id(x) for x in results}
        for storage in results:
            others = self.sharing(storage) if id(storage) in self._selects else []
            if any(id(x) in ids or x.is_outside for x in others):
                self.plans.numbers_arrays = True
                raise LoopRefused

    @property
    def shared(self) -> tuple[dict[int, list[Storage]], dict[int, Storage], list[Any]]:
        """The notes of `share` and `identities`."""
        return dict(self._sharing), dict(self._may_share), list(self.identities.groups)

    @shared.setter
    def shared(self, noted: tuple[dict[int, list[Storage]], dict[int, Storage], list[Any]]) -> None:
        self._sharing, self._may_share = dict(noted[0]), dict(noted[1])
        self.identities.groups = list(noted[2])

    def sharing(self, storage: Storage) -> list[Storage]:
        """The storages that may be the same memory as this one."""
        return [x for x in self._sharing.get(id(storage), ()) if x is not storage]

    @contextmanager
    def where(self, builder: Any, condition: Any, is_of_counters: bool = False) -> Iterator[None]:
        """Traces the code of the context under a condition. Its writes to older arrays, and its
        checks of indices, have an effect only if the condition holds. `is_of_counters`: whether
        counters alone decide the condition."""
        self._begin_condition(builder, condition)
        self._decided_by_counters += is_of_counters
        yield
        self._decided_by_counters -= is_of_counters
        self._end_condition(builder)

    def _begin_condition(self, builder: Any, condition: Any) -> None:
        self._conditions.append((condition, next_serial()))
        builder.begin_condition()

    def _end_condition(self, builder: Any) -> None:
        builder.end_condition(self._conditions.pop()[0])

    def begin_operand(self, builder: Any, condition: Any, held: Any, is_of_counters: bool) -> None:
        """Called before an operand of `and` or `or` is traced. Like `where`, with the condition
        that the operand matters. `end_operand` returns `held`."""
        self._begin_condition(builder, condition)
        self._operands.append((held, is_of_counters))

    def end_operand(self, builder: Any) -> Any:
        self._end_condition(builder)
        return self._operands.pop()[0]

    @property
    def data_decide(self) -> bool:
        """Whether the operations that are traced now depend on a condition that data decide."""
        return len(self._conditions) > self._decided_by_counters

    @property
    def num_conditions(self) -> int:
        """The number of conditions around the operations that are traced now."""
        return len(self._conditions)

    def runs(self, trace: Trace, test: Any) -> Any:
        """The test of a loop, joined with the conditions around it and with what the program
        assumes. Where one of these does not hold, the loop must not run: its test might never
        become false."""
        conditions = [condition for condition, _ in self._conditions]
        return _all(trace.builder, [*trace.assumptions(), *conditions, test])

    def append(self, items: list[Any], values: list[Any], is_new: bool) -> bool:
        """Called before values are appended to a list. `is_new`: whether the list was made under
        the conditions that hold now. Returns whether each iteration of the innermost loop appends
        the values, so that the caller must not."""
        body = self.open[-1] if self.open else None
        if body is None or id(items) not in body.lists:
            if self._conditions and not is_new:
                self.grow(items)
                self.fail("it appends to a list under a condition")
            return False
        conditions = [condition for condition, _ in self._conditions[body.conditions :]]
        _, known, _, earlier = body.appended.setdefault(id(items), (items, [], is_new, conditions))
        if earlier != conditions:
            self.grow(items)
            self.fail("it appends to a list under a condition")
        known.extend(values)
        return True

    def is_decided_by_counter(self, builder: Any) -> bool:
        """Whether the innermost loop's counter alone decides in which of its iterations the
        operations that are traced now run."""
        return self._decides(builder, self.open[-1], len(self._conditions))

    def are_counters_alone(self, builder: Any) -> bool:
        """Whether, for each open loop, its counter alone decides this."""
        ends = [*(body.conditions for body in self.open), len(self._conditions)]
        pairs = zip(self.open, ends[1:], strict=True)
        return not ends[0] and all(self._decides(builder, *pair) for pair in pairs)

    def _decides(self, builder: Any, body: Body, end: int) -> bool:
        """Whether a body's counter alone decides its conditions with numbers below `end`."""
        conditions = (condition for condition, _ in self._conditions[body.conditions : end])
        return all(builder.holds_at(body.counter, x, 0, 0, 1) is not None for x in conditions)

    def grow(self, items: list[Any]) -> None:
        """Called where data decide the length of a list. Raises LoopRefused if arrays can represent
        the list when the trace begins again."""
        if (found := self.growing.get(id(items))) is not None:
            found.want()

    def call_host(self, builder: Any, call: HostCall) -> list[Any]:
        """The results of a host call in the innermost body. In the first trace of the loop they are
        zeros; in the second, rows of the results of all iterations."""
        body = self.open[-1]
        if len(self._conditions) > body.conditions or self.within[-1] != body.loop:
            self.fail(f"it calls {call.name} on the host")
        number = len(body.calls)
        body.calls.append(call)
        if number < len(body.returned):
            return [builder.index(rows, [body.row]) for rows in body.returned[number]]
        return [builder.full(list(shape), 0, dtype) for dtype, shape in call.types]

    def _is_conditional(self, storage: Storage) -> list[Any]:
        """The conditions of a write to the storage."""
        is_captured = storage.captured is not None
        return [c for c, last in self._conditions if storage.serial <= last or is_captured]

    @property
    def watches_writes(self) -> bool:
        """Whether `before_write` may have an effect."""
        return bool(self.open or self._conditions or self._may_share)

    def before_write(
        self, trace: Trace, storage: Storage, steps: tuple[Step, ...], part: Any
    ) -> Any:
        """Called before `part` is written to a view of a storage. Returns the value to write."""
        self._check_write(storage)
        for body in self.open:
            body.before_write(storage)
        conditions = self._is_conditional(storage)
        if not conditions:
            return part
        holds = _all(trace.builder, conditions)
        old = storage.current(trace)
        for step in steps:
            old = step.of(trace.builder, old)
        return trace.builder.where(holds, part, old)

    def before_known_write(self, trace: Trace, storage: Storage) -> None:
        """Called before NumPy writes to known elements. An older array becomes a traced value."""
        self._check_write(storage)
        if self._is_conditional(storage) or any(body.is_older(storage) for body in self.open):
            for body in self.open:
                body.before_write(storage)
            storage.current(trace)
            storage.drop_array()
            storage.version += 1

    def after_known_write(self, storage: Storage) -> None:
        """Called after NumPy may have written to an array whose elements are known."""
        if self._is_conditional(storage) or any(body.is_older(storage) for body in self.open):
            self.fail("its body writes known numbers to an array")

    def check_integers(self, builder: Any, loop: int, may_guess: bool) -> None:
        """Called when a loop has ended. If the outermost loop carries or computes a Python integer
        that may exceed 64 bits, raises LoopRefused. The next trace checks the operations that may
        exceed 64 bits, or assumes that carried integers are small, or refuses the loop."""
        if self.open:
            return
        found = builder.find_unbounded([integer.value for integer in self.integers])
        if found is not None:
            name, (position, lines) = "it computes", found
            if may_guess and not self.plans.checked.issuperset(lines):
                self.plans.checked.update(lines)
                raise LoopRefused
            if position < len(self.integers):
                integer = self.integers[position]
                small = (integer.loop, integer.name)
                # (An integer that is assumed to be small may be computed from others that are not.)
                others = {(x.loop, x.name) for x in self.integers} - self.plans.small
                if may_guess and others:
                    self.plans.small |= {small} if small in others else others
                    raise LoopRefused
                loop, name = integer.loop, f"{integer.name} is"
            self.plans.refuse(loop, f"{name} a Python integer of unknown size")
            raise LoopRefused
        self.integers.clear()

    def _check_write(self, storage: Storage) -> None:
        if id(storage) in self._may_share:
            self._refuse_shared(
                storage, "an array is written to that may be the same as another one"
            )

    def check_memory(self, a: Storage, b: Storage) -> None:
        """Called where the function asks whether two storages share memory."""
        if any(x is b for x in self.sharing(a)):
            self._refuse_shared(a, "it asks whether arrays share memory, which data decide")

    def check_layout(self, storage: Storage) -> None:
        """Called where the function asks how a storage lies in memory. Iterations may differ."""
        for body in self.open:
            if any(storage is given for given in body.given):
                self.plans.refuse(body.loop, "it asks how an array that it carries lies in memory")
                raise LoopRefused

    def _refuse_shared(self, storage: Storage, why: str) -> NoReturn:
        if (loop := self._shared_by.get(id(storage))) is not None:
            self.plans.refuse(loop, why)
            raise LoopRefused
        if self.within:
            self.fail(why)
        self.plans.refuse_all(why)
        raise LoopRefused

    def check_selected(self, results: list[Storage]) -> None:
        """Called with the storages of the results at the end of the trace. If one of them was
        selected and shares memory on one side only, raises LoopRefused: the next trace has a
        program for each side."""
        ids = {id(x) for x in results}
        for number, found in self.selected.items():
            chosen = [(a, b) for a, b, made in found if id(made) in ids]
            is_shared = any(len({*map(id, side)}) < len(side) for side in zip(*chosen, strict=True))
            for x in (x for pair in chosen for x in pair):
                is_shared |= id(x) in ids or x.is_outside
            if is_shared and number not in self.plans.decided:
                self.plans.decided.add(number)
                raise LoopRefused

    def check_identities(self, results: Any, is_outside: Callable[[Any], bool]) -> None:
        """Called at the end of the trace. The arguments are those of `Identities.broken`."""
        found = self.identities.broken(results, is_outside)
        visible = {id(x._storage) for x in tracers_in(results)} if self.parts else set()
        for loop, array, items in self.parts:
            if id(array._storage) in visible and any(id(x._storage) in visible for x in items):
                found = loop, "it returns an array that a list may have, or a view of it"
        if found is not None:
            self.plans.refuse(*found)
            raise LoopRefused

    def fail(self, why: str) -> NoReturn:
        """Refuses the innermost loop that is being traced. Raises LoopRefused."""
        self.plans.refuse(self.within[-1], why)
        raise LoopRefused

    def refuse(self, why: str) -> None:
        """Refuses the innermost loop that is being traced, if there is one."""
        if self.open:
            self.fail(why)

    @contextmanager
    def part_of(self, loop: int) -> Iterator[None]:
        """In the context, code is traced that belongs to a loop but not to its body: a peeled
        iteration, or a branch on how the loop has ended. Refusals concern this loop."""
        self.within.append(loop)
        yield
        self.within.pop()

    def peel_outer(self) -> None:
        """Raises LoopPeeled if a loop around this place has no peeled first iteration and can get
        one."""
        for body in reversed(self.open):
            if not self.plans.peeled(body.loop).first and self.plans.peel_more(body.loop):
                raise LoopPeeled

    def can_peel(self, size: Any) -> bool:
        """Whether the bounds of a size may become narrower if the first or last iteration of a loop
        is peeled. The size must contain one counter only, and no condition that data decide may
        hold here."""
        unknown = len(self._conditions) - sum(of_counters for _, of_counters in self._operands)
        if unknown or len(size.names) > 1:
            return False
        bodies = [body for body in self.open if body.counter.names[0] in size.names]
        return any(self.plans.can_peel(body.loop) for body in bodies)

    def _peel_more(self, why: str) -> bool:
        """Peels more iterations of a loop whose counter an error names. Returns whether there is
        one."""
        names = set(re.findall(r"\w+", why))
        found = [body for body in reversed(self.open) if body.counter.names[0] in names]
        return any(self.plans.peel_more(body.loop) for body in found)

    def begin_again(self, error: BaseException) -> bool:
        """Called when the trace has raised an error. Returns whether it begins again because of its
        loops."""
        plans = self.plans
        if isinstance(error, LoopRefused):
            pass  # who raised it has noted what to do
        elif isinstance(error, (ValuesNeeded, BetterApart)) or getattr(error, "slots", None):
            return False  # their remedies are arguments and segments, not loops
        elif self.within:
            loop, why = self.within[-1], str(error) or type(error).__name__
            if plans.refusal(loop) is None and not self._peel_more(why):
                is_key = isinstance(error, KeyError)
                plans.refuse(
                    loop, "it looks up a key that depends on its counter" if is_key else why
                )
        elif isinstance(error, StateChangedError):
            return False  # its remedy is state as arguments
        elif plans.with_stacks and isinstance(error, RuneJitError):
            plans.without_stacks(*plans.with_stacks)
        elif self.rolled:
            plans.with_loops = error  # perhaps because the values that loops compute are not known
            plans.refuse_all(f"the code after the loop needs a value: {error}")
        else:
            return False
        plans.next_attempt()
        return True


def _all(builder: Any, conditions: list[Any]) -> Any:
    """Whether all conditions hold."""
    holds = conditions[0]
    for condition in conditions[1:]:
        holds = builder.ufunc("logical_and", [holds, condition])[0]
    return holds
