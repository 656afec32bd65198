"""Entries of signatures without a program. NumPy runs their calls, for good or until a program
pays."""

from __future__ import annotations

from typing import Any

from rune_jit import _core
from rune_jit.calls.paths import Paths
from rune_jit.calls.segmented import Segmented


class Fallback:
    """A signature whose calls run on NumPy. `until_it_returns`: only until a call raises
    nothing."""

    def __init__(self, reason: str, until_it_returns: bool = False) -> None:
        self.use = _core.LastUse()
        self.reason = reason
        self.until_it_returns = until_it_returns

    @property
    def last_used(self) -> int:
        return self.use.tick


# When NumPy's calls of a signature have taken so many seconds, a program is made after all. That
# takes about as long.
_PATIENCE = 3.0
_MOST_CALLS = 100_000


class Postponed(Fallback):
    """A signature whose program would take longer to make than it saves in many calls. NumPy runs
    its calls until they have taken that long."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self._spent = 0.0  # seconds

    @property
    def is_due(self) -> bool:
        return self._spent >= _PATIENCE

    def note(self, seconds: float) -> int:
        """Notes how long a call took. Returns how many such calls may follow without a look."""
        self._spent += seconds
        left = (_PATIENCE - self._spent) / 2
        return min(int(left / max(seconds, 1e-7)), _MOST_CALLS) if left > 0 else 0

    def note_more(self, calls: int, seconds: float) -> None:
        """Counts calls that were not timed."""
        self._spent += calls * seconds


def way(entry: Any) -> tuple[str, str]:
    """How the calls of a signature run, as a word and as a line of text."""
    if isinstance(entry, Fallback):
        return "NumPy", f"on NumPy: {_first_line(entry.reason)}"
    if isinstance(entry, Paths):
        each = ", one for each way through its conditions" if len(entry) > 1 else ""
        return (
            "program",
            f"as {'one program' if len(entry) == 1 else f'{len(entry)} programs'}{each}",
        )
    if not isinstance(entry, Segmented):
        return "program", "as one program"
    if entry.runs_on_numpy:
        return "NumPy", f"on NumPy: {_first_line(entry.runs_on_numpy)}"
    count = len(entry.programs)
    programs = f"{count} program{'' if count == 1 else 's'}"
    if loops := sum(x.is_used for x in entry.programs.apart.values()):
        programs += f", {loops} more of loops"
    if refusals := entry.programs.refusals:
        programs += f", some for one length each: {_first_line(refusals[0])}"
    return "segments", f"in segments ({programs}): {_first_line(entry.reason)}"


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
