"""Objects that change without notice when they are used: files, iterators, connections, and other
objects whose state is no attribute that a guard could watch."""

from __future__ import annotations

import _thread
import atexit
import collections
import datetime
import functools
import operator
import struct
import sys
import types
import weakref
from collections.abc import Container, Iterator
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.capture.foreign import has_stand_in
from rune_jit.capture.names import globals_in
from rune_jit.capture.objects import is_library, may_act_unseen
from rune_jit.errors import UnsupportedOpError
from rune_jit.trees import package_of

# Classes of objects that change without notice when they are used: module, name.
_STATEFUL = (
    *(("io", "IOBase"), ("logging", "Logger"), ("logging", "LoggerAdapter"), ("queue", "Queue")),
    *(("queue", "SimpleQueue"), ("contextvars", "ContextVar"), ("os", "_Environ")),
    *(("threading", name) for name in ("Event", "Condition", "Semaphore", "Barrier")),
    *(("ctypes", name) for name in ("_SimpleCData", "_Pointer", "Array", "Structure", "Union")),
)
_CACHE: Any = type(functools.lru_cache(len))
# Views of dicts.
VIEWS = (types.MappingProxyType, *map(type, ({}.keys(), {}.values(), {}.items())))
# Classes in C whose objects a trace watches in another way.
_WATCHED = (
    *(list, dict, set, collections.deque, bytearray, np.ndarray, BaseException, _core.ArrayBase),
    *(functools.partial, types.SimpleNamespace, *VIEWS),
)
# Other classes in C whose objects do not change, or do not matter to what a function computes.
_FIXED = (
    *(type, property, staticmethod, classmethod, super, slice, types.ModuleType, types.CodeType),
    *(types.FunctionType, types.MethodType, types.GetSetDescriptorType, types.CellType),
    *(types.MemberDescriptorType, types.MethodDescriptorType, types.WrapperDescriptorType),
    *(types.ClassMethodDescriptorType, np.ufunc, type(np.sum), struct.Struct),
    *(operator.attrgetter, operator.itemgetter, operator.methodcaller),
    *(_thread.LockType, _thread.RLock, _CACHE),
)


@functools.cache
def _hides_state(kind: Any) -> bool:
    """Whether the objects of a class have state that is no attribute, in memory that a class in C
    adds to them. Python's and NumPy's objects that are equal by their values, such as numbers and
    paths, do not change."""
    if has_stand_in(kind) or issubclass(kind, (*_WATCHED, *_FIXED)):
        return False
    return any(
        (base.__hash__ in (None, object.__hash__) or may_act_unseen(base.__module__))
        and _own_memory(base) > 0
        for base in kind.__mro__[:-1]
    )


@functools.cache
def is_fixed(kind: Any, may_change: bool) -> bool:
    """Whether the objects of a class of Python, NumPy or rune_jit do not change. By convention,
    those do not that have hashes of their own. With `may_change`, those do not but namespaces."""
    if package_of(kind) == "rune_jit":
        return True
    if not is_library(kind.__module__):
        return False
    is_namespace = kind.__module__ in ("types", "argparse")
    return kind.__hash__ not in (None, object.__hash__) or (may_change and not is_namespace)


def _own_memory(kind: Any) -> int:
    """How many bytes of an object a class adds to its base, besides those of attributes."""
    names = ("__dict__", "__weakref__")
    members = [n for n, raw in vars(kind).items() if type(raw) is types.MemberDescriptorType]
    attributes = len({*members, *(name for name in names if name in vars(kind))})
    return int(kind.__basicsize__ - kind.__base__.__basicsize__ - 8 * attributes)


def refuse_stateful(x: Any, may_change: bool, names: Container[str] = ()) -> None:
    """Raises UnsupportedOpError for an object that a call of the program would not use: an
    iterator; datetime, if code with these names reads its clock; a cache of functools, if the code
    counts its hits; weakref.finalize; atexit.register; and a file, logger, connection or the like.
    The last are allowed if `may_change` says that they may be used by the trace only."""
    kind: Any = type(x)
    is_iterator = is_library(kind.__module__) and issubclass(kind, Iterator)
    known = (getattr(sys.modules.get(module), name, None) for module, name in _STATEFUL)
    is_asked = any(x is clock for clock in (datetime, datetime.datetime, datetime.date))
    is_asked = is_asked and any(name in names for name in ("now", "utcnow", "today"))
    is_asked |= kind is _CACHE and any(name in names for name in ("cache_info", "cache_clear"))
    is_register = x is weakref.finalize or x is atexit.register
    is_stateful = any(c is not None and issubclass(kind, c) for c in known) or _hides_state(kind)
    if is_asked or is_iterator or is_register or (is_stateful and not may_change):
        name = x.__name__ if is_asked or is_register else kind.__name__
        raise UnsupportedOpError(
            f"{name}: cannot trace its use (it would change once, not at each call)\n"
            "hint: use it outside, and pass its result as an argument"
        )


# Names of Python's modules for what belongs to the process.
_OF_PROCESS = {
    "os": frozenset({"environ", "environb", "getenv", "getenvb"}),
    "sys": frozenset({"argv", "modules", "stdin", "stdout", "stderr"}),
}


def refuse_process(function: types.FunctionType) -> None:
    """Raises UnsupportedOpError if code that is not copied uses `sys.stdout`, `os.environ` or the
    like: it would write once, or read what was there once."""
    for module, names in _OF_PROCESS.items():
        used = names.intersection(function.__code__.co_names)
        if used and function.__globals__.get(module) is sys.modules.get(module):
            raise UnsupportedOpError(
                f"{module}.{min(used)}: cannot trace its use in a method of an object without"
                " arrays\nhint: use it outside"
            )


def refuse_spawning(name: str) -> None:
    """Raises UnsupportedOpError for the method `spawn` of a random generator."""
    raise UnsupportedOpError(
        f"{name}: cannot trace this method of a random generator (it cannot be undone)\n"
        "hint: call it outside, and pass its result as an argument"
    )


def refuse_text(code: types.CodeType) -> None:
    """Raises UnsupportedOpError if code runs statements that a text has: no guard watches what they
    name."""
    if "exec" in globals_in(code):
        raise UnsupportedOpError(
            f"{code.co_name}: cannot trace exec (no guard watches what the text names)\n"
            "hint: call it outside"
        )
