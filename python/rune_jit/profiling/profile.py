"""A profile: everything that is recorded between its begin and its end."""

from __future__ import annotations

import os
import threading
import types
from typing import Any

from rune_jit import _core, recording
from rune_jit.profiling.records import Interval, Kernel, Memory
from rune_jit.recording import Compilation, Event

_CALL, _PROGRAM, _STEP = range(3)  # kinds of intervals, from _core.end_profile


class Profile:
    """The result of `rune_jit.profile()`. Read it after the `with` block. Before, its attributes
    and methods raise RuntimeError.

    Examples:
        >>> import numpy as np, rune_jit
        >>> f = rune_jit.jit(lambda x: x * 2 + 1)
        >>> with rune_jit.profile() as p:
        ...     y = f(np.ones(1000))
        >>> [c.cause for c in p.compilations]
        ['first call']
    """

    def __init__(self) -> None:
        self._raw: dict[str, Any] | None = None
        self._recorder: recording.Recorder | None = None

    def __enter__(self) -> Profile:
        if self._recorder is not None:
            raise RuntimeError("profile: cannot begin again (it has been used)\nhint: profile()")
        _core.begin_profile()
        self._recorder = recording.active = recording.Recorder()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        recording.active = None
        self._threads = {thread.ident: thread.name for thread in threading.enumerate()}
        self._raw = _core.end_profile()
        assert self._recorder is not None
        self._recorder.ended(self._raw["begin_ns"])

    def _recorded(self) -> dict[str, Any]:
        if self._raw is None:
            raise RuntimeError(
                "profile: cannot read what is being recorded\nhint: read it after the `with` block"
            )
        return self._raw

    def _notes(self) -> recording.Recorder:
        self._recorded()
        assert self._recorder is not None
        return self._recorder

    @property
    def seconds(self) -> float:
        """The length of the profile in seconds."""
        raw = self._recorded()
        return float(raw["end_ns"] - raw["begin_ns"]) * 1e-9

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels and other steps that ran, the one with the longest total time first."""
        found = []
        counts: dict[str, int] = {}
        for program in self._recorded()["programs"]:
            counts[program["name"]] = number = counts.get(program["name"], 0) + 1
            for step in program["steps"]:
                if not step["runs"]:
                    continue
                kept = {name: step[name] for name in Kernel._fields if name in step}
                moved = step["bytes_read"] + step["bytes_written"]
                kept |= {"is_dynamic": program["is_dynamic"], "bytes": moved}
                name = program["name"] or "a program"
                found.append(Kernel(name, number, calls=step["runs"], **kept))
        return sorted(found, key=lambda kernel: -kernel.total_ns)

    @property
    def calls(self) -> dict[str, tuple[int, float]]:
        """For each jitted function: the number of calls, and their total time in ns."""
        raw = self._recorded()
        rows = raw["intervals"]
        found = {}
        for number, name in enumerate(raw["functions"]):
            own = rows[(rows[:, 0] == _CALL) & (rows[:, 1] == number)]
            if len(own):
                found[name] = len(own), float(own[:, 4].sum())
        return found

    @property
    def compilations(self) -> list[Compilation]:
        """The traces in order. Each has its cause and its outcome."""
        return self._notes().compilations

    @property
    def reads(self) -> list[tuple[str, str, int, float]]:
        """The places where functions in segments asked for values of traced arrays.

        Each row has the function, what it read and at which line, how often, and the total time in
        ns. The time includes the programs that computed the values."""
        return self._of_kind("read")

    @property
    def numpy_calls(self) -> list[tuple[str, str, int, float]]:
        """The calls that ran on NumPy: function, reason, how often, total time in ns."""
        return self._of_kind("numpy")

    @property
    def numpy_functions(self) -> list[tuple[str, str, int, float]]:
        """NumPy's functions that functions in segments called between programs.

        Each row has the function, what it called and at which line, how often, and the total time
        in ns. (NumPy's functions inside of a program are among the kernels, as callbacks.)"""
        return self._of_kind("inside")

    def _of_kind(self, kind: str) -> list[tuple[str, str, int, float]]:
        totals = self._notes().totals.items()
        found = [
            (name, detail, total.count, total.ns)
            for (of, name, detail), total in totals
            if of == kind
        ]
        return sorted(found, key=lambda row: -row[3])

    @property
    def memory(self) -> dict[str, Memory]:
        """The bytes in use, by device. "cpu" means all devices on the host. The bytes are those of
        results and temporaries that rune_jit allocated, not those of NumPy's own arrays."""
        return {name: Memory(**use) for name, use in self._recorded()["memory"].items()}

    @property
    def intervals(self) -> list[Interval]:
        """Calls, runs of programs and their steps, in the order of their ends."""
        raw = self._recorded()
        found = []
        for kind, number, step, begin, ns, thread in raw["intervals"].tolist():
            if kind == _CALL:
                name, detail = raw["functions"][int(number)], ""
            else:
                program = raw["programs"][int(number)]
                name, detail = program["name"] or "a program", ""
                if kind == _STEP:
                    about = program["steps"][int(step)]
                    name, detail = about["name"], about["location"]
            word = ("call", "program", "step")[int(kind)]
            found.append(Interval(word, name, detail, begin, ns, int(thread)))
        return found

    @property
    def events(self) -> list[tuple[str, Event]]:
        """Reads ("read"), calls on NumPy ("numpy") and of its functions ("inside"), in order."""
        return self._notes().events

    @property
    def threads(self) -> dict[int, str]:
        """The names of the threads that existed at the end, by identifier."""
        self._recorded()
        return {ident: name for ident, name in self._threads.items() if ident is not None}

    @property
    def left_out(self) -> int:
        """The number of intervals, events and points of memory that were not kept, because there
        were too many. Sums include them."""
        return int(self._recorded()["left_out"]) + self._notes().left_out

    # Reports.

    def __str__(self) -> str:
        from rune_jit.profiling import tables

        return tables.text(self)

    def summary(self) -> None:
        """Prints tables of kernels, calls, compilations, reads, calls on NumPy and memory. It uses
        rich if that is installed (`pip install 'rune_jit[profile]'`)."""
        from rune_jit.profiling import tables

        tables.show(self)

    def to_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes a file that https://ui.perfetto.dev and chrome://tracing open: calls, programs,
        kernels, compilations and reads by thread, and the memory in use."""
        from rune_jit.profiling import chrome

        chrome.write(self, path)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes one page of HTML with everything. It needs no network."""
        from rune_jit.profiling import report

        report.write(self, path)

    def _repr_html_(self) -> str | None:
        if self._raw is None:
            return None
        from rune_jit.profiling import report

        return report.in_frame(self)


def profile() -> Profile:
    """Records what jitted functions do in a `with` block (docs/profiling.md).

    It records the time, arithmetic and memory traffic of each kernel, the memory in use, the
    compilations and their causes, the values that segments read, and the calls that ran on NumPy.

    In the block each kernel waits for the one before, so that each has a time of its own. There is
    one profile at a time. It records all threads.

    Returns:
        A Profile. Read it after the block.

    Raises:
        RuntimeError: when the block begins, if another profile is being taken.

    Examples:
        >>> import numpy as np, rune_jit
        >>> @rune_jit.jit
        ... def f(x):
        ...     return np.sqrt(x) + 1
        >>> with rune_jit.profile() as p:
        ...     y = f(np.ones(100))
        ...     y = f(np.ones(200))
        >>> [c.cause for c in p.compilations]
        ['first call', 'x: float64[200] (was float64[100])']
        >>> [(k.name, k.calls) for k in p.kernels]  # doctest: +SKIP
        [('sqrt_add', 1), ('sqrt_add', 1)]
    """
    return Profile()
