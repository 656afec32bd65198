"""Host calls in loops of the program. A first loop computes the arguments of all iterations. Then the
host makes all calls. A second loop uses the results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rune_jit.capture.loops.kinds import GivenUp
from rune_jit.capture.loops.ranges import Range
from rune_jit.rules.side_by_side import call_side_by_side
from rune_jit.tracing.loops import Body, HostCall
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.trace import Trace

# The most bytes of the arguments and results of all iterations together.
_MOST_BYTES = 2**27


class Stacked(NamedTuple):
    """The arguments of the calls of all iterations."""

    operands: list[Any]
    varies: list[bool]  # whether an argument has a row for each iteration


def stack_operands(
    trace: Trace, body: Body, numbers: Range, runs_all: bool, call: HostCall
) -> Stacked:
    """Ends the loop that is being traced, so that it only computes the arguments of a host call.
    `runs_all` tells whether all iterations surely run.

    Raises GivenUp, without ending the loop, if the calls of the iterations depend on each other, or
    are too large together."""
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
    """Makes the calls of all iterations. The results have a row for each iteration."""
    function = _Rows(call, numbers.count, stacked.varies)
    types = [(dtype, (numbers.count, *shape)) for dtype, shape in call.types]
    return trace.call_host(call.name, function, stacked.operands, types, call.may_raise)


class _Rows:
    """The function that makes a call for all iterations. Arguments that vary have a row for each."""

    def __init__(self, call: HostCall, count: int, varies: list[bool]) -> None:
        self._function, self._types = call.function, call.types
        self._side_by_side = call.side_by_side
        self._count, self._varies = count, varies

    def fill(self, results: Mapping[int, np.ndarray], *arrays: np.ndarray) -> None:
        """Stores the results in these arrays, by the number of the result."""

        def call(k: int) -> None:
            varying = zip(arrays, self._varies, strict=True)
            found = self._function(*(x[k, ...] if differs else x for x, differs in varying))
            for number, rows in results.items():
                rows[k] = found[number]

        if self._side_by_side:
            call_side_by_side(self._count, call)
        else:
            for k in range(self._count):
                call(k)

    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]:
        results = [np.empty((self._count, *shape), dtype) for dtype, shape in self._types]
        self.fill(dict(enumerate(results)), *arrays)
        return results
