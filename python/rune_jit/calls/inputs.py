"""The inputs of a trace: traced arrays and numbers in place of the leaves of a call."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune_jit.arrays.array import Array
from rune_jit.calls.arguments import order_of
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer


def input_tracer(trace: Trace, leaf: Any, position: int, shape: tuple[Any, ...]) -> Tracer:
    """The traced array or number in place of a leaf of a call."""
    weak = type(leaf).__name__ if type(leaf) in (int, float, complex) else None
    dtype = np.result_type(type(leaf)) if weak else leaf.dtype
    is_array = isinstance(leaf, (np.ndarray, Array))
    if (order := order_of(leaf)) is None:
        value = trace.builder.input(dtype, list(shape), weak)
    else:
        trace.orders[position], axes = order, order[0]
        value = trace.builder.input(dtype, [shape[axis] for axis in axes], weak)
        value = trace.builder.transpose(value, inverse(axes))
    tracer = Tracer(trace, value, scalar=not is_array)
    if is_array:
        trace.leaves.append(tracer._storage)
    tracer._storage.leaf = position
    # (The key of the call contains the order. In segments, the function may change the layout.)
    tracer._storage.in_c_order = order is None and not trace.is_segmented
    return tracer


def inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    """The inverse of a permutation."""
    return tuple(map(axes.index, range(len(axes))))
