"""Stand-ins for `locals`, `vars` and `dir`, which leave out the variables that only a copy of a
function has. Their names contain a dot, so that no source contains them."""

from __future__ import annotations

import builtins
import sys
from typing import Any


def _is_own(name: Any) -> bool:
    return type(name) is not str or "." not in name or name == ".0"  # (a comprehension's)


def _variables(frame: Any) -> dict[str, Any]:
    """The variables of a frame. (Python's own dict if it can be, since exec may write to it.)"""
    held = frame.f_locals
    if all(map(_is_own, held)):
        return held  # type: ignore[no-any-return]
    return {name: value for name, value in held.items() if _is_own(name)}


def _locals() -> dict[str, Any]:
    return _variables(sys._getframe(1))


def _vars(*of: Any) -> Any:
    return builtins.vars(*of) if of else _variables(sys._getframe(1))


def _dir(*of: Any) -> list[str]:
    return builtins.dir(*of) if of else sorted(_variables(sys._getframe(1)))


OF_NAMES = {"locals": _locals, "vars": _vars, "dir": _dir}
