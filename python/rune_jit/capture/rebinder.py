"""Copies of functions for a trace: in their globals and cells NumPy is what shim.py makes of it,
and arrays are traced ones."""

from __future__ import annotations

import functools
import inspect
import types
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.capture.guards import is_copied, is_library, is_replaceable, names_in
from rune_jit.capture.shim import BY_FUNCTION, SHIM, ModuleView, vectorized
from rune_jit.errors import StateChangedError
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer

_REBOUND = (types.FunctionType, types.MethodType, functools.partial)


class Rebinder:
    """Copies functions of one trace, with copies of their globals and cells."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._copies: dict[int, Any] = {}  # id -> (function or module, what stands for it)
        self._holders: list[tuple[Any, list[Any]]] = []  # (copy, its content at the start)
        self._cells: list[tuple[Any, Any, Any]] = []  # (cell, its copy, the content at the start)
        # id of globals -> (globals, the copy, what the copy held at the start)
        self._globals: dict[int, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {}

    def __call__(self, function: Any) -> Any:
        """The function as it runs inside the trace."""
        if isinstance(function, types.MethodType):
            return types.MethodType(self(function.__func__), self.inside(function.__self__))
        if isinstance(function, functools.partial):
            return functools.partial(self(function.func), *function.args, **function.keywords)
        if not isinstance(function, types.FunctionType):
            call = inspect.getattr_static(type(function), "__call__", None)
            if isinstance(call, types.FunctionType) and not is_library(type(function).__module__):
                return types.MethodType(self(call), self.inside(function))
            return function
        if is_library(function.__module__):
            return function
        known = self._copies.get(id(function))
        if known is not None:
            return known[1]
        cells = [self._cell(cell) for cell in function.__closure__ or ()]
        copy = types.FunctionType(
            function.__code__,
            self._copy_of(function.__globals__),
            function.__name__,
            tuple(map(self.inside, function.__defaults__ or ())),
            tuple(cells),
        )
        defaults = function.__kwdefaults__ or {}
        copy.__kwdefaults__ = {name: self.inside(value) for name, value in defaults.items()}
        copy.__qualname__ = function.__qualname__
        copy.__dict__.update(function.__dict__)
        self._copies[id(function)] = (function, copy)
        for original, cell in zip(function.__closure__ or (), cells, strict=True):
            if cell is not original:
                cell.cell_contents = self.inside(original.cell_contents)
                self._cells.append((original, cell, cell.cell_contents))
        self._rebind_names(function)
        return copy

    def finish(self) -> None:
        """Hands assignments to globals and variables of outer functions on."""
        for real, copy, before in self._globals.values():
            for name, value in copy.items():
                if name not in before or before[name] is not value:
                    real[name] = _outside(value)
        for cell, copied, inside in self._cells:
            if copied.cell_contents is not inside:
                cell.cell_contents = _outside(copied.cell_contents)

    def inside(self, value: Any) -> Any:
        """What stands for a value of a global, a cell or a default inside the trace."""
        replacement = BY_FUNCTION.get(id(value))
        if replacement is not None:
            return replacement
        if value is np:
            return SHIM
        if isinstance(value, _REBOUND):
            return self(value)
        if isinstance(value, np.vectorize):
            return vectorized(value)
        if isinstance(value, types.ModuleType):
            return self._view_of(value)
        if self._trace.captured_are_traced and is_copied(value):
            return self._copy_of_holder(value)
        is_array = isinstance(value, (np.ndarray, _core.ArrayBase))
        if is_array and self._trace.captured_are_traced:
            return self._trace.stand_in(value) if is_replaceable(value) else value
        return value

    def _copy_of_holder(self, holder: Any) -> Any:
        """A copy of a container or object with traced arrays in it."""
        known = self._copies.get(id(holder))
        if known is not None:
            return known[1]
        if type(holder) is tuple:
            copy: Any = tuple(map(self.inside, holder))
        else:
            copy = object.__new__(type(holder)) if hasattr(holder, "__dict__") else type(holder)()
            self._copies[id(holder)] = (holder, copy)  # what it holds may hold it
            if type(holder) is list:
                copy += map(self.inside, holder)
            else:
                held = holder if type(holder) is dict else vars(holder)
                target = copy if type(holder) is dict else vars(copy)
                target.update({name: self.inside(value) for name, value in held.items()})
            if hasattr(holder, "__dict__"):
                self._add_methods(copy)
        self._copies[id(holder)] = (holder, copy)
        self._holders.append((copy, _content(copy)))
        return copy

    def _add_methods(self, copy: Any) -> None:
        """Gives an object the methods of its class as the trace sees them."""
        for base in type(copy).__mro__[:-1]:
            for name, raw in vars(base).items():
                function = raw.__func__ if isinstance(raw, staticmethod) else raw
                if not isinstance(function, types.FunctionType) or name[:2] == "__":
                    continue
                if name not in vars(copy) and getattr(type(copy), name, None) is function:
                    method = self(function)
                    is_static = function is not raw
                    vars(copy)[name] = method if is_static else types.MethodType(method, copy)

    def outside(self, value: Any) -> Any:
        """What stands for a value of the trace outside of it."""
        for original, copy in self._copies.values():
            if copy is value:
                return original
        return _outside(value)

    def refuse_changes(self, function: str) -> None:
        """Raises StateChangedError if the traced function changed a copy of an object or a
        container."""
        for copy, before in self._holders:
            now = _content(copy)
            if len(now) != len(before) or any(a is not b for a, b in zip(now, before, strict=True)):
                raise StateChangedError(
                    f"{function}: cannot trace a function that changes a {type(copy).__name__} that"
                    " holds arrays (a later call would not)\nhint: return the new value"
                )

    def _view_of(self, module: types.ModuleType) -> Any:
        impure = ("numpy.random", "os", "threading", "time")
        if is_library(module.__name__) and module.__name__ not in impure:
            return module
        if id(module) not in self._copies:
            self._copies[id(module)] = (module, ModuleView(module, self.inside))
        return self._copies[id(module)][1]

    def _cell(self, cell: Any) -> Any:
        try:
            value = cell.cell_contents
        except ValueError:  # not bound yet
            return cell
        replaced = isinstance(value, _REBOUND) or self.inside(value) is not value
        return types.CellType() if replaced else cell

    def _copy_of(self, real: dict[str, Any]) -> dict[str, Any]:
        known = self._globals.get(id(real))
        if known is None:
            copy = dict(real)
            known = self._globals[id(real)] = (real, copy, dict(copy))
        return known[1]

    def _rebind_names(self, function: types.FunctionType) -> None:
        """Replaces the values that this function names."""
        real, copy, before = self._globals[id(function.__globals__)]
        for name in names_in(function.__code__) & real.keys():
            if copy[name] is real[name]:
                copy[name] = before[name] = self.inside(real[name])


def _content(holder: Any) -> list[Any]:
    """What a container or an object holds."""
    if isinstance(holder, (list, tuple)):
        return list(holder)
    return [x for item in (holder if type(holder) is dict else vars(holder)).items() for x in item]


def _outside(value: Any) -> Any:
    """What stands for a value of the trace outside of it."""
    if not isinstance(value, Tracer):
        return value
    if value._storage.captured is not None and not value._steps:
        return value._storage.captured
    array = value._array()
    return value if array is None else array
