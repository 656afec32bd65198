"""IPython's %autoreload: jitted functions that other modules have imported become the new ones.

%autoreload replaces the code of plain functions and the methods of classes that were there before a
module was loaded again, but knows no other objects."""

from __future__ import annotations

import sys
import weakref
from typing import Any

_AUTORELOAD = "IPython.extensions.autoreload"

# The jitted functions of a module's name, with the module's specification when they were made.
# Each time that Python loads a module, it has another one.
_made: dict[tuple[str, str], weakref.WeakKeyDictionary[Any, Any]] = {}


def older(function: Any) -> list[Any]:
    """The jitted functions of this name that were made when its module was loaded before, if
    %autoreload is in use."""
    module, name = function.__module__, getattr(function, "__qualname__", "")
    specification = getattr(sys.modules.get(module), "__spec__", None)
    if specification is None or "<" in name:
        return []
    made = _made.setdefault((module, name), weakref.WeakKeyDictionary())
    others = [other for other, then in made.items() if then is not specification]
    made[function] = specification
    return others if _AUTORELOAD in sys.modules else []
