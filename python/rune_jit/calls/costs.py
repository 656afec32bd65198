"""What the traces of a function take, and its calls on NumPy."""

from __future__ import annotations

from rune_jit.calls.entries import Untraced

# A new signature is traced at once if the function has had fewer traces, or if they have taken
# fewer seconds.
_TRACES, _SECONDS = 4, 0.1
# It is postponed after fewer traces if they have taken more seconds, and if NumPy needs little time
# for a call: if the programs have no loops, and the arrays have fewer elements.
_MANY_SECONDS, _SMALL = 0.5, 200_000
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
        # Whether the program that is being made has loops, or there is none.
        self.has_loops = True
        self._without_loops = 0  # how many of the traces have made programs without loops
        self._seconds = self._longest = 0.0
        self._last: Untraced | None = None

    def note(self, seconds: float) -> None:
        """Notes the time of a trace and of the compilation of its program."""
        self._traces += 1
        self._without_loops += not self.has_loops
        self.has_loops = True
        self._seconds += seconds
        self._longest = max(self._longest, seconds)

    def postponed(self, lost: int, elements: int) -> Untraced | None:
        """The entry of a new signature whose calls NumPy runs until they have taken the time of a
        trace. None if the signature should be traced at once.

        `lost`: 0, or how much more often NumPy was faster for signatures of this kind than it may
        be. The calls wait for the time of so many traces, so that all these traces together take
        an ever smaller part of the time. `elements`: how many the arguments have.

        How long a call takes is known from the signature that was postponed last. Some signatures
        are postponed only to find this out: those after 4, 8, 16 and more traces.
        """
        are_short = self._without_loops == self._traces and elements < _SMALL
        seconds = self._seconds - (min(self._longest, _IMPORTS) if are_short else self._longest)
        is_early = are_short and seconds >= _MANY_SECONDS and self._traces < _TRACES
        if not is_early and (self._traces < _TRACES or (seconds < _SECONDS and not lost)):
            return None
        trace = seconds / max(1, self._traces - 1)
        if lost:
            return Untraced(SLOWER, lost * trace)
        most = trace / _MANY_CALLS
        is_measured_again = self._traces & (self._traces - 1) == 0 and not is_early
        known = None if self._last is None else self._last.shortest
        if known is not None and known > most and not is_measured_again:
            return None
        self._last = Untraced(SHORT, trace, most)
        return self._last
