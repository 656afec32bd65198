"""The loops that are traced now, and the decisions about loops that a trace has made. It knows what
the bodies of open loops have written. (capture/loops/rolling.py traces the bodies.)"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from rune_jit.errors import StateChangedError
from rune_jit.tracing.context import ValuesNeeded
from rune_jit.tracing.identities import Identities
from rune_jit.tracing.loop_plans import LoopPeeled, LoopPlans, LoopRefused
from rune_jit.tracing.storage import Step, Storage, next_serial

if TYPE_CHECKING:
    from rune_jit.tracing.trace import Trace


# (The versions go on, because views have cached values of them.)
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
    """The body of a loop that is being traced: what it has written to arrays that are older than
    the loop."""

    def __init__(self, loop: int, counter: Any, bounds: tuple[Any, Any]) -> None:
        self.loop = loop
        self.counter = counter
        self.bounds = bounds  # the counter's least and greatest value, of outer counters
        self.oldest = next_serial()  # storages that were made later are the body's own
        self._began = self.oldest  # when the body was traced before
        self.given: list[Storage] = []  # of names that the body carries, at its start
        self.decides = False  # whether it has an `if` whose condition is not known
        self.raises = False  # whether it has a `raise` under such a condition
        self._written: dict[int, _Saved] = {}
        self.lists: dict[int, list[Any]] = {}  # by id: from outside, which it may append to
        # Of these: what it has appended, whether the list is a comprehension's, and the conditions.
        self.appended: dict[int, tuple[list[Any], list[Any], bool, list[Any]]] = {}
        self.conditions = 0  # how many it runs under
        self.calls: list[HostCall] = []  # in order
        # What the first ones return, as values that have a row for each iteration, and which row.
        self.returned: list[list[Any]] = []
        self.row: Any = None

    def is_older(self, storage: Storage) -> bool:
        """Whether the storage is not made by the body. (One that stands for a captured array may be
        met here for the first time.)"""
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
        """Takes storages that this trace of the body has made out of the hints."""
        for loop, storages in hints.items():
            hints[loop] = [s for s in storages if s.serial <= self._began]

    def restore(self) -> None:
        """Makes the storages what they were."""
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
        # The numbers of their loops, and of those of which an iteration runs apart.
        self.within: list[int] = []
        self._conditions: list[tuple[Any, int]] = []  # with the last storage made before
        self._decided_by_counters = 0  # how many of them
        # Operands of `and` and `or` that are being traced: what each may change, and whether
        # counters alone decide that it matters.
        self._operands: list[tuple[Any, bool]] = []
        self.rolled = 0  # loops that have become loops of the program
        self.lists: dict[int, Any] = {}  # by id: what stands for lists of numbers in bodies
        self.growing: dict[int, Any] = {}  # by id: lists whose length data may decide
        self.data_sizes: set[str] = set()  # names of Sizes that bodies compute
        self.integers: list[Integer] = []  # of loops in the outermost one that has not ended
        # How often a loop has changed a list by now: loops and names.
        self.written_back: dict[tuple[int, str], int] = {}
        self.hints: dict[int, list[Storage]] = {}  # by loop: what it wrote to when traced before
        # By id: what may be the same memory as a storage, where that depends on data, and the
        # loops or branches that made it.
        self._sharing: dict[int, list[Storage]] = {}
        self._may_share: dict[int, Storage] = {}
        self._shared_by: dict[int, int] = {}  # by id of a storage: the loop that made it share
        self.identities = Identities()

    def bounds(self, size: Any) -> tuple[int, int]:
        """The least and the greatest value of a Size. Those of a counter may depend on the counters
        of outer loops."""
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
        """Notes that a storage may be the same memory as others, which depends on data: none of
        them may be written to any more. `loop`: it is so because of one that the program need not
        have."""
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
        """What is written to older arrays meanwhile is written if the condition holds, and indices
        must be in bounds if it does. `is_of_counters`: whether counters alone decide it."""
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
        """The operand of `and` or `or` that is traced now matters if a condition holds, as `where`
        says. `held` is given back."""
        self._begin_condition(builder, condition)
        self._operands.append((held, is_of_counters))

    def end_operand(self, builder: Any) -> Any:
        self._end_condition(builder)
        return self._operands.pop()[0]

    @property
    def data_decide(self) -> bool:
        """Whether what is traced now runs under a condition that data decide."""
        return len(self._conditions) > self._decided_by_counters

    @property
    def num_conditions(self) -> int:
        """How many conditions what is traced now runs under."""
        return len(self._conditions)

    def runs(self, builder: Any, test: Any) -> Any:
        """Whether a loop runs that does so if a test holds: where a condition does not hold, what
        ends the loop need not come true."""
        return _all(builder, [condition for condition, _ in self._conditions] + [test])

    def append(self, items: list[Any], values: list[Any], is_new: bool) -> bool:
        """Called before values are appended to a list, which is_new under the conditions that hold.
        Returns whether the iterations of the innermost loop do so instead."""
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
        """Whether the innermost loop's counter decides whether what is traced now runs in an
        iteration."""
        return self._decides(builder, self.open[-1], len(self._conditions))

    def are_counters_alone(self, builder: Any) -> bool:
        """Whether each loop's counter decides whether what is traced now runs in its iteration."""
        ends = [*(body.conditions for body in self.open), len(self._conditions)]
        pairs = zip(self.open, ends[1:], strict=True)
        return not ends[0] and all(self._decides(builder, *pair) for pair in pairs)

    def _decides(self, builder: Any, body: Body, end: int) -> bool:
        """Whether the counter of a body decides the conditions in it that came before the `end`."""
        conditions = (condition for condition, _ in self._conditions[body.conditions : end])
        return all(builder.holds_at(body.counter, x, 0, 0, 1) is not None for x in conditions)

    def grow(self, items: list[Any]) -> None:
        """Makes arrays stand for a list whose length data may decide, if that can be: then the
        trace begins again. Raises LoopRefused."""
        if (found := self.growing.get(id(items))) is not None:
            found.want()

    def call_host(self, builder: Any, call: HostCall) -> list[Any]:
        """The values that a call in the innermost body returns: zeros, as long as the loop has not
        been traced with what it returns."""
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
    def minds_writes(self) -> bool:
        """Whether a write may be more than a new version of a storage: see `before_write`."""
        return bool(self.open or self._conditions or self._may_share)

    def before_write(
        self, trace: Trace, storage: Storage, steps: tuple[Step, ...], part: Any
    ) -> Any:
        """Called before `part` is written to a view of a storage. Returns what is to be written."""
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
        """Called before NumPy writes to an array that is known: if a body does that to an older
        array, it is a value from now on."""
        self._check_write(storage)
        if self._is_conditional(storage) or any(body.is_older(storage) for body in self.open):
            for body in self.open:
                body.before_write(storage)
            storage.current(trace)
            storage.array = None
            storage.version += 1

    def after_known_write(self, storage: Storage) -> None:
        """Called when NumPy may have written to an array that is known."""
        if self._is_conditional(storage) or any(body.is_older(storage) for body in self.open):
            self.fail("its body writes known numbers to an array")

    def check_integers(self, builder: Any, loop: int, may_guess: bool) -> None:
        """Called when a loop has ended. If it is an outermost one, and carries
        or computes a Python integer which may exceed 64 bits, the trace begins again: the program
        checks the operations that exceed them, or it assumes that what is carried is small, or the
        loop is refused. Raises LoopRefused."""
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
                # (One that is assumed to be small may be computed from others.)
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
        """Called where it matters whether two storages are the same memory."""
        if any(x is b for x in self.sharing(a)):
            self._refuse_shared(a, "it asks whether arrays share memory that may be the same one")

    def check_layout(self, storage: Storage) -> None:
        """Called where it matters where the elements lie, which differs from iteration to iteration
        for what a loop carries."""
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

    def check_identities(self, results: Any, is_outside: Callable[[Any], bool]) -> None:
        """Called at the end of the trace. The arguments are those of `Identities.broken`."""
        if found := self.identities.broken(results, is_outside):
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
    def apart(self, loop: int) -> Iterator[None]:
        """One iteration of a loop runs apart."""
        self.within.append(loop)
        yield
        self.within.pop()

    def peel_outer(self) -> None:
        """Begins the trace again with the first iteration of a loop around this place apart, if
        there is one of which none is. Raises LoopPeeled."""
        for body in reversed(self.open):
            if not self.plans.peeled(body.loop).first and self.plans.peel_more(body.loop):
                raise LoopPeeled

    def can_peel(self, size: Any) -> bool:
        """Whether a trace with the first or last iteration of a loop apart may find a size to have
        other bounds: one of one counter, whose iterations all run what is traced, unless counters
        decide."""
        unknown = len(self._conditions) - sum(of_counters for _, of_counters in self._operands)
        if unknown or len(size.names) > 1:
            return False
        bodies = [body for body in self.open if body.counter.names[0] in size.names]
        return any(self.plans.can_peel(body.loop) for body in bodies)

    def _peel_more(self, why: str) -> bool:
        """Whether one of the loops whose counters an error names can be tried in another way."""
        names = set(re.findall(r"\w+", why))
        found = [body for body in reversed(self.open) if body.counter.names[0] in names]
        return any(self.plans.peel_more(body.loop) for body in found)

    def begin_again(self, error: BaseException) -> bool:
        """Whether the trace, which has raised an error, begins again because of its loops."""
        plans = self.plans
        if isinstance(error, LoopRefused):
            pass  # what is done about it is known
        elif isinstance(error, ValuesNeeded) or getattr(error, "slots", None):
            return False  # of arguments, which no loop has changed; of places that become arguments
        elif self.within:
            loop, why = self.within[-1], str(error) or type(error).__name__
            if plans.refusal(loop) is None and not self._peel_more(why):
                is_key = isinstance(error, KeyError)
                plans.refuse(loop, "it looks up a key that its counter decides" if is_key else why)
        elif isinstance(error, StateChangedError):
            return False  # of places that become arguments
        elif self.rolled:
            plans.with_loops = error  # which may be that what they compute is not known
            plans.refuse_all(f"what follows needs to know it: {error}")
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
