"""The programs of a function's segments. The pattern of a segment's graph is the key of its
program, so that the iterations of a loop share one."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from rune_jit import _core, recording
from rune_jit.backends import calibration
from rune_jit.backends.compilation import Stopwatch
from rune_jit.errors import UnsupportedOpError
from rune_jit.tracing.context import user_site

# Compilation pays if its estimated time is at most _SLOW_COMPILATION seconds plus NumPy's time for
# _MANY_CALLS calls. _PROGRAM is the time for a program without its nodes, in seconds.
_SLOW_COMPILATION, _MANY_CALLS, _PROGRAM = 0.5, 100, 0.01
# The interpreter's time: a factor of NumPy's time, and seconds for each run, for each element that
# it stores, and to get ready.
_SLOWDOWN, _INTERPRETED, _STORE, _READY = 50.0, 20e-6, 20e-9, 0.004
# After so many failures, a pattern gets no more programs with symbolic sizes.
_MOST_REFUSALS = 3
_VARIES = object()


class _Program:
    """A program for segments of one pattern: with the sizes of the segment for which it was made
    or, if `sizes` is given, with all sizes that match these expressions. Constants that have had
    two values are its arguments."""

    def __init__(self, segment: Any, name: str, sizes: Any = None) -> None:
        self.name = name  # in profiles
        self.is_interpreted = False
        self.interpreted = 0.0  # an estimate of the seconds that its runs by the interpreter took
        self._constants = segment.constants
        self._sizes = sizes
        # Positions of constants that are arguments, and the program. Both change together, for
        # other threads.
        self._compiled: tuple[list[int], Any] = [], None

    def varying(self, constants: bytes) -> list[int]:
        """The positions of constants that are arguments, or would be after a segment with these
        constants."""
        return [*self._compiled[0], *self._changed(constants)]

    def takes(self, constants: bytes) -> bool:
        """Whether the program can run a segment with these constants."""
        return constants == self._constants or not self._changed(constants)

    def compile(
        self, segment: Any, device: str, constants: Iterable[int] = ()
    ) -> tuple[Stopwatch, Any]:
        """Compiles the program so that it can also run this segment. `constants` are positions of
        further constants that become arguments. Returns the times and the graph."""
        changed = self._changed(segment.constants)
        arguments = sorted({*self._compiled[0], *changed, *constants})
        calibration.ensure()
        names = [f"value {i}" for i in range(len(segment.inputs) + len(arguments))]
        graph = segment.graph(arguments, self._sizes)
        with Stopwatch(self.name, ("passes", "code")) as watch:
            lowered = _core.lower(graph, device, names, [], self.name)
            watch.note("passes")
            self._compiled = arguments, lowered.compile()
            watch.note("code")
        self.is_interpreted = device == "interpreter"
        return watch, graph

    def note_known(self, known: Any, segment: Any) -> None:
        """Registers the program in `known` for segments with the sizes of this one."""
        if self._sizes is None:
            constants, executable = self._compiled
            known.add(segment, executable, constants)

    def values_for(self, sizes: tuple[int, ...]) -> dict[str, int] | None:
        """The values of the symbolic sizes for a segment with these sizes, or None if none fit."""
        return self._sizes.values_for(sizes)  # type: ignore[no-any-return]

    def run(self, segment: Any, memory: dict[int, Any], values: dict[str, int]) -> list[Any]:
        """The values of the segment's outputs."""
        constants, executable = self._compiled
        arguments = [memory[i] for i in segment.inputs]
        return executable.run(arguments + [segment.constant(i) for i in constants], values)  # type: ignore[no-any-return]

    def _changed(self, constants: bytes) -> list[int]:
        """The positions of constants that have changed and are not arguments yet."""
        return [
            i
            for i in range(len(constants) // 16)
            if i not in self._compiled[0]
            and constants[16 * i : 16 * i + 16] != self._constants[16 * i : 16 * i + 16]
        ]


class _Pattern:
    """The programs of the segments of one pattern."""

    def __init__(self) -> None:
        self.exact: dict[tuple[int, ...], _Program] = {}  # by sizes
        self.symbolic: list[_Program] = []
        # The sizes for which programs were made. Sizes that differ among them become symbolic.
        self.seen: list[tuple[int, ...]] = []
        self.refusals: list[str] = []  # why symbolic sizes were not possible

    def find(self, sizes: tuple[int, ...]) -> tuple[_Program | None, dict[str, int]]:
        """The program for a segment with these sizes, and the values of its symbolic sizes."""
        if program := self.exact.get(sizes):
            return program, {}
        for program in reversed(self.symbolic):
            if (values := program.values_for(sizes)) is not None:
                return program, values
        return None, {}


def _interpretation(segment: Any) -> float:
    """An estimate of the seconds that the interpreter takes for a segment."""
    seconds = _INTERPRETED + _SLOWDOWN * segment.numpy_ns * 1e-9 + _STORE * segment.stored
    return seconds  # type: ignore[no-any-return]


class Programs:
    """The programs of a function's segments on one device, by pattern. Sizes that have had two
    values become symbolic. On the CPU segments of little work are interpreted until that has taken
    as long as compiling them would."""

    def __init__(self, device: str, name: str = "") -> None:
        self.device, self.name = device, name
        self.known = _core.KnownSegments()  # compiled programs without symbolic sizes
        self.compiled = 0  # compilations so far
        # Seconds of compilations and of interpreted runs: elapsed, and of this thread's CPU time.
        self.compile_time = self.compile_thread_time = 0.0
        # Whether a program is interpreted until that has taken as long as compiling it.
        self.interprets = device == "cpu"
        self.has_met_device = False  # whether an Array from outside lies in a device's memory
        self.compile_cost = 0.0  # an estimate of compile_time
        self._numpy_time = 0.0  # an estimate of NumPy's, for segments that `known` has not run
        self._patterns: dict[str, _Pattern] = {}
        self.reports: list[str] = []  # of compilations that were slow
        self._taken = 0  # reports that take_reports has returned
        self.apart: dict[int, Any] = {}  # loops that are programs of their own, by number
        self.loops_made = 0  # how often these were traced or compiled
        # By place in the code: the integer in an index there, or a mark that it varies.
        self.positions: dict[Any, Any] = {}

    def __len__(self) -> int:
        return sum(len(p.exact) + len(p.symbolic) for p in self._patterns.values())

    @property
    def refusals(self) -> list[str]:
        """Why some segments that differ in sizes only have a program for each size."""
        return [p.refusals[-1] for p in self._patterns.values() if p.refusals and len(p.exact) > 2]

    @property
    def pay(self) -> bool:
        """Whether the programs may save the time that their compilation took. Both are estimates,
        which unlike times do not differ from run to run."""
        return self.compile_cost <= _SLOW_COMPILATION + _MANY_CALLS * self.numpy_time

    @property
    def numpy_time(self) -> float:
        """An estimate of the seconds that NumPy takes for all segments that have run."""
        return self._numpy_time + self.known.numpy_ns * 1e-9

    def take_reports(self) -> list[str]:
        """The reports since the last call."""
        taken, self._taken = self._taken, len(self.reports)
        return self.reports[taken:]

    def varies(self, site: Any, value: Any, surely: bool = False) -> bool:
        """Whether what has this value at a place in the code has had others there, or `surely`
        will."""
        if self.positions.setdefault(site, value) != value or surely:
            self.positions[site] = _VARIES
        return self.positions[site] is _VARIES

    def run(self, segment: Any, memory: dict[int, Any]) -> list[Any]:
        """Computes the outputs of a segment. `memory` has the arrays of its inputs, by id of the
        value."""
        pattern = self._patterns.get(segment.pattern) or _Pattern()
        program, values = pattern.find(segment.sizes)
        start, own = time.perf_counter(), time.thread_time()
        is_new = True
        if program is None:
            program, values = self._make(segment, pattern)
        elif not program.takes(segment.constants):
            self._compile(program, segment, "a segment with other constants")
        elif program.is_interpreted and not self._is_interpreted(program, segment):
            self._compile(program, segment, "a segment that has run often")
        else:
            is_new = False
        if is_new:
            self._patterns[segment.pattern] = pattern  # after it has code
            self._note_time(start, own)
            start, own = time.perf_counter(), time.thread_time()
        self._numpy_time += segment.numpy_ns * 1e-9
        results = program.run(segment, memory, values)
        if program.is_interpreted:
            program.interpreted += _interpretation(segment)
            self._note_time(start, own)
        return results

    def _note_time(self, start: float, own: float) -> None:
        """Notes a compilation or an interpreted run that began at these times of the clock and of
        this thread's CPU time."""
        self.compile_time += time.perf_counter() - start
        self.compile_thread_time += time.thread_time() - own

    def _is_interpreted(self, program: _Program, segment: Any) -> bool:
        """Whether the interpreter should run a program at this segment."""
        cost = _PROGRAM + segment.compile_ns * 1e-9
        return self.interprets and program.interpreted + _interpretation(segment) <= cost

    def _make(self, segment: Any, pattern: _Pattern) -> tuple[_Program, dict[str, int]]:
        """Makes a program for a segment with new sizes. Returns it with the values of its sizes."""
        first = next(iter(pattern.exact.values()), None)
        seen = [*pattern.seen, segment.sizes]
        name = f"{self.name}, segment {len(self) + 1}"
        if first is not None and len(pattern.refusals) < _MOST_REFUSALS:
            try:
                sizes = segment.symbolic_sizes(seen)
                program = _Program(segment, name, sizes)
                constants = first.varying(segment.constants)
                self._compile(program, segment, "a segment of other sizes", constants)
            except (UnsupportedOpError, ValueError) as error:
                pattern.refusals.append(str(error))
            else:
                pattern.symbolic.append(program)
                pattern.seen = seen
                return program, program.values_for(segment.sizes) or {}
        program = _Program(segment, name)
        cause = "the first segment" if not self._patterns else "a new segment"
        self._compile(program, segment, cause if first is None else "a segment of other sizes")
        pattern.exact[segment.sizes] = program
        pattern.seen = pattern.seen or seen
        return program, {}

    def _compile(
        self, program: _Program, segment: Any, cause: str, constants: Iterable[int] = ()
    ) -> None:
        device = "interpreter" if self._is_interpreted(program, segment) else self.device
        watch, graph = program.compile(segment, device, constants)
        if program.is_interpreted:
            self.compile_cost += _READY
        else:
            self.compiled += 1
            self.compile_cost += _PROGRAM + segment.compile_ns * 1e-9
            program.note_known(self.known, segment)
        if report := watch.report(graph):
            self.reports.append(report)
        if (recorder := recording.active) is not None:
            site = "{}:{}".format(*user_site())
            what = "segment, interpreted" if program.is_interpreted else "segment"
            recorder.compiled(
                program.name, site, cause, what, watch.parts, len(graph), watch.begin_ns
            )
