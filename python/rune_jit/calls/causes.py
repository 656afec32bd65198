"""Finds the cause of each trace: what was new in the arguments or the state of a call."""

from __future__ import annotations

import enum
import itertools
import reprlib
import types
from typing import Any

import numpy as np
import optree

from rune_jit import recording
from rune_jit.arrays.array import Array
from rune_jit.backends.compilation import Stopwatch
from rune_jit.calls.arguments import Call
from rune_jit.calls.paths import Paths
from rune_jit.tracing.context import user_site

# With how many signatures a new one is compared, and how many differences are reported.
_MOST_KNOWN = 64
_MOST_TOLD = 3
_MOST_DESCRIBED = 256  # leaves of a call
_LONGEST = 60  # characters of a value


class Causes:
    """The traces of one function, and the cause of each."""

    def __init__(self) -> None:
        self._known: dict[Any, dict[str, str]] = {}  # by key, the newest last
        self._stale: dict[Any, str] = {}  # by key: why its program was out of date

    def clear(self) -> None:
        self._known.clear()
        self._stale.clear()

    def stale(self, key: Any, entry: Any) -> None:
        """Notes why a program is out of date for calls with this key."""
        broken = getattr(entry, "compiled", entry).broken()
        reasons = [_changed(*guard) for guard in broken[:_MOST_TOLD]]
        of_data = "the data is not what the last trace assumed"
        if isinstance(entry, Paths):
            of_data = "another way through its conditions"
        self._stale[key] = ", ".join(reasons) or of_data

    def note(
        self, name: str, call: Call, watch: Stopwatch, outcome: str, operations: int = 0
    ) -> None:
        """Notes the cause of a trace of the function `name`, and tells the active profile the cause
        and the outcome."""
        cause = self._of(call)
        if (recorder := recording.active) is not None:
            site = "{}:{}".format(*user_site())
            outcome = outcome.partition("\n")[0]
            parts, begin_ns = watch.finished(), watch.begin_ns
            recorder.compiled(name, site, cause, outcome, parts, operations, begin_ns)

    def _of(self, call: Call) -> str:
        """The cause of a trace of this call. Remembers the call for later comparisons."""
        key = call.key
        described = _describe(call)
        others = list(self._known.values())
        was_known = key in self._known
        self._known.pop(key, None)
        self._known[key] = described
        while len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        if key in self._stale:
            return self._stale.pop(key)
        if was_known:
            return "the program of these arguments was forgotten, or its trace was not used"
        if not others:
            return "first call"
        nearest = min(reversed(others), key=lambda other: _distance(other, described))
        differences = _differences(nearest, described)
        if not differences:
            is_long = len(call.leaves) > _MOST_DESCRIBED
            return f"arguments of another {'structure or value' if is_long else 'structure'}"
        more = len(differences) - _MOST_TOLD
        return ", ".join(differences[:_MOST_TOLD]) + (f" and {more} more" if more > 0 else "")


def _describe(call: Call) -> dict[str, str]:
    """For each argument, by name, the properties on which a trace depends. Only the first leaves of
    a call are described, because it may have many, and few traces are reported."""
    described = {name: f"value {_short(value)}" for name, value in call.statics.items()}
    static = set(call.static_leaves)
    dynamic = {(size.leaf, size.axis): size for size in call.sizes}
    paths = zip(optree.treespec_paths(call.treedef), call.leaves, strict=True)
    for position, (path, leaf) in enumerate(itertools.islice(paths, _MOST_DESCRIBED)):
        owner, *inner = path
        name = call.names[owner] + "".join(f"[{part!r}]" for part in inner)
        if position in static:
            described[name] = f"value {_short(leaf)}"
        elif isinstance(leaf, (np.ndarray, Array)):
            axes: list[Any] = list(leaf.shape)
            for axis in range(len(axes)):
                if size := dynamic.get((position, axis)):
                    axes[axis] = f"{size.name} in {size.least}..{size.high}"
            kind = "" if isinstance(leaf, np.ndarray) else f" on {leaf.device}"
            order = ""
            if isinstance(leaf, np.ndarray) and leaf.flags.fnc:
                order = " in Fortran order"
            described[name] = f"{leaf.dtype.name}[{','.join(map(str, axes))}]{order}{kind}"
        elif isinstance(leaf, np.generic):
            described[name] = f"{leaf.dtype.name} scalar"
        else:
            described[name] = type(leaf).__name__
    return described


def _distance(old: dict[str, str], new: dict[str, str]) -> int:
    """How much two descriptions differ: in arguments, and in their dtypes and sizes."""
    distance = 4 * len(old.keys() ^ new.keys())
    for name in old.keys() & new.keys():
        if old[name] != new[name]:
            parts = zip(old[name].partition("["), new[name].partition("["), strict=True)
            distance += 1 + sum(a != b for a, b in parts)
    return distance


def _differences(old: dict[str, str], new: dict[str, str]) -> list[str]:
    found = [
        f"{name}: {text} (was {old[name]})" if name in old else f"{name}: {text} (was not given)"
        for name, text in new.items()
        if old.get(name) != text
    ]
    return found + [
        f"{name} is not given (was {text})" for name, text in old.items() if name not in new
    ]


def _changed(kind: str, holder: Any, name: Any, expected: Any) -> str:
    """Describes a guard that does not hold."""
    if kind == "attribute":
        owner = getattr(holder, "__name__", None) or type(holder).__name__
        return (
            f"{owner}.{name}: {_short(getattr(holder, name, 'nothing'))} (was {_short(expected)})"
        )
    if kind == "item":
        now = holder.get(name, "nothing") if isinstance(holder, dict) else "changed"
        of = "global " if isinstance(holder, dict) and "__builtins__" in holder else "item "
        return f"{of}{name}: {_short(now)} (was {_short(expected)})"
    if kind == "cell":
        try:
            now = holder.cell_contents
        except ValueError:
            now = "nothing"
        return f"a variable of an outer function: {_short(now)} (was {_short(expected)})"
    if kind == "items":
        return f"the items of a {type(holder).__name__} that the function reads"
    if kind == "keys":
        return "an object that the function reads has other attributes, or in another order"
    if kind == "array":
        return f"a captured array has another dtype or shape: {_short(holder)}"
    return f"the value of a {type(holder).__name__} that the trace has used"


class _Texts(reprlib.Repr):
    """Texts of values. Does not call `__repr__` of users' classes, which may have effects."""

    def repr_int(self, x: int, level: int) -> str:
        return super().repr_int(x, level) if abs(x) < 10**_LONGEST else "a large int"

    def repr_instance(self, x: Any, level: int) -> str:
        if isinstance(x, enum.Enum):
            return f"{type(x).__name__}.{x._name_}"
        is_plain = type(x).__module__ in ("builtins", "numpy")
        return super().repr_instance(x, level) if is_plain else object.__repr__(x)


_texts = _Texts()
_texts.maxstring = _texts.maxother = _LONGEST


def _short(value: Any) -> str:
    if isinstance(value, (np.ndarray, Array)):
        return f"{value.dtype.name}{list(value.shape)}"
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType, np.ufunc)):
        return str(value.__name__)
    text = " ".join(_texts.repr(value).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
