"""The steps of Python in the traces of a call, to end traces of functions that are mostly Python's
work."""

from __future__ import annotations

import types
from typing import Any

from rune_jit.errors import UnsupportedOpError

# A trace ends after so many steps beside _USUAL steps for each operation; and if its program need
# not pay. The limit is checked once in _FEW steps.
_MANY, _MANY_WITHOUT_LIMIT, _USUAL, _FEW = 10_000, 100_000, 10, 1000
# How many steps take as long as the search of an object; how many items of a list are searched, and
# of how many bytes of code the source is read, in the time of a step.
_OF_OBJECT, _ITEMS, _CODE = 5, 25, 16


def steps_of(x: Any) -> int:
    """How many steps the search of an object takes."""
    return _OF_OBJECT + (len(x) // _ITEMS if type(x) in (list, tuple, dict) else 0)


def steps_to_read(code: types.CodeType) -> int:
    """How many steps it takes to read and transform the source of a function's code."""
    return len(code.co_code) // _CODE


class Steps:
    """Counts calls of functions, `if`s, reads of modules' names, objects that are searched,
    operations on known arrays, and the code that is read, in all traces of one call. Each takes
    microseconds, many times as long as without a trace."""

    def __init__(self) -> None:
        self.are_too_many = False  # whether a trace has ended because of them
        self._count = 0  # in this trace
        self._before = 0  # in earlier traces of the call, beside the usual ones

    def begin(self) -> None:
        """Begins to count for another call."""
        self._count = self._before = 0
        self.are_too_many = False

    def end(self, trace: Any) -> None:
        """Notes the end of a trace, which another may follow."""
        self._before += max(0, self._count - _USUAL * len(trace.builder))
        self._count = 0

    def note(self, trace: Any, count: int) -> None:
        """Counts steps. Raises UnsupportedOpError if they are too many."""
        before, self._count = self._count, self._count + count
        if before // _FEW == self._count // _FEW:
            return
        most = _MANY if trace.builder.must_pay else _MANY_WITHOUT_LIMIT
        if self._before + self._count - _USUAL * len(trace.builder) >= most:
            self.are_too_many = True
            raise UnsupportedOpError(
                f"{trace.name}: cannot trace more than {most:,} steps of Python that compute"
                " little with arrays\nhint: jit the functions that compute with arrays"
            )
