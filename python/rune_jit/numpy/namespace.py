"""Makes the functions of `rune_jit.numpy` from NumPy's functions with the same names. Arrays and
traced arrays respond to these through NumPy's protocols."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit.arrays.array import Array
from rune_jit.arrays.conversion import to_numpy, wrap
from rune_jit.arrays.memory import from_numpy
from rune_jit.capture.creation import REPLACED
from rune_jit.device import default_dtype
from rune_jit.eager.creation import asarray
from rune_jit.rules.known import known
from rune_jit.tracing.context import current_trace
from rune_jit.tracing.tracer import Tracer


def finish(result: Any) -> Any:
    """A result with Arrays, or traced arrays, in place of NumPy's arrays and scalars."""
    if type(result) in (Array, Tracer):
        return result
    if current_trace() is None:
        return wrap(result, None)
    if isinstance(result, np.generic):
        result = np.asarray(result)
    return known(result) if isinstance(result, np.ndarray) else result


def make(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the namespace, which calls NumPy's `function` on any arrays."""

    def standard(*args: Any, **kwargs: Any) -> Any:
        if not any(isinstance(x, (Array, Tracer)) for x in args):
            args = tuple(asarray(x) if type(x) is np.ndarray else x for x in args)
        return finish(function(*args, **kwargs))

    return standard


def make_creation(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the namespace that makes an array on a device by NumPy's `function`. Inside of
    a trace it makes a traced array, which ignores `device`."""

    def standard(*args: Any, device: str | None = None, **kwargs: Any) -> Any:
        if current_trace() is not None:
            return finish(REPLACED[name](*args, **kwargs))
        if device is None:
            device = next((x.device for x in args if isinstance(x, Array)), None)
        array = function(*to_numpy(args), **kwargs)
        if kwargs.get("dtype") is None and device is not None:
            array = array.astype(default_dtype(device, array.dtype), copy=False)
        return from_numpy(array, device)

    return standard


def install(names: dict[str, Any], numpy_module: Any) -> None:
    """Replaces each public function of a module by NumPy's function with this name. It keeps the
    parameters of the module's function, which are the standard's."""
    for name, prototype in list(names.items()):
        if getattr(prototype, "__module__", None) != names["__name__"] or name.startswith("_"):
            continue
        signature = inspect.signature(prototype)
        kind = make_creation if "device" in signature.parameters else make
        function = kind(name, getattr(numpy_module, name))
        function.__name__ = function.__qualname__ = name
        function.__module__ = names["__name__"]
        function.__doc__ = f"{numpy_module.__name__}.{name}, called as the standard says."
        function.__signature__ = signature  # type: ignore[attr-defined]
        names[name] = function
