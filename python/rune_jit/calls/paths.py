"""Signatures of functions with conditions on values. Each way that calls have taken through the
function has a program. A program finds out itself whether a call takes its way."""

from __future__ import annotations

from typing import Any

from rune_jit import _core

# A signature with more ways runs in segments.
_MOST = 8


class Paths:
    """The programs of one signature. The one that ran last is the first."""

    def __init__(self, program: Any) -> None:
        self._programs = [program]
        # Whether the program that was added last has not run any call yet. If it does not run the
        # call that it was made for, its trace has guessed wrong.
        self.is_untried = True

    @property
    def last(self) -> Any:
        """The program that ran last."""
        return self._programs[0]

    @property
    def programs(self) -> list[Any]:
        """The programs, in this order."""
        return self._programs

    @property
    def last_used(self) -> int:
        return max(program.last_used for program in self._programs)  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self._programs)

    def is_current(self) -> bool:
        return all(program.is_current() for program in self._programs)

    def broken(self) -> list[Any]:
        """Like CompiledCall.broken, for all programs."""
        programs = [getattr(program, "compiled", program) for program in self._programs]
        return [guard for program in programs for guard in program.broken()]

    @property
    def without_python(self) -> list[Any]:
        """The programs that need no Python, in this order."""
        return [p for p in self._programs if isinstance(p, _core.CompiledCall)]

    @property
    def are_too_many(self) -> bool:
        return len(self._programs) >= _MOST

    def add(self, program: Any) -> None:
        """Adds the program of another way."""
        self.is_untried = True
        self._programs.insert(0, program)

    def call(self, leaves: list[Any]) -> tuple[str, Any]:
        """Like CompiledCall.call. The status is "stale" if the call takes none of the ways, and
        "uncompiled" if it takes an UncompiledWay."""
        for i, program in enumerate(self._programs):
            status, result = program.call(leaves)
            if status != "stale":
                self.is_untried = False
                self._programs.insert(0, self._programs.pop(i))
                return status, result
            if not program.is_current():
                break
        return "stale", None


class UncompiledWay:
    """A way without a program of its own. `compiled` only finds out whether a call takes this way.
    Such calls run in segments, or on NumPy if `segmented` is None."""

    def __init__(self, compiled: Any, segmented: Any = None) -> None:
        self._compiled = compiled
        self.segmented = segmented
        self.is_current, self.broken = compiled.is_current, compiled.broken

    @property
    def last_used(self) -> int:
        return self._compiled.last_used  # type: ignore[no-any-return]

    def call(self, leaves: list[Any]) -> tuple[str, Any]:
        status, _ = self._compiled.call(leaves)
        return ("uncompiled" if status == "done" else status), None
