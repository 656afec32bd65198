"""Places outside of a function that it assigns: attributes, globals, variables of outer functions,
and contents of lists and dicts. The values of these places are additional arguments of the program.
Additional results are written to them."""

from __future__ import annotations

import collections
import dataclasses
import enum
import operator
import types
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from rune_jit import trees
from rune_jit.containers import DICTS
from rune_jit.errors import UnsupportedOpError


class _Absent(enum.Enum):
    ABSENT = 0


# Stands for the value of a name that is not bound.
ABSENT = _Absent.ABSENT


class Slot(NamedTuple):
    """A place that a function assigns, or that holds another number at each call. Its `kind` is
    "item" for a name in a dict of attributes or globals, "cell" for a variable of an outer
    function, "content" for the contents of a list or dict, and "grown" for the values that are
    appended to a list (grown.py)."""

    kind: str
    holder: Any
    name: Any = None

    @property
    def key(self) -> tuple[str, int, Any]:
        return self.kind, id(self.holder), self.name

    def read(self) -> Any:
        """The value of the place. For the kind "content", the list or dict itself."""
        if self.kind == "grown":
            return ()
        if self.kind == "item":
            return self.holder.get(self.name, ABSENT)
        return self.holder.cell_contents if self.kind == "cell" else self.holder

    def write(self, value: Any) -> None:
        if self.kind == "cell":
            self.holder.cell_contents = value
        elif self.kind == "grown":
            self.holder.extend(value)
        elif value is ABSENT:
            self.holder.pop(self.name, None)
        else:
            self.holder[self.name] = value


def watched_place(kind: str, holder: Any, name: Any, value: Any) -> Slot | None:
    """The place that a broken guard watches, if a program can assign it."""
    is_longer = kind == "items" and type(holder) is list and len(holder) > len(value)
    if is_longer and all(map(operator.is_, holder, value)):
        return Slot("grown", holder)
    if kind == "items":
        return Slot("content", holder) if type(holder) in (list, dict) else None
    return Slot(kind, holder, name) if kind in ("item", "cell") else None


def bound_members(x: Any) -> frozenset[str]:
    """The names of an object's `__slots__` that have values."""
    names = (
        name
        for base in type(x).__mro__
        for name, member in vars(base).items()
        if isinstance(member, types.MemberDescriptorType)
    )
    return frozenset(name for name in names if hasattr(x, name))


class Unbound(NamedTuple):
    """Globals that did not exist, or `__slots__` of an object without values, for guards."""

    owner: Any
    names: frozenset[str]

    def _bound(self) -> frozenset[str]:
        is_globals = type(self.owner) is dict
        return self.names.intersection(self.owner if is_globals else bound_members(self.owner))

    @property
    def bound_slot(self) -> str | None:
        """The name of one of the slots that has a value now."""
        return None if type(self.owner) is dict else min(self._bound(), default=None)

    @property
    def are_bound(self) -> bool:
        """Whether one of them has a value now. Assigning False removes the values."""
        return bool(self._bound())

    @are_bound.setter
    def are_bound(self, value: bool) -> None:
        for name in self._bound():
            if type(self.owner) is dict:
                del self.owner[name]
            else:
                object.__delattr__(self.owner, name)


class FunctionAttributes:
    """The attributes of a function and of its copy in a trace. Both share them, unless some are
    functions: then the copy has copies of these, which see the values that the trace assigns."""

    def __init__(self, function: types.FunctionType, copy: Callable[[Any], Any]) -> None:
        self._function, self._own = function, vars(function)
        self._copy: Any = None
        held = self._own.items()
        self._copies = {k: copy(x) for k, x in held if isinstance(x, types.FunctionType)}
        self.inside = self._own | self._copies if self._copies else self._own
        self._before = self.inside.copy()

    def give(self, copy: types.FunctionType, defaults: tuple[Any, ...]) -> None:
        """Gives the copy of the function its attributes and default arguments."""
        copy.__dict__, copy.__defaults__ = self.inside, defaults
        self._copy, self._defaults = copy, copy.__defaults__

    def hand_on(self, outside: Callable[[Any], Any]) -> None:
        """Makes the changes of the copy's attributes in the function's attributes."""
        if self._copy is not None and self._copy.__defaults__ is not self._defaults:
            self._function.__defaults__ = tuple(map(outside, self._copy.__defaults__ or ()))
        if self.inside is self._own:
            return
        for name in [*self._before, *self.inside]:
            value = self.inside.get(name, ABSENT)
            if value is not self._before.get(name, ABSENT):
                Slot("item", self._own, name).write(value)


class Held:
    """Saves the contents of slots, to restore them after a trace."""

    def __init__(self, slots: tuple[Slot, ...]) -> None:
        self._held = [(slot, slot.read()) for slot in slots]
        contents = (held for slot, held in self._held if slot.kind == "content")
        self._contents = [(held, held.copy()) for held in contents]

    def restore(self) -> bool:
        """Restores the contents. Returns whether any had changed."""
        changed = [(slot, held) for slot, held in self._held if slot.read() is not held]
        for slot, held in changed:
            slot.write(held)
        contents = Contents.of(self._contents)
        found = contents.changes()
        if found != []:
            for held, before in self._contents:
                held.clear()
                (held.extend if type(held) is list else held.update)(before)
        return bool(changed) or found != []


# The way to a container: keys and positions.
Path = tuple[Any, ...]


def is_record(x: Any) -> bool:
    """Whether x is an object of a dataclass that may be a container of arrays."""
    return dataclasses.is_dataclass(x) and not (isinstance(x, type) or trees.is_endless(x))


def containers(x: Any, path: Path = (), opaque: Collection[int] = ()) -> Iterator[tuple[Path, Any]]:
    """The lists, dicts and dataclasses in x, with their paths. `opaque`: the ids of objects that
    are no containers of arrays."""
    is_container = is_record(x) and id(x) not in opaque
    if type(x) in (list, dict) or is_container:
        yield path, x
    if type(x) is dict or isinstance(x, (list, tuple)) or is_container:
        for key, item in content(x).items():
            if type(item) not in trees.PLAIN:
                yield from containers(item, (*path, key), opaque)


def content(x: Any) -> dict[Any, Any]:
    """The items of a list, tuple or queue by position, those of a dict, and the attributes of a
    dataclass's object."""
    if isinstance(x, dict):
        return dict(x)
    is_sequence = isinstance(x, (list, tuple, collections.deque))
    return dict(enumerate(x)) if is_sequence else trees.fields_of(x)


def with_content(x: Any, new: dict[Any, Any]) -> Any:
    """A copy of a container with other contents, as `content` returns them."""
    if isinstance(x, tuple) or is_record(x):
        return trees.record_of(type(x), new)
    made = x.copy()
    for key, item in new.items():
        made[key] = item
    return made


def is_place(x: Any) -> bool:
    """Whether x is a list, queue, dict or dataclass."""
    return type(x) in (list, collections.deque, *DICTS) or is_record(x)


def places(x: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The lists, queues, dicts and dataclasses in x, with their paths."""
    if is_record(x):
        items: Any = trees.attribute(x, "__dict__", {}).items()
    elif type(x) in DICTS:
        items = x.items()
    elif isinstance(x, (list, tuple, collections.deque)):
        items = enumerate(x)
    else:
        return
    if is_place(x):
        yield path, x
    for key, item in items:
        if type(item) not in trees.LEAVES:
            yield from places(item, (*path, key))


def at(x: Any, path: Path) -> Any:
    """The object to which a path leads."""
    for key in path:
        x = getattr(x, key) if dataclasses.is_dataclass(x) else x[key]
    return x


def has_one_twice(x: Any) -> bool:
    """Whether two places in x are the same list, queue, dict or object of a dataclass."""
    found = [id(held) for _, held in places(x)]
    return len({*found}) < len(found)


class Place:
    """Represents, in a result, a list, dict or dataclass that the function has not made: the object
    to which a path leads, or `real`, the same object in each call."""

    def __init__(self, path: Path | None, real: Any = None) -> None:
        self.path, self.real = path, real

    def of(self, outside: Any) -> Any:
        """The object that it represents. `outside` is the object where the path begins."""
        return self.real if self.path is None else at(outside, self.path)


class Change(NamedTuple):
    """The changes that a function has made to a list, dict or object of a dataclass."""

    path: Path
    removed: tuple[Any, ...]
    assigned: dict[Any, Any]
    appended: list[Any]

    def apply(self, x: Any) -> None:
        if is_record(x):
            for name in self.removed:
                object.__delattr__(x, name)
            for name, value in self.assigned.items():
                object.__setattr__(x, name, value)
            return
        for key in self.removed:
            del x[key]
        for key, value in self.assigned.items():
            x[key] = value
        if self.appended:
            x.extend(self.appended)


def is_in_order(before: Collection[Any], now: Collection[Any]) -> bool:
    """Whether assignments alone explain the order of a dict's keys: none has been deleted and
    assigned again."""
    kept, new = [key for key in before if key in now], [key for key in now if key not in before]
    return [*kept, *new] == list(now)


def refuse_other_order(function: str, kind: type, before: Any, now: Any) -> None:
    """Raises UnsupportedOpError if a function has deleted an item or attribute and assigned it
    again: its program would not change the order. `before` and `now` are the dict or the
    attributes."""
    if isinstance(now, dict) and not is_in_order(before, now):
        raise UnsupportedOpError(
            f"{function}: cannot trace a function that deletes an item or attribute of a"
            f" {kind.__name__} and assigns it again (this changes their order)\nhint: assign it"
            " without del"
        )


class Contents:
    """Copies of lists, dicts and dataclasses, to find the changes that a function makes."""

    def __init__(self, x: Any, opaque: Collection[int] = ()) -> None:
        """`opaque` is that of `containers`."""
        self._before = [(path, held, content(held)) for path, held in containers(x, (), opaque)]
        others = (collections.deque, *DICTS[1:])
        self._others = [(held, content(held)) for _, held in places(x) if type(held) in others]

    @classmethod
    def of(cls, held: list[tuple[Any, Any]]) -> Contents:
        """A Contents of pairs of a list or dict and its earlier copy."""
        self = cls(())
        self._before = [((), x, content(before)) for x, before in held]
        return self

    def holds(self, x: Any) -> bool:
        """Whether x contains one of these lists, dicts and dataclasses."""
        known = {id(held) for _, held, _ in self._before}
        return any(id(held) in known for _, held in containers(x))

    def changes(self) -> list[Change] | None:
        """The changes since the copies were made. None if they cannot be expressed: a list is
        shorter, the order of a dict's keys is not that of assignments (`is_in_order`), or a queue
        or another kind of dict differs."""
        found = []
        for held, before in self._others:
            now = content(held)
            if [*now] != [*before] or any(now[key] is not before[key] for key in now):
                return None
        for path, held, old in self._before:
            appended: list[Any] = []
            new = content(held)
            if type(held) is list:
                if len(held) < len(old):
                    return None
                appended = held[len(old) :]
                new = {key: new[key] for key in old}
            removed = tuple(key for key in old if key not in new)
            assigned = {k: v for k, v in new.items() if k not in old or old[k] is not v}
            if not removed and not assigned and not appended:
                continue
            if not is_in_order(old, new):
                return None
            found.append(Change(path, removed, assigned, appended))
        return found
