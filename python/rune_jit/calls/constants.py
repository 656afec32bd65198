"""Numbers among a function's arguments whose values are constants of its programs, and how many
values have one."""

from __future__ import annotations

from typing import Any

from rune_jit.calls.arguments import Call, input_names
from rune_jit.errors import UnsupportedOpError

# For how many values of its numbers a signature is traced; calls with others run in segments.
_MOST = 64
# And if it assigns places outside: a counter has another value at each call.
_MOST_OF_STATE = 4
# In how many steps the numbers are found that a signature's traces need: a list has many.
_MOST_STEPS = 12


class Constants:
    """By signature: which numbers its traces use, and how many values of them were traced."""

    def __init__(self) -> None:
        self._leaves: dict[Any, frozenset[int]] = {}
        self._traced: dict[Any, int] = {}
        self._steps: dict[Any, int] = {}
        self._refused: dict[Any, str] = {}  # why no value is traced any more

    def clear(self) -> None:
        """Forgets every signature."""
        self._leaves.clear()
        self._traced.clear()
        self._steps.clear()
        self._refused.clear()

    def discard(self, key: Any) -> None:
        """Forgets the signature of a call's key."""
        for known in (self._leaves, self._traced, self._steps, self._refused):
            known.pop(key[0], None)

    def of(self, call: Call) -> Call:
        """The call with the constants that traces of its signature have needed so far."""
        leaves = self._leaves.get(call.signature) if self._leaves else None
        return call.with_constants(leaves) if leaves else call

    def add(self, call: Call, leaves: frozenset[int]) -> Call:
        """The call with these numbers as constants, as all later calls of its signature."""
        self._leaves[call.signature] = self._leaves.get(call.signature, frozenset()) | leaves
        self._steps[call.signature] = self._steps.get(call.signature, 0) + 1
        return self.of(call)

    def are_refused(self, call: Call) -> bool:
        """Whether calls of this signature have no constants because most values were new."""
        return call.signature in self._refused

    def count(self, name: str, call: Call, is_varied: bool) -> None:
        """Counts a trace for the values of this call of the function `name`. Raises
        UnsupportedOpError if there were traces for many values already, or if the trace needs one
        number after the other. If calls are `is_varied`, most values are new: there are no
        constants any more then."""
        if reason := self._refused.get(call.signature):
            raise UnsupportedOpError(reason)
        if not call.constants:
            return
        steps = self._steps.get(call.signature, 0)
        if steps > _MOST_STEPS:
            raise UnsupportedOpError(
                f"{name}: cannot trace the values of many numbers one by one ({_owners(call)}:"
                f" {len(call.constants)} numbers so far)\nhint: pass arrays"
            )
        count = self._traced[call.signature] = self._traced.get(call.signature, 0) + 1
        most = _MOST_OF_STATE if call.slots else _MOST
        if count > most:
            reason = (
                f"{name}: cannot trace each value of {_owners(call)} ({most} values so far)\n"
                "hint: pass arrays, or use np.where instead of if"
            )
            if (is_varied or count > 2 * most) and not call.slots:
                self._refused[call.signature] = reason
                self._leaves.pop(call.signature, None)
            raise UnsupportedOpError(reason)


def _owners(call: Call) -> str:
    """The arguments that hold the call's constants."""
    return ", ".join(dict.fromkeys(input_names(call, list(call.constants))))
