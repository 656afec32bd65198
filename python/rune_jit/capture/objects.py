"""Classifies the objects that a trace meets: objects of a library, arrays that traced arrays can
replace, containers that the trace copies, and objects whose changes nothing watches."""

from __future__ import annotations

import abc
import array
import contextlib
import functools
import gc
import sys
import sysconfig
import types
import typing
from collections.abc import Collection, Container, Iterable, Iterator
from typing import Any

import numpy as np

from rune_jit import _core, trees
from rune_jit.bound import METHODS
from rune_jit.capture.names import globals_in
from rune_jit.tracing.context import is_library_file
from rune_jit.tracing.tracer import are_atomic

_MOST_HELD = 1000  # how many objects are searched for arrays
# Python's own modules whose classes hold objects of any kind.
_OF_HOLDERS = "builtins", "collections", "functools", "itertools", "types"
# Folders of installed packages.
INSTALLED = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})

# Modules of rune_jit whose functions are traced like the user's: control flow, linear algebra.
_TRACED = ("rune_jit.control", "rune_jit.rules.matrix_algorithms")


def is_library(module: str | None) -> bool:
    """Whether a module is NumPy's, rune_jit's or Python's, so that its functions are not traced."""
    if module is None or module in _TRACED:
        return False
    top = module.split(".")[0]
    return top in ("numpy", "rune_jit") or _is_pythons(top)


def _is_pythons(name: str) -> bool:
    """Whether a module is part of Python, and no file of the user's with the same name."""
    if name not in sys.stdlib_module_names or name == "__main__":
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is None or is_library_file(file)


# Packages whose code only computes with its arguments.
_OF_COMPUTATIONS = (
    "numpy rune_jit scipy sklearn skimage statsmodels numba einops opt_einsum xarray pandas"
    " array_api_compat attr attrs ml_dtypes typing_extensions"
)
# The same of Python's modules. What others do is noticed in another way: of files, by their audit
# events; of clocks, random numbers, logs, threads and the like, by their functions' stand-ins.
_OF_PYTHON = (
    "abc array ast base64 binascii bisect builtins calendar cmath codecs collections colorsys"
    " copy copyreg contextlib dataclasses datetime decimal difflib enum fractions functools"
    " hashlib heapq inspect io itertools json keyword math numbers operator pathlib pickle"
    " queue re sre_compile statistics string struct textwrap types typing unicodedata zlib"
    " asyncio atexit concurrent contextvars gc genericpath glob importlib logging ntpath os"
    " posix posixpath random secrets sys thread threading time uuid warnings weakref"
)
_TRUSTED = frozenset((f"{_OF_COMPUTATIONS} {_OF_PYTHON}").split())


def may_act_unseen(module: str | None) -> bool:
    """Whether the code of a module may do more than compute with its arguments without being
    noticed: it may draw, or keep a state of its own."""
    return str(module).partition(".")[0].lstrip("_") not in _TRUSTED


def is_replaceable(array: Any) -> bool:
    """Whether a traced array can replace this array."""
    plain = type(array) is np.ndarray or isinstance(array, _core.ArrayBase)
    return plain and _core.is_supported_dtype(array.dtype)


_INTERFACES = ("__array__", "__array_interface__", "__array_struct__", "__dataframe__")


def is_foreign_array(x: Any) -> bool:
    """Whether x has elements in memory that no guard can watch: for example a pandas.Series, a
    masked array, an array.array or a lazy array."""
    kind = type(x)
    if kind is np.ndarray or isinstance(x, (np.generic, np.matrix, np.memmap, _core.ArrayBase)):
        return False
    if isinstance(x, (np.ndarray, array.array, memoryview)):
        return True
    if not any(map(functools.partial(hasattr, kind), _INTERFACES)) or is_library(kind.__module__):
        return False
    path = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    return not kind.__flags__ & trees.PYTHON_CLASS or path.startswith(INSTALLED)


def is_of_pandas(x: Any) -> bool:
    """Whether x is pandas, something of pandas, or an object with such an attribute."""
    if "pandas" not in sys.modules:
        return False
    is_apart = isinstance(x, (type, types.ModuleType))
    held: Any = () if is_apart else trees.attribute(x, "__dict__", ())
    return any(map(_is_pandas_own, (x, *held.values()) if type(held) is dict else (x,)))


def _is_pandas_own(x: Any) -> bool:
    named = x if isinstance(x, (type, types.FunctionType)) else type(x)
    module = x.__name__ if isinstance(x, types.ModuleType) else named.__module__
    return isinstance(module, str) and module.partition(".")[0] == "pandas"


@functools.cache
def has_own_arithmetic(kind: type) -> bool:
    """Whether the objects of a class are numbers, expressions or arrays of an installed package
    whose operators and ufuncs may treat traced arrays unlike NumPy's (SymPy's, autograd's)."""
    if not kind.__flags__ & trees.PYTHON_CLASS or not hasattr(kind, "__mul__"):
        return False
    path = getattr(sys.modules.get(trees.package_of(kind)), "__file__", None) or ""
    if not path.startswith(INSTALLED) or hasattr(kind, "__array__"):
        return False
    # (NumPy leaves operators to classes with a priority. Sparse matrices have one, and take
    # everything that is like an array.)
    return hasattr(kind, "__array_ufunc__") or not hasattr(kind, "__array_priority__")


def is_bar(x: Any) -> bool:
    """Whether x is tqdm's class or function (not its module)."""
    name, module = trees.attribute(x, "__name__"), trees.attribute(x, "__module__")
    return name in ("tqdm", "trange") and str(module).partition(".")[0] == "tqdm"


def is_copied(x: Any, assigned: Container[int] = ()) -> bool:
    """Whether a trace sees a copy of x with traced arrays in it. This is so for a list, tuple, dict
    or object of a Python class that contains replaceable arrays, random generators, or an object
    whose id is in `assigned`."""
    if not can_be_copied(x):
        return False
    return _identity(x) in assigned or _holds_arrays(x, 4, {}, assigned)


def _identity(x: Any) -> int:
    """The id of a container, or of the attributes of an object."""
    return id(x if type(x) in (list, tuple, dict) else vars(x))


# Base classes from which objects get no attributes.
_WITHOUT_STATE = (abc.ABC, typing.Generic, typing.Protocol)


def can_be_copied(x: Any) -> bool:
    """Whether x is a list, tuple or dict, or consists of its attributes and a Python class."""
    if type(x) in (list, tuple, dict):
        return True
    # (An object that the trace has made has a class that the trace has derived.)
    bases = [base for base in type(x).__mro__[:-1] if "__made_in_trace__" not in vars(base)]
    bases = [base for base in bases if base not in _WITHOUT_STATE]
    return (
        isinstance(trees.attribute(x, "__dict__"), dict)
        and not isinstance(x, (type, types.ModuleType))
        and all(base.__flags__ & trees.PYTHON_CLASS for base in bases)
        and not any("__slots__" in vars(base) or "__del__" in vars(base) for base in bases)
        and not any(is_library(base.__module__) for base in bases)
    )


def arrays_in(x: Any) -> dict[int, np.ndarray]:
    """The arrays in nested lists, tuples and dicts, by id."""
    found: dict[int, np.ndarray] = {}
    seen: dict[int, Any] = {}
    open_ = [x]
    while open_:
        x = open_.pop()
        if isinstance(x, np.ndarray):
            found[id(x)] = x
        elif type(x) in (list, tuple, dict) and id(x) not in seen:
            seen[id(x)] = x
            items = x.values() if type(x) is dict else x
            open_ += () if are_atomic(items) else items
    return found


def held_arrays(function: Any, arguments: Iterable[Any]) -> list[np.ndarray]:
    """The arrays that code without a copy may read and write in a call in segments: those that are
    reached through objects and classes. Leaves out arguments, arrays in containers that are
    arguments, and arrays that functions refer to directly, since copied code reads these."""
    found: list[np.ndarray] = []
    for x, inner in _reached([function, *_objects_in(arguments)]):
        if not isinstance(x, (types.FunctionType, *METHODS)):
            found += [item for item in inner if isinstance(item, np.ndarray)]
    return found


def _objects_in(arguments: Iterable[Any]) -> list[Any]:
    """The objects among arguments and in nested lists, tuples and dicts."""
    found: list[Any] = []
    seen: dict[int, Any] = {}
    open_ = list(arguments)
    while open_ and len(seen) <= _MOST_HELD:
        x = open_.pop()
        if type(x) not in (list, tuple, dict):
            found.append(x)
        elif id(x) not in seen:
            seen[id(x)] = x
            open_ += _held_by(x)
    return found


def held_containers(function: Any, arguments: Iterable[Any]) -> set[int]:
    """The ids of the lists and dicts that such code may read in a call."""
    objects = [x for x in arguments if type(x) not in (list, tuple, dict)]
    reached = _reached([function, *objects])
    return {id(item) for _, inner in reached for item in inner if type(item) in (list, dict)}


def arrays_of_objects(function: Any, arguments: Iterable[Any]) -> list[np.ndarray]:
    """The arrays of Python objects that a call may reach. Python's garbage collector does not know
    what they hold."""
    inner = (item for _, inner in _reached([function, *arguments]) for item in inner)
    return [x for x in inner if isinstance(x, np.ndarray) and x.dtype.hasobject]


def _reached(roots: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """The functions, classes and objects that roots reach, each with the objects it refers to."""
    seen: dict[int, Any] = {}
    open_ = roots
    while open_ and len(seen) <= _MOST_HELD:
        x = open_.pop()
        if id(x) in seen:
            continue
        seen[id(x)] = x
        inner: list[Any] = []
        if isinstance(x, METHODS):
            inner = [x.__func__, x.__self__]
        elif isinstance(x, types.FunctionType):
            inner = [] if is_library(x.__module__) else referred_to(x)
        elif isinstance(x, type):
            inner = [] if is_library(x.__module__) else [*x.__bases__, *_referred_to_by_methods(x)]
        elif can_be_copied(x):
            inner = _held_by(x)
            open_.append(type(x))
        elif isinstance(x, np.flatiter):
            inner = [x.base]
        elif not isinstance(x, (types.ModuleType, types.FrameType)) and (
            type(x).__module__ in _OF_HOLDERS or not is_library(type(x).__module__)
        ):
            inner = gc.get_referents(x)
        yield x, inner
        open_ += [item for item in inner if not _is_plain(item)]


def _referred_to_by_methods(kind: type) -> list[Any]:
    return [x for method in methods_of(kind) for x in referred_to(method)]


def methods_of(kind: type) -> Iterator[types.FunctionType]:
    """The functions of a class itself, also those of properties, static and class methods."""
    for raw in vars(kind).values():
        for part in (raw, *(getattr(raw, name, None) for name in ("__func__", "fget", "fset"))):
            if isinstance(part, types.FunctionType):
                yield part


def _is_plain(x: Any) -> bool:
    return x is None or isinstance(x, (int, float, complex, str, bytes, np.ndarray, np.generic))


def _held_by(x: Any) -> list[Any]:
    """The contents of x, which can be copied, without numbers and strings. Each object once."""
    held = x if isinstance(x, (list, tuple)) else (x if type(x) is dict else vars(x)).values()
    return [*{id(item): item for item in held if type(item) not in trees.PLAIN}.values()]


def has_usual_tests(kind: type) -> bool:
    """Whether isinstance and issubclass of a class call no code of the user's."""
    return type(kind) in (type, abc.ABCMeta) and not any(
        "__subclasshook__" in vars(base) and not is_library(base.__module__)
        for base in kind.__mro__
    )


def referred_to(function: types.FunctionType) -> list[Any]:
    """The objects that a function's code names, and its default arguments."""
    found: list[Any] = []
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # (a variable without a value yet)
            found.append(cell.cell_contents)
    found += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    names = globals_in(function.__code__)
    return found + [function.__globals__[n] for n in names if n in function.__globals__]


def _holds_arrays(x: Any, depth: int, seen: dict[int, Any], assigned: Container[int] = ()) -> bool:
    if id(x) in seen or depth == 0 or len(seen) > _MOST_HELD:
        return False
    seen[id(x)] = x
    if type(x) is dict and any(isinstance(key, types.FunctionType) for key in x):
        return True  # (the trace looks up copies of functions)
    return any(
        is_replaceable(item)
        or type(item).__module__ in trees.OF_GENERATORS
        or (
            can_be_copied(item)
            and (_identity(item) in assigned or _holds_arrays(item, depth - 1, seen, assigned))
        )
        for item in _held_by(x)
    )


def methods_through(kind: type, own: Collection[str], real: type) -> dict[str, tuple[Any, bool]]:
    """The functions, by name, that an object of a class with the attributes `own` has as methods.
    For each, whether it is a static method. None for a class derived from the object's `real` one,
    whose methods are copied when they are used."""
    found: dict[str, tuple[Any, bool]] = {}
    if kind is not real:
        return found
    for name, raw in (item for base in kind.__mro__[:-1] for item in vars(base).items()):
        is_static = isinstance(raw, staticmethod)
        function = raw.__func__ if is_static else raw
        is_method = isinstance(function, types.FunctionType) and name[:2] != "__"
        if is_method and name not in own and getattr(kind, name, None) is function:
            found.setdefault(name, (function, is_static))
    return found
