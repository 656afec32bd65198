"""Prints the output of a function that is one program. The printed values are results of the
program, and Python prints them after the program has run:

    for i in range(n):                          for i in range(n):
        if i % 100 == 0:                            if i % 100 == 0:
            print(f"{i}: {loss:.3f}")                   values.append((i, loss))

                                                for v0, v1 in values:
                                                    print(f"{v0}: {v1:.3f}")

Each statement that a trace meets has a list, to which the loops around it append
(loops/appends.py)."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from rune_jit.capture.loops.appends import append
from rune_jit.capture.loops.effects import ALLOWED
from rune_jit.capture.loops.prints import LATER, STATEMENTS
from rune_jit.capture.loops.reports import PRINTS, are_pythons, is_report
from rune_jit.errors import UnsupportedOpError
from rune_jit.rules.indexing.selection import Selection
from rune_jit.tracing.context import current_trace, require_trace
from rune_jit.tracing.loops import Loops
from rune_jit.tracing.rows import pack, unpack
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer

_ATOMS = (bool, int, float, complex, str, np.generic, np.dtype, Tracer, Size)


class _Site:
    """A statement that the trace has met."""

    def __init__(self, function: Callable[..., None], place: int) -> None:
        self.function = function  # (prints the values)
        self.rows: list[Any] = []  # the values of each time that it prints
        # The position in the order of all: for each loop around it, from outside to inside, the
        # loop's place and the iterations that print; then its own place.
        self.path: list[Sequence[int]] = [(place,)]


class Shown(NamedTuple):
    """The output of a program, except for the values."""

    functions: tuple[Callable[..., None], ...]  # the statements, which print the values
    columns: list[list[Any]]  # by statement: how each of its values is packed
    order: tuple[tuple[int, int], ...]  # the number of a statement, and the number of its row

    def show(self, packed: list[list[Any]]) -> None:
        values = [
            [unpack(*column) for column in zip(leaves, hows, strict=True)]
            for leaves, hows in zip(packed, self.columns, strict=True)
        ]
        for number, time in self.order:
            self.functions[number](*(column[time] for column in values[number]))


class Prints:
    """The statements that print in one trace."""

    def __init__(self, trace: Trace, loops: Loops) -> None:
        self._trace, self._loops = trace, loops
        self._sites: list[_Site] = []  # those in the innermost loop whose body is traced
        self._places = itertools.count()
        self._rows: dict[int, list[Any]] = {}  # the rows of all statements, by id

    @contextmanager
    def iterations(self) -> Iterator[tuple[int, list[_Site]]]:
        """A block in which the body of a loop is traced. Yields the loop's place, and the list that
        gets its statements."""
        outer, self._sites = self._sites, []
        yield next(self._places), self._sites
        self._sites = outer

    def add(self, body: tuple[int, list[_Site]], iterations: Callable[[Any], Any]) -> None:
        """Adds the statements of a loop of the program. `iterations` finds the iterations that
        append to a list."""
        place, sites = body
        for site in sites:
            site.path[:0] = [(place,), iterations(site.rows)]
        self._sites += sites

    def later(self, function: Callable[..., None], values: tuple[Any, ...]) -> None:
        """Calls a function with values after the program has run."""
        site = _Site(function, next(self._places))
        self._sites.append(site)
        self._rows[id(site.rows)] = site.rows
        for body in self._loops.open:
            body.lists = {**body.lists, id(site.rows): site.rows}
        append(site.rows, tuple([self._kept(x) for x in values]))

    def _kept(self, x: Any) -> Any:
        """A value that later changes do not affect."""
        if isinstance(x, np.ndarray) or (type(x) is Tracer and x.ndim):
            return x.copy()
        if type(x) in (list, tuple):
            return type(x)([self._kept(item) for item in x])
        if type(x) is dict:
            return {key: self._kept(item) for key, item in x.items()}
        if type(x) is Selection:
            raise x.refusal("print")
        if x is not None and not isinstance(x, _ATOMS):
            self._loops.refuse(f"it prints a {type(x).__name__}")
            raise UnsupportedOpError(
                f"print: cannot trace the text of a {type(x).__name__} (it may change before the"
                " program has run)\nhint: print its numbers and arrays"
            )
        return x

    def has(self, items: Any) -> bool:
        """Whether a list has the rows of a statement."""
        return id(items) in self._rows

    def end(self) -> tuple[Shown | None, list[Any]]:
        """The output, or None if there is none, and its packed values."""
        keys = [
            (key, number, time)
            for number, site in enumerate(self._sites)
            for time, key in enumerate(itertools.product(*site.path))
        ]
        packed = [
            [pack(self._trace, [*column]) for column in zip(*site.rows, strict=True)]
            for site in self._sites
        ]
        columns = [[hows for _, hows in site] for site in packed]
        order = tuple((number, time) for _, number, time in sorted(keys))
        shown = Shown(tuple(site.function for site in self._sites), columns, order)
        return shown if order else None, [[leaves for leaves, _ in site] for site in packed]


def _prints(*calls: str) -> bool:
    """Whether a statement can print after the program has run. It cannot if data decide whether it
    prints. `calls` are the functions that it then calls."""
    trace = current_trace()
    loops = trace.loops if trace is not None else None
    if trace is None or loops is None or trace.prints is None:
        return False
    if not loops.are_counters_alone(trace.builder):
        return False
    frame = sys._getframe(1)
    return is_report("print", frame) and are_pythons(calls, frame)


def _later(statement: int, *values: Any) -> None:
    require_trace().prints.later(STATEMENTS[statement], values)


ALLOWED += [_prints, _later]

# The functions that traced code calls, by name.
PRINTED = {PRINTS: _prints, LATER: _later}
