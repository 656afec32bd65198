"""Traces the code of functions that NumPy implements in Python by calling other functions.

The code runs with a copy of its globals in which creation functions return traced arrays (shim.py).
The call is refused if the code asks for the values of a traced array."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit.capture import shim
from rune_jit.capture.creation import writable
from rune_jit.capture.names import names_in
from rune_jit.capture.stand_ins import OF_CLASSES, Scalar, class_of
from rune_jit.errors import ConcretizationError, DataDependentShapeError
from rune_jit.rules.coercions import refuse, traced
from rune_jit.rules.table import implements, named
from rune_jit.tracing.sizes import Size

_copies: dict[int, Any] = {}  # by id of a function or module of NumPy: its copy


def _type(*args: Any) -> Any:
    return class_of(args[0]) if len(args) == 1 else type(*args)


# Python's functions that ask for the class of an object, which may be traced.
_BUILTINS = {**OF_CLASSES, "type": _type}


def _inside(value: Any) -> Any:
    """The stand-in for a global of NumPy's code while it is traced."""
    stand_in = shim.replacements().get(id(value))
    if isinstance(stand_in, Scalar):
        return value  # (it may be compared with the type of a dtype)
    if stand_in is not None and value is not np:
        return stand_in
    is_module = isinstance(value, types.ModuleType)
    if not is_module and not isinstance(value, types.FunctionType):
        return value  # (a class, a number, or a function that uses NumPy's protocols)
    if not (value.__name__ if is_module else value.__module__).startswith("numpy"):
        return value
    if id(value) not in _copies:
        _copies[id(value)] = _view_of(value) if is_module else _copy_of(value)
    return _copies[id(value)]


def _view_of(module: types.ModuleType) -> shim.ModuleView:
    return shim.ModuleView(module, lambda name: _inside(getattr(module, name)), vars(module))


def _copy_of(function: types.FunctionType) -> types.FunctionType:
    names: dict[str, Any] = {"__builtins__": function.__globals__["__builtins__"]}
    copy = types.FunctionType(
        function.__code__,
        names,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    _copies[id(function)] = copy  # (before its globals, since it may call itself)
    read = names_in(function.__code__)
    names |= {name: _BUILTINS[name] for name in read & _BUILTINS.keys()}
    for name in read & function.__globals__.keys():
        names[name] = _inside(function.__globals__[name])
    return copy


def _traced(function: Any) -> Callable[..., Any]:
    @functools.cache
    def code() -> types.FunctionType:
        return _copy_of(inspect.unwrap(function))

    def handler(*args: Any, **kwargs: Any) -> Any:
        try:
            return code()(*args, **kwargs)
        except DataDependentShapeError:
            raise
        except ConcretizationError as error:
            refuse(f"{function.__name__}, which asks for values ({error})")

    return handler


_FUNCTIONS = (
    (
        np,
        "angle append array_split atleast_1d atleast_2d atleast_3d average column_stack"
        " corrcoef cov cross cumulative_prod cumulative_sum diff digitize dsplit dstack"
        " fill_diagonal flip fliplr flipud gradient hsplit hstack i0 iscomplex"
        " isneginf isposinf isreal ix_ kron meshgrid moveaxis nan_to_num nancumprod nancumsum"
        " nanprod nansum polyval rollaxis rot90 row_stack select sinc split"
        " take_along_axis trapezoid tril triu unstack unwrap vander vsplit vstack",
    ),
    (np.linalg, "cross multi_dot"),
)

for _module, _names in _FUNCTIONS:
    for _function in named(_module, _names):
        implements(_function)(_traced(_function))


_isclose = _traced(np.isclose)


@implements(np.isclose)
def _isclose_of_numbers(a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    # (NumPy's code turns an int into a float.)
    return _isclose(a, b * 1.0 if OF_CLASSES["isinstance"](b, int) else b, *args, **kwargs)


class _Indexed:
    """The stand-in for an object that users index, such as numpy.r_. It runs the code of the
    object's class."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getitem__(self, key: Any) -> Any:
        code = _inside(type(self._real).__getitem__)
        if isinstance(key, tuple):
            key = tuple([traced(x) if isinstance(x, Size) else x for x in key])
        return writable(code(self._real, key))


shim.replace("require", _traced(np.require))
for _name in ("mgrid", "ogrid", "r_", "c_"):
    shim.replace(_name, _Indexed(getattr(np, _name)))
