"""Arrays whose values are known while tracing. NumPy itself computes with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.errors import UnsupportedOpError
from rune_jit.tracing.context import current_trace
from rune_jit.tracing.tracer import Tracer


def plain(x: Any) -> Any:
    """x with the arrays of known tracers instead of them."""
    if isinstance(x, Tracer):
        array = x._array()
        assert array is not None
        return array
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*map(plain, x))
    if isinstance(x, (list, tuple)):
        return type(x)(map(plain, x))
    return {k: plain(v) for k, v in x.items()} if isinstance(x, dict) else x


def known(array: np.ndarray, fill: Any = None) -> Any:
    """A tracer of an array made while tracing; the array itself if it has a dtype that cannot be
    traced."""
    trace = current_trace()
    if trace is None or type(array) is not np.ndarray:
        return array
    if not _core.is_supported_dtype(array.dtype):
        return array
    return Tracer.known(trace, array, fill)


def run_known(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """NumPy's own result, of arguments whose values are all known."""
    tracers = [x for x in leaves((args, kwargs)) if isinstance(x, Tracer)]
    arrays = [plain(x) for x in tracers]

    def wrap(result: Any) -> Any:
        if isinstance(result, (list, tuple)):
            wrapped = [wrap(x) for x in result]
            return type(result)(*wrapped) if hasattr(result, "_fields") else type(result)(wrapped)
        if not isinstance(result, np.ndarray):
            return result
        for tracer, array in zip(tracers, arrays, strict=True):
            if result is array:
                return tracer
        if current_trace() is None:
            return result
        if any(np.may_share_memory(result, array) for array in arrays):
            result = result.copy() if not result.flags.writeable else result
            if any(np.may_share_memory(result, array) for array in arrays):
                name = getattr(function, "__name__", function)
                raise UnsupportedOpError(f"{name} (a view): cannot trace this")
        return known(result)

    by_id = {id(tracer): array for tracer, array in zip(tracers, arrays, strict=True)}
    result = wrap(function(*_replace(args, by_id), **_replace(kwargs, by_id)))
    for tracer in tracers:
        if _may_write(function, kwargs):
            tracer._storage.touched()
    return result


def _may_write(function: Any, kwargs: Any) -> bool:
    return kwargs.get("out") is not None or getattr(function, "__name__", "") in _WRITERS


_WRITERS = ("copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis", "at")


def leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, (list, tuple)):
        for item in x:
            yield from leaves(item)
    else:
        yield x


def _replace(x: Any, by_id: dict[int, np.ndarray]) -> Any:
    if isinstance(x, Tracer):
        return by_id[id(x)]
    if isinstance(x, (list, tuple)):
        return type(x)(_replace(item, by_id) for item in x)
    return {k: _replace(v, by_id) for k, v in x.items()} if isinstance(x, dict) else x
