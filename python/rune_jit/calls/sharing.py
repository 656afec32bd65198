"""Programs that serve several signatures. The calls differ only in the identity of objects, and the
objects are equal in everything that the trace has read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from rune_jit import trees
from rune_jit.arrays.array import Array
from rune_jit.calls.arguments import Call, order_of
from rune_jit.calls.traced import Traced
from rune_jit.capture.matching import Match, likeness, reachable
from rune_jit.capture.state import Slot
from rune_jit.tracing.context import ValuesNeeded

# How many programs are kept for each kind of calls, and for how many kinds.
_MOST_PROGRAMS, _MOST_KINDS = 8, 64
# When calls with so many objects could not be one program, calls with similar objects are not
# traced.
_ENOUGH = 2
# After so many searches without success, a kind is searched again when it has another program. (A
# search compares all objects that a trace has read.)
_MOST_FAILURES = 8
# Kinds of slots that are lists and dicts whose contents no guard compares.
_LISTS = ("content", "grown")


class Shared(NamedTuple):
    """A program that may serve calls with other objects than those for which it was made."""

    call: Call
    traced: Traced
    executable: Any
    held: frozenset[int]  # ids of objects in its results and host functions


class _Kind:
    """One kind of calls (see `alike`). The newest program is the last."""

    def __init__(self) -> None:
        self.programs: list[Shared] = []
        self.refused: list[Any] = []  # entries of calls without a program
        self.slots: list[Shared] = []  # programs of such calls that assign state
        self.constants: frozenset[int] = frozenset()  # leaves whose values programs need
        # How many searches in a row have found no program or slots, since the last was added.
        self.failures = self.failures_of_slots = 0


class Sharing:
    """The programs of a function, by kind of calls. Calls of a kind differ only in objects.

    `keys` of a search: a dict that the caller keeps while it searches for one call. Finding a
    call's kind takes about as long as a short call, and each of the searches asks for it."""

    def __init__(self) -> None:
        self._kinds: dict[Any, _Kind] = {}
        # The leaves of a call without state, a program and the match of the two. They serve the
        # same call with state, which follows.
        self._matched: tuple[list[Any], Shared, Match | None] | None = None

    def clear(self) -> None:
        self._kinds.clear()

    def keep(self, keys: Iterable[Any]) -> None:
        """Forgets all programs but those made for these keys."""
        known = set(keys)
        for kind in self._kinds.values():
            for programs in (kind.programs, kind.slots):
                programs[:] = [shared for shared in programs if shared.call.key in known]

    def add(self, call: Call, traced: Traced, executable: Any) -> None:
        """Notes the program of a call."""
        if call.sizes or traced.met is None or traced.met.asks_identity:
            return
        try:
            example = traced.unflatten and traced.unflatten([None] * len(traced.outputs))
        except Exception:  # raised by a class of the user
            return
        held = reachable([example, traced.functions, traced.assigned])
        traced = traced._replace(graph=None)
        shared = Shared(_objects(call), traced, executable, frozenset(map(id, held)))
        kind = self._kind(call)
        kind.failures = 0
        _add(kind.programs, shared)
        self._note_constants(call)
        if call.plain is not None:
            kind = self._kind(call.plain.without_constants)
            kind.failures_of_slots = 0
            _add(kind.slots, shared)

    def refuse(self, call: Call, entry: Any) -> None:
        """Notes the entry of a call without a program."""
        if not call.sizes:
            self._kind(call).refused.append(entry)
            self._note_constants(call)

    def _note_constants(self, call: Call) -> None:
        """Notes that calls like this one need the values of its constants."""
        if call.constants:
            self._kind(call.without_constants).constants |= frozenset(call.constants)

    def forget(self, call: Call) -> None:
        """Forgets the programs of calls like this one, because an assumption about data has
        failed."""
        for kind in (call, call.plain) if call.plain is not None else (call,):
            self._kinds.pop(alike(kind), None)

    def refused(self, call: Call, keys: dict[Any, Any]) -> Any:
        """An entry without a program for calls like this one, if enough such calls could not be a
        program and none could."""
        kind = None if call.sizes or not self._kinds else self._kinds.get(_known(call, keys))
        if kind is None or kind.programs or kind.slots or len(kind.refused) < _ENOUGH:
            return None
        return kind.refused[-1]

    def keys_of_programs(self, call: Call, keys: dict[Any, Any]) -> Iterator[Any]:
        """The keys of the programs of calls like this one, which may not be able to run it."""
        if not call.sizes and self._kinds and (kind := self._kinds.get(_known(call, keys))):
            for shared in (*kind.programs, *kind.slots):
                yield shared.call.key

    def find(self, call: Call, keys: dict[Any, Any]) -> Iterator[tuple[Shared, Traced]]:
        """The programs that can run a call, with traces whose objects are replaced by the call's.
        Raises ValuesNeeded if they need the values of numbers."""
        if call.sizes or not self._kinds:
            return
        kind = self._kinds.get(_known(call.without_constants, keys))
        if missing := (kind.constants if kind else set()) - set(call.constants):
            raise ValuesNeeded(frozenset(missing))
        kind = self._kinds.get(_known(call, keys))
        known, self._matched = self._matched, None
        if kind is None or kind.failures >= _MOST_FAILURES:
            return
        kind.failures += 1  # (unless there is a program)
        for shared in reversed(kind.programs):
            is_known = known and known[0] is (call.plain or call).leaves and known[1] is shared
            match = known[2] if known and is_known else _match(shared, call)
            if match is None or not _are_same(_slots(shared, match), call.slots):
                continue
            if (traced := _traced_for(shared, match, call)) is not None:
                kind.failures = 0
                yield shared, traced

    def slots(self, call: Call, keys: dict[Any, Any]) -> list[Slot] | None:
        """The places that a call assigns, if a program of calls like this one assigns places."""
        if call.sizes or call.slots or not self._kinds:
            return None
        kind = self._kinds.get(_known(call.without_constants, keys))
        if kind is None or kind.failures_of_slots >= _MOST_FAILURES:
            return None
        for shared in reversed(kind.slots):
            match = _match(shared, call)
            self._matched = call.leaves, shared, match
            if match is not None and (slots := _slots(shared, match)) is not None:
                kind.failures_of_slots = 0
                return slots
        kind.failures_of_slots += bool(kind.slots)
        return None

    def _kind(self, call: Call) -> _Kind:
        key = alike(call)
        kind = self._kinds.pop(key, None) or _Kind()
        self._kinds[key] = kind
        for oldest in list(self._kinds)[:-_MOST_KINDS]:
            self._kinds.pop(oldest, None)
        return kind


def _add(programs: list[Shared], shared: Shared) -> None:
    programs[:] = [other for other in programs if other.call.key != shared.call.key]
    programs.append(shared)
    del programs[:-_MOST_PROGRAMS]


def _objects(call: Call) -> Call:
    """A call without its arrays, so that they are not kept alive."""
    kept = {*call.static_leaves, *call.constants}
    leaves = [leaf if i in kept else None for i, leaf in enumerate(call.leaves)]
    plain = call.plain and _objects(call.plain)
    return call._replace(leaves=leaves, bound=None, plain=plain)


def alike(call: Call) -> Any:
    """The part of a call's key that is equal for all calls that may share a program."""
    constants = set(call.constants)
    static = set(call.static_leaves) - constants
    count = _count(call)
    parts: list[Any] = []
    for i, leaf in enumerate(call.leaves):
        if type(leaf) is str:  # (a call may have many)
            parts.append((str, leaf))
        elif isinstance(leaf, (np.ndarray, Array)):
            device = leaf.device if isinstance(leaf, Array) else None
            parts.append((type(leaf), leaf.dtype, leaf.shape, order_of(leaf), device))
        elif i in constants or (i in static and i >= count):
            parts.append(trees.static_key(leaf))
        elif i in static:
            parts.append(likeness(leaf))
        else:
            parts.append((type(leaf), getattr(leaf, "dtype", None)))
    statics = [(name, trees.static_key(value)) for name, value in call.statics.items()]
    return call.treedef, call.names, call.constants, call.decides, tuple(parts), tuple(statics)


def _known(call: Call, keys: dict[Any, Any]) -> Any:
    """alike(call), computed once for a call with these constants."""
    at = call.constants, call.decides
    if at not in keys:
        keys[at] = alike(call)
    return keys[at]


def _count(call: Call) -> int:
    """How many leaves are those of the arguments."""
    return len((call.plain or call).leaves)


def _match(shared: Shared, call: Call) -> Match | None:
    """The counterparts, in the call, of the objects that the trace has met. None if the program
    cannot run the call."""
    assert shared.traced.met is not None
    match = Match(shared.traced.met)
    static = set(call.static_leaves).difference(call.constants)
    pairs = list(zip(shared.call.leaves, call.leaves, strict=False))
    fits = all(match.pair(*pairs[i]) for i in sorted(static) if i < _count(call))
    # Their contents are arguments, or are not read.
    contents = {id(slot.holder) for slot in shared.call.slots if slot.kind in _LISTS}
    return match if fits and match.add_guards(shared.traced.guards, contents) else None


def _slots(shared: Shared, match: Match) -> list[Slot] | None:
    """The counterparts of the places that a program assigns, or None if they are not known."""
    found = []
    for kind, holder, name in shared.call.slots:
        new = match.of(holder)
        if new is None:
            if not (isinstance(holder, dict) and "__builtins__" in holder):
                return None
            new = holder
        found.append(Slot(kind, new, name))
    return found


def _are_same(a: Sequence[Slot] | None, b: Sequence[Slot]) -> bool:
    return a is not None and [slot.key for slot in a] == [slot.key for slot in b]


def _traced_for(shared: Shared, match: Match, call: Call) -> Traced | None:
    """The trace with counterparts in place of the objects that it has met, or None if that is not
    possible."""
    traced = shared.traced
    replaced = match.replaced
    if replaced & shared.held:
        return None
    captured, numbers = [], traced.numbers
    for i, array in enumerate(traced.captured):
        is_own = i in traced.constants or (numbers is not None and id(array) in numbers.arrays)
        new = array if is_own else match.of(array)
        if new is None and replaced:
            return None
        captured.append(array if new is None else new)
    state = {id(leaf) for leaf in call.leaves[_count(call) :]}
    if state and any(id(array) in state for array in captured):
        return None
    outputs = []
    for plan in traced.outputs:
        if plan[0] == "constant":
            new = match.of(plan[1])
            if new is not None:
                plan = ("constant", new)
            elif any(id(held) in replaced for held in reachable(plan[1])):
                return None
            elif isinstance(plan[1], str) and any(f"{at:x}" in plan[1] for at in replaced):
                return None  # it contains the address of an object
        outputs.append(plan)
    if numbers is not None and (numbers := numbers.of_others(match.of)) is None:
        return None
    return traced._replace(captured=captured, outputs=outputs, guards=match.guards, numbers=numbers)
