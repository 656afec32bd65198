"""Where the leaves of a traced function's result come from at each call."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune_jit.calls.arguments import USED_ONCE
from rune_jit.capture.matching import reachable
from rune_jit.capture.state import Place
from rune_jit.errors import ConcretizationError, UnsupportedOpError
from rune_jit.rules.indexing.selection import Selection
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer
from rune_jit.trees import PLAIN


def plan_output(
    trace: Trace, leaf: Any, computed: list[Any], planned: dict[int, tuple[Any, ...]]
) -> tuple[Any, ...]:
    """Where a leaf of the result comes from at each call. Appends values that the program must
    compute to `computed`. `planned` has the plans by storage, so that an array that is returned
    twice is one array; and the plans of other objects."""
    if type(leaf) in PLAIN:
        return ("constant", leaf)
    if isinstance(leaf, Selection):
        raise leaf.refusal("getitem")
    if type(leaf) is Place and leaf.path is not None:
        return ("constant", leaf)
    if type(leaf) is Place and not _holds_tracer(leaf.real):
        return ("constant", leaf.real)
    if not isinstance(leaf, Tracer):
        if isinstance(leaf, np.ndarray) and not (leaf.dtype.hasobject and _holds_tracer(leaf)):
            return _plan_known_array(trace, leaf, planned)
        if id(leaf) in planned:
            return planned[id(leaf)]
        is_used_later = isinstance(leaf, USED_ONCE) or trace.rebind.is_made_here(leaf)
        if is_used_later or (_holds_tracer(leaf) and not trace.rebind.is_copy(leaf)):
            raise UnsupportedOpError(
                f"{trace.name}: cannot return a {type(leaf).__name__} that computes with traced"
                " values after the trace\nhint: return arrays, numbers and containers of these"
            )
        real = trace.rebind.outside(leaf)
        if trace.rebind.is_new(real):
            raise UnsupportedOpError(
                f"{trace.name}: cannot return a {type(real).__name__} that the function makes (each"
                " call makes another one)\nhint: return arrays, numbers and containers of these"
            )
        planned[id(leaf)] = ("constant", real)
        return planned[id(leaf)]
    leaf._check_trace(trace)
    storage = leaf._storage
    if storage.array is not None:
        return ("copy", np.array(leaf._array()))
    if not leaf._steps and storage.leaf is not None:
        return ("leaf", storage.leaf)
    if not leaf._steps and storage.captured is not None:
        return ("constant", storage.captured)
    if not leaf._steps and id(storage) in planned:
        return planned[id(storage)]
    value = leaf._value_in(trace)
    computed.append(value)
    is_array = leaf.ndim == 0 and not storage.scalar
    plan: tuple[Any, ...] = ("computed", len(computed) - 1, value.weak is not None, is_array)
    kind = trace.builder.unsure_kind(value) if storage.scalar else None
    if kind is not None and np.dtype(kind) != value.dtype and trace.may_guess:
        # After `s = 0`, and `s += x[i]` under a condition: assume that the condition has held once.
        trace.guess()
        is_numpys = trace.builder.ufunc("logical_not", [trace.builder.is_python(value)])[0]
        trace.builder.assume(is_numpys)
    elif kind is not None:
        if np.dtype(kind) != value.dtype:  # the dtype cannot represent all Python integers
            raise ConcretizationError(
                f"{trace.name}: cannot tell whether a result is NumPy's {value.dtype} or Python's"
                f" {kind} (a loop that may have no iteration, or an if, computes it)\n"
                f"hint: begin with NumPy's number: np.{value.dtype}(0)"
            )
        computed.append(trace.builder.is_python(value))
        plan = (*plan, len(computed) - 1)
    if not leaf._steps:
        planned[id(storage)] = plan
    return plan


def _plan_known_array(
    trace: Trace, leaf: np.ndarray, planned: dict[int, tuple[Any, ...]]
) -> tuple[Any, ...]:
    """As plan_output, for an array whose elements are part of the program. Each call copies it, so
    it must not share memory with arrays outside or with other results."""
    if trace.rebind.knows(leaf):
        return ("constant", leaf)
    if not trace.decides:
        return ("copy", leaf)
    owner = leaf
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if id(owner) in planned or (owner is not leaf and trace.rebind.knows_memory(leaf)):
        raise ConcretizationError(
            f"{trace.name}: cannot return arrays that share memory and whose elements are part of"
            " the program\nhint: return copies: x.copy()"
        )
    planned[id(owner)] = ("copy", leaf)
    return planned[id(owner)]


def _holds_tracer(x: Any) -> bool:
    """Whether a function's closure, a container or an object's attributes hold a tracer."""
    return any(type(held) in (Tracer, Selection) for held in reachable(x))
