"""Which names outside a function its trace depends on: a later call checks that they still have the
values that they had, and traces again if not."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import numpy as np

# What a name is compared by at each call: identity, or value for numbers and strings.
_GUARDED = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    tuple,
    type(None),
    np.ndarray,
    np.generic,
    np.dtype,
    types.FunctionType,
)
_MOST_FUNCTIONS = 64  # reached through globals and closures

Guard = tuple[Any, Any, Any]  # (dict or cell, name, value)


def names_in(code: types.CodeType) -> Iterator[str]:
    """Names of globals and attributes in a function's code and the functions in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_in(constant)


def is_library(module: str | None) -> bool:
    """Whether a module is NumPy's or ours: its functions are no part of what is traced."""
    return module is not None and module.split(".")[0] in ("numpy", "rune_jit", "builtins")


class _Collector:
    def __init__(self) -> None:
        self.guards: list[Guard] = []
        self._functions: set[int] = set()

    def function(self, function: types.FunctionType) -> None:
        if id(function) in self._functions or len(self._functions) >= _MOST_FUNCTIONS:
            return
        if is_library(function.__module__):
            return
        self._functions.add(id(function))
        names = set(names_in(function.__code__))
        for name in sorted(names & function.__globals__.keys()):
            self._name(function.__globals__, name, names)
        for cell in function.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # not bound yet
                continue
            self._value(cell, None, value, names)

    def _name(self, holder: dict[str, Any], name: str, names: set[str]) -> None:
        self._value(holder, name, holder[name], names)

    def _value(self, holder: Any, name: str | None, value: Any, names: set[str]) -> None:
        if isinstance(value, _GUARDED):
            self.guards.append((holder, name, value))
        if isinstance(value, types.FunctionType):
            self.function(value)
        elif isinstance(value, types.ModuleType) and not is_library(value.__name__):
            for attribute in sorted(names & value.__dict__.keys()):
                if isinstance(value.__dict__[attribute], _GUARDED):
                    self.guards.append((value.__dict__, attribute, value.__dict__[attribute]))
        elif isinstance(getattr(value, "__wrapped__", None), types.FunctionType):
            self.function(value.__wrapped__)

    def attributes(self, instance: Any, names: set[str]) -> None:
        held = getattr(instance, "__dict__", None)
        if isinstance(held, dict):
            for name in sorted(names & held.keys()):
                self._name(held, name, names)


def collect_guards(function: Any, statics: list[Any]) -> list[Guard]:
    """Guards on the globals and closure cells that a function and those it calls name, and on
    the attributes of its static arguments (such as `self`) that it names."""
    function = getattr(function, "__func__", function)
    if not isinstance(function, types.FunctionType):
        return []
    collector = _Collector()
    collector.function(function)
    names = set(names_in(function.__code__))
    for static in statics:
        collector.attributes(static, names)
    return collector.guards
