"""The watch of a trace that no later call repeats."""

from __future__ import annotations

import types
from typing import Any

from rune_jit.capture.guards import Watch
from rune_jit.capture.told_apart import ToldApart


class Unwatched(Watch):
    """Notes nothing."""

    def __init__(self, function: Any) -> None:
        self._package = (getattr(function, "__module__", None) or "").split(".")[0]
        self.told_apart = ToldApart()

    def _note(self, *args: Any) -> None:
        pass

    guard = guard_item = learn = look = _note  # type: ignore[assignment]

    def knows(self, x: Any) -> bool:
        return False

    def guard_function(self, function: types.FunctionType, is_copied: bool = True) -> list[Any]:
        return []
