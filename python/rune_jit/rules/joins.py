"""NumPy's functions that join and split arrays, for traced arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune_jit.rules.coercions import as_axis, as_index, refuse_unless
from rune_jit.rules.table import implements
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.tracer import Tracer


@implements(np.concatenate, np.concat)
def _concatenate(
    arrays: Any, /, axis: Any = 0, *, dtype: Any = None, casting: str = "same_kind"
) -> Tracer:
    refuse_unless(casting == "same_kind", "concatenate with casting=")
    trace = require_trace()
    parts = [trace.array(x) for x in arrays]
    return Tracer(trace, trace.builder.concatenate(parts, as_axis(axis), dtype))


@implements(np.stack)
def _stack(arrays: Any, axis: Any = 0, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    trace = require_trace()
    result = Tracer(trace, trace.builder.stack([trace.array(x) for x in arrays], as_index(axis)))
    return result if dtype is None else result.astype(dtype)
