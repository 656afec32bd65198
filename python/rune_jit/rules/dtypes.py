"""NumPy's functions on dtypes, and functions that make arrays like another array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit.rules.coercions import as_shape, laid_out_as, traced
from rune_jit.rules.known import run_known
from rune_jit.rules.memory import known_order
from rune_jit.rules.table import implements
from rune_jit.rules.warned import warn_of_lost_part
from rune_jit.tracing.context import require_trace
from rune_jit.tracing.tracer import Tracer


@implements(np.full_like)
def _full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tracer:
    trace = require_trace()
    wanted = list(np.shape(a)) if shape is None else as_shape(shape)
    kind = (a.dtype if hasattr(a, "dtype") else np.result_type(a)) if dtype is None else dtype
    fill = trace.operand(fill_value)
    if getattr(fill, "weak", None) == "complex":
        warn_of_lost_part(np.dtype(complex), np.dtype(kind))
    made = Tracer(trace, trace.builder.full(wanted, fill, kind), scalar=False)
    if order in ("K", "k"):
        return laid_out_as(made, [a]) if made.ndim == np.ndim(a) else made
    return made.copy("F") if known_order(a, order) == "F" and made.ndim > 1 else made


@implements(np.zeros_like, np.empty_like)
def _zeros_like(a: Any, *args: Any, **kwargs: Any) -> Tracer:
    return _full_like(a, 0, *args, **kwargs)  # type: ignore[no-any-return]


@implements(np.ones_like)
def _ones_like(a: Any, *args: Any, **kwargs: Any) -> Tracer:
    return _full_like(a, 1, *args, **kwargs)  # type: ignore[no-any-return]


@implements(np.copy)
def _copy(a: Any, order: str = "K", subok: bool = False) -> Tracer:
    made: Tracer = a.copy(order)
    return traced(made) if made._storage.scalar else made  # an array, also for a number


@implements(np.astype)
def _astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tracer:
    return x.astype(dtype, copy=copy)  # type: ignore[no-any-return]


@implements(np.result_type)
def _result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    trace, described = require_trace(), (type, str, np.dtype, list, tuple)
    dtypes = [np.dtype(x) for x in arrays_and_dtypes if isinstance(x, described)]
    operands = [trace.operand(x) for x in arrays_and_dtypes if not isinstance(x, described)]
    operands += [trace.builder.constant(np.zeros((), x)[()]) for x in dtypes]
    return trace.builder.result_type(operands)


def _stand_in(x: Any) -> Any:
    """An array with x's shape and dtype that takes no memory."""
    if isinstance(x, (list, tuple)):
        return type(x)(map(_stand_in, x))
    return np.broadcast_to(np.ones((), x.dtype), x.shape) if isinstance(x, Tracer) else x


def _of_types(function: Any) -> Callable[..., Any]:
    """The rule of a function that depends only on shapes and dtypes."""

    def handler(*args: Any, **kwargs: Any) -> Any:
        return run_known(function, tuple(map(_stand_in, args)), kwargs)

    return handler


for _name in [
    "diag_indices_from",
    "tril_indices_from",
    "triu_indices_from",
    "common_type",
    "einsum_path",
]:
    implements(getattr(np, _name))(_of_types(getattr(np, _name)))


@implements(np.iscomplexobj)
def _iscomplexobj(x: Any) -> bool:
    return np.result_type(x).kind == "c"


@implements(np.isrealobj)
def _isrealobj(x: Any) -> bool:
    return not np.iscomplexobj(x)
