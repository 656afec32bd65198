"""Calls on the host in loops of the program. One loop computes the arguments of all iterations,
then the host makes all calls, then a second loop uses the results."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rune_jit.capture.loops.kinds import GivenUp
from rune_jit.capture.loops.ranges import Range
from rune_jit.tracing.loops import Body, HostCall
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.trace import Trace

# How many bytes the calls of all iterations take and return together at most.
_MOST_BYTES = 2**27


class Stacked(NamedTuple):
    """The arguments of the calls of all iterations."""

    operands: list[Any]
    varies: list[bool]  # which of them have a row for each iteration


def stack_operands(
    trace: Trace, body: Body, numbers: Range, runs_all: bool, call: HostCall
) -> Stacked:
    """Ends the loop that is being traced as one that only computes what a call takes. `runs_all`:
    whether all iterations run certainly.

    Raises GivenUp if the calls of the iterations are not independent of each other, or are too
    large together; the loop has not ended then."""
    builder, counter = trace.builder, body.counter
    position, count = numbers.iterations_before(counter), numbers.count
    operands = [builder.value(x) for x in call.operands]
    is_one_by_one = any(builder.depends_on_carried(counter, x) for x in operands)
    if not runs_all or type(count) is not int or position is None or is_one_by_one:
        raise GivenUp(f"it calls {call.name} on the host")
    types = [(x.dtype, x.shape) for x in operands] + call.types
    if any(type(n) is Size for _, shape in types for n in shape):
        raise GivenUp(f"it calls {call.name} on the host, for arrays of different shapes")
    if count * sum(math.prod(shape) * dtype.itemsize for dtype, shape in types) > _MOST_BYTES:
        raise GivenUp(f"it calls {call.name} on the host, for large arrays")
    varies = [builder.depends_on_counter(counter, x) for x in operands]
    initial: list[Any] = []
    finals: list[Any] = []
    for value in (x for x, differs in zip(operands, varies, strict=True) if differs):
        initial.append(builder.full([count, *value.shape], 0, value.dtype))
        rows = builder.carry(counter, len(finals), initial[-1])
        finals.append(builder.put(rows, [position], builder.astype(value, value.dtype)))
    r = numbers
    made = iter(builder.end_loop(counter, r.start, r.stop, r.step, finals, initial, None, False))
    stacked = [next(made) if differs else x for x, differs in zip(operands, varies, strict=True)]
    return Stacked(stacked, varies)


def call_for_all(trace: Trace, numbers: Range, call: HostCall, stacked: Stacked) -> list[Any]:
    """The values that the calls of all iterations return, with a row for each iteration."""
    function = _for_rows(call.function, numbers.count, stacked.varies, call.types)
    types = [(dtype, (numbers.count, *shape)) for dtype, shape in call.types]
    return trace.call_host(call.name, function, stacked.operands, types, call.may_raise)


def _for_rows(
    function: Callable[..., Any], count: int, varies: list[bool], types: list[Any]
) -> Callable[..., list[np.ndarray]]:
    """The function for all iterations: arrays that vary have a row for each."""

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        results = [np.empty((count, *shape), dtype) for dtype, shape in types]
        for k in range(count):
            given = (x[k, ...] if differs else x for x, differs in zip(arrays, varies, strict=True))
            for rows, result in zip(results, function(*given), strict=True):
                rows[k] = result
        return results

    return run
