"""Decides whether a trace that was made for some objects is right for other objects. For this, the
parts that the trace has read must correspond: they have the same classes, equal numbers and
strings, arrays of the same types, and the same references to each other."""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
import weakref
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from rune_jit import _core, trees
from rune_jit.bound import METHODS
from rune_jit.capture.grown import Grown
from rune_jit.capture.objects import is_library, is_replaceable
from rune_jit.capture.state import Unbound, bound_members
from rune_jit.containers import contents, copy_of
from rune_jit.tracing.tracer import Tracer

# Types of values without parts, which programs compare by value and not by identity.
_PLAIN = (*trees.PLAIN, np.dtype, range, slice)
# Types whose objects match only themselves.
_UNIQUE = (type, types.ModuleType, types.BuiltinFunctionType, types.CodeType, np.ufunc)
_BUILT_IN = (object, list, dict, tuple, deque, types.SimpleNamespace)
_ABSENT = object()
_OWNDATA = 4  # NPY_ARRAY_OWNDATA


class Met(NamedTuple):
    """The objects that a trace has met outside, in addition to its guards."""

    attributes: dict[int, dict[str, Any]]  # the attributes of objects, by the ids of the __dict__s
    members: dict[int, tuple[Any, frozenset[str]]]  # objects with slots, and the bound slots
    is_strict: bool  # whether the trace may have read attributes that no guard watches
    # Whether the function may depend on the identity of objects in ways that no guard checks.
    asks_identity: bool


class Match:
    """Pairs of an object that a trace has met and its counterpart at another call. The pairs are
    one-to-one, so that `a is b` gives the same for the objects and for their counterparts."""

    def __init__(self, met: Met) -> None:
        self._met = met
        self._new: dict[int, Any] = {}  # by id of an object: its counterpart
        self._old: dict[int, Any] = {}  # by id of a counterpart: the object
        self._unwatched: set[int] = set()  # ids of containers whose items no guard watches
        self.guards: list[tuple[str, Any, Any, Any]] = []  # the guards for the counterparts

    def add_guards(self, guards: list[tuple[str, Any, Any, Any]], known: set[int]) -> bool:
        """Pairs the objects that the trace's guards watch with their present counterparts. Returns
        False if they do not correspond. `known` are the ids of containers that need no guard for
        their items."""
        return all(self._add_guard(*guard) for guard in guards) and self._unwatched <= known

    def of(self, old: Any) -> Any:
        """The counterpart of an object; None if there is none."""
        return self._new.get(id(old))

    @property
    def replaced(self) -> set[int]:
        """The ids of the objects whose counterparts are other objects."""
        return {at for at, new in self._new.items() if id(new) != at}

    def _add_guard(self, kind: str, holder: Any, name: Any, expected: Any) -> bool:
        now = self._new.get(id(holder), _ABSENT)
        if isinstance(holder, Unbound):
            now = holder._replace(owner=self._new.get(id(holder.owner), holder.owner))
        elif now is _ABSENT:
            now = holder
            if not self._link(holder, holder):
                return False
        value: Any
        if kind == "item":
            value = now.get(name, _ABSENT) if isinstance(now, dict) else _ABSENT
        elif kind == "attribute":
            try:
                value = getattr(now, name, _ABSENT)
            except Exception:  # (of a property)
                return False
        elif kind == "cell":
            value = now.cell_contents if now != types.CellType() else _ABSENT
        elif kind == "content":
            self.guards.append((kind, now, None, expected))
            is_plain = now is holder or not now.dtype.hasobject
            return is_plain and not _core.broken_guards([self.guards[-1]])
        else:
            value = now.copy() if type(now) is bytearray else copy_of(now)
            value = tuple(value) if kind == "keys" else value
            self._unwatched.discard(id(holder))
            self.guards.append((kind, now, None, value))
            return self._pair_items(expected, value)
        self.guards.append((kind, now, name, value))
        return value is not _ABSENT and self.pair(expected, value)

    def _pair_items(self, old: Any, new: Any) -> bool:
        if len(old) != len(new):
            return False
        if isinstance(old, (set, bytearray)):
            plain = isinstance(old, bytearray) or all(isinstance(x, _PLAIN) for x in old)
            return bool(old == new) and (plain or all(self.pair(x, x) for x in old))
        pairs = zip(old, new, strict=True)
        if isinstance(old, dict):
            keys = all(self.pair(*pair) for pair in pairs)
            pairs = zip(old.values(), new.values(), strict=True)
            return keys and all(self.pair(*pair) for pair in pairs)
        return all(self.pair(*pair) for pair in pairs)

    def _link(self, old: Any, new: Any) -> bool:
        """Makes a pair. Returns False if one of the two has another counterpart."""
        if self._new.setdefault(id(old), new) is not new:
            return False
        return self._old.setdefault(id(new), old) is old

    def pair(self, old: Any, new: Any) -> bool:
        """Makes a pair if the new object can be the counterpart of the old one. Returns whether."""
        kind = type(old)
        if kind is not type(new):
            return False
        if kind in _PLAIN or isinstance(old, (np.generic, np.dtype)):
            return old is new or trees.static_key(old) == trees.static_key(new)
        if isinstance(old, _UNIQUE):
            return old is new
        if kind is tuple:
            return self._pair_items(old, new)
        if kind in METHODS:
            return self.pair(old.__func__, new.__func__) and self.pair(old.__self__, new.__self__)
        if id(old) in self._new:
            return self._new[id(old)] is new
        if not self._link(old, new):
            return False
        if isinstance(old, (np.ndarray, _core.ArrayBase)):
            return old is new or _are_alike(old, new)
        if old is new and kind in (types.FunctionType, functools.partial):
            return True
        if kind is types.FunctionType:
            return self._pair_functions(old, new)
        if kind is functools.partial:
            parts = ((x.func, x.args, x.keywords) for x in (old, new))
            return all(
                self._pair_items(a, b) if type(a) is dict else self.pair(a, b)
                for a, b in zip(*parts, strict=True)
            )
        if kind.__module__ in trees.OF_GENERATORS:
            return True
        if kind in (list, dict, set, deque, bytearray):
            if old is not new:
                self._unwatched.add(id(old))
            return True
        return self._pair_objects(old, new)

    def _pair_functions(self, old: types.FunctionType, new: types.FunctionType) -> bool:
        if is_library(old.__module__):
            return False
        cells = [x.__closure__ or () for x in (old, new)]
        return (
            old.__code__ is new.__code__
            and old.__globals__ is new.__globals__
            and old.__name__ == new.__name__
            and self.pair(old.__defaults__, new.__defaults__)
            and self._pair_keys(old.__kwdefaults__ or {}, new.__kwdefaults__ or {})
            and self._pair_attributes(old, new)
            and all(map(self._pair_cells, *cells))
        )

    def _pair_keys(self, old: dict[str, Any], new: dict[str, Any]) -> bool:
        return self._link(old, new) and list(old) == list(new)

    def _pair_cells(self, old: Any, new: Any) -> bool:
        if not self._link(old, new):
            return False
        empty = types.CellType()
        if not self._met.is_strict or old == empty or new == empty:
            return (old == empty) is (new == empty)  # (guards watch the contents)
        return self.pair(old.cell_contents, new.cell_contents)

    def _pair_objects(self, old: Any, new: Any) -> bool:
        kind: Any = type(old)
        if old is not new and not _is_of_parts(kind):
            return False
        if not self._pair_attributes(old, new) or old is new:
            return old is new
        members = self._met.members.get(id(old))
        if members is None:
            return not has_slots(kind)
        return members[1] == bound_members(new)

    def _pair_attributes(self, old: Any, new: Any) -> bool:
        """Pairs the dicts of attributes. Returns False if their keys differ."""
        attributes = trees.attribute(old, "__dict__")
        held = self._met.attributes.get(id(attributes))
        if attributes is None or (held is None and old is new):
            return True
        if held is None or not self._link(attributes, vars(new)):
            return False
        if old is new:
            return True
        is_equal = list(held) == list(vars(new))
        return is_equal and (not self._met.is_strict or self._pair_items(held, vars(new)))


def _are_alike(old: Any, new: Any) -> bool:
    """Whether a program cannot tell two arrays apart by their types and layouts."""
    if old.dtype != new.dtype or old.shape != new.shape or old.dtype.hasobject:
        return False
    if not isinstance(old, np.ndarray):
        return bool(old.device == new.device)
    flags = (old.flags.num ^ new.flags.num) & ~_OWNDATA
    return is_replaceable(old) and old.strides == new.strides and not flags


@functools.cache
def _is_of_parts(kind: Any) -> bool:
    """Whether instances of a class consist of their attributes and items only."""
    return all(
        base in _BUILT_IN
        or base.__module__ in ("abc", "typing")
        or (base.__flags__ & trees.PYTHON_CLASS and not is_library(base.__module__))
        for base in kind.__mro__
    )


@functools.cache
def has_slots(kind: Any) -> bool:
    """Whether instances of a user's class have `__slots__`."""
    named = (vars(base) for base in kind.__mro__)
    has = any("__slots__" in names and "__made_in_trace__" not in names for names in named)
    return has and _is_of_parts(kind)


@functools.cache
def knows_identity(kind: Any) -> bool:
    """Whether instances of a class depend on the identity of objects: weak references."""
    is_weak = issubclass(kind, (weakref.ref, *weakref.ProxyTypes))
    return is_weak or kind.__module__ == "weakref"


def likeness(x: Any) -> Any:
    """The properties that an object shares with all objects for which a trace may be right."""
    if type(x) in trees.PLAIN:
        return trees.static_key(x)
    if isinstance(x, types.FunctionType):
        return types.FunctionType, x.__code__, id(x.__globals__)
    if isinstance(x, METHODS):
        return type(x), likeness(x.__func__), likeness(x.__self__)
    if isinstance(x, functools.partial):
        return functools.partial, likeness(x.func)
    kind: Any = type(x)
    if kind.__module__ in trees.OF_GENERATORS and not isinstance(x, type):
        return kind
    key = trees.static_key(x)
    is_object = isinstance(key, trees.ByIdentity) and _is_of_parts(kind)
    return kind if is_object else key


# The most objects that are searched.
_MOST_HELD = 1000


def reachable(x: Any) -> Iterator[Any]:
    """The contents of a function's variables, of a container or of an object's attributes and
    slots, and the objects of methods."""
    seen: set[int] = set()
    open_ = [x]
    while open_ and len(seen) < _MOST_HELD:
        x = open_.pop()
        if type(x) in weakref.ProxyTypes:  # (its object may be gone)
            continue
        yield x
        if (
            type(x) is Grown
            or id(x) in seen
            or isinstance(x, (type, types.ModuleType, str, bytes, Tracer))
        ):
            continue
        if isinstance(x, np.ndarray):
            open_ += x.ravel().tolist() if x.dtype.hasobject else ()
            continue
        seen.add(id(x))
        if isinstance(x, types.FunctionType):
            open_ += [c.cell_contents for c in x.__closure__ or () if c != types.CellType()]
        elif isinstance(x, METHODS):
            open_ += (x.__func__, x.__self__)
        elif isinstance(x, functools.partial):
            open_ += (x.func, x.args, x.keywords)
        elif isinstance(x, slice):
            open_ += (x.start, x.stop, x.step)
        elif isinstance(x, types.BuiltinMethodType):
            open_.append(x.__self__)
        elif isinstance(x, (dict, list, tuple, set, frozenset, deque)):
            items = (*copy_of(x), *contents(x)) if isinstance(x, dict) else contents(x)
            open_ += [item for item in items if type(item) not in trees.PLAIN]
        with contextlib.suppress(AttributeError):  # (not by `getattr`, which may run code)
            open_ += object.__getattribute__(x, "__dict__").values()
        kind: Any = type(x)
        if has_slots(kind):
            open_ += [object.__getattribute__(x, name) for name in bound_members(x)]


def function_of(raw: Any) -> types.FunctionType | None:
    """The function behind an entry of a class's __dict__."""
    for name in ("__func__", "fget", "func", "__wrapped__"):
        if not isinstance(raw, types.FunctionType):
            raw = getattr(raw, name, raw)
    return raw if isinstance(raw, types.FunctionType) else None


def owner_of(x: Any, name: str) -> Any:
    """The object or class that has the attribute which `x.name` finds."""
    if isinstance(x, type) or name in trees.attribute(x, "__dict__", ()):
        return x
    base = next((base for base in type(x).__mro__ if name in vars(base)), None)
    return x if base is None or hasattr(type(vars(base)[name]), "__set__") else base


def members_of(klass: type) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """The functions of a class itself, and its other members that code can read; and whether one
    of these is a descriptor, such as a cached property of a library, which may read and change all
    attributes of an object."""
    functions, others = {}, {}
    for name, raw in dict(vars(klass)).items():  # (a copy: reading may add attributes)
        if function_of(raw):
            functions[name] = raw
        elif type(raw) is not types.GetSetDescriptorType:  # `__dict__` and `__weakref__`
            others[name] = raw
    return functions, others, any(map(_is_open, vars(klass).values()))


def _is_open(raw: Any) -> bool:
    kind: Any = type(raw)
    is_known = isinstance(raw, (type, types.FunctionType)) or is_library(kind.__module__)
    return not is_known and hasattr(kind, "__get__") and trees.package_of(kind) != "rune_jit"


def is_data(raw: Any) -> bool:
    """Whether an entry of a class's __dict__ is itself what code reads by its name."""
    return not hasattr(type(raw), "__get__")


def read_through(raw: Any) -> Any:
    """What code reads through an entry of a class's __dict__; None if only code in C does."""
    if isinstance(raw, (staticmethod, classmethod)):
        return raw.__func__
    is_own = isinstance(inspect.getattr_static(type(raw), "__get__", None), types.FunctionType)
    return raw if is_own or is_data(raw) else None


class Member(NamedTuple):
    """An entry of a class's __dict__, for guards."""

    owner: type
    name: str

    @property
    def raw(self) -> Any:
        """The entry. Assigning it sets the class's attribute."""
        return vars(self.owner).get(self.name)

    @raw.setter
    def raw(self, value: Any) -> None:
        setattr(self.owner, self.name, value)


def guard_on_member(klass: type, name: str, raw: Any) -> tuple[str, Any, str, Any] | None:
    """The guard that `klass.name` is read from an entry of the class or of a base: a method, a
    property or another object with `__get__`. None if it is read from another entry."""
    owner = next((base for base in klass.__mro__ if name in vars(base)), None)
    if owner is None or vars(owner)[name] is not raw:
        return None
    is_itself = isinstance(raw, (types.FunctionType, property))
    if is_itself and getattr(klass, name, None) is raw:
        return "attribute", klass, name, raw
    return "attribute", Member(owner, name), "raw", raw
