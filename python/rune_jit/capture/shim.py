"""The stand-ins for NumPy, for Python's functions and for their modules.

The traced function runs with a copy of its globals and closure cells (rebinder.py). Only there the
stand-ins replace the real modules and functions, so other threads see no change."""

from __future__ import annotations

import bisect
import builtins
import functools
import inspect
import math
import os
import sys
import time
import types
import uuid
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.capture import bisect_functions, imported, math_functions
from rune_jit.capture.creation import OF_WARNINGS, REPLACED, make_array
from rune_jit.capture.foreign import shuffling
from rune_jit.capture.stand_ins import METHODS, OF_CLASSES, Class, Function, Scalar, StandIn, Type
from rune_jit.errors import UnsupportedOpError
from rune_jit.rules.on_host import Vectorized
from rune_jit.tracing.context import current_trace, is_own_file


class _Module(types.ModuleType):
    """The base of stand-ins for modules. A stand-in is equal to its module."""

    _module: types.ModuleType

    def __eq__(self, other: Any) -> bool:
        return self._module is (other._module if isinstance(other, _Module) else other)

    def __hash__(self) -> int:
        return hash(self._module)


class _Shim(_Module):
    """The stand-in for the numpy module."""

    _module = np

    def __getattr__(self, name: str) -> Any:
        value = getattr(np, name)
        stand_in = _stand_in_of(value)
        rebind = getattr(current_trace(), "rebind", None)
        is_module = stand_in is value and isinstance(value, types.ModuleType)
        if is_module or value is not _NUMPYS.get(name):  # (the user has replaced it)
            return stand_in if rebind is None else rebind.inside(value)
        if stand_in is not value and value is not np.ndarray:  # (segments see ndarray itself)
            self.__dict__[name] = stand_in  # (later reads need not call __getattr__)
        return stand_in

    def __dir__(self) -> list[str]:
        return dir(np)


SHIM = _Shim("numpy")
_NUMPYS = dict(vars(np))  # as NumPy has made them


def see_replaced(names: Iterable[str]) -> None:
    """Lets the stand-in for numpy have what the user has put in place of these names' functions."""
    for name in names:
        if name in SHIM.__dict__ and getattr(np, name, None) is not _NUMPYS.get(name):
            del SHIM.__dict__[name]


def replace(name: str, stand_in: Any) -> None:
    """Sets another stand-in for the NumPy function with this name."""
    REPLACED[name] = SHIM.__dict__[name] = stand_in


for _name, _stand_in in REPLACED.items():
    if _name != "ndarray":
        SHIM.__dict__[_name] = _stand_in


def of_lists(function: Any) -> Function:
    """The stand-in for a function that takes arrays."""
    return Function(function, make_array)


def _functions(module: types.ModuleType) -> Iterator[tuple[Any, Any]]:
    """The functions of a module of NumPy, each with its stand-in."""
    for value in vars(module).values():
        if isinstance(value, (np.ufunc, type(np.sum))):
            yield value, of_lists(value)


def _scalar_classes() -> Iterator[tuple[Any, Any]]:
    """NumPy's classes of numbers, each with its stand-in."""
    for dtype in map(np.dtype, "?" + np.typecodes["AllInteger"] + np.typecodes["AllFloat"]):
        if _core.is_supported_dtype(dtype):
            yield dtype.type, Scalar(dtype.type, make_array)


def _of_seeds(function: Any, name: str) -> Callable[..., Any]:
    """Like `_refusing`, but a call with a seed calls the function."""
    refuse = _refusing(function, name)

    def make(*args: Any, **kwargs: Any) -> Any:
        return (function if _has_seed(args, kwargs) else refuse)(*args, **kwargs)

    return make


def _has_seed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return any(seed is not None for seed in (*args, *kwargs.values()))


def _refusing(function: Any, name: str, has_result: bool = True) -> Callable[..., Any]:
    """The stand-in for a function that must run at each call, since its result differs from call to
    call. It raises UnsupportedOpError in a trace. If the function has no result, the stand-in
    raises only if the trace decides for later calls; else it calls the function."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        if trace is None or trace.is_segmented:
            return function(*args, **kwargs)
        if not has_result and not trace.decides:
            return function(*args, **kwargs)
        instead = "pass its result as an argument" if has_result else "return what it needs"
        raise UnsupportedOpError(
            f"{name}: cannot trace this function (it would run once, not at each call)\n"
            f"hint: call it outside, and {instead}"
        )

    refuse.__name__ = name  # (for explain())
    return refuse


def warn(
    message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **options: Any
) -> None:
    """warnings.warn, for a call by its stand-in: the warning names the line of the user's code that
    `stacklevel` counts to."""
    _warn(message, category, _with_own(stacklevel), source, **options)


_warn = warnings.warn


def _with_own(stacklevel: int) -> int:
    """The level that a frame of the user's has if those of rune_jit are counted, too. What calls
    this is called by what stands for a function of the user's code."""
    frame, level, left = sys._getframe(3), 3, stacklevel
    while left > 1 and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
        left -= not is_own_file(frame.f_code.co_filename)
    return level + max(left - 1, 0)


def _of_caller(log: Any) -> Callable[..., Any]:
    """A function of logging, for a call by its stand-in."""

    @functools.wraps(log)
    def of_caller(*args: Any, stacklevel: int = 1, **kwargs: Any) -> Any:
        return log(*args, stacklevel=_with_own(stacklevel), **kwargs)

    return of_caller


def _default_rng(seed: Any = None) -> Any:
    """The stand-in for numpy.random.default_rng."""
    if isinstance(seed, np.random.Generator):
        return seed
    return _seeded(np.random.default_rng, "numpy.random.default_rng", (seed,), {})


class _OfSeeds(Class):
    """The stand-in for a class whose objects get random numbers from the system, unless they get a
    seed."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = f"{self._real.__module__}.{self._real.__name__}"
        return _seeded(self._real, name, args, kwargs)


def _seeded(make: Callable[..., Any], name: str, args: Any, kwargs: Any) -> Any:
    """The stand-in for `make(*args, **kwargs)`, a random generator or what one is made of."""
    trace = current_trace()
    draws = None if trace is None or trace.is_segmented else trace.draws
    if draws is None or not _has_seed(args, kwargs):
        return _of_seeds(make, name)(*args, **kwargs)
    is_generator = make.__name__ in _GENERATORS
    return (draws.from_seed if is_generator else draws.seed_from_seed)(make, args, kwargs)


LOG_LEVELS = ("debug", "info", "warning", "error", "critical", "exception", "log")
# Classes of random generators; and all classes of numpy.random whose objects need a seed.
_GENERATORS = ("Generator", "Random", "RandomState", "default_rng")
_OF_SEEDS = "Generator RandomState SeedSequence MT19937 PCG64 PCG64DXSM Philox SFC64"
_SECRETS = ("choice", "randbelow", "randbits", "token_bytes", "token_hex", "token_urlsafe")
# Functions that tell about files, the process and times. (An audit event precedes what others do
# with files.)
_OF_FILES = "access getcwd getcwdb getenv getenvb lstat readlink stat times"
_OF_PATHS = "exists getatime getctime getmtime getsize isdir isfile islink lexists realpath"
_OF_TIMES = "asctime clock_gettime clock_gettime_ns ctime gmtime localtime strftime"
# Functions for NumPy's options, and those that print.
_OF_OPTIONS = "get_printoptions printoptions set_printoptions setbufsize seterrcall"
_OF_OPTIONS += " info show_config show_runtime"
_CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "thread_time")


def _impure() -> Iterator[tuple[Any, Any]]:
    """The functions that must run at each call, each with its stand-in."""
    import logging  # (not before, since it adds an exit handler)
    import random
    import secrets

    names = [f"{name}{unit}" for name in _CLOCKS for unit in ("", "_ns")]
    told = ((os, _OF_FILES), (os.path, _OF_PATHS), (time, f"{_OF_TIMES} {' '.join(names)}"))
    functions = [
        *(
            (f"{m.__name__}.{x}", getattr(m, x))
            for m, s in told
            for x in s.split()
            if hasattr(m, x)
        ),
        ("os.urandom", os.urandom),
        ("uuid.uuid1", uuid.uuid1),
        ("uuid.uuid4", uuid.uuid4),
    ]
    effects = [
        *((f"numpy.{x}", getattr(np, x)) for x in _OF_OPTIONS.split()),
        ("time.sleep", time.sleep),
        ("sys.setrecursionlimit", sys.setrecursionlimit),
        ("sys.getrecursionlimit", sys.getrecursionlimit),
        ("warnings.warn_explicit", warnings.warn_explicit),
    ]
    logs = [(name, getattr(logging, name)) for name in LOG_LEVELS]
    reports = [
        ("warnings.warn", warnings.warn, warn),
        *((f"logging.{name}", function, _of_caller(function)) for name, function in logs),
    ]
    for name, function in functions:
        yield function, _refusing(function, name)
    yield from OF_WARNINGS
    yield np.random.default_rng, _default_rng
    for name in _OF_SEEDS.split():
        yield getattr(np.random, name), _OfSeeds(getattr(np.random, name))
    yield random.Random, _OfSeeds(random.Random)
    yield random.SystemRandom, _refusing(random.SystemRandom, "random.SystemRandom")
    for name in _SECRETS:
        yield getattr(secrets, name), _refusing(getattr(secrets, name), f"secrets.{name}")
    for name, function in effects:
        yield function, _refusing(function, name, has_result=False)
    for name, function, of_caller in reports:
        yield function, _refusing(of_caller, name, has_result=False)


# The modules with such functions, and with others that have stand-ins.
IMPURE = frozenset({"random", "os", "threading", "time", "warnings", "logging", "sys", "uuid"})
IMPURE |= {"numpy.random", "weakref", "atexit", "secrets", "posixpath", "ntpath", "genericpath"}
IMPURE |= {"importlib", "numpy.testing"}


_DICT_OF_MODULE: Any = vars(types.ModuleType)["__dict__"]


class ModuleView(_Module):
    """The stand-in for a module. Its attributes are the trace's stand-ins for those of the
    module."""

    def __init__(
        self,
        module: types.ModuleType,
        read: Callable[[str], Any],
        names: dict[str, Any],
        assign: Callable[[str, Any], None] | None = None,
    ) -> None:
        """`names`: the dict with what the trace assigns."""
        # (Modules of C libraries may have no `__doc__`.)
        super().__init__(module.__name__, getattr(module, "__doc__", None))
        object.__setattr__(self, "_module", module)
        object.__setattr__(self, "_read", read)
        object.__setattr__(self, "_names", names)
        object.__setattr__(self, "_assign", assign or names.__setitem__)

    def __getattr__(self, name: str) -> Any:
        return self._read(name)

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        # That of the module, if the trace does not assign its names apart.
        is_live = self._names is vars(self._module)
        return self._names if is_live else _DICT_OF_MODULE.__get__(self)

    def __setattr__(self, name: str, value: Any) -> None:
        self._assign(name, value)

    def __dir__(self) -> list[str]:
        return dir(self._module)


ModuleView.__name__ = "module"  # as errors call it: 'module' object is not callable


class _CallableView(ModuleView):
    """The stand-in for a module whose class has a `__call__`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        trace, call = current_trace(), type(self._module).__call__
        if trace is None:
            return self._module(*args, **kwargs)  # type: ignore[operator]
        return trace.rebind(call)(self, *args, **kwargs)


def view_class(module: types.ModuleType) -> type[ModuleView]:
    call = inspect.getattr_static(type(module), "__call__", None)
    return _CallableView if isinstance(call, types.FunctionType) else ModuleView


def live_view(module: types.ModuleType, rebinder: Any) -> ModuleView:
    """The stand-in for a module whose names the trace assigns at once. After the trace it reads and
    assigns those of the module."""
    # (Where a reference to the rebinder remains, a call in segments searches for what holds it.)
    names, running_of = vars(module), weakref.ref(rebinder)

    def read(name: str) -> Any:
        value, running = getattr(module, name), running_of()
        return value if running is None else running.read(names, name, value)

    def assign(name: str, value: Any) -> None:
        if (running := running_of()) is None:
            names[name] = value
        else:
            running._assign(names, name, value)

    return view_class(module)(module, read, names, assign)


def _view_of(module: types.ModuleType) -> ModuleView:
    """The stand-in for a module of NumPy or Python."""

    def read(name: str) -> Any:
        trace, value = current_trace(), getattr(module, name)
        if trace is not None and trace.draws is not None:
            return trace.rebind.read(vars(module), name, value)
        return shuffling(value) if name == "shuffle" else _stand_in_of(value)

    return ModuleView(module, read, vars(module))


def _stand_in_of(x: Any) -> Any:
    trace = current_trace()
    if x is np.ndarray and trace is not None and trace.is_segmented:
        return x  # (the methods of NumPy's arrays do not accept the stand-in)
    return replacements().get(id(x), x)


def _of_real(ask: Callable[[Any], int]) -> Callable[[Any], int]:
    """The stand-in for `id` or `hash`. For the trace's copy of a function, it gives the result for
    the function itself."""

    def of_real(x: Any) -> int:
        rebind = getattr(current_trace(), "rebind", None)
        return ask(rebind.outside(x) if rebind and type(x) is types.FunctionType else x)

    return of_real


# The stand-ins for Python's built-in functions, by name.
BUILTINS = {"type": Type(_stand_in_of), **OF_CLASSES}
BUILTINS |= {f.__name__: _refusing(f, f.__name__) for f in (print, open, input)}
BUILTINS |= {f.__name__: _of_real(f) for f in (id, hash)}


@functools.cache
def _pairs() -> list[tuple[Any, Any]]:
    """Functions, classes and modules, each with its stand-in. (This loads numpy.random.)"""
    return [
        *_functions(np),
        *_functions(np.linalg),
        *((getattr(np.ndarray, name), stand_in) for name, stand_in in METHODS.items()),
        *_scalar_classes(),
        *_impure(),
        *math_functions.functions(),
        *bisect_functions.functions(),
        *imported.PAIRS,
        *((module, _view_of(module)) for module in (np.linalg, np.random, math, bisect)),
        *((_NUMPYS[name], stand_in) for name, stand_in in REPLACED.items()),
        (np, SHIM),
        (type, BUILTINS["type"]),
        *((f, BUILTINS[f.__name__]) for f in (print, open, input, id, hash)),
    ]


@functools.cache
def replacements() -> dict[int, Any]:
    """By id of a function, class or module: its stand-in."""
    return {id(real): stand_in for real, stand_in in _pairs()}


@functools.cache
def stand_ins() -> list[Any]:
    """The stand-ins for functions, classes and modules."""
    return list({id(x): x for _, x in _pairs()}.values())


@functools.cache
def _originals() -> dict[int, Any]:
    return {id(stand_in): real for real, stand_in in _pairs()}


# By id of a stand-in for a built-in function: the function. Other modules add theirs.
STANDING_FOR = {id(stand_in): getattr(builtins, name) for name, stand_in in OF_CLASSES.items()}


def original(x: Any) -> Any:
    """The object for which x is a stand-in, or x itself if it is none."""
    if isinstance(x, Vectorized):
        return x.real
    if isinstance(x, ModuleView):
        return x._module
    known = STANDING_FOR.get(id(x), x)
    return x._real if isinstance(x, StandIn) else _originals().get(id(x), known)
