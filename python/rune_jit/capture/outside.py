"""Turns values of a trace into their counterparts outside of the trace."""

from __future__ import annotations

import functools
import sys
import types
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.capture.shim import original
from rune_jit.tracing.tracer import Tracer
from rune_jit.trees import PYTHON_CLASS, attribute

# Types whose objects calls do not make, or whose equal objects are interchangeable.
UNIQUE = (
    *(type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType),
    *(np.ufunc, type(np.sum)),
    *(types.EllipsisType, types.NotImplementedType, type(None), slice),
    *(_core.ArrayBase, _core.Dispatcher),
)


def is_class_of_call(x: Any) -> bool:
    """Whether x may be a class that a function has made: no module has it by its name."""
    if not isinstance(x, type) or not x.__flags__ & PYTHON_CLASS:
        return False
    held: Any = sys.modules.get(x.__module__)
    for part in x.__qualname__.split("."):
        held = attribute(held, "__dict__", {}).get(part)
    return held is not x


def of_numpy(method: Any) -> Any:
    """The method `__array__` of a class, with NumPy's array as its result, as NumPy requires."""

    @functools.wraps(method)
    def __array__(*args: Any, **kwargs: Any) -> Any:
        made = method(*args, **kwargs)
        return made.__array__() if isinstance(made, Tracer) else made

    return __array__


def outside_of(value: Any) -> Any:
    """The counterpart of a value: the original of a stand-in, or NumPy's array if it is known."""
    if not isinstance(value, Tracer):
        return original(value)
    if value._storage.captured is not None and not value._steps:
        return value._storage.captured
    array = value._array()
    return value if array is None else array
