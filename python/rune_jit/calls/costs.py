"""What the traces of a function take, and its calls on NumPy."""

from __future__ import annotations

from rune_jit.calls.entries import Untraced

# A new signature is traced at once if the function's traces have taken less than _SECONDS, or if
# there have been fewer than _TRACES and they have taken less than _MANY_SECONDS.
_TRACES, _SECONDS, _MANY_SECONDS = 4, 0.1, 0.5
# The first trace of a process imports modules, which takes up to so many seconds.
_IMPORTS = 0.5
# So it is if a trace takes the time of fewer calls on NumPy.
_MANY_CALLS = 100
SHORT = "a trace takes longer than many of its calls"
SLOWER = "it runs most of the signatures with such arguments"


class Costs:
    """Decides whether a new signature of a function is traced at its first call."""

    def __init__(self) -> None:
        self._traces = 0
        self._seconds = self._longest = 0.0
        self._last: Untraced | None = None

    def note(self, seconds: float) -> None:
        """Notes the time of a trace and of the compilation of its program."""
        self._traces += 1
        self._seconds += seconds
        self._longest = max(self._longest, seconds)

    def postponed(self, lost: int) -> Untraced | None:
        """The entry of a new signature whose calls NumPy runs until they have taken the time of a
        trace. None if the signature should be traced at once.

        `lost`: 0, or how much more often NumPy was faster for signatures of this kind than it may
        be. The calls wait for the time of so many traces, so that all these traces together take
        an ever smaller part of the time.

        How long a call takes is known from the signature that was postponed last. Some signatures
        are postponed only to find this out: the 4th, the 8th, the 16th, and so on.
        """
        seconds = self._seconds - min(self._longest, _IMPORTS)
        are_few = self._traces < _TRACES and seconds < _MANY_SECONDS
        if are_few or (seconds < _SECONDS and not lost):
            return None
        trace = seconds / max(1, self._traces - 1)
        if lost:
            return Untraced(SLOWER, lost * trace)
        most = trace / _MANY_CALLS
        is_power_of_two = self._traces & (self._traces - 1) == 0
        known = None if self._last is None else self._last.shortest
        if known is not None and known > most and not is_power_of_two:
            return None
        self._last = Untraced(SHORT, trace, most)
        return self._last
