"""The names of globals and attributes that code reads."""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any


@functools.cache
def names_in(code: types.CodeType) -> frozenset[str]:
    """Names of globals and attributes in a function's code and the functions in it. Not those that
    an `__init__` assigns only: what else they stand for is not read."""
    inner = (names_in(x) for x in code.co_consts if isinstance(x, types.CodeType))
    names = _names_read(code) if code.co_name == "__init__" else code.co_names
    return frozenset(names).union(*inner)


def _names_read(code: types.CodeType) -> set[str]:
    """The names in code, without attributes of its first variable that it assigns only."""
    names: set[str] = set()
    last: Any = None  # the last local variables that were read
    for instruction in dis.get_instructions(code):
        name = instruction.argval
        is_own = code.co_varnames[:1] == (last[-1:] if type(last) is tuple else (last,))
        if instruction.opcode in dis.hasname and not (
            instruction.opname == "STORE_ATTR" and is_own
        ):
            names.add(name)
        last = name if instruction.opname.startswith("LOAD_FAST") else None
    return names


@functools.cache
def _globals_in(code: types.CodeType) -> frozenset[str]:
    """Names of globals that a function's code and the functions in it read or delete."""
    inner = (_globals_in(x) for x in code.co_consts if isinstance(x, types.CodeType))
    own = (x.argval for x in dis.get_instructions(code) if x.opname in _OF_GLOBALS)
    return frozenset(own).union(*inner)


@functools.cache
def assigns_globals(code: types.CodeType) -> bool:
    """Whether a function's code, or a function in it, may assign or delete globals."""
    inner = (x for x in code.co_consts if isinstance(x, types.CodeType))
    operations = {x.opname for x in dis.get_instructions(code)}
    is_own = "globals" in code.co_names or not operations.isdisjoint(_TO_GLOBALS)
    return is_own or any(map(assigns_globals, inner))


@functools.cache
def _assigned_within(code: types.CodeType) -> frozenset[str]:
    """Names of variables of outer functions that functions defined in a function's code assign."""
    found: set[str] = set()
    for inner in (x for x in code.co_consts if isinstance(x, types.CodeType)):
        found |= _assigned_within(inner)
        stored = {x.argval for x in dis.get_instructions(inner) if x.opname in _TO_CELLS}
        found |= stored.intersection(inner.co_freevars)
    return frozenset(found)


@functools.cache
def _read_in_classes(code: types.CodeType, is_in_class: bool = False) -> frozenset[str]:
    """Names of variables of outer functions that methods of classes in a function's code use."""
    found: set[str] = set()
    for inner in (x for x in code.co_consts if isinstance(x, types.CodeType)):
        is_class = not inner.co_flags & inspect.CO_OPTIMIZED
        found |= _read_in_classes(inner, is_in_class or is_class)
        if is_in_class:
            found |= {*inner.co_freevars}
    return frozenset(found)


def is_assigned_beside(function: types.FunctionType, name: str) -> bool:
    """Whether a function that is defined where `function` is, which may be itself, may assign this
    variable of a function around them."""
    code, is_inner = _outermost(function)
    return not is_inner or code is None or name in _assigned_within(code)


def is_read_in_classes(function: types.FunctionType, name: str) -> bool:
    """Whether methods of a class that is defined where `function` is may read this variable."""
    code, is_inner = _outermost(function)
    return is_inner and code is not None and name in _read_in_classes(code)


def _outermost(function: types.FunctionType) -> tuple[types.CodeType | None, bool]:
    """The code of the outermost function around a function, and whether there is one."""
    # (A wrapper has the name of what it wraps, from Python 3.11 on its code has its own.)
    name_of = getattr(function.__code__, "co_qualname", function.__qualname__)
    outermost, _, inner = name_of.partition(".<locals>.")
    x: Any = functools.reduce(
        lambda x, part: vars(x).get(part) if hasattr(x, "__dict__") else None,
        outermost.split(".")[1:],
        function.__globals__.get(outermost.split(".")[0]),
    )
    outer: Any = inspect.unwrap(getattr(x, "__func__", x))
    return getattr(outer, "__code__", None), bool(inner)


_TO_GLOBALS = ("STORE_GLOBAL", "DELETE_GLOBAL")
_TO_CELLS = ("STORE_DEREF", "DELETE_DEREF")
_OF_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "DELETE_GLOBAL")


class UnboundNames:
    """Globals that code reads and that do not exist, for guards to watch."""

    name = None

    def __init__(self, code: types.CodeType, names: dict[str, Any]) -> None:
        self._globals = names
        self.names = _globals_in(code) - names.keys() - vars(builtins).keys()

    @property
    def are_bound(self) -> bool:
        """Whether one exists now. Assigning False removes them."""
        return not self.names.isdisjoint(self._globals)

    @are_bound.setter
    def are_bound(self, value: bool) -> None:
        for name in self.names:
            self._globals.pop(name, None)


def guards_on_absence(function: types.FunctionType) -> Iterator[tuple[str, Any, Any, Any]]:
    """Guards on the globals that a function reads and that do not exist."""
    held = function.__globals__
    unbound = UnboundNames(function.__code__, held)
    if unbound.names:
        yield "attribute", unbound, "are_bound", False
    if "globals" in names_in(function.__code__):
        yield "keys", held, None, tuple(held)


def names_in_classes(code: types.CodeType) -> frozenset[str]:
    """Names in the bodies of the classes that a function defines."""
    names: frozenset[str] = frozenset()
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            is_function = inner.co_flags & inspect.CO_OPTIMIZED
            names |= names_in_classes(inner) if is_function else names_in(inner)
    return names


class Names:
    """The names in the code that has been met, and what waits for more of them."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self._readers: dict[str, list[Callable[[str], None]]] = {}  # by name

    def learn(self, code: types.CodeType) -> None:
        new = names_in(code) - self.known
        self.known |= new
        for name in sorted(new):
            for read in self._readers.pop(name, ()):
                read(name)

    def on(self, names: Iterable[str], read: Callable[[str], None]) -> None:
        """Calls `read` with each of the names, now or when code has it."""
        names = set(names)
        for name in names - self.known:
            self._readers.setdefault(name, []).append(read)
        for name in sorted(names & self.known):
            read(name)

    def on_any(self, names: Iterable[str], act: Callable[[], None]) -> None:
        """Calls `act` once code has one of the names; perhaps once more for another one."""
        if not self.known.isdisjoint(names):
            act()
            return
        for name in names:
            self._readers.setdefault(name, []).append(lambda _: act())
