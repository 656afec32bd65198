"""Objects of users' classes that a traced function makes, and copies of those that it reaches.
While the trace runs, they belong to a subclass whose methods are copies, as functions are. A method
is copied when it is used first, because a large class has hundreds, and it takes milliseconds to
read the source of one."""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable
from typing import Any

from rune_jit.capture.loops.members import NOT_CALLED, Copied, can_be_made, is_made
from rune_jit.capture.loops.structures import is_named_tuple
from rune_jit.capture.objects import has_own_arithmetic, is_library
from rune_jit.errors import UnsupportedOpError
from rune_jit.tracing.context import current_trace

_set_class = vars(object)["__class__"].__set__


def _become(made: Any, kind: Any) -> None:
    """Assigns `__class__` of an object that belongs to a subclass."""
    trace: Any = current_trace()
    if trace is None or not trace.is_segmented:  # (it may be a copy)
        raise UnsupportedOpError("cannot trace an assignment to __class__")
    _set_class(made, trace.rebind.class_for(kind))


class _Meta(type):
    """The metaclass of the subclasses. It turns assignments to a subclass into assignments to the
    class. As a key, a subclass finds what dicts outside of the trace have for the class."""

    def __setattr__(cls, name: str, value: Any) -> None:
        setattr(cls.__base__, name, value)

    def __eq__(cls, other: object) -> bool:
        return cls.__base__ is (other.__base__ if type(other) is _Meta else other)

    def __hash__(cls) -> int:
        return hash(cls.__base__)


def _itself(function: Any) -> Any:
    return function


class _Method(Copied):
    """A member of a subclass. It is copied when it is used first."""

    def __init__(self, member: Any, copy: Callable[[Any], Any]) -> None:
        self._member, self._copy = member, copy

    @functools.cached_property
    def member(self) -> Any:
        member = self._member
        if isinstance(member, property):
            own = [member.fget, member.fset, member.fdel]
            parts = [x and self._function(x) for x in own]
            return property(parts[0], parts[1], parts[2], member.__doc__)
        if isinstance(member, staticmethod):
            return staticmethod(self._function(member.__func__))
        return self._function(member)

    def _function(self, function: Any) -> Any:
        return self._copy(function) if _is_copied(function) else function

    def forget(self) -> None:
        """Drops the copy and the function that copies. Both would keep the trace alive until the
        subclass is collected."""
        self._copy = _itself
        vars(self).pop("member", None)

    def __get__(self, x: Any, kind: Any = None) -> Any:
        # (Python reads reflected methods, as `__rsub__`, from the subclass itself. If they differed
        # from the class's, the method of the right operand would run first.)
        return (self._member if x is None else self.member).__get__(x, kind)


class _Property(_Method):
    """A property of a subclass. It is copied when it is used first."""

    def __set__(self, x: Any, value: Any) -> None:
        self.member.__set__(x, value)

    def __delete__(self, x: Any) -> None:
        self.member.__delete__(x)


class MadeObjects:
    """The objects that one trace makes or copies, and their subclasses."""

    def __init__(self) -> None:
        self._classes: dict[type, Any] = {}
        self._methods: list[_Method] = []
        self._objects: list[Callable[[], Any]] = []  # weak references, where a class allows them

    def class_for(self, kind: Any, copy: Callable[[Any], Any]) -> Any:
        """The subclass of a class, or the class itself if it cannot have one. `copy` copies a
        function for the trace."""
        if kind not in self._classes:
            self._classes[kind] = self._subclass(kind, copy) if _can_be_subclassed(kind) else kind
        return self._classes[kind]

    def _subclass(self, kind: Any, copy: Callable[[Any], Any]) -> Any:
        objects, has_weak = self._objects, bool(kind.__weakrefoffset__)

        def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
            made = object.__new__(cls)
            objects.append(weakref.ref(made) if has_weak else lambda: made)
            return made

        own = {
            "__new__": new,
            "__slots__": (),
            "__made_in_trace__": True,
            "__class__": property(lambda made: kind, _become),
            "__hash__": kind.__hash__,  # (Python removes it from classes with an __eq__)
            "__module__": kind.__module__,
            "__qualname__": kind.__qualname__,
            "__doc__": kind.__doc__,
        }
        members: dict[str, Any] = {}
        for base in reversed(kind.__mro__[:-1]):
            members |= vars(base)
        found = {
            name: (_Property if isinstance(x, property) else _Method)(x, copy)
            for name, x in members.items()
            if name not in _KEPT and isinstance(x, _KINDS)
        }
        self._methods += found.values()
        return _Meta(kind.__name__, (kind,), found | own)

    def finish(self) -> None:
        """Gives the objects their own classes."""
        for get in self._objects:
            if type(type(made := get())) is _Meta:
                _set_class(made, type(made).__base__)
        for method in self._methods:
            method.forget()
        self._objects.clear()
        self._methods.clear()
        self._classes.clear()


_KINDS = (types.FunctionType, property, staticmethod)
# Methods that are not copied: they compute nothing, or Python checks the type of their results.
_KEPT = (NOT_CALLED - {"__init__", "__post_init__"}) | {
    *("__float__", "__int__", "__index__", "__complex__", "__bool__", "__len__", "__hash__"),
    *("__contains__", "__length_hint__", "__format__", "__bytes__", "__sizeof__", "__dir__"),
}


def _is_copied(x: Any) -> bool:
    """Whether a function is the user's, so that it is copied."""
    is_plain = isinstance(x, types.FunctionType) and not is_made(x)
    return is_plain and not is_library(x.__globals__.get("__name__"))


def _can_be_subclassed(kind: Any) -> bool:
    # (Packages find out what to do with their arrays and numbers by the class itself.)
    is_plain = can_be_made(kind) and not (is_named_tuple(kind) or has_own_arithmetic(kind))
    return is_plain and not any("__init_subclass__" in vars(base) for base in kind.__mro__[:-1])
