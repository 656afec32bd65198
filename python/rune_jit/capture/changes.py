"""What a trace has changed outside: guards that do not hold any more."""

from __future__ import annotations

import functools
from collections import deque
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.capture.matching import Member
from rune_jit.capture.stand_ins import StandIn
from rune_jit.capture.state import Unbound
from rune_jit.containers import contents, copy_of
from rune_jit.tracing.tracer import contains_tracer


def is_broken(*guard: Any) -> bool:
    """Whether a guard does not hold."""
    return bool(_core.broken_guards([guard]))


def restore(kind: str, held: Any, name: Any, before: Any) -> None:
    """Gives an array or container the contents that a guard on its contents has noted."""
    if kind == "content":
        held[...] = before
    elif isinstance(held, dict) and [*map(id, copy_of(held))] == [*map(id, before)]:
        for key, value in before.items():
            dict.__setitem__(held, key, value)
    else:
        held.clear()
        is_sequence = isinstance(held, (list, deque, bytearray))
        (held.extend if is_sequence else held.update)(before)


def broken(guards: list[tuple[str, Any, Any, Any]]) -> list[tuple[str, Any, Any, Any]]:
    """The guards that do not hold. In dicts and sets that have not changed, the original keys and
    items take the place of stand-ins, to which they are equal."""
    at = _core.broken_guards(guards)
    for i, (kind, held, name, before) in enumerate(guards):
        may_hold = i not in at and kind in ("items", "equal") and isinstance(held, (dict, set))
        if may_hold and any(issubclass(type(x), StandIn) for x in copy_of(held)):
            restore(kind, held, name, before)
    return [guards[i] for i in at]


def change(may_grow: bool, kind: str, holder: Any, name: Any, value: Any) -> str | None:
    """Names the thing that has changed if a guard does not hold. None if a container has only
    grown, may grow, and got no traced values."""
    if kind not in ("items", "equal"):
        if isinstance(holder, Member):
            name = holder.name
        name = holder.bound_slot if isinstance(holder, Unbound) else name
        return "a variable of an outer function" if kind == "cell" else name
    if not may_grow:
        return f"a {type(holder).__name__}"
    if kind == "equal":
        return None
    if isinstance(value, dict):
        now = copy_of(holder)
        kept: Any = {key: now[key] for key in value if key in now}
    else:
        kept = [*contents(holder)][: len(value)]
    if is_broken(kind, kept, name, value):
        return f"elements of a {type(holder).__name__}"
    return f"a {type(holder).__name__}" if contains_tracer([*contents(holder)]) else None


class Layouts:
    """The dtypes, shapes and flags of arrays that are not traced."""

    def __init__(self) -> None:
        self._before: dict[int, tuple[np.ndarray, Any]] = {}  # by id

    def note(self, x: np.ndarray) -> None:
        self._before.setdefault(id(x), (x, _layout(x)))

    def changed(self) -> list[tuple[np.ndarray, Any]]:
        """The arrays that have changed, with their former layouts."""
        return [(x, before) for x, before in self._before.values() if _layout(x) != before]

    def restore(self) -> None:
        x: Any
        for x, (dtype, shape, is_writeable) in self.changed():
            x.dtype, x.shape, x.flags.writeable = dtype, shape, is_writeable


def _layout(x: np.ndarray) -> tuple[Any, ...]:
    return x.dtype, x.shape, bool(x.flags.num & _WRITEABLE)


# NPY_ARRAY_WRITEABLE. (NumPy warns if `flags.writeable` of np.broadcast_arrays' results is read.)
_WRITEABLE = 0x400


class Caches:
    """The functions of functools.lru_cache that a trace may call."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, Any]] = []

    def note(self, x: Any) -> None:
        if isinstance(x, functools._lru_cache_wrapper):
            self._before.append((x, x.cache_info()))

    def have_missed(self) -> bool:
        """Whether such a function has run, which it will not do at a later call."""
        return any(x.cache_info().misses > before.misses for x, before in self._before)

    def restore(self) -> None:
        """Empties the caches that the trace has filled. (Of others no items can be removed.)"""
        for x, before in self._before:
            if not before.currsize and x.cache_info().currsize:
                x.cache_clear()


class Members:
    """The names of the members of classes, but for those that Python itself may add."""

    def __init__(self) -> None:
        self._before: list[tuple[type, frozenset[str]]] = []

    def note(self, kind: type) -> None:
        self._before.append((kind, frozenset(vars(kind))))

    def new(self) -> list[tuple[type, str]]:
        """The members that the classes have got."""
        return [
            (kind, name)
            for kind, before in self._before
            for name in vars(kind).keys() - before
            if name[:2] != "__"
        ]

    def restore(self) -> None:
        for kind, name in self.new():
            type.__delattr__(kind, name)
