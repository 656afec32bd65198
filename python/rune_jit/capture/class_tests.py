"""Finds code that asks for the class of a traced array by `type(x)` and that a trace does not copy:
methods of classes and of objects without arrays, and the functions that these call."""

from __future__ import annotations

import dis
import functools
import types
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from rune_jit.capture.foreign import has_stand_in, is_of_compiler
from rune_jit.capture.loops.callees import refuse_identity
from rune_jit.capture.loops.code_objects import ONLY_FOR_CALLS
from rune_jit.capture.loops.members import NOT_CALLED
from rune_jit.capture.objects import is_library, methods_of, referred_to
from rune_jit.containers import contents
from rune_jit.errors import NumPyOnlyError


@functools.cache
def _asks_for_class(code: types.CodeType) -> bool:
    """Whether code compares `type(x)` with numpy.ndarray, or looks it up: `table[type(x)]`,
    `table.get(type(x))`, `type(x) in table`."""
    if "type" not in code.co_names:
        return False
    run = [x for x in dis.get_instructions(code) if x.opname not in ONLY_FOR_CALLS]
    for i, x in enumerate(run):
        if x.argval != "type" or x.opname != "LOAD_GLOBAL":
            continue
        around = {str(y.argval) for y in run[max(i - 12, 0) : i + 12]}
        ops = [y.opname for y in run[i + 1 : i + 12]]
        if "ndarray" in around and not {"IS_OP", "COMPARE_OP"}.isdisjoint(ops):
            return True
        if len(ops) < 3 or not ops[1].startswith("CALL") or run[i + 1].argval == "self":
            continue
        is_got = i > 0 and run[i - 1].argval == "get"
        is_item = ops[2] == "BINARY_SUBSCR" or run[i + 3].argrepr == "[]"
        is_key = "CONTAINS_OP" in ops[3:5] and not any(op.startswith("BUILD_") for op in ops[3:5])
        is_key &= "LOAD_CONST" not in ops[2:4]
        if is_got or is_item or is_key:
            return True
    return False


def refuse_class_test(code: types.CodeType) -> None:
    """Raises NumPyOnlyError if code that is not copied asks for the class of an array. The class of
    a traced array would not be NumPy's."""
    if _asks_for_class(code):
        raise NumPyOnlyError(
            f"{code.co_name}: cannot trace type(x) in a method of an object without arrays"
            "\nhint: write isinstance(x, numpy.ndarray)"
        )


def refuse_identity_in_methods(kind: type, held: Iterable[Any]) -> None:
    """Raises UnsupportedOpError if an object has functions as attributes (`held`), and a property
    or special method of its class compares by `is`. In the trace's copy of the object, the
    functions are copies."""
    kinds: list[Any] = [type(x) for x in held]
    if not any(map(has_stand_in, kinds)):
        return
    for base in kind.__mro__[:-1]:
        for name, raw in vars(base).items():
            is_called = isinstance(raw, property) or (name[:2] == "__" and name not in NOT_CALLED)
            function = getattr(raw, "fget", raw)
            if is_called and isinstance(function, types.FunctionType):
                refuse_identity(function.__code__)


_answers: weakref.WeakKeyDictionary[type, str | None] = weakref.WeakKeyDictionary()
# How many items of a container, and how many levels of references, are searched.
_MOST, _LEVELS = 64, 3


def class_test(x: Any) -> str | None:
    """The reason why the methods of x must not get traced arrays; None if there is none. x is a
    class, an object, or a container of these."""
    if isinstance(x, (dict, list, tuple)):
        items = [*contents(x)][:_MOST]
        return next((why for item in items if (why := _of_kind(_kind_of(item)))), None)
    return _of_kind(_kind_of(x))


def class_test_behind(function: Any) -> str | None:
    """The first result of class_test() for the objects that a function, and the functions that it
    calls, refer to by name. (Their code may read traced arrays from containers.)"""
    function = getattr(function, "__func__", function)
    if not isinstance(function, types.FunctionType):
        return None
    if function not in _behind:
        _behind[function] = None
        named = _named(function, _LEVELS, set())
        _behind[function] = next((why for x in named if (why := class_test(x))), None)
    return _behind[function]


_behind: weakref.WeakKeyDictionary[types.FunctionType, str | None] = weakref.WeakKeyDictionary()


def _named(function: types.FunctionType, levels: int, seen: set[int]) -> Iterator[Any]:
    seen.add(id(function))
    for x in referred_to(function):
        if not isinstance(x, types.FunctionType):
            yield x
        elif levels > 1 and id(x) not in seen and not is_library(x.__module__):
            yield from _named(x, levels - 1, seen)


def _kind_of(x: Any) -> Any:
    return x if isinstance(x, type) else type(x)


def _of_kind(kind: Any) -> str | None:
    if is_library(kind.__module__) or is_of_compiler(kind):
        return None
    if kind not in _answers:
        try:
            for code in _codes(kind, _LEVELS, set()):
                refuse_class_test(code)
            _answers[kind] = None
        except NumPyOnlyError as error:
            _answers[kind] = str(error)
    return _answers[kind]


def _codes(x: Any, levels: int, seen: set[int]) -> Iterator[types.CodeType]:
    """The code of a class or function, and of the classes and functions that it refers to."""
    if id(x) in seen or levels == 0 or is_library(x.__module__):
        return
    seen.add(id(x))
    referred: list[Any] = []
    if isinstance(x, types.FunctionType):
        yield x.__code__
        referred = referred_to(x)
    else:
        for method in methods_of(x):
            yield method.__code__
            referred += referred_to(method)
        referred += x.__bases__
        for held in vars(x).values():
            referred += [held] if isinstance(held, type) else []
            referred += [*held.values()] if type(held) is dict else []
    for item in referred:
        if isinstance(item, (type, types.FunctionType)):
            yield from _codes(item, levels - 1, seen)
