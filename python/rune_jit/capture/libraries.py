"""What a trace reads of modules of NumPy and Python, for guards: their names, to which the user may
assign, and the settings of decimal numbers. Also the state of installed packages, and what a trace
asks about classes and errors."""

from __future__ import annotations

import enum
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rune_jit import trees
from rune_jit.capture import effects
from rune_jit.capture.changes import is_broken, restore
from rune_jit.capture.names import names_in
from rune_jit.capture.objects import is_library
from rune_jit.errors import UnsupportedOpError

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
    """The state of installed packages that the functions of a trace can reach by name: containers,
    arrays and objects in modules and classes. No guard watches it, since calls seldom change it.
    But a trace must not change it."""

    def __init__(self, function: str, is_foreign: Callable[[str | None], bool]) -> None:
        """`function` is the name of the traced function. `is_foreign` tells whether a module
        belongs to such a package."""
        self._function, self._is_foreign = function, is_foreign
        self._kept: dict[int, tuple[str, Any, Any, Any]] = {}  # by id: as Watch._kept
        self._members: dict[type, dict[str, Any]] = {}  # the attributes of classes
        # Dicts that have got items in an earlier trace of the same call: if they do again, they are
        # no caches. By id: as in _kept.
        self.grown: dict[int, tuple[str, Any, Any, Any]] = {}
        self.may_be_caches = False  # whether all that has changed may be caches

    def note(self, function: types.FunctionType) -> None:
        """Notes the state that a function can reach, before it runs. Raises UnsupportedOpError if
        it is too much."""
        held, names = function.__globals__, names_in(function.__code__)
        seen: set[int] = set()
        self._note_names(held, names, self._is_package(held.get("__name__")), seen)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        outer = {name: cell.cell_contents for name, cell in cells if cell != types.CellType()}
        self._note_names(outer, names | outer.keys(), False, seen)
        imported = {name: sys.modules[name] for name in names & sys.modules.keys()}
        self._note_names(imported, names, False, seen)

    def _note_names(
        self, held: dict[str, Any], names: frozenset[str], is_package: bool, seen: set[int]
    ) -> None:
        """Notes the state that names lead to. `held` has the names of a module, of a package if
        `is_package`, or of a function."""
        seen.add(id(held))
        for x in (held[name] for name in names & held.keys()):
            if isinstance(x, types.ModuleType):
                if id(vars(x)) not in seen and self._is_package(x.__name__):
                    self._note_names(vars(x), names, True, seen)
            elif is_package and isinstance(x, _CONTAINERS):
                self._note_content(x)
            elif isinstance(x, type) and not isinstance(x, enum.EnumMeta):
                for base in x.__mro__:
                    if self._is_package(base.__module__) and base not in self._members:
                        self._note_class(base)

    def _is_package(self, module: str | None) -> bool:
        return not is_library(module) and self._is_foreign(module)

    def _note_class(self, kind: type) -> None:
        members = {k: v for k, v in vars(kind).items() if k[0] != "_" or k[-1] != "_"}
        self._members[kind] = members
        for x in members.values():
            if isinstance(x, _CONTAINERS):
                self._note_content(x)

    def _note_content(self, x: Any) -> None:
        """Notes the content of a container, and of what it holds."""
        found = [x]
        while found:
            x = found.pop()
            if id(x) in self._kept or isinstance(x, (type, types.ModuleType, types.FunctionType)):
                continue
            if len(self._kept) > _MOST_OF_PACKAGES:
                raise UnsupportedOpError(
                    f"{self._function}: cannot watch the objects that an installed package keeps"
                )
            if isinstance(x, np.ndarray):
                self._kept[id(x)] = ("content", x, None, x.copy())
            elif isinstance(x, (dict, list, deque)):
                before: Any = dict(x) if isinstance(x, dict) else list(x)
                self._kept[id(x)] = ("items", x, None, before)
                found += before.values() if isinstance(x, dict) else before
            elif isinstance(x, set):
                self._kept[id(x)] = ("equal", x, None, x.copy())
            elif isinstance(x, tuple):
                found += x
            elif isinstance(live := trees.attribute(x, "__dict__"), dict):
                found.append(live)

    def _changed_members(self) -> Iterator[tuple[type, str, Any]]:
        for kind, before in self._members.items():
            now = vars(kind)
            for name in before.keys() | {k for k in now if k[0] != "_" or k[-1] != "_"}:
                if now.get(name, _ABSENT) is not before.get(name, _ABSENT):
                    yield kind, name, before.get(name, _ABSENT)

    def refuse_changes(self) -> None:
        """Raises UnsupportedOpError if the trace has changed such state."""
        broken = [kept for kept in self._kept.values() if is_broken(*kept)]
        if not broken and not any(self._changed_members()):
            return
        self.may_be_caches = not any(self._changed_members()) and all(
            id(kept[1]) not in self.grown and _has_only_grown(kept[1], kept[3]) for kept in broken
        )
        if self.may_be_caches:
            self.grown |= {id(kept[1]): kept for kept in broken}
        raise UnsupportedOpError(
            f"{self._function}: cannot trace a function that changes what an installed package"
            " keeps (the program would not repeat it at later calls)"
        )

    def restore(self) -> None:
        """Restores the state that the trace has changed, unless it may be that of caches."""
        if self.may_be_caches:
            return
        for kind, name, before in [*self._changed_members()]:
            if before is _ABSENT:
                type.__delattr__(kind, name)
            else:
                type.__setattr__(kind, name, before)
        for kept in (*reversed(self._kept.values()), *self.grown.values()):
            if is_broken(*kept):
                restore(*kept)


def _has_only_grown(held: Any, before: Any) -> bool:
    """Whether a dict has got nothing but further items, which are no objects with attributes."""
    if not isinstance(held, dict) or any(held.get(k, _ABSENT) is not before[k] for k in before):
        return False
    return not any(type(trees.attribute(x, "__dict__")) is dict for x in held.values())


_CONTAINERS = (dict, list, set, deque)
_MOST_OF_PACKAGES = 2000  # containers and objects
_ABSENT = object()


def module_of(error: BaseException) -> Any:
    """The name of the module whose code raised an error."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback.tb_frame.f_globals.get("__name__") if traceback else None
