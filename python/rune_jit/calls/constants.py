"""Numbers among a function's arguments whose values are constants of its programs, and how many
values have one."""

from __future__ import annotations

import collections
from typing import Any

from rune_jit.calls.arguments import Call, input_names
from rune_jit.errors import UnsupportedOpError
from rune_jit.tracing.context import ValuesNeeded

# For how many values of its numbers a signature is traced; calls with others run in segments.
_MOST = 64
# After how many values conditions on the numbers are checks of the program (conditions.py).
_FEW = 2
# And if it assigns places outside: a counter has another value at each call.
_MOST_OF_STATE = 4
# In how many steps the numbers are found that a signature's traces need: a list has many.
_MOST_STEPS = 12


class _Signature:
    """The numbers of a signature that its traces use."""

    def __init__(self) -> None:
        self.leaves: frozenset[int] = frozenset()
        self.traced = 0  # values of them
        self.steps = 0
        self.refused: str | None = None  # why no value is traced any more


class Constants:
    """By signature: which numbers its traces use, and how many values of them were traced."""

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
        """Forgets the signature of a call's key."""
        self._known.pop(key[0], None)
        self._deciding.discard(key[0])

    def of(self, call: Call) -> Call:
        """The call with the constants that traces of its signature have needed so far."""
        known = self._known.get(call.signature) if self._known else None
        if self._deciding and (call.plain or call).signature in self._deciding:
            call = call._replace(decides=True)
        return call.with_constants(known.leaves) if known and known.leaves else call

    def add(self, call: Call, leaves: frozenset[int]) -> Call:
        """The call with these numbers as constants, as all later calls of its signature."""
        known = self._known[call.signature]
        known.leaves |= leaves
        known.steps += 1
        return self.of(call.without_constants)

    def are_refused(self, call: Call) -> bool:
        """Whether calls of this signature have no constants because most values were new."""
        known = self._known.get(call.signature)
        return known is not None and known.refused is not None

    def count(self, name: str, call: Call, is_varied: bool) -> None:
        """Counts a trace for the values of this call of the function `name`. Raises
        UnsupportedOpError if there were traces for many values already, or if the trace needs one
        number after the other. If calls are `is_varied`, most values are new: there are no
        constants any more then. Raises ValuesNeeded if the trace had better begin with no
        constants: it needs fewer if it takes conditions on numbers for those of later calls."""
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
            known.leaves, known.traced = frozenset(), 0
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


def _owners(call: Call) -> str:
    """The arguments that hold the call's constants."""
    return ", ".join(dict.fromkeys(input_names(call, list(call.constants))))
