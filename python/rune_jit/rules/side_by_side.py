"""Calls of NumPy that run at the same time on several cores."""

from __future__ import annotations

import contextvars
import time
from collections.abc import Callable

import numpy as np

from rune_jit import _core

# If a first call's CPU time exceeds its elapsed time by this factor, NumPy uses several cores
# itself.
_OWN_CORES = 1.5


def call_side_by_side(count: int, function: Callable[[int], None]) -> None:
    """Calls function(i) for i in range(count), on several cores if that takes less time.

    The calls must have no effects but their own results, and release the GIL while they compute. If
    some raise, raises the error of the first of them. The first call is timed. The others run on
    several cores if they take long enough and the library does not use all cores for each call.
    """
    if count < 1:
        return
    wall, cpu = time.perf_counter(), time.process_time()
    function(0)
    seconds, on_cores = time.perf_counter() - wall, time.process_time() - cpu
    # A handler of floating-point errors belongs to the user, and could see the order of calls.
    is_alone = on_cores > _OWN_CORES * seconds or np.geterrcall() is not None
    estimated_ns = 0.0 if is_alone else seconds * (count - 1) * 1e9
    context = contextvars.copy_context()  # contains numpy.errstate
    raised: dict[int, BaseException] = {}

    def call(i: int) -> None:
        if raised and min(raised) < i:
            return
        try:
            context.copy().run(function, i)
        except BaseException as error:
            raised[i] = error

    _core.call_side_by_side(lambda i: call(i + 1), count - 1, estimated_ns)
    if raised:
        raise raised[min(raised)]
