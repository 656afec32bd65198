"""Numbers among a function's arguments whose values are constants of its programs. Each value has a
program of its own, up to a limit."""

from __future__ import annotations

import collections
from typing import Any

from rune_jit.calls.arguments import Call, input_names
from rune_jit.errors import UnsupportedOpError
from rune_jit.tracing.context import ValuesNeeded

# A signature is traced for so many values of its numbers. Calls with other values run in segments.
_MOST = 64
# After traces for so many values, the program checks conditions on the numbers (conditions.py).
_FEW = 2
# The limit of a function that assigns outside places, since a counter has another value at each
# call.
_MOST_OF_STATE = 4
# How often a trace may ask for further numbers. (A list may hold many.) From the third time on, all
# numbers of the lists, dicts and tuples that hold these become constants.
_MOST_STEPS, _MANY_STEPS = 12, 3


_NUMBERS = (int, float, complex)


class _Signature:
    """The numbers of a signature whose values its traces use."""

    def __init__(self) -> None:
        self.leaves: frozenset[int] = frozenset()
        self.traced = 0  # how many values were traced
        self.in_segments = 0  # how many of these have no program
        self.steps = 0
        self.refused: str | None = None  # why no further value is traced


class Constants:
    """By signature: the numbers whose values its traces use, and how many values were traced."""

    def __init__(self) -> None:
        self._known: collections.defaultdict[Any, _Signature] = collections.defaultdict(_Signature)
        # Signatures, without state, whose traces take conditions on numbers for those of later
        # calls.
        self._deciding: set[Any] = set()

    def clear(self) -> None:
        """Forgets every signature."""
        self._known.clear()
        self._deciding.clear()

    def discard(self, key: Any) -> None:
        """Forgets the signature of a key."""
        self._known.pop(key[0], None)
        self._deciding.discard(key[0])

    def of(self, call: Call) -> Call:
        """The call with the constants that traces of its signature have needed so far."""
        known = self._known.get(call.signature) if self._known else None
        if self._deciding and (call.plain or call).signature in self._deciding:
            call = call._replace(decides=True)
        return call.with_constants(known.leaves) if known and known.leaves else call

    def add(self, call: Call, leaves: frozenset[int]) -> Call:
        """Makes these numbers constants of all calls with this signature. Returns the call with
        them."""
        known = self._known[call.signature]
        known.steps += 1
        known.leaves |= leaves if known.steps < _MANY_STEPS else leaves | _beside(call, leaves)
        return self.of(call.without_constants)

    def are_refused(self, call: Call) -> bool:
        """Whether calls of this signature get no constants, because most values were new."""
        known = self._known.get(call.signature)
        return known is not None and known.refused is not None

    def note_segments(self, call: Call, reason: str) -> None:
        """Notes that a trace for the values of this call has failed. If all have, later calls get
        no constants, so that they share their segments."""
        if not call.constants or call.slots:
            return
        known = self._known[call.signature]
        known.in_segments += 1
        if known.in_segments == known.traced == _FEW:
            known.refused, known.leaves = reason, frozenset()

    def count(self, name: str, call: Call, is_varied: bool) -> None:
        """Counts a trace for the values of this call of the function `name`. Raises
        UnsupportedOpError if many values were traced before, or if traces ask for one number after
        the other. `is_varied`: whether most calls have new values. Then later calls get no
        constants. Raises ValuesNeeded if the trace should begin again without constants, because it
        needs fewer of them if it assumes outcomes of conditions on numbers."""
        if self.are_refused(call):
            raise UnsupportedOpError(self._known[call.signature].refused)
        if not call.constants:
            return
        known = self._known[call.signature]
        if known.steps > _MOST_STEPS:
            raise UnsupportedOpError(
                f"{name}: cannot trace the values of many numbers one by one ({_owners(call)}:"
                f" {len(call.constants)} numbers so far)\nhint: pass arrays"
            )
        known.traced += 1
        if known.traced > _FEW and not call.decides:
            self._deciding.add((call.plain or call).signature)
            known.leaves, known.traced, known.in_segments = frozenset(), 0, 0
            raise ValuesNeeded(frozenset())
        most = _MOST_OF_STATE if call.slots else _MOST
        if known.traced > most:
            reason = (
                f"{name}: cannot trace each value of {_owners(call)} ({most} values so far)\n"
                "hint: pass arrays, or use np.where instead of if"
            )
            if (is_varied or known.traced > 2 * most) and not call.slots:
                known.refused, known.leaves = reason, frozenset()
            raise UnsupportedOpError(reason)


def _beside(call: Call, leaves: frozenset[int]) -> frozenset[int]:
    """All numbers of the arguments to which these leaves belong."""
    found: set[int] = set()
    first = 0
    for argument in call.treedef.children():
        positions = range(first, first + argument.num_leaves)
        if not leaves.isdisjoint(positions):
            found.update(i for i in positions if type(call.leaves[i]) in _NUMBERS)
        first = positions.stop
    return frozenset(found)


def _owners(call: Call) -> str:
    """The names of the arguments that hold the call's constants."""
    return ", ".join(dict.fromkeys(input_names(call, list(call.constants))))
