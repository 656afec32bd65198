"""Replacements, inside of a trace, for NumPy's functions and classes and for Python's `type`."""

from __future__ import annotations

import dis
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.errors import NumPyOnlyError, UnsupportedOpError
from rune_jit.rules.coercions import SAMPLES, refuse
from rune_jit.rules.indexing.selection import Selection
from rune_jit.rules.known import WRITERS, numbers_as
from rune_jit.tracing.sizes import Size
from rune_jit.tracing.storage import refuse_if_unsure
from rune_jit.tracing.tracer import Tracer, contains_tracer


class StandIn:
    """The base of stand-ins. A stand-in has the attributes of its object, and is equal to it."""

    def __init__(self, real: Any) -> None:
        self._real = real
        # (The class has these attributes, too, so that __getattr__ is not called for them.)
        for name in ("__module__", "__doc__"):
            setattr(self, name, getattr(real, name, None))

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

    # (Functions and classes are their own copies.)

    def __copy__(self) -> StandIn:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> StandIn:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _real, (self._real,)


def _real(x: Any) -> Any:
    return x._real if isinstance(x, StandIn) else x


# Functions.

# Functions that take lists and tuples of arrays. NumPy's protocols find traced arrays in these.
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
# Parameters whose lists and tuples are no arrays.
_NO_ARRAYS = {
    *("axis", "axes", "shape", "newshape", "reps", "pad_width", "shift", "dims", "source"),
    *("destination", "indices_or_sections", "window_shape", "sorter", "optimize", "out", "dtype"),
}
# Functions that raise an error if their first argument is a list.
_REFUSING_LISTS = {
    *(*WRITERS, "rollaxis", "take_along_axis", "unstack"),
    *("diag_indices_from", "tril_indices_from", "triu_indices_from"),
}


class Function(StandIn):
    """The stand-in for a function of NumPy. It turns arguments that are lists or tuples with traced
    arrays into arrays, since NumPy's protocols do not find traced arrays in them."""

    def __init__(self, real: Any, make_array: Callable[[Any], Any]) -> None:
        super().__init__(real)
        self._make_array = make_array

    @_core.shorten_stand_in
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._real is np.block:  # (its argument is a nested list)
            return self._real(*args, **kwargs)
        convert = self._each if self._real.__name__ in _OF_SEQUENCES else self._as_array
        names = parameters_of(self._real)
        first = 1 if self._real.__name__ in _REFUSING_LISTS else 0
        args = tuple(
            x if i < first or (i < len(names) and names[i] in _NO_ARRAYS) else convert(x)
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
def parameters_of(function: Any) -> tuple[str, ...]:
    """The names of the parameters that a function takes by position."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):  # (a function in C without a signature)
        return ()
    return tuple(p.name for p in parameters if p.kind is not p.KEYWORD_ONLY)


# Methods of random generators with a parameter `out`.
_FILLING = {"permuted", "random", "standard_normal", "standard_exponential", "standard_gamma"}


def refuse_code(code: types.CodeType) -> None:
    """Raises UnsupportedOpError if code cannot run on traced arrays, and no operation in it would
    raise an error."""
    names_out = any(type(names) is tuple and "out" in names for names in code.co_consts)
    if names_out and _FILLING & set(code.co_names) and _fills(code):
        raise UnsupportedOpError(f"{code.co_name}: cannot trace out= of a random generator")
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise NumPyOnlyError(f"{code.co_name}: cannot trace an async function")


def _fills(code: types.CodeType) -> bool:
    """Whether code calls a path of attributes that ends with one of these names (`rng.random`) with
    the keyword `out`. The call begins where its path begins."""
    paths: set[Any] = set()
    calls: set[Any] = set()
    last = None
    names_out = False
    for instruction in dis.get_instructions(code):
        is_attribute = instruction.opname in ("LOAD_ATTR", "LOAD_METHOD")
        if last is not None and not is_attribute and last.argval in _FILLING:
            paths.add(_begin_of(last))
        last = instruction if is_attribute else None
        is_names = instruction.opname == "KW_NAMES"
        value = code.co_consts[instruction.arg or 0] if is_names else instruction.argval
        if type(value) is tuple:
            names_out = "out" in value
        elif names_out and instruction.opname.startswith("CALL"):
            calls.add(_begin_of(instruction))
            names_out = False
    return bool(paths & calls)


def _begin_of(instruction: dis.Instruction) -> tuple[int | None, int | None] | None:
    """Line and column of the code of an instruction. (Python 3.10 does not know them.)"""
    where = getattr(instruction, "positions", None)
    return where and (where.lineno, where.col_offset)


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
    """Raises UnsupportedOpError if code compares two of its arguments by `is`: they may be the same
    array in one call, and different arrays in the next."""
    if _compares_arguments(code):
        raise UnsupportedOpError(
            f"{code.co_name}: cannot trace `is` between two arguments (they may be one array)"
        )


class Class(StandIn):
    """The stand-in for a class."""

    @property
    def __bases__(self) -> tuple[type, ...]:  # (for issubclass(self, ...))
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
    """The stand-in for a class of NumPy's scalars. A call with a traced number or array casts."""

    def __init__(self, real: Any, make_array: Callable[[Any], Any]) -> None:
        super().__init__(real)
        self.dtype = np.dtype(real)  # (for numpy.dtype(self))
        self._make_array = make_array

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs or not contains_tracer(args[0]):
            return self._real(*args, **kwargs)
        x = args[0]
        return numbers_as(x if issubclass(type(x), Tracer) else self._make_array(x), self.dtype)


class Ndarray(Class):
    """The stand-in for numpy.ndarray. Traced arrays are instances, and calls make traced arrays."""

    def __init__(self, make: Callable[..., Any]) -> None:
        super().__init__(np.ndarray)
        self.dtype = np.dtype(np.ndarray)  # (for numpy.dtype(self): the dtype of objects)
        self._make = make

    def __call__(self, shape: Any, dtype: Any = float, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs:
            return np.ndarray(shape, dtype, *args, **kwargs)
        return self._make(shape, dtype)

    def __instancecheck__(self, x: Any) -> bool:
        if issubclass(type(x), Tracer):
            return not x._storage.scalar
        return type(x) is Selection or isinstance(x, np.ndarray)


class Method(StandIn):
    """The stand-in for a method of numpy.ndarray that is read from the class."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        x = args[0] if args else None
        if class_of(x) is np.ndarray:
            return getattr(x, self._real.__name__)(*args[1:], **kwargs)
        # (NumPy refuses numbers. Its error names their class.)
        return self._real(*(x.__class__(0) if _is_number(x) else x for x in args), **kwargs)


_OF_NDARRAY = (types.MethodDescriptorType, types.WrapperDescriptorType)
# The stand-ins for the methods of numpy.ndarray that traced arrays have, by name.
METHODS = {
    name: Method(method)
    for name, method in vars(np.ndarray).items()
    if isinstance(method, _OF_NDARRAY) and hasattr(Tracer, name)
}


class Type(Class):
    """The stand-in for Python's `type`. For a traced array it returns what isinstance confirms."""

    def __init__(self, stand_in_of: Callable[[type], Any]) -> None:
        super().__init__(type)
        self._stand_in_of = stand_in_of

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs:
            return type(*args, **kwargs)
        return self._stand_in_of(_sure_class_of(_real(args[0]), "type"))


def class_of(x: Any) -> Any:
    """The class that NumPy's program would see: a number's, or np.ndarray."""
    if type(x) is Selection:
        return np.ndarray
    if type(x) is not Tracer:
        return type(x)
    return x.__class__ if x._storage.scalar else np.ndarray


def _sure_class_of(x: Any, what: str) -> Any:
    """Like `class_of`. Raises UnsupportedOpError for a number that may be Python's or NumPy's."""
    if _is_number(x):
        refuse_if_unsure(x, what)
    return class_of(x)


def _is_number(x: Any) -> bool:
    return type(x) is Tracer and x._storage.scalar


def _isinstance(x: Any, kinds: Any) -> bool:
    if type(x) is Size:
        x = 0
    if type(x) not in (Tracer, Selection):
        return isinstance(x, kinds)
    kind = class_of(x)
    # (The classes in `kinds` may be protocols, which look for attributes.)
    of_x = isinstance(_ARRAY if kind is np.ndarray else kind(0), kinds)
    if kind is not np.ndarray and x._value is not None:
        unsure = x._trace.builder.unsure_kind(x._value)
        if unsure and isinstance(SAMPLES[unsure], kinds) != of_x:
            refuse("isinstance of a number that may be Python's or NumPy's")
    return of_x


def _hasattr(x: Any, name: str) -> bool:
    if type(x) is not Tracer:
        return hasattr(x, name)
    return any(name in vars(base) for base in _sure_class_of(x, "hasattr").__mro__)


def _getattr(x: Any, name: str, *default: Any) -> Any:
    if _is_number(x) and not _hasattr(x, name):
        return getattr(_EMPTY, name, *default)
    return getattr(x, name, *default)


_EMPTY = 0  # (an object with the attributes that all numbers have)
_ARRAY = np.empty(0)


# The stand-ins for Python's functions that depend on an object's class or attributes, by name. (A
# traced number has the attributes of an array, not those of a number.)
OF_CLASSES: dict[str, Callable[..., Any]] = {
    "isinstance": _isinstance,
    "hasattr": _hasattr,
    "getattr": _getattr,
}
