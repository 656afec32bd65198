"""Traced Python numbers have only the attributes of Python's numbers. Attributes of arrays raise
AttributeError, like `(3).astype`."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.rules.coercions import refuse
from rune_jit.tracing.context import is_own
from rune_jit.tracing.tracer import Tracer


def _check_is_of_numpy(x: Tracer, name: str) -> None:
    """Raises AttributeError if a traced number is Python's, and UnsupportedOpError if that is not
    known. Does nothing if code of rune_jit or NumPy asks, since it needs shapes and dtypes of all
    numbers."""
    if is_own(sys._getframe(2).f_code.co_filename):
        return
    value = x._value_in(x._trace)
    if value.weak is not None:
        raise AttributeError(f"'{value.weak}' object has no attribute {name!r}")
    if x._trace.builder.unsure_kind(value):
        refuse(f"{name} of a number that may be Python's or NumPy's")


class _OfArrays:
    """An attribute of traced arrays and of NumPy's traced numbers."""

    def __init__(self, name: str, get: Callable[[Tracer], Any], method: Any) -> None:
        self._name, self._get, self._method = name, get, method

    def __get__(self, x: Tracer | None, owner: type | None = None) -> Any:
        if x is None:
            return self._method
        if x._storage.scalar:
            _check_is_of_numpy(x, self._name)
        return self._get(x)


def _checked(name: str, get: Callable[[Tracer], Any]) -> Callable[[Tracer], Any]:
    def checked(x: Tracer) -> Any:
        _check_is_of_numpy(x, name)
        return get(x)

    return _core.shorten_method(checked, get)  # type: ignore[no-any-return]


def refuse_attributes_of_arrays() -> None:
    """Makes attributes of arrays raise AttributeError for Python's numbers. To be called once, when
    Tracer has all of its attributes."""
    for name in dir(Tracer):
        if name[0] == "_" or not hasattr(np.ndarray, name) or hasattr(complex, name):
            continue
        found = inspect.getattr_static(Tracer, name)
        if isinstance(found, property) and found.fget is not None:
            setattr(Tracer, name, property(_checked(name, found.fget), found.fset))
        elif isinstance(found, (types.FunctionType, _core.Shortcut)):
            bound = functools.partial(types.MethodType, found)
            setattr(Tracer, name, _OfArrays(name, bound, found))
