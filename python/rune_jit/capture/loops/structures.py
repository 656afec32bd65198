"""Structures that a loop carries: tuples, lists, dicts and objects that an iteration replaces by
others. The loop carries each part of such a structure under a name of its own (`pair[0]`,
`state.x`)."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from rune_jit import trees
from rune_jit.capture.loops.kinds import UNSET, Unstable
from rune_jit.capture.objects import can_be_copied
from rune_jit.containers import items_of_tuple, refuse_endless
from rune_jit.tracing.identities import Identities
from rune_jit.tracing.tracer import Tracer

# The most parts of a structure.
_MOST_PARTS = 100
_KEYS = (str, int, bool, type(None), np.generic)


def is_named_tuple(kind: Any) -> bool:
    """Whether a class is made by `namedtuple`, or derived from such a class."""
    names = getattr(kind.__new__, "__globals__", {})
    return issubclass(kind, tuple) and str(names.get("__name__")).startswith("namedtuple_")


def is_mutable(x: Any) -> bool:
    """Whether a structure can change, so that its identity matters."""
    return not isinstance(x, tuple)


def parts_of(x: Any) -> dict[Any, Any] | None:
    """The parts of a structure by their keys; None if x is no structure."""
    if isinstance(x, Tracer):
        return None
    if type(x) in (tuple, list) or is_named_tuple(type(x)):
        is_plain = len(x) <= _MOST_PARTS and not trees.attribute(x, "__dict__")
        return dict(enumerate(x)) if is_plain else None
    if type(x) is dict:
        return dict(x) if len(x) <= _MOST_PARTS and all(isinstance(k, _KEYS) for k in x) else None
    return own_attributes(x) if can_be_copied(x) else None


def own_attributes(x: Any) -> dict[str, Any]:
    """The attributes of an object. Methods of its class, which a trace sets on copies of objects,
    are left out."""
    return {name: value for name, value in vars(x).items() if not _is_own_method(x, name, value)}


def _is_own_method(x: Any, name: str, value: Any) -> bool:
    member = inspect.getattr_static(type(x), name, None)
    if isinstance(value, types.MethodType):
        return value.__self__ is x and isinstance(member, types.FunctionType)
    is_function = isinstance(value, types.FunctionType) and isinstance(member, staticmethod)
    return is_function and value.__qualname__ == member.__func__.__qualname__


def made_like(x: Any, values: Iterable[Any]) -> Any:
    """A structure of the class and with the keys of x, with other parts."""
    kind = type(x)
    if kind is tuple or kind is list:
        return kind(values)
    if isinstance(x, tuple):
        return tuple.__new__(kind, values)
    made: Any = {} if kind is dict else new_object(kind)
    keys = x if kind is dict else own_attributes(x)
    (made if kind is dict else vars(made)).update(zip(keys, values, strict=True))
    return made


def new_object(kind: Any) -> Any:
    """An object of a Python class, without attributes."""
    # (A class that the trace has derived registers its objects with the trace.)
    return kind.__new__(kind) if hasattr(kind, "__made_in_trace__") else object.__new__(kind)


def class_of(x: Any) -> Any:
    """The class of an object as the program knows it, without what the trace has derived."""
    kind: Any = type(x)
    return kind.__base__ if hasattr(kind, "__made_in_trace__") else kind


def are_alike(x: Any, y: Any) -> bool:
    """Whether two structures have the same class and the same keys."""
    if class_of(x) is not class_of(y):
        return False
    a, b = parts_of(x), parts_of(y)
    return a is not None and b is not None and _typed(a) == _typed(b)


def _typed(keys: Iterable[Any]) -> list[tuple[type, Any]]:
    return [(type(key), key) for key in keys]


def holder_of(name: str) -> str | None:
    """The name of the list that a part or place of this name belongs to. None if it belongs to
    no list."""
    if name.endswith("]"):
        return name.rpartition("[")[0]
    key, _, holder = name.partition(" of ")
    return holder if holder and key.isdecimal() else None


class _Parts(NamedTuple):
    like: Any
    names: list[str]


class Structures:
    """The structures of one loop: those that it carries, and those that an iteration makes."""

    def __init__(self, replaced: set[str], is_outside: Callable[[Any], bool]) -> None:
        """`replaced` has the names of lists, dicts and objects that iterations replace by others.
        Traces of the body add to it. `is_outside` tells whether the body reaches an object that
        exists outside of it."""
        self._replaced, self._is_outside = replaced, is_outside
        self._parts: dict[str, _Parts] = {}
        self._carried: frozenset[str] = frozenset()
        self._num_carried = 0  # how many of the structures are carried
        # By name: the stand-in for a list, dict or object in the body, and the stand-in's parts.
        self._given: dict[str, tuple[Any, dict[Any, Any]]] = {}
        self._is_shared = False  # whether several names may share one of them

    def begin(self, carried: Collection[str], before: dict[str, Any]) -> list[str]:
        """The names that are carried, where structures are replaced by their parts. Adds the values
        of the parts before the loop to `before`."""
        refuse_endless(tuple(map(before.get, carried)), items_of_tuple)
        self._carried, self._before = frozenset(carried), before
        names = self._take_apart(carried, before)
        self._num_carried = len(self._parts)
        return names

    def given(self, name: str, values: dict[str, Any]) -> Any:
        """The value of a name at the start of the body."""
        if name not in self._parts:
            return values[name]
        like, names = self._parts[name]
        made = made_like(like, [self.given(part, values) for part in names])
        if is_mutable(made):
            self._given[name] = made, parts_of(made) or {}
        return made

    def after(self, values: dict[str, Any], results: Collection[str]) -> tuple[dict[str, Any], Any]:
        """The values of names and parts after an iteration, and the names in `results`, where
        structures are replaced by their parts.

        Raises:
            Unstable: if an iteration makes another kind of structure, or changes a carried one.
        """
        found = dict(values)
        for name in list(self._parts)[self._num_carried :]:  # (from an earlier trace of the body)
            del self._parts[name]
        for name, (given, before) in self._given.items():
            now = parts_of(given)
            if (
                now is None
                or now.keys() != before.keys()
                or any(now[k] is not before[k] for k in now)
            ):
                raise Unstable(f"what {name} stands for is changed and replaced")
        for name, (like, parts) in self._parts.items():
            value = found[name]
            if not are_alike(value, like):
                raise Unstable(f"{name} is another {type(like).__name__} after an iteration")
            if name in self._given and self._is_outside(value):
                raise Unstable(f"{name} is another object after an iteration")
            found.update(zip(parts, (parts_of(value) or {}).values(), strict=True))
        own = [found[name] for name in self._given]
        self._is_shared = len({id(x) for x in own}) < len(own) or any(map(self._is_given, own))
        kept = [leaf for name in results if name in self._carried for leaf in self._leaves(name)]
        rest = [name for name in results if name not in self._carried]
        return found, self._take_apart(rest, found) + kept

    def replaces(self, name: str, before: Any, new: Any) -> bool:
        """Notes that an iteration replaces a list, dict or object by another one, so that its parts
        are carried from now on. Returns whether that is possible."""
        if name in self._replaced or not are_alike(before, new):
            return False
        is_taken_over = any(new is x for x in self._before.values())  # (from another name)
        if self._is_outside(new) and not is_taken_over:
            return False
        self._replaced.add(name)
        a, b = parts_of(before) or {}, parts_of(new) or {}
        for part, x, y in zip(self._names(name, before), a.values(), b.values(), strict=True):
            if x is not y:
                self.replaces(part, x, y)
        return True

    @property
    def given_now(self) -> list[tuple[Any, Any]]:
        """The pairs of a stand-in for a list, dict or object in the body, and the object before the
        loop."""
        return [(given, self._parts[name].like) for name, (given, _) in self._given.items()]

    def _is_given(self, x: Any) -> bool:
        return any(x is given for given, _ in self._given.values())

    def may_be_same(
        self, values: dict[str, Any], after: dict[str, Any], identities: Identities, runs: bool
    ) -> list[Any]:
        """The lists, dicts and objects from before and after the loop if some of them may be the
        same object, else an empty list. `values` and `after` are the values of names after the loop
        and after an iteration; `runs` tells whether an iteration surely runs."""
        selected = any(identities.has(after[name]) for name in self._given)
        if runs and not self._is_shared and not selected:
            return []
        return [x for name in self._given for x in (values[name], self._parts[name].like)]

    def whole(self, name: str, values: dict[str, Any]) -> Any:
        """The value of a name after the loop, made of its parts. Adds it to `values`."""
        if name in self._parts:
            like, names = self._parts[name]
            values[name] = made_like(like, [self.whole(part, values) for part in names])
        return values[name]

    def part(self, name: str, values: dict[str, Any]) -> Any:
        """The value of a name or of a part of a structure; UNSET if it has none."""
        for whole, (like, names) in self._parts.items():
            if name in names:
                value = self.part(whole, values)
                if not are_alike(value, like):
                    return UNSET if value is UNSET else None
                return list((parts_of(value) or {}).values())[names.index(name)]
        return values.get(name, UNSET)

    def _take_apart(self, names: Iterable[str], values: dict[str, Any]) -> list[str]:
        found: list[str] = []
        for name in names:
            value = values.get(name)
            parts = parts_of(value) if self._is_taken_apart(name, value) else None
            if parts is None:
                found.append(name)
                continue
            own = list(self._names(name, value))
            self._parts[name] = _Parts(value, own)
            values.update(zip(own, parts.values(), strict=True))
            found += self._take_apart(own, values)
        return found

    def _is_taken_apart(self, name: str, value: Any) -> bool:
        return isinstance(value, tuple) or name in self._replaced

    def _names(self, name: str, value: Any) -> Iterator[str]:
        """The names of the parts of the structure that a name stands for."""
        is_object = not isinstance(value, (tuple, list, dict))
        for key in parts_of(value) or ():
            yield f"{name}.{key}" if is_object else f"{name}[{key!r}]"

    def _leaves(self, name: str) -> list[str]:
        if name not in self._parts:
            return [name]
        return [leaf for part in self._parts[name].names for leaf in self._leaves(part)]
