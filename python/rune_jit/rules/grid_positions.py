"""np.unravel_index of one number in the body of a loop, for example of an argmin. With a call on
the host, the loop could not be a loop of the program."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rune_jit.rules.coercions import refuse_unless, traced
from rune_jit.rules.table import implements
from rune_jit.tracing.context import require_trace


@implements(np.unravel_index)
def _unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    trace = require_trace()
    refuse_unless(trace.is_in_loop, "unravel_index")
    shape = shape if isinstance(shape, tuple) else (shape,)
    at = traced(indices)
    is_known = all(type(n) is int and n > 0 for n in shape) and order in ("C", "F")
    is_number = at.ndim == 0 and at.dtype.kind in "iu" and at.dtype != np.uint64
    refuse_unless(is_known and is_number and len(shape) > 0, "unravel_index")
    rest = at.astype(np.int64)[()]
    is_outside: Any = np.logical_or(rest < 0, rest >= math.prod(shape))
    trace.raise_if(is_outside._value_in(trace))
    found: list[Any] = []
    for n in shape[:0:-1] if order == "C" else shape[:-1]:
        found.append(rest % n)
        rest = rest // n
    found.append(rest)
    return tuple(found[::-1] if order == "C" else found)
