"""The findings of the attempts at one trace about its loops, and how a trace begins again."""

from __future__ import annotations

from typing import Any, NamedTuple


class LoopRefused(BaseException):
    """Ends a trace inside of a loop. The trace begins again, without this loop or with what it has
    found out about it. (No Exception: the traced function must not handle it.)"""


class LoopPeeled(LoopRefused):
    """The trace begins again with an iteration of a loop apart."""


class Peeled(NamedTuple):
    """How many iterations run before and behind the loop of the program."""

    first: int = 0
    last: int = 0


# What is tried for a loop whose body needs to know whether an iteration is the first or last one.
_PEELS = (Peeled(0, 0), Peeled(1, 0), Peeled(1, 1))
# How often a trace begins again before it takes all loops for refused.
_MOST_ATTEMPTS = 40


class LoopPlans:
    """The findings of the attempts at one trace about its loops, by the loops' numbers."""

    def __init__(self) -> None:
        self._refused: dict[int, str] = {}  # why
        self._peels: dict[int, int] = {}  # positions in _PEELS
        self._attempts = 0
        # Python integers that loops carry and that are assumed to be small: loops and names.
        self.small: set[tuple[int, str]] = set()
        # Lines where the program checks that Python integers of loops keep within 64 bits.
        self.checked: set[str] = set()
        # Branches on how a loop has ended of whose sides each has a program.
        self.decided: set[int] = set()
        # Of lists whose items are assigned, by loops and names: which kinds of numbers they hold.
        self.kinds: dict[tuple[int, str], tuple[Any, Any]] = {}
        # Lists whose length data decide, by name: what is known of them.
        self.growing: dict[str, Any] = {}
        # Generators of whose words the program makes numbers, with how many, and those of which it
        # cannot.
        self.words: dict[int, int] = {}
        self.no_words: set[int] = set()
        # Why one program has a loop's iterations one by one where segments have a program of it.
        self.apart: str | None = None
        # Whether the program leaves to Python what data decide and what is no error: that a loop
        # reports something, or that it does not assign a variable (left_to_python.py).
        self.leaves_usual = False
        self._all_refused: str | None = None
        # Why a trace failed behind its loops, which the next one unrolls.
        self.with_loops: Any = None
        self.report: dict[int, tuple[str, str]] = {}  # where a loop stands, and how it runs

    def refusal(self, loop: int) -> str | None:
        return self._refused.get(loop) or self._all_refused

    def peeled(self, loop: int) -> Peeled:
        return _PEELS[self._peels.get(loop, 0)]

    def refuse(self, loop: int, why: str) -> None:
        self._refused.setdefault(loop, why.partition("\n")[0])

    def refuse_all(self, why: str) -> None:
        self._all_refused = why.partition("\n")[0]

    @property
    def are_all_refused(self) -> bool:
        return self._all_refused is not None

    def can_peel(self, loop: int) -> bool:
        """Whether there is another way to peel iterations."""
        return self._peels.get(loop, 0) + 1 < len(_PEELS)

    def peel_more(self, loop: int) -> bool:
        """Whether there is another way to peel iterations, which is tried next."""
        if not self.can_peel(loop):
            return False
        self._peels[loop] = self._peels.get(loop, 0) + 1
        return True

    def lines(self) -> list[str]:
        """How the loops run, a line for each place."""
        return list(dict.fromkeys(f"loop at {where} {how}" for where, how in self.report.values()))

    def next_attempt(self) -> None:
        self.report.clear()
        self._attempts += 1
        if self._attempts >= _MOST_ATTEMPTS:
            self.refuse_all("too many loops have been refused")
