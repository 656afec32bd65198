"""Finds the names of globals and attributes that code reads."""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from rune_jit.capture.state import Unbound
from rune_jit.tracing.context import may_handle_errors
from rune_jit.trees import attribute

_MATCHED = "__match_args__"  # stands for the attributes in the patterns of a `match`
_MATCH_CLASS = dis.opmap["MATCH_CLASS"]
# Names that a function uses to find out which attributes exist.
ASKING = frozenset(
    {"getattr", "hasattr", "vars", "__dict__", "__getattribute__", "AttributeError", _MATCHED}
)
# Names that a function uses to reach attributes that its code does not name.
BY_TEXT = frozenset(
    {
        *("getattr", "setattr", "vars", "asdict", "astuple", "fields", "attrgetter"),
        *("getmembers", "getattr_static", "eval", "exec", "__dict__", "__getattribute__", _MATCHED),
        *("methodcaller", "__setattr__", "__getstate__", "__reduce__", "__reduce_ex__"),
    }
)


def inner_codes(code: types.CodeType) -> list[types.CodeType]:
    """The code of the functions and classes that a function defines directly."""
    return [x for x in code.co_consts if isinstance(x, types.CodeType)]


def all_codes(code: types.CodeType) -> list[types.CodeType]:
    """A function's code and that of all functions and classes in it."""
    return [code, *(c for x in inner_codes(code) for c in all_codes(x))]


@functools.cache
def handles_errors(code: types.CodeType) -> bool:
    """Whether a function, or one in it, has a `try` or `with` statement."""
    return any(map(may_handle_errors, all_codes(code)))


def _arguments(code: types.CodeType, operations: Collection[str]) -> frozenset[str]:
    """The names that are arguments of these instructions in a function's own code."""
    return frozenset(x.argval for x in dis.get_instructions(code) if x.opname in operations)


@functools.cache
def names_in(code: types.CodeType) -> frozenset[str]:
    """The names of globals and attributes in the code of a function and its inner functions. Leaves
    out attributes that an `__init__` only assigns."""
    codes = all_codes(code)
    has_patterns = any(_MATCH_CLASS in x.co_code[::2] for x in codes)
    return frozenset({_MATCHED} if has_patterns else ()).union(
        *(_names_read(x) if x.co_name == "__init__" else x.co_names for x in codes)
    )


def _names_read(code: types.CodeType) -> set[str]:
    """The names in code, without attributes of its first variable that it only assigns."""
    names: set[str] = set()
    last: Any = None  # the local variables that the last instruction read
    for instruction in dis.get_instructions(code):
        name = instruction.argval
        is_own = code.co_varnames[:1] == (last[-1:] if type(last) is tuple else (last,))
        if instruction.opcode in dis.hasname and not (
            instruction.opname == "STORE_ATTR" and is_own
        ):
            names.add(name)
        last = name if instruction.opname.startswith("LOAD_FAST") else None
    return names


def asks_identity(code: types.CodeType) -> bool:
    """Whether code names functions whose results depend on the identity of their arguments. (The
    `__hash__` that `dataclasses` writes depends on the fields only.)"""
    is_of_dataclass = (code.co_name, code.co_filename) == ("__hash__", "<string>")
    return not is_of_dataclass and not names_in(code).isdisjoint({"id", "hash", "weakref"})


@functools.cache
def globals_in(code: types.CodeType) -> frozenset[str]:
    """The names of globals that a function and its inner functions read or delete."""
    return frozenset().union(*(_arguments(x, _OF_GLOBALS) for x in all_codes(code)))


@functools.cache
def globals_assigned(code: types.CodeType) -> frozenset[str]:
    """The names of globals that a function and its inner functions assign or delete."""
    return frozenset().union(*(_arguments(x, _TO_GLOBALS) for x in all_codes(code)))


def assigns_globals(code: types.CodeType) -> bool:
    """Whether a function or an inner function may assign or delete globals."""
    return bool(globals_assigned(code)) or "globals" in names_in(code)


@functools.cache
def names_of_errors(code: types.CodeType) -> frozenset[str]:
    """The names in a function's code of functions that decide whether floating-point errors and
    warnings raise."""
    return _OF_ERRORS.intersection(name for x in all_codes(code) for name in x.co_names)


_OF_ERRORS = frozenset({"errstate", "seterr", "catch_warnings", "filterwarnings", "simplefilter"})


@functools.cache
def _assigned_within(code: types.CodeType) -> frozenset[str]:
    """The variables of outer functions that inner functions assign."""
    inner = all_codes(code)[1:]
    return frozenset().union(*(_arguments(x, _TO_CELLS).intersection(x.co_freevars) for x in inner))


@functools.cache
def _read_in_classes(code: types.CodeType, is_in_class: bool = False) -> frozenset[str]:
    """The variables of outer functions that methods of classes in a function use."""
    found: set[str] = set()
    for inner in inner_codes(code):
        is_class = not inner.co_flags & inspect.CO_OPTIMIZED
        found |= _read_in_classes(inner, is_in_class or is_class)
        if is_in_class:
            found |= {*inner.co_freevars}
    return frozenset(found)


def is_assigned_beside(function: types.FunctionType, name: str) -> bool:
    """Whether `function`, or another inner function of the same outer function, may assign this
    variable of the outer function."""
    code, is_inner = _outermost(function)
    return not is_inner or code is None or name in _assigned_within(code)


def is_read_in_classes(function: types.FunctionType, name: str) -> bool:
    """Whether methods of a class in the outer function of `function` may read this variable."""
    code, is_inner = _outermost(function)
    return is_inner and code is not None and name in _read_in_classes(code)


def _outermost(function: types.FunctionType) -> tuple[types.CodeType | None, bool]:
    """The code of the outermost function around a function, and whether there is one."""
    # (A wrapper has the name of the wrapped function. From Python 3.11 on, its code has its own.)
    name_of = getattr(function.__code__, "co_qualname", function.__qualname__)
    outermost, _, inner = name_of.partition(".<locals>.")
    x: Any = functools.reduce(
        lambda x, part: attribute(x, "__dict__", {}).get(part),
        outermost.split(".")[1:],
        function.__globals__.get(outermost.split(".")[0]),
    )
    outer: Any = inspect.unwrap(getattr(x, "__func__", x))
    return getattr(outer, "__code__", None), bool(inner)


_TO_GLOBALS = ("STORE_GLOBAL", "DELETE_GLOBAL")
_TO_CELLS = ("STORE_DEREF", "DELETE_DEREF")
_OF_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS", "DELETE_GLOBAL")


def guards_on_absence(function: types.FunctionType) -> Iterator[tuple[str, Any, Any, Any]]:
    """Guards that the globals which a function reads, and which do not exist, still do not."""
    held = function.__globals__
    unbound = globals_in(function.__code__) - held.keys() - vars(builtins).keys()
    if unbound:
        yield "attribute", Unbound(held, unbound), "are_bound", False
    if "globals" in names_in(function.__code__):
        yield "keys", held, None, tuple(held)


def names_in_classes(code: types.CodeType) -> frozenset[str]:
    """The names in the bodies of the classes that a function defines."""
    names: frozenset[str] = frozenset()
    for inner in inner_codes(code):
        is_function = inner.co_flags & inspect.CO_OPTIMIZED
        names |= names_in_classes(inner) if is_function else names_in(inner)
    return names


@functools.cache
def values_in(code: types.CodeType) -> tuple[frozenset[str], ...]:
    """The names of globals, variables of outer functions, and attributes that code reads without
    calling them at once."""
    found: tuple[set[str], ...] = set(), set(), set()
    instructions = [x for own in all_codes(code) for x in dis.get_instructions(own)]
    for i, x in enumerate(instructions):
        at = i + 1 if sys.version_info >= (3, 13) else i - 1
        is_called = 0 <= at < len(instructions) and instructions[at].opname == "PUSH_NULL"
        if x.opname == "LOAD_GLOBAL" and sys.version_info >= (3, 11):
            is_called = bool((x.arg or 0) & 1)
        elif x.opname == "LOAD_GLOBAL":
            is_called = _is_called(instructions[i + 1 :])
        elif x.opname == "LOAD_ATTR" and sys.version_info >= (3, 12):
            is_called |= bool((x.arg or 0) & 1)
        kinds = (("LOAD_GLOBAL", "LOAD_NAME"), ("LOAD_DEREF",), ("LOAD_ATTR",))
        for kind, operations in zip(found, kinds, strict=True):
            if not is_called and x.opname in operations:
                kind.add(x.argval)
    return tuple(map(frozenset, found))


def _is_called(following: list[dis.Instruction]) -> bool:
    """Whether the instructions that follow the load of a name call it (Python 3.10)."""
    depth = 0  # how many values are above the loaded one on the stack
    for x in following:
        if x.opname == "CALL_FUNCTION" and x.arg == depth:
            return True
        if depth < 0 or x.opcode in dis.hasjrel or x.opcode in dis.hasjabs:
            return False
        depth += dis.stack_effect(x.opcode, x.arg)
    return False


@functools.cache
def tests_of_classes(code: types.CodeType) -> frozenset[int]:
    """The offsets of instructions that load globals as the second argument of isinstance or
    issubclass, or as items of it."""
    run = [x for x in dis.get_instructions(code) if x.opname not in ("CACHE", "EXTENDED_ARG")]
    found: set[int] = set()
    for i, test in enumerate(run):
        if test.opname != "LOAD_GLOBAL" or test.argval not in ("isinstance", "issubclass"):
            continue
        second: list[dis.Instruction] = []  # the code of the second argument
        depth = 0  # how many values are above the function on the stack
        for x in run[i + 1 :]:
            if depth == 2 == x.arg and x.opname == _CALL:
                parts = [y for y in second if y.opname != "BUILD_TUPLE"]
                if all(y.opname == "LOAD_GLOBAL" for y in parts):
                    found.update(y.offset for y in parts)
                break
            if x.opcode in dis.hasjrel or x.opcode in dis.hasjabs:
                break
            second = [x] if depth == 1 else [*second, x]
            depth += dis.stack_effect(x.opcode, x.arg)
    return frozenset(found)


_CALL = "CALL_FUNCTION"
if sys.version_info >= (3, 11):
    _CALL = "CALL" if sys.version_info >= (3, 12) else "PRECALL"


class Names:
    """The names in the code that has been met, and callbacks for names in later code."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self._readers: dict[str, list[Callable[[str], None]]] = {}  # by name
        self._waiting: dict[frozenset[str], list[Callable[[], None]]] = {}  # for any of the names

    def learn(self, code: types.CodeType) -> None:
        new = names_in(code) - self.known
        self.known |= new
        for name in sorted(new):
            for read in self._readers.pop(name, ()):
                read(name)
        for names in [x for x in self._waiting if not x.isdisjoint(new)]:
            for act in self._waiting.pop(names, ()):
                act()

    def on(self, names: Iterable[str], read: Callable[[str], None]) -> None:
        """Calls `read` with each of the names, now or once code has it."""
        names = set(names)
        for name in names - self.known:
            self._readers.setdefault(name, []).append(read)
        for name in sorted(names & self.known):
            read(name)

    def on_any(self, names: frozenset[str], act: Callable[[], None]) -> None:
        """Calls `act` now, or once code has one of the names."""
        if self.known.isdisjoint(names):
            self._waiting.setdefault(names, []).append(act)
        else:
            act()
