"""Looks up the members of users' classes and of their objects."""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Iterator
from typing import Any

from rune_jit import trees
from rune_jit.capture.loops.structures import is_named_tuple
from rune_jit.capture.objects import is_library

FUNCTIONS = (types.FunctionType, types.MethodType)


# Special methods that no code in a loop calls by itself, or that change nothing.
_NOT_CALLED_NAMES = (
    "__init__ __new__ __post_init__ __init_subclass__ __class_getitem__ __set_name__ __del__"
    " __subclasshook__ __repr__ __str__ __reduce__ __getstate__ __setstate__ __copy__ __deepcopy__"
)
NOT_CALLED = frozenset(_NOT_CALLED_NAMES.split())


class Copied:
    """The base of stand-ins for members of classes in a trace."""

    member: Any  # the trace's copy of the member


def classes_of(kind: Any) -> list[Any]:
    """A class and its base classes, without `object` and the classes that `namedtuple` has made."""
    bases = kind.__mro__[:-1]
    if is_named_tuple(kind):
        return [base for base in bases if base is not tuple and "__new__" not in vars(base)]
    return list(bases)


def can_be_made(kind: Any) -> bool:
    """Whether a call of a class does no more than call its methods. The class must be written in
    Python, and its objects must consist of their attributes, or of the items of a named tuple."""
    if type(kind) is not type or kind is type:
        return False
    bases = classes_of(kind)
    is_plain = all(
        base.__flags__ & trees.PYTHON_CLASS
        and "__del__" not in vars(base)
        and not is_library(base.__module__)
        for base in bases
    )
    if is_named_tuple(kind):
        return is_plain
    made_by: Any = kind.__new__
    return is_plain and made_by is object.__new__


def what_makes(kind: Any) -> Iterator[Any]:
    """The functions that Python calls to make an object of a class."""
    for base in classes_of(kind):
        for name in ("__init__", "__post_init__"):
            function = vars(base).get(name)
            if isinstance(function, types.FunctionType) and not is_made(function):
                yield function
    if dataclasses.is_dataclass(kind):
        for field in dataclasses.fields(kind):
            if field.default_factory is not dataclasses.MISSING:
                yield field.default_factory


def is_made(function: types.FunctionType) -> bool:
    """Whether a function has been generated for a class, for example by `dataclass`."""
    return function.__code__.co_filename == "<string>"


def is_of_named_tuple(x: Any, name: str) -> bool:
    """Whether an attribute is an item of a named tuple, or a method that every named tuple has."""
    kind = x if isinstance(x, type) else type(x)
    if not is_named_tuple(kind):
        return False
    own = kind._fields  # type: ignore[attr-defined]
    is_of_tuple = name in vars(tuple) and member(kind, name) is vars(tuple)[name]
    return is_of_tuple or name in (*own, "_replace", "_asdict")


def member(x: Any, name: str) -> Any:
    """An attribute of an object or class as it is stored, without a call of descriptors. None if
    there is none."""
    if not isinstance(x, type) and name in vars(x):
        return vars(x)[name]
    found = inspect.getattr_static(x if isinstance(x, type) else type(x), name, None)
    return found.member if isinstance(found, Copied) else found
