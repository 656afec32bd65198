"""Ends a trace in segments before its call ends, when NumPy computes the rest of the call."""

from __future__ import annotations

import collections
import os
import sys
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

from rune_jit import _core
from rune_jit.calls.replacing import (
    holders_and_made,
    plain_by_id,
    replace_functions,
    replace_in,
)
from rune_jit.capture.callees import Callees
from rune_jit.capture.rebinder import Rebinder
from rune_jit.tracing.context import current_trace, is_own
from rune_jit.tracing.frames import callers, replace_locals
from rune_jit.tracing.references import held_elsewhere
from rune_jit.tracing.segments import SegmentedTrace


class EarlyEnd:
    """Ends a trace that has given up before the call ends, so that the functions that the call
    has yet to call run as they are. The functions that run go on like those that outlive a trace.

    Called when the user's code looks for a callee. Returns whether the trace has ended. It does not
    end while an operation is computed, or while an expression has a traced operand, or if variables
    of outer functions that may be assigned, or containers among the arguments, have copies."""

    def __init__(
        self, trace: SegmentedTrace, rebinder: Rebinder, has_copies: Callable[[], bool]
    ) -> None:
        self._trace, self._rebinder = trace, rebinder
        self._has_copies = has_copies  # of containers
        # The times of the thread from which on it may try again: at another place, and at any.
        self._next = self._next_anywhere = 0.0
        self._pause = min(1, _PAUSE)  # between two attempts anywhere, in times of an attempt
        self._failed: set[Any] = set()  # places in the code where an attempt has failed
        self.is_done = False

    def __call__(self) -> bool:
        trace, rebinder = self._trace, self._rebinder
        if self.is_done or rebinder.has_assigned_cells or self._has_copies():
            return self.is_done
        trace.callees.clear()  # (so that another callee is looked up, which tries again)
        start = time.thread_time()
        if start < self._next or current_trace() is not trace:
            return False
        frame = next(self._frames())
        place = frame.f_code, frame.f_lasti
        if (start < self._next_anywhere and place in self._failed) or self._is_in_operation():
            return False
        trace.stand_ins.clear()
        self._replace_stored()
        if self._is_any_operand():
            now = time.thread_time()
            self._failed.add(place)  # (it probably is within an expression with traced operands)
            self._next = now + min(1, _PAUSE) * (now - start)
            self._next_anywhere = now + self._pause * (now - start)
            self._pause = min(2 * self._pause, _PAUSE)
            return False
        for frame in () if trace.until is None else callers(trace.until):
            replace_locals(frame, rebinder.outside)
        self.is_done = True
        _core.numpy_began()  # (NumPy computes the rest of the call, also in jitted functions)
        rebinder.finish()
        functions, stand_ins = rebinder.forget()
        _core.trace_ended()
        replace_functions(functions, collections.Counter())
        trace.functions_inside, trace.stand_ins_inside = functions, stand_ins
        return True

    def _frames(self) -> Iterator[types.FrameType]:
        """The frames from the one that looks for a callee to the one that called the function."""
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__") in _LOOKING:
            frame = frame.f_back
        while frame is not None:
            yield frame
            frame = None if frame.f_code is self._trace.until else frame.f_back

    def _is_in_operation(self) -> bool:
        """Whether a function of rune_jit or NumPy has called the user's code that is running."""
        own = [x.f_code for x in self._frames() if is_own(x.f_code.co_filename)]
        are_calling = all(code.co_filename.endswith(_CALLING) for code in own[:-1])
        return own[-1:] != [self._trace.until] or not are_calling

    def _replace_stored(self) -> None:
        """Replaces the traced arrays in variables, containers and objects."""
        traced: list[Any] = self._trace.traced_arrays()
        self._trace.replace_in_frames(traced)
        traced = held_elsewhere(traced)
        holders, made = holders_and_made(traced)
        traced += made
        replace_in(holders, plain_by_id(self._trace, traced))

    def _is_any_operand(self) -> bool:
        """Whether the function may still get a traced array, for example as an operand of an
        expression that it evaluates."""
        frames = [x for x in self._frames() if is_own(x.f_code.co_filename)]
        calls: dict[int, Any] = {}  # the arguments of running calls
        for frame in frames:
            variables = frame.f_locals
            calls |= {id(x): x for x in variables.values() if type(x) in (tuple, dict)}
            if type(variables) is dict:  # (the frame keeps it, and it refers to much)
                variables.clear()
        for traced in self._trace.traced_arrays():
            held = [[*(x.values() if type(x) is dict else x)] for x in calls.values()]
            known = sum(x is traced for every in held for x in every)
            del held
            # The list, the variable and the argument of getrefcount refer to it, too.
            if sys.getrefcount(traced) > known + 3:
                return True
        return False


_PAUSE = 16  # the longest pause between two attempts
# Functions of these files call the user's functions, and do nothing else for the trace.
_CALLING = (os.path.join("calls", "function.py"), os.path.join("rune_jit", "bound.py"))
# The modules that look up callees.
_LOOKING = (__name__, Callees.__module__, "rune_jit.capture.loops.callees")
