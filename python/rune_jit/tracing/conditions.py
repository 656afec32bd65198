"""Conditions on values of arrays. A trace assumes the outcomes of the traced call. Its program
checks that later calls have the same outcomes."""

from __future__ import annotations

import dis
import functools
import os
import types
from typing import TYPE_CHECKING, Any

import numpy as np

from rune_jit.tracing.context import is_own

if TYPE_CHECKING:
    from rune_jit.tracing.trace import Trace

# How many conditions one program may take.
MOST = 8

# The loop variable in rewritten code that runs both sides of an `if`.
SIDE = ".side"
_CONTROL = os.path.join("rune_jit", "control.py")
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


def decide(
    trace: Trace, value: Any, frame: types.FrameType | None, is_flag: bool = False
) -> bool | None:
    """The outcome, at this call, of a condition that `frame` asks for (one element). None if the
    trace must not assume it for later calls, or cannot know it. `is_flag`: the condition tells how
    a loop has ended, and has that loop's place in the source. Raises what the program so far
    raises."""
    is_within = trace.loops is not None and bool(trace.loops.within)
    if not trace.decides or is_within or _is_in_loop(trace, frame, not is_flag):
        return None
    if (known := trace.decided.get(value.id)) is not None:
        return known
    if trace.conditions >= MOST:
        return None
    builder = trace.builder
    is_true = builder.ufunc("not_equal", [value, 0])[0]
    number = builder.reshape(builder.astype(is_true, np.dtype(np.int64)), [])
    outcome = trace.decided[value.id] = bool(trace.assume(number))
    trace.conditions += 1
    return outcome


def _is_in_loop(trace: Trace, frame: types.FrameType | None, by_place: bool) -> bool:
    """Whether a frame, or one of its callers in this trace, is in a loop. `by_place`: also if its
    place in the source belongs to a loop."""
    while frame is not None and frame.f_code is not trace.caller:
        filename = frame.f_code.co_filename
        if not is_own(filename) or filename.endswith(_CONTROL):
            if frame.f_code.co_flags & _GENERATOR:
                return True
            at = frame.f_lasti
            loops, places = _loops(frame.f_code)
            if any(first <= at <= last for first, last in loops):
                return True
            if by_place and places and _place(frame.f_code, at) in places:
                return True
            by_place = True
        frame = frame.f_back
    return False


_GENERATOR = 0x20  # inspect.CO_GENERATOR


@functools.cache
def _loops(code: types.CodeType) -> tuple[list[tuple[int, int]], frozenset[Any]]:
    """The loops of code: first and last offset of each, and all their places in the source. (The
    condition of a `while` is in the code twice. Only its second copy is in the loop.)"""
    instructions = [i for i in dis.get_instructions(code) if i.opname not in _SKIPPED]
    loops = [
        (i.argval, i.offset)
        for i in instructions
        if i.opcode in _JUMPS and i.argval <= i.offset and not _is_branch(instructions, i.argval)
    ]
    within = [i.offset for i in instructions if any(a <= i.offset <= b for a, b in loops)]
    return loops, frozenset(_place(code, offset) for offset in within)


_SKIPPED = ("EXTENDED_ARG", "CACHE")


def _is_branch(instructions: list[dis.Instruction], target: int) -> bool:
    """Whether a jump goes back to a loop over the sides of an `if` (capture/loops)."""
    behind = [i for i in instructions if i.offset >= target][:2]
    return behind[0].opname == "FOR_ITER" and behind[1].argval == SIDE


def _place(code: types.CodeType, offset: int) -> Any:
    """The place of an instruction in the source: line and columns, or the line."""
    return _places(code)[offset // 2]


@functools.cache
def _places(code: types.CodeType) -> list[Any]:
    """The places in the source of all instructions of code, which have two bytes each."""
    if hasattr(code, "co_positions"):
        return list(code.co_positions())
    lines = code.co_lines()
    return [line for first, last, line in lines for _ in range(first, last, 2)]
