"""Traces in segments that find out whether they pay."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from rune_jit.tracing.programs import Programs
from rune_jit.tracing.trace import Trace


class TimedTrace(Trace):
    """A trace in segments that lets NumPy compute the rest of the call if it does not pay."""

    def __init__(self, name: str, programs: Programs) -> None:
        super().__init__(name)
        self.programs = programs
        self._steps = 0  # of Python, since this trace was asked whether it pays
        self._began = time.thread_time()
        self._before = programs.compiled, programs.compile_thread_time, programs.numpy_time
        self._memory: dict[int, Any] = {}  # arrays and scalars, by id of the value

    def note_computed(self) -> None:
        self._computed += 1
        if self._computed % SHORTEST_LOOP == 0:
            self.give_up_if_slow()

    def note_steps(self, count: int = 1) -> None:
        """Counts steps of Python. Asks from time to time whether the trace pays, because it may
        compute nothing."""
        self._steps += count
        if self._steps >= _FEW_STEPS and not (self.gave_up or self.done):
            self._steps = 0
            self.give_up_if_slow()

    def note_read(self) -> None:
        """Notes that the source of a function has been read, which takes milliseconds."""
        if self.gave_up or not self._takes_longer_than(_SLOW_READING):
            return
        if 0 < max(map(np.size, self._memory.values()), default=0) < _SMALL_ARRAY:
            self.give_up("its arrays are small, and reading its functions' sources takes long")

    def _takes_longer_than(self, seconds: float) -> bool:
        """Whether this call has taken longer than NumPy would, by at least so many seconds."""
        programs, (_, compile_time, numpy_time) = self.programs, self._before
        elapsed = time.thread_time() - self._began - (programs.compile_thread_time - compile_time)
        return elapsed > seconds + _SLOWER * (programs.numpy_time - numpy_time)

    def give_up_if_slow(self) -> None:
        """Lets NumPy compute the rest of the call if segments do not pay."""
        programs, compiled = self.programs, self._before[0]
        if programs.compiled - compiled > _MOST_COMPILED:
            self.give_up(f"it made more than {_MOST_COMPILED} programs in one call")
        elif programs.compiled > compiled and not programs.pay:
            self.give_up("its programs take longer to compile than they save in many calls")
        elif self._takes_longer_than(_SLOW):
            self.give_up("its operations take less time than tracing them")

    def note_apart(self, seconds: float) -> None:
        """Notes the time of a loop that is a program of its own. It is not this trace's time."""
        self._began += seconds

    def give_up(self, why: str) -> None:
        """Lets NumPy compute the rest of the call."""
        raise NotImplementedError


# A call goes on with NumPy after so many compilations, or if it has taken _SLOWER times NumPy's
# estimated time and so many seconds more (_SLOW_READING after reading sources).
_MOST_COMPILED = 24
_SLOW, _SLOW_READING, _SLOWER = 0.1, 0.3, 2.0
_SMALL_ARRAY = 10_000  # elements; larger arrays may take NumPy long
# A call reads the clock once in so many segments or steps of Python, because that may take as long
# as an operation.
FEW_CUTS, _FEW_STEPS = 8, 200
# The fewest nodes of a segment that ends in a loop without reads.
SHORTEST_LOOP = 100
