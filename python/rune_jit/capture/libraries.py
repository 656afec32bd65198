"""What a trace reads of modules of NumPy and Python, for guards: their names, to which the user may
assign, and the settings of decimal numbers. Also what it asks about classes and errors."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

from rune_jit import trees
from rune_jit.capture import effects
from rune_jit.capture.names import names_in
from rune_jit.capture.objects import is_library

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


def module_of(error: BaseException) -> Any:
    """The name of the module whose code raised an error."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback.tb_frame.f_globals.get("__name__") if traceback else None
