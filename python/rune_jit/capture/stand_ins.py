"""Replacements, inside of a trace, for NumPy's functions and classes and for Python's `type`."""

from __future__ import annotations

import dis
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit.errors import NumPyOnlyError, UnsupportedOpError
from rune_jit.rules.coercions import SAMPLES, refuse
from rune_jit.rules.indexing.selection import Selection
from rune_jit.rules.known import numbers_as
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.tracer import Tracer, contains_tracer


class StandIn:
    """Stands for an object: has its attributes, and is equal to it."""

    def __init__(self, real: Any) -> None:
        self._real = real

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._real)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __eq__(self, other: Any) -> Any:
        return self._real == _real(other)

    def __hash__(self) -> int:
        return hash(self._real)

    def __repr__(self) -> str:
        return repr(self._real)

    # Functions and classes are their own copies.

    def __copy__(self) -> StandIn:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> StandIn:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _real, (self._real,)


def _real(x: Any) -> Any:
    return x._real if isinstance(x, StandIn) else x


# Functions.

# Functions that take lists and tuples of arrays. NumPy itself looks through these.
_OF_SEQUENCES = {
    *("concatenate", "concat", "stack", "vstack", "row_stack", "hstack", "dstack", "column_stack"),
    *(
        "select",
        "choose",
        "piecewise",
        "lexsort",
        "ravel_multi_index",
        "histogramdd",
        "multi_dot",
        "histogram2d",
    ),
}
# Parameters that take no arrays.
_NO_ARRAYS = {
    *("axis", "axes", "shape", "newshape", "reps", "pad_width", "shift", "dims", "source"),
    *("destination", "indices_or_sections", "window_shape", "sorter", "optimize", "out", "dtype"),
}


class Function(StandIn):
    """Stands for a function of NumPy that takes arrays. Lists and tuples that hold traced arrays
    are arrays to it: NumPy's protocols do not look for traced arrays in them."""

    def __init__(self, real: Any, make_array: Callable[[Any], Any]) -> None:
        super().__init__(real)
        self._make_array = make_array

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for x in (*args, *kwargs.values()) if kwargs else args:
            if (type(x) is list or type(x) is tuple) and contains_tracer(x):
                return self._call_with_lists(args, kwargs)
        return self._real(*args, **kwargs)

    def _call_with_lists(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._real is np.block:  # of nested lists
            return self._real(*args, **kwargs)
        convert = self._each if self._real.__name__ in _OF_SEQUENCES else self._as_array
        names = _parameters(self._real)
        args = tuple(
            x if i < len(names) and names[i] in _NO_ARRAYS else convert(x)
            for i, x in enumerate(args)
        )
        kwargs = {k: x if k in _NO_ARRAYS else convert(x) for k, x in kwargs.items()}
        return self._real(*args, **kwargs)

    def _as_array(self, x: Any) -> Any:
        return self._make_array(x) if type(x) in (list, tuple) and contains_tracer(x) else x

    def _each(self, x: Any) -> Any:
        return type(x)(map(self._as_array, x)) if type(x) in (list, tuple) else x

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._real, name)
        is_method = name in ("reduce", "accumulate", "reduceat", "outer")
        return Function(value, self._make_array) if is_method else value


@functools.cache
def _parameters(function: Any) -> tuple[str, ...]:
    """The names of a function's parameters, as far as they may be given by position."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):  # a function in C without a signature
        return ()
    return tuple(p.name for p in parameters if p.kind is not p.KEYWORD_ONLY)


# Methods of random generators that take out=.
_FILLING = {"permuted", "random", "standard_normal", "standard_exponential", "standard_gamma"}


def refuse_code(code: types.CodeType) -> None:
    """Raises UnsupportedOpError if code cannot run on traced arrays, and Python cannot tell."""
    names_out = any(type(names) is tuple and "out" in names for names in code.co_consts)
    if names_out and _FILLING & set(code.co_names) and _FILLING & _last_names(code):
        raise UnsupportedOpError(f"{code.co_name}: cannot trace out= of a random generator")
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise NumPyOnlyError(f"{code.co_name}: cannot trace an async function")


def _last_names(code: types.CodeType) -> set[str]:
    """The names of attributes of which no further attribute is read: not the `random` of
    `np.random.rand`."""
    found: set[str] = set()
    last = None
    for instruction in dis.get_instructions(code):
        is_attribute = instruction.opname in ("LOAD_ATTR", "LOAD_METHOD")
        if last is not None and not is_attribute:
            found.add(last)
        last = instruction.argval if is_attribute else None
    return found


@functools.cache
def _compares_arguments(code: types.CodeType) -> bool:
    parameters = {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]}
    named: list[Any] = []  # the names that the last instructions read
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IS_OP" and len(named) > 1 and parameters.issuperset(named[-2:]):
            return True
        is_read = instruction.opname.startswith("LOAD_FAST")
        x = instruction.argval
        named = [*named, *(x if isinstance(x, tuple) else (x,))] if is_read else []
    return False


def refuse_identity_of_arguments(code: types.CodeType) -> None:
    """Raises UnsupportedOpError if code asks whether two of its arguments are one object: the
    arrays of one call may be, and those of the next not."""
    if _compares_arguments(code):
        raise UnsupportedOpError(
            f"{code.co_name}: cannot trace `is` between two arguments (they may be one array)"
        )


class Class(StandIn):
    """Stands for a class."""

    @property
    def __bases__(self) -> tuple[type, ...]:  # what issubclass(this, ...) looks at
        return (self._real,)

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return (self._real,)

    def __instancecheck__(self, x: Any) -> bool:
        return isinstance(x, self._real)

    def __subclasscheck__(self, other: Any) -> bool:
        return issubclass(_real(other), self._real)

    def __getitem__(self, parameters: Any) -> Any:
        return self._real[parameters]

    def __or__(self, other: Any) -> Any:
        return self._real | _real(other)

    def __ror__(self, other: Any) -> Any:
        return other | self._real

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._real(*args, **kwargs)


class Scalar(Class):
    """Stands for a class of NumPy's scalars: called with a traced number or array, it casts."""

    def __init__(self, real: Any, make_array: Callable[[Any], Any]) -> None:
        super().__init__(real)
        self.dtype = np.dtype(real)  # which numpy.dtype(this) asks for
        self._make_array = make_array

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs or not contains_tracer(args[0]):
            return self._real(*args, **kwargs)
        x = args[0]
        return numbers_as(x if issubclass(type(x), Tracer) else self._make_array(x), self.dtype)


class Ndarray(Class):
    """Stands for numpy.ndarray: traced arrays are instances, and calls make traced arrays."""

    def __init__(self, make: Callable[..., Any]) -> None:
        super().__init__(np.ndarray)
        self.dtype = np.dtype(np.ndarray)  # which numpy.dtype(this) asks for: of objects
        self._make = make

    def __call__(self, shape: Any, dtype: Any = float, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs:
            return np.ndarray(shape, dtype, *args, **kwargs)
        return self._make(shape, dtype)

    def __instancecheck__(self, x: Any) -> bool:
        if issubclass(type(x), Tracer):
            return not x._storage.scalar
        return type(x) is Selection or isinstance(x, np.ndarray)


class Type(Class):
    """Stands for Python's `type`, which says of a traced array what isinstance does."""

    def __init__(self, stand_in_of: Callable[[type], Any]) -> None:
        super().__init__(type)
        self._stand_in_of = stand_in_of

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs:
            return type(*args, **kwargs)
        return self._stand_in_of(class_of(_real(args[0])))


def class_of(x: Any) -> Any:
    """The class that NumPy's program would see: a number's, or np.ndarray."""
    if type(x) is Selection:
        return np.ndarray
    if type(x) is not Tracer:
        return type(x)
    return x.__class__ if x._storage.scalar else np.ndarray


def _is_number(x: Any) -> bool:
    return type(x) is Tracer and x._storage.scalar


def _isinstance(x: Any, kinds: Any) -> bool:
    if type(x) is Size:
        x = 0
    if type(x) not in (Tracer, Selection):
        return isinstance(x, kinds)
    kind = class_of(x)
    of_x = isinstance(_ARRAY if kind is np.ndarray else kind(0), kinds)  # protocols see attributes
    if kind is not np.ndarray and x._value is not None:
        unsure = x._trace.builder.unsure_kind(x._value)
        if unsure and isinstance(SAMPLES[unsure], kinds) != of_x:
            refuse("isinstance of a number that may be Python's or NumPy's")
    return of_x


def _hasattr(x: Any, name: str) -> bool:
    if type(x) is not Tracer:
        return hasattr(x, name)
    return any(name in vars(base) for base in class_of(x).__mro__)


def _getattr(x: Any, name: str, *default: Any) -> Any:
    if _is_number(x) and not _hasattr(x, name):
        return getattr(_EMPTY, name, *default)
    return getattr(x, name, *default)


_EMPTY = 0  # has no attributes that another number lacks
_ARRAY = np.empty(0)


# Python's functions that ask for an object's class, by name. A traced number has the attributes of
# an array, which are not those of a number.
OF_CLASSES: dict[str, Callable[..., Any]] = {
    "isinstance": _isinstance,
    "hasattr": _hasattr,
    "getattr": _getattr,
}
