"""What the attempts at one trace have found out about its loops, and how a trace begins again."""

from __future__ import annotations

from typing import Any, NamedTuple

from rune_jit.errors import ConcretizationError


class LoopRefused(BaseException):
    """Ends a trace inside of a loop. The trace begins again, and unrolls this loop or uses what it
    has found out about it. (This is no Exception, because the traced function must not handle
    it.)"""


class BetterApart(ConcretizationError):
    """The function had better run in segments, where a loop is a program of its own."""


class LoopPeeled(LoopRefused):
    """The trace begins again with one more iteration of a loop peeled."""


class Window(NamedTuple):
    """A slice x[s : s + w] in a loop, whose bounds data decide. At the ends of x it may have less
    than w elements."""

    loops: tuple[int, ...]  # the loops around it, outer ones first
    site: tuple[str, int]  # the user's file and line


class Peeled(NamedTuple):
    """How many iterations run before and after the loop of the program."""

    first: int = 0
    last: int = 0


# Tried in this order for a body that must know whether an iteration is the first or the last.
_PEELS = (Peeled(0, 0), Peeled(1, 0), Peeled(1, 1))
# After so many attempts a trace unrolls all loops.
_MOST_ATTEMPTS = 40


class LoopPlans:
    """What the attempts at one trace have found out about its loops, by the loops' numbers."""

    def __init__(self) -> None:
        self._refused: dict[int, str] = {}  # why
        self._peels: dict[int, int] = {}  # positions in _PEELS
        self._attempts = 0
        # Carried Python integers that are assumed to be small: (loop, name).
        self.small: set[tuple[int, str]] = set()
        # Lines where the program checks that Python integers of loops fit 64 bits.
        self.checked: set[str] = set()
        # Branches on how a loop has ended whose two sides have a program each.
        self.decided: set[int] = set()
        # The kinds of numbers in lists whose items are assigned, by (loop, name).
        self.kinds: dict[tuple[int, str], tuple[Any, Any]] = {}
        self._windows: set[Window] = set()  # that are assumed to have w elements
        self._clipped: set[Window] = set()  # that this attempt does not assume to have them
        # The code of functions that can be traced with arrays in place of lists that they read: by
        # loop of such a function; of those that are; and of those for which this is not possible.
        self.alternatives: dict[int, Any] = {}
        self.with_stacks: set[Any] = set()
        self._without_stacks: set[Any] = set()
        # What is known of lists whose length data decide, by name.
        self.growing: dict[str, Any] = {}
        # Generators that give the program random words, with the number of words; and generators
        # for which this is not possible.
        self.words: dict[int, int] = {}
        self.no_words: set[int] = set()
        # The generators with known seeds that each run makes, by their numbers in the order in
        # which the function makes generators.
        self.made_by_runs: set[int] = set()
        # Why one program must unroll a loop that would be a program of its own in segments.
        self.apart: str | None = None
        # Whether Python runs some calls that raise no error: those in which data decide that a loop
        # reports something, or leaves a variable unassigned (left_to_python.py).
        self.leaves_usual = False
        # Whether the program computes numbers of arrays (array_numbers.py).
        self.numbers_arrays = False
        self._all_refused: str | None = None
        # The error of a trace that failed after loops. The next trace unrolls them.
        self.with_loops: Any = None
        self.report: dict[int, tuple[str, str]] = {}  # a loop's place, and how it runs

    def refusal(self, loop: int) -> str | None:
        return self._refused.get(loop) or self._all_refused

    def peeled(self, loop: int) -> Peeled:
        return _PEELS[self._peels.get(loop, 0)]

    def refuse(self, loop: int, why: str) -> bool:
        """Refuses a loop. If it has windows, assumes that they have their full length instead, and
        returns False: the trace begins again. The same holds if arrays can take the place of lists
        that the loop's function reads."""
        code = self.alternatives.get(loop)
        if code is not None and code not in self.with_stacks | self._without_stacks:
            self.with_stacks.add(code)
            return False
        found = {window for window in self._clipped if loop in window.loops}
        self._windows |= found
        self._clipped -= found
        if not found:
            self._refused.setdefault(loop, why.partition("\n")[0])
        return not found

    def without_stacks(self, *codes: Any) -> None:
        """Lets the next attempts trace these functions with their lists."""
        self._without_stacks.update(codes)
        self.with_stacks.difference_update(codes)

    def is_whole(self, window: Window) -> bool:
        """Whether a window is assumed to have its full length. Notes that it is there."""
        if window in self._windows:
            return True
        self._clipped.add(window)
        return False

    def refuse_all(self, why: str) -> None:
        self._all_refused = why.partition("\n")[0]

    @property
    def are_all_refused(self) -> bool:
        return self._all_refused is not None

    def can_peel(self, loop: int) -> bool:
        """Whether there is another way to peel iterations."""
        return self._peels.get(loop, 0) + 1 < len(_PEELS)

    def peel_more(self, loop: int) -> bool:
        """Goes on to the next way to peel iterations. Returns whether there is one."""
        if not self.can_peel(loop):
            return False
        self._peels[loop] = self._peels.get(loop, 0) + 1
        return True

    def lines(self) -> list[str]:
        """How the loops run, a line for each place."""
        return list(dict.fromkeys(f"loop at {where} {how}" for where, how in self.report.values()))

    def next_attempt(self) -> None:
        self.report.clear()
        self._clipped.clear()
        self._attempts += 1
        if self._attempts >= _MOST_ATTEMPTS:
            self.refuse_all("too many loops have been refused")
