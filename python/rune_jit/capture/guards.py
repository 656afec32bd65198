"""The Python state outside a function that its trace depends on: what the function and those it
calls reach by name. A later call checks that the state is what it was, and traces again if not; a
trace that changes the state is undone."""

from __future__ import annotations

import functools
import inspect
import pickle
import random
import sys
import sysconfig
import types
from collections import deque
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.errors import StateChangedError, UnsupportedOpError

# (kind, holder, name, value), as cpp/bindings/guards.h says.
Guard = tuple[str, Any, Any, Any]

_MOST_GUARDS = 20_000
_ATOMS = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype, range, slice)
_MOST_HELD = 1000  # objects looked through for arrays
_PYTHON_CLASS = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_ABSENT = object()
_INSTALLED = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
# Names by which a function reaches attributes that its code does not name.
_BY_TEXT = {"getattr", "setattr", "vars", "__dict__", "asdict", "astuple", "fields", "attrgetter"}


def names_in(code: types.CodeType) -> set[str]:
    """Names of globals and attributes in a function's code and the functions in it."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= names_in(constant)
    return names


def is_library(module: str | None) -> bool:
    """Whether a module is NumPy's, ours or Python's: its functions are not traced."""
    if module is None:
        return False
    top = module.split(".")[0]
    return top in ("numpy", "rune_jit") or (top in sys.stdlib_module_names and top != "__main__")


class _Collector:
    """Walks from a function to the state that it can reach.

    Attributes are those that the code of any of the functions names. The state of other packages
    that are installed is taken for fixed.
    """

    def __init__(self, package: str, replaced: bool, names: set[str]) -> None:
        self._package = package  # of the traced function
        self._replaced = replaced  # whether the trace replaces arrays that it can (shim.py)
        self._names = names  # in the code of all functions that can be reached, as far as known
        self.found = set(names)
        self.guards: list[Guard] = []
        self.containers: list[tuple[Any, Any]] = []  # with copies
        self.arrays: dict[int, np.ndarray] = {}  # that the trace cannot replace
        self.generators: list[Any] = []
        self._seen: dict[tuple[int, bool], Any] = {}  # keeps what has an id alive

    def _is_foreign(self, module: str | None) -> bool:
        if is_library(module):
            return True
        top = (module or "").split(".")[0]
        path = getattr(sys.modules.get(top), "__file__", None) or ""
        return top != self._package and path.startswith(_INSTALLED)

    def guard(self, kind: str, holder: Any, name: Any, value: Any) -> None:
        if len(self.guards) >= _MOST_GUARDS:
            raise UnsupportedOpError(
                "jit: cannot watch what the function reads through globals and attributes (more"
                f" than {_MOST_GUARDS} values)\nhint: pass large containers as arguments"
            )
        self.guards.append((kind, holder, name, value))

    def value(self, x: Any, direct: bool) -> None:
        """What can be reached from x; `direct`: the trace runs a copy of the function that holds x,
        in which x may be replaced."""
        if isinstance(x, _ATOMS):
            return
        if isinstance(x, _core.ArrayBase):
            return  # always traced
        if isinstance(x, np.ndarray):
            if not (direct and self._replaced and is_replaceable(x)):
                self.arrays[id(x)] = x
            return
        key = (id(x), direct)
        if key in self._seen:
            return
        self._seen[key] = x
        if isinstance(x, types.FunctionType):
            self._function(x, direct)
        elif isinstance(x, types.MethodType):
            self.value(x.__func__, direct)
            self.value(x.__self__, direct)
        elif isinstance(x, functools.partial):
            for part in (x.func, x.args, x.keywords):
                self.value(part, direct and part is x.func)
        elif isinstance(x, types.ModuleType):
            self._module(x, direct)
        elif isinstance(x, type):
            self._class(x, x)
        elif isinstance(x, (np.random.Generator, np.random.RandomState, random.Random)):
            self.generators.append(x)
        elif isinstance(getattr(x, "__wrapped__", None), types.FunctionType):
            self.value(x.__wrapped__, direct and isinstance(x, _core.Dispatcher))
            self.value(getattr(x, "__self__", None), False)
        else:
            direct = direct and self._replaced and is_copied(x)
            self._container(x, direct)
            self._instance(x, direct)

    def _function(self, function: types.FunctionType, direct: bool) -> None:
        if self._is_foreign(function.__module__):
            return
        names = names_in(function.__code__)
        self.found |= names
        self.guard("attribute", function, "__code__", function.__code__)
        for name in sorted(names & function.__globals__.keys()):
            value = function.__globals__[name]
            if not (isinstance(value, types.ModuleType) and is_library(value.__name__)):
                self.guard("item", function.__globals__, name, value)
            self.value(value, direct)
        for cell in function.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # not bound yet
                continue
            self.guard("cell", cell, None, value)
            self.value(value, direct)
        if function.__defaults__:
            self.guard("attribute", function, "__defaults__", function.__defaults__)
            for value in function.__defaults__:
                self.value(value, direct)
        if function.__kwdefaults__:
            self.guard("attribute", function, "__kwdefaults__", function.__kwdefaults__)
            for name, value in function.__kwdefaults__.items():
                self.guard("item", function.__kwdefaults__, name, value)
                self.value(value, direct)

    def _module(self, module: types.ModuleType, direct: bool) -> None:
        if self._is_foreign(module.__name__):
            return
        for name in sorted(self._names & module.__dict__.keys()):
            self.guard("item", module.__dict__, name, module.__dict__[name])
            self.value(module.__dict__[name], direct)

    def _container(self, x: Any, direct: bool) -> None:
        if isinstance(x, dict):
            self.containers.append((x, dict(x)))
            self.guard("size", x, None, len(x))
            for key, value in x.items():
                self.guard("item", x, key, value)
                self.value(value, direct)
        elif isinstance(x, (list, deque)):
            self.containers.append((x, list(x)))
            self.guard("size", x, None, len(x))
            for i, value in enumerate(x):
                self.guard("element", x, i, value)
                self.value(value, direct)
        elif isinstance(x, (set, bytearray)):
            self.containers.append((x, x.copy()))
            self.guard("equal", x, None, x.copy())
        elif isinstance(x, tuple):
            for value in x:
                self.value(value, direct)

    def _instance(self, x: Any, direct: bool) -> None:
        klass = type(x)
        if is_library(klass.__module__) and klass.__module__ not in ("types", "argparse"):
            return
        held = getattr(x, "__dict__", None)
        held = held if isinstance(held, dict) else {}
        wanted = held.keys() if self._names & _BY_TEXT else self._names & held.keys()
        for name in sorted(wanted):
            self.guard("item", held, name, held[name])
            self.value(held[name], direct)
        self._class(klass, x, held.keys(), direct)

    def _class(self, klass: type, x: Any, but: Any = (), direct: bool = False) -> None:
        """What the attributes of a class are to x, an instance (`direct`: of which the trace sees a
        copy) or the class itself."""
        for base in klass.__mro__:
            if self._is_foreign(base.__module__):
                continue
            for name, raw in list(base.__dict__.items()):
                function = _function_of(raw)
                if name in but or not (name in self._names or (function and name[:2] == "__")):
                    continue
                if function:
                    found = getattr(klass, name, None) is function
                    if raw is function and found:
                        self.guard("attribute", klass, name, raw)
                    self.value(function, direct and found and name[:2] != "__")
                elif isinstance(raw, types.MemberDescriptorType):  # of __slots__
                    if x is not klass and (value := getattr(x, name, _ABSENT)) is not _ABSENT:
                        self.guard("attribute", x, name, value)
                        self.value(value, False)
                elif not hasattr(type(raw), "__get__"):
                    if inspect.getattr_static(x, name, _ABSENT) is raw:
                        self.guard("attribute", x, name, raw)
                    self.value(raw, False)


def _function_of(raw: Any) -> types.FunctionType | None:
    """The function behind an entry of a class's __dict__."""
    for name in ("__func__", "fget", "func", "__wrapped__"):
        if not isinstance(raw, types.FunctionType):
            raw = getattr(raw, name, raw)
    return raw if isinstance(raw, types.FunctionType) else None


def is_replaceable(array: Any) -> bool:
    """Whether a traced array can stand for this one."""
    plain = type(array) is np.ndarray or isinstance(array, _core.ArrayBase)
    return plain and _core.is_supported_dtype(array.dtype)


def is_copied(x: Any) -> bool:
    """Whether a trace sees a copy of x with traced arrays in it: a list, tuple or dict, or an
    object of a Python class, that holds arrays which can be replaced."""
    return _can_be_copied(x) and _holds_arrays(x, 4, {})


def _can_be_copied(x: Any) -> bool:
    if type(x) in (list, tuple, dict):
        return True
    bases = type(x).__mro__[:-1]
    return (
        isinstance(getattr(x, "__dict__", None), dict)
        and not isinstance(x, (type, types.ModuleType))
        and all(base.__flags__ & _PYTHON_CLASS for base in bases)
        and not any("__slots__" in vars(base) or "__del__" in vars(base) for base in bases)
        and not any(is_library(base.__module__) for base in bases)
    )


def _holds_arrays(x: Any, depth: int, seen: dict[int, Any]) -> bool:
    if id(x) in seen or depth == 0 or len(seen) > _MOST_HELD:
        return False
    seen[id(x)] = x
    held = x if isinstance(x, (list, tuple)) else (x if type(x) is dict else vars(x)).values()
    return any(
        is_replaceable(item) or (_can_be_copied(item) and _holds_arrays(item, depth - 1, seen))
        for item in held
    )


class State:
    """What a function can reach by name, as it is now.

    `arrays_are_traced`: arrays that the function names itself are inputs of the program; the
    contents of others are part of the state.
    """

    def __init__(self, function: Any, statics: list[Any], arrays_are_traced: bool) -> None:
        self._arguments = (function, statics, arrays_are_traced)
        package = (getattr(function, "__module__", None) or "").split(".")[0]
        names: set[str] = set()
        while True:
            collector = _Collector(package, arrays_are_traced, names)
            collector.value(function, True)
            for static in statics:
                collector.value(static, True)
            if collector.found == names:
                break
            names = collector.found
        self._guards = collector.guards
        self._containers = collector.containers
        self._generators = collector.generators
        self._arrays = [(array, array.copy()) for array in collector.arrays.values()]
        self._random = [_random_state(g) for g in self._sources()]

    def guards_now(self) -> list[Guard]:
        """What a later call must check: containers may have grown since."""
        now = State(*self._arguments) if _core.broken_guards(self._guards) else self
        return now._guards + [("content", a, None, copy) for a, copy in now._arrays]

    def refuse_changes(self, function: str) -> None:
        """Raises UnsupportedOpError if something has changed that a call of the program would leave
        as it is, or read as it was: a name or an element bound anew, the content of an array, a
        random number taken. (Containers may grow: what was in them is what it was.)"""
        for i in _core.broken_guards(self._guards):
            kind, _, name, _ = self._guards[i]
            if kind in ("size", "equal"):
                continue
            what = {"element": f"element {name}", "cell": "a variable of an outer function"}
            raise StateChangedError(
                f"{function}: cannot trace a function that changes {what.get(kind, name)} (a later"
                " call would not)\nhint: return the new value"
            )
        if _core.broken_guards([("content", a, None, copy) for a, copy in self._arrays]):
            raise UnsupportedOpError(
                f"{function}: cannot trace a write to an array that is not traced\n"
                "hint: pass the array as an argument"
            )
        if [_random_state(g) for g in self._sources()] != self._random:
            raise UnsupportedOpError(
                f"{function}: cannot trace random numbers of NumPy or Python (each call would get"
                " the same)\nhint: use rune_jit.random, or pass the numbers as an argument"
            )

    def restore(self) -> None:
        """Makes everything what it was."""
        for i in _core.broken_guards(self._guards):
            kind, holder, name, value = self._guards[i]
            if kind == "item":
                holder[name] = value
            elif kind == "cell":
                holder.cell_contents = value
            elif kind == "attribute":
                setattr(holder, name, value)
        for container, copy in self._containers:
            if isinstance(container, (list, deque, bytearray)):
                if len(container) != len(copy) or any(
                    a is not b for a, b in zip(container, copy, strict=True)
                ):
                    container.clear()
                    container.extend(copy)
            elif container.keys() != copy.keys() if isinstance(copy, dict) else container != copy:
                container.clear()
                container.update(copy)
        for array, copy in self._arrays:
            if _core.broken_guards([("content", array, None, copy)]):
                array[...] = copy
        for source, state in zip(self._sources(), self._random, strict=True):
            _set_random_state(source, state)

    def _sources(self) -> list[Any]:
        return [None, random, *self._generators]


def _random_state(source: Any) -> Any:
    """The state of a generator, to be compared and set again; None is NumPy's global one."""
    if isinstance(source, np.random.Generator):
        return pickle.dumps(source.bit_generator.state)
    if source is None or isinstance(source, np.random.RandomState):
        state: Any = (np.random if source is None else source).get_state()
        kind, keys, *rest = state
        return (kind, keys.tobytes(), *rest)
    return source.getstate()


def _set_random_state(source: Any, state: Any) -> None:
    if isinstance(source, np.random.Generator):
        source.bit_generator.state = pickle.loads(state)
    elif source is None or isinstance(source, np.random.RandomState):
        kind, keys, *rest = state
        target = np.random if source is None else source
        target.set_state((kind, np.frombuffer(keys, np.uint32), *rest))
    else:
        source.setstate(state)
