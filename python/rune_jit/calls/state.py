"""Calls of functions that assign outside places (capture/state.py). The contents of the places are
further arguments. The program computes their new contents, which are written to the places after
each run."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from rune_jit import trees
from rune_jit.arrays.array import Array
from rune_jit.calls.arguments import Call, type_of, with_state
from rune_jit.calls.paths import Paths
from rune_jit.calls.traced import Assigned
from rune_jit.capture.loops.growing import items_of
from rune_jit.capture.state import Change, Place, Slot, at, has_one_twice
from rune_jit.errors import UnsupportedOpError
from rune_jit.tracing.rows import unpack

# A signature that needs more programs, because the contents of its slots differ, runs in segments.
_MOST = 8
# For how many keys the last call with state is remembered.
_MOST_REMEMBERED = 64


class StateFound(BaseException):
    """The function assigns places that were not known. It must be traced again."""


class States:
    """By signature of the arguments: the places that calls assign, and the places whose numbers
    change from call to call."""

    def __init__(self) -> None:
        self._slots: dict[Any, tuple[Slot, ...] | None] = {}  # None: they cannot be arguments
        self._traced: dict[Any, int] = {}
        self._changes: collections.Counter[Any] = collections.Counter()

    def clear(self) -> None:
        self._slots.clear()
        self._traced.clear()
        self._changes.clear()

    def keep(self, keys: Iterable[Any]) -> None:
        """Forgets all signatures but those of these keys."""
        signatures = {signature for signature, _ in keys}
        signatures |= {signature[0] for signature in signatures}  # of calls with slots
        for signature in self._slots.keys() - signatures:
            del self._slots[signature]

    def discard(self, key: Any) -> None:
        """Forgets the signature of a key."""
        signature, _ = key
        for part in (signature, signature[0]):
            self._slots.pop(part, None)
            self._traced.pop(part, None)

    def of(self, name: str, call: Call) -> Call:
        """The call with the contents of its slots."""
        slots = self._slots.get(call.signature)
        if not slots:
            return call
        try:
            return with_state(name, call, slots)
        except (UnsupportedOpError, TypeError):
            self._slots[call.signature] = None
            return call

    def count(self, call: Call) -> None:
        """Counts a trace of a call with slots. After too many traces the call gets no slots."""
        if call.plain is None:
            return
        signature = call.plain.signature
        self._traced[signature] = self._traced.get(signature, 0) + 1
        if self._traced[signature] > _MOST:
            self.refuse(call)

    def add(self, call: Call, found: list[Slot] | None) -> None:
        """Notes that a call assigns these slots, too. Raises StateFound if that is new."""
        signature = (call.plain or call).signature
        known = self._slots.get(signature, ())
        if known is None or not found:
            return
        new = {slot.key: slot for slot in (*known, *found)}
        for slot in found:
            if slot.kind == "content":  # (It is read, too.)
                new.pop(("grown", id(slot.holder), None), None)
        if new.keys() != {slot.key for slot in known}:
            self._slots[signature] = tuple(new.values())
            raise StateFound

    def note_changes(self, call: Call, entry: Any, hits: int) -> str | None:
        """Notes the places that have made the program of a call stale. A number or array that has
        changed twice becomes an argument of the next program. If there were many traces, and fewer
        calls without one (`hits`), returns a reason to make no further programs."""
        signature = (call.plain or call).signature
        known = self._slots.get(signature, ())
        self._changes[signature] += 1
        if self._changes[signature] > max(_MOST, hits):
            return "what it reads outside differs from call to call"
        new = {slot.key: slot for slot in known or ()}
        for slot in {slot.key: slot for slot in _changed_places(entry)}.values():
            self._changes[signature, slot.key] += 1
            if self._changes[signature, slot.key] > 1:
                new[slot.key] = slot
        if known is not None and new:
            self._slots[signature] = tuple(new.values())
        return None

    def refuse(self, call: Call) -> None:
        """Notes that the slots of a call cannot be arguments. Raises StateFound."""
        assert call.plain is not None
        self._slots[call.plain.signature] = None
        raise StateFound


def _changed_places(entry: Any) -> Iterator[Slot]:
    """The places whose numbers or arrays have changed since an entry's trace read them."""
    for kind, holder, name, before in getattr(entry, "compiled", entry).broken():
        if kind == "attribute" and type(trees.attribute(holder, "__dict__")) is dict:
            kind, holder = "item", vars(holder)
        slot = Slot("content", holder) if kind == "items" else Slot(kind, holder, name)
        if kind in ("item", "cell") and _may_be_argument(before, slot.read()):
            yield slot
        if kind == "items" and type(holder) is dict and before.keys() == holder.keys():
            pairs = [(x, holder[key]) for key, x in before.items() if holder[key] is not x]
            if all(_may_be_argument(*pair) for pair in pairs):
                yield slot


# Types of values that may become arguments because they differ from call to call.
_TYPES = (np.ndarray, np.generic, Array, int, float, complex)


def _may_be_argument(before: Any, now: Any) -> bool:
    return all(isinstance(x, _TYPES) and type(x) is not bool for x in (before, now))


class LastCall(NamedTuple):
    """A call with state or random numbers, so that calls like it can run its program without a
    search."""

    call: Call
    program: Any  # WithState, WithNumbers, a CompiledCall that only reads the state, or Paths
    types: list[Any]  # of the contents of its slots
    changes: int  # of the cache at that time; later changes make this invalid

    @classmethod
    def of(cls, call: Call, program: Any, changes: int) -> LastCall | None:
        """Makes a LastCall of a call that ran a program. None if numbers or objects in its state
        are part of the program, because other calls must compare these."""
        count = len((call.plain or call).leaves)
        is_plain = (
            not (call.constants or call.sizes)
            and len(call.leaves) == count + len(_read(call))
            and all(position < count for position in call.static_leaves)
        )
        types = [type_of(leaf) for leaf in call.leaves[count:]]
        return cls(call, program, types, changes) if is_plain else None

    def run(
        self, leaves: list[Any], args: Any, kwargs: Any, bind: Callable[[Any, Any], Any]
    ) -> tuple[Any] | None:
        """Runs a call with these arguments, whose leaves are `leaves`. Returns its result, or None
        if the call is not like the earlier one. `bind` binds arguments to the parameters."""
        call = self.call
        if any(x.changes_containers for x in _with_state(self.program)):
            if call.bound is not None:
                call = call._replace(bound=bind(args, kwargs))
            if changes_one_twice(self.program, call, args, kwargs):
                return None
        held = _read(self.call)
        if [type_of(x) for x in held] != self.types:
            return None
        try:
            status, result = self.program.call(leaves + held)
        except Exception:  # nothing has been written yet
            return None
        if status != "done":
            return None
        ran = self.program.last if isinstance(self.program, Paths) else self.program
        if isinstance(ran, WithState):
            result = ran.write_back(call, args, kwargs, result)
        return (result,)


def _read(call: Call) -> list[Any]:
    """What the slots of a call hold, but those of lists that only become longer, which no program
    reads."""
    return [slot.read() for slot in call.slots if slot.kind != "grown"]


class LastCalls:
    """The last calls with state, by the key of their arguments."""

    def __init__(self) -> None:
        self._calls: dict[Any, LastCall] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def clear(self) -> None:
        self._calls.clear()

    def add(self, call: Call, program: Any, changes: int) -> None:
        """Notes a call that ran. `changes`: the number of changes of the cache so far."""
        last = LastCall.of(call, program, changes)
        if last is not None:
            self._calls[(call.plain or call).signature[0]] = last
            for oldest in list(self._calls)[:-_MOST_REMEMBERED]:
                self._calls.pop(oldest, None)

    def run(self, key: Any, changes: int, *of: Any) -> tuple[Any] | None:
        """Runs a call like an earlier one. Returns its result, or None if there was none. `of`: the
        arguments of LastCall.run."""
        last = self._calls.get(key)
        return last.run(*of) if last is not None and last.changes == changes else None


class WithState:
    """A program of a function that assigns outside places."""

    def __init__(self, compiled: Any, assigned: Assigned) -> None:
        self.compiled, self.assigned = compiled, assigned
        self.is_current, self.call = compiled.is_current, compiled.call

    @property
    def last_used(self) -> int:
        return self.compiled.last_used  # type: ignore[no-any-return]

    @property
    def changes_containers(self) -> bool:
        """Whether it changes lists or dicts among the arguments."""
        return bool(self.assigned.changes) or self.assigned.unflatten is not None

    def write_back(self, call: Call, args: Any, kwargs: Any, result: Any) -> Any:
        """Writes the program's results to their places. Returns the function's result."""
        changes, unflatten = self.assigned.changes, self.assigned.unflatten
        outside = _outside(call, args, kwargs) if self.changes_containers else None
        if unflatten is not None:
            result = unflatten([x.of(outside) if type(x) is Place else x for x in result])
        result, new, elements, rows = result
        if changes:
            found = [
                (at(outside, path), _change(path, removed, keys, hows, values))
                for (path, removed, keys, hows), values in zip(changes, elements, strict=True)
            ]
            for held, change in found:
                change.apply(held)
        grown = self.assigned.grown
        for i, value in zip(self.assigned.slots, new, strict=True):
            if call.slots[i].kind == "grown":
                value = unpack(value, grown[i]) if i in grown else items_of(value)
            call.slots[i].write(value)
        if self.assigned.shown is not None:
            self.assigned.shown.show(rows)
        return result


def _outside(call: Call, args: Any, kwargs: Any) -> list[Any]:
    """The arguments of a call, and the contents of its slots."""
    of = {"args": args, "kwargs": kwargs} if call.bound is None else call.bound.arguments
    names = call.names[:-1] if call.slots else call.names
    return [*(of[name] for name in names), [slot.read() for slot in call.slots]]


def changes_one_twice(program: Any, call: Call, args: Any, kwargs: Any) -> bool:
    """Whether a program may change containers, and a container is in two places of the call. (The
    program would change it in one place only.)"""
    if not any(x.assigned.changes for x in _with_state(program)):
        return False
    return has_one_twice(_outside(call, args, kwargs))


def _with_state(program: Any) -> list[WithState]:
    """The programs with state among the ways of a program."""
    programs = program.programs if isinstance(program, Paths) else [program]
    return [x for x in programs if isinstance(x, WithState)]


def _change(path: Any, removed: Any, keys: Any, hows: list[Any], values: list[Any]) -> Change:
    assigned = dict(zip(keys, values, strict=False))
    return Change(path, removed, assigned, unpack(values[len(keys) :], hows))
