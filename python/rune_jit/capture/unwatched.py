"""The watch (guards.py) of a trace in segments, which no later call reuses."""

from __future__ import annotations

import types
from typing import Any

from rune_jit.capture.class_tests import class_test
from rune_jit.capture.guards import Watch
from rune_jit.capture.libraries import Foreign
from rune_jit.capture.names import Names
from rune_jit.capture.told_apart import ToldApart


class Unwatched(Watch):
    """A Watch that records nothing. It gives up the trace for objects whose methods must not get
    traced arrays."""

    def __init__(self, function: Any, trace: Any) -> None:
        self._package = (getattr(function, "__module__", None) or "").split(".")[0]
        self.is_foreign = Foreign(self._package)
        self._trace = trace
        self.told_apart = ToldApart()
        self.of_libraries = Names()

    def _note(self, *args: Any) -> None:
        pass

    guard = guard_item = guard_of_library = learn = _note  # type: ignore[assignment]

    def look(self, x: Any) -> None:
        if not self._trace.gave_up and (why := class_test(x)) is not None:
            self._trace.give_up(why)

    def knows(self, x: Any) -> bool:
        return False

    def guard_function(self, function: types.FunctionType, is_copied: bool = True) -> list[Any]:
        return []
