"""IPython's %autoreload. When a module is loaded again, %autoreload replaces the code of its old
functions and methods, but not of jitted functions. This module replaces those, so that other
modules that have imported them get the new ones."""

from __future__ import annotations

import sys
import weakref
from typing import Any

_AUTORELOAD = "IPython.extensions.autoreload"

# Jitted functions by module name, with the module's specification when they were made. Each time
# that Python loads a module, it makes a new specification.
_made: dict[tuple[str, str], weakref.WeakKeyDictionary[Any, Any]] = {}


def older(function: Any) -> list[Any]:
    """The jitted functions with this name from earlier loads of its module, if %autoreload is in
    use."""
    module, name = function.__module__, getattr(function, "__qualname__", "")
    specification = getattr(sys.modules.get(module), "__spec__", None)
    if specification is None or "<" in name:
        return []
    made = _made.setdefault((module, name), weakref.WeakKeyDictionary())
    others = [other for other, then in made.items() if then is not specification]
    made[function] = specification
    return others if _AUTORELOAD in sys.modules else []
