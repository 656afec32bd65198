"""What a trace reads of modules of NumPy and Python, for guards: their names, to which the user may
assign, and the settings of decimal numbers. Also the state of installed packages, and what a trace
asks about classes and errors."""

from __future__ import annotations

import re
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from rune_jit import trees
from rune_jit.capture import effects
from rune_jit.capture.changes import is_broken, restore
from rune_jit.capture.names import names_in
from rune_jit.capture.objects import INSTALLED, is_library
from rune_jit.containers import copy_of
from rune_jit.errors import UnsupportedOpError


class Foreign:
    """Tells whether the state of a module is assumed to be fixed: that of a library or an installed
    package other than `package`."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._known: dict[str | None, bool] = {}  # by name of a module

    def __call__(self, module: str | None) -> bool:
        if (known := self._known.get(module)) is None:
            top = (module or "").split(".")[0]
            path = getattr(sys.modules.get(top), "__file__", None) or ""
            is_other = top != self._package and path.startswith(INSTALLED)
            known = self._known[module] = is_library(module) or is_other
        return known

    def has_package_of(self, kind: type) -> bool:
        """Whether a class has code of such packages, other than NumPy and Python."""
        modules = {base.__module__ for base in kind.__mro__[:-1]}
        return any(self(module) and not is_library(module) for module in modules)


_SETTINGS = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")


def names_read(function: types.FunctionType) -> Iterator[tuple[dict[str, Any], str]]:
    """The names that a function's code may read of such modules, each with the module's dict.
    (Functions that are replaced while a trace runs are left out.)"""
    names, held = names_in(function.__code__), function.__globals__
    for module in (held[name] for name in names & held.keys()):
        if isinstance(module, types.ModuleType) and is_library(module.__name__):
            of_module = vars(module)
            for name in names & of_module.keys():
                if not effects.replaces(of_module, name):
                    yield of_module, name


class _DecimalContext:
    """The context of the thread, which decides how decimal numbers are rounded."""

    @property
    def settings(self) -> tuple[Any, ...]:
        context = sys.modules["decimal"].getcontext()
        return tuple(getattr(context, name) for name in _SETTINGS)

    @settings.setter
    def settings(self, values: tuple[Any, ...]) -> None:
        context = sys.modules["decimal"].getcontext()
        for name, value in zip(_SETTINGS, values, strict=True):
            setattr(context, name, value)


_CONTEXT = _DecimalContext()


def decimal_context() -> tuple[Any, str, Any]:
    """The settings, for a guard on an attribute."""
    return _CONTEXT, "settings", _CONTEXT.settings


def is_decimal(x: Any) -> bool:
    """Whether x is a decimal number, or a class or the module of them."""
    of_decimals = sys.modules.get("decimal")
    if of_decimals is None:
        return False
    return x is of_decimals or x is of_decimals.Decimal or type(x) is of_decimals.Decimal


def has_python_class(x: Any) -> bool:
    """Whether the class of x is written in Python and reads attributes in the usual way. Such an
    object may get another class."""
    kind: Any = type(x)
    is_usual = kind.__getattribute__ is object.__getattribute__
    return is_usual and bool(kind.__flags__ & trees.PYTHON_CLASS)


class PackageState:
    """The lists, dicts, sets and queues in modules and classes of installed packages that the
    functions of a trace name: settings, registries. No guard watches them, since calls seldom
    change them. But a trace must not change them."""

    def __init__(self, function: str, is_foreign: Callable[[str | None], bool]) -> None:
        """`function` is the name of the traced function. `is_foreign` tells whether a module
        belongs to such a package."""
        self._function, self._is_foreign = function, is_foreign
        self._kept: dict[int, tuple[str, Any, Any, Any]] = {}  # by id: as Watch._kept

    def note(self, function: types.FunctionType) -> None:
        """Notes what a function names, before it runs."""
        names = names_in(function.__code__)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        held = [cell.cell_contents for _, cell in cells if cell != types.CellType()]
        held += [sys.modules[name] for name in names & sys.modules.keys()]
        modules = [function.__globals__]
        modules += [vars(x) for x in held if self._is_module(x)]
        for module in modules:  # (which becomes longer)
            for x in self._note(module, names):
                if all(vars(x) is not known for known in modules):
                    modules.append(vars(x))

    def _note(self, module: dict[str, Any], names: frozenset[str]) -> Iterator[Any]:
        """Notes what names mean in a module. Yields the modules that they lead to."""
        is_package = self._is_package(module.get("__name__"))
        for x in (module[name] for name in names & module.keys()):
            if self._is_module(x):
                yield x
            elif isinstance(x, type) and self._is_package(x.__module__):
                for held in vars(x).values():
                    self._note_content(held)
            elif is_package:
                self._note_content(x)

    def _note_content(self, x: Any) -> None:
        if isinstance(x, _CONTAINERS) and id(x) not in self._kept:
            kind = "equal" if isinstance(x, set) else "items"
            self._kept[id(x)] = kind, x, None, copy_of(x)

    def _is_module(self, x: Any) -> bool:
        return isinstance(x, types.ModuleType) and self._is_package(x.__name__)

    def _is_package(self, module: str | None) -> bool:
        return not is_library(module) and self._is_foreign(module)

    def _changed(self) -> list[tuple[str, Any, Any, Any]]:
        """What has changed, but for dicts that have only got further items: they may be caches."""
        return [
            kept
            for kept in self._kept.values()
            if is_broken(*kept) and not _has_only_grown(kept[1], kept[3])
        ]

    def refuse_changes(self) -> None:
        """Raises UnsupportedOpError if the trace has changed such state."""
        if self._changed():
            raise UnsupportedOpError(
                f"{self._function}: cannot trace a function that changes what an installed package"
                " keeps (the program would not repeat it at later calls)"
            )

    def restore(self) -> None:
        """Restores the state that the trace has changed."""
        for kept in self._changed():
            restore(*kept)


_CONTAINERS = (dict, list, set, deque)
_ABSENT = object()


def _has_only_grown(held: Any, before: Any) -> bool:
    return isinstance(held, dict) and all(held.get(k, _ABSENT) is before[k] for k in before)


def module_of(error: BaseException) -> Any:
    """The name of the module whose code raised an error."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback.tb_frame.f_globals.get("__name__") if traceback else None


def is_of_library(error: BaseException, is_foreign: Callable[[str | None], bool]) -> bool:
    """Whether an installed package or code in C raised an error, perhaps because it does not accept
    traced arrays."""
    module = module_of(error)
    of_package = not is_library(module) and is_foreign(module)
    of_tracer = r"(not|got|type|from) ['\"]?numpy\.ndarray(?! doesn't define)"
    return of_package or bool(re.search(of_tracer, str(error)))
