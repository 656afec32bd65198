"""What a trace has changed outside: guards that do not hold any more."""

from __future__ import annotations

from typing import Any

from rune_jit import _core
from rune_jit.capture.state import Unbound
from rune_jit.tracing.tracer import contains_tracer


def is_broken(*guard: Any) -> bool:
    """Whether a guard does not hold."""
    return bool(_core.broken_guards([guard]))


def change(may_grow: bool, kind: str, holder: Any, name: Any, value: Any) -> str | None:
    """Names the thing that has changed if a guard does not hold. None if a container has only
    grown, may grow, and got no traced values."""
    if kind not in ("items", "equal"):
        name = holder.bound_slot if isinstance(holder, Unbound) else name
        return "a variable of an outer function" if kind == "cell" else name
    if not may_grow:
        return f"a {type(holder).__name__}"
    if kind == "equal":
        return None
    if isinstance(value, dict):
        kept: Any = {key: holder[key] for key in value if key in holder}
    else:
        kept = list(holder)[: len(value)]
    if is_broken(kind, kept, name, value):
        return f"elements of a {type(holder).__name__}"
    new = holder.values() if isinstance(holder, dict) else holder
    return f"a {type(holder).__name__}" if contains_tracer([*new]) else None
