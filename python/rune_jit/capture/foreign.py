"""Functions of compiled libraries in a trace. Many of SciPy's public functions compute new arrays,
so the program calls them on the host, as it calls NumPy's. Other functions may keep arrays or write
to them. Only Python calls those, in segments."""

from __future__ import annotations

import builtins
import functools
import inspect
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.capture.objects import is_library, may_act_unseen
from rune_jit.capture.stand_ins import StandIn, parameters_of
from rune_jit.containers import leaves_in, replaced
from rune_jit.errors import ResultsChangedError, UnsupportedOpError
from rune_jit.rules import host
from rune_jit.rules.coercions import as_laid_out_by
from rune_jit.rules.indexing.selection import Selection
from rune_jit.rules.known import run_known
from rune_jit.tracing.context import current_trace, require_trace
from rune_jit.tracing.segments import SegmentedTrace
from rune_jit.tracing.tracer import Tracer, contains_traced, tracers_in
from rune_jit.trees import OF_GENERATORS, PLAIN, PYTHON_CLASS, attribute, package_of

# Parameters with which SciPy's functions crash if all elements are zero.
_CRASHING = ("footprint", "structure")
_PACKAGES = ("scipy.fft", "scipy.linalg", "scipy.ndimage", "scipy.signal", "scipy.spatial.distance")


def public_name(x: Any) -> str | None:
    """The public name of a function that is called on the host, as "scipy.ndimage.zoom". None if x
    is no such function."""
    module, name = attribute(x, "__module__"), attribute(x, "__name__")
    if not (isinstance(module, str) and module.startswith("scipy.") and callable(x)):
        return None
    for package in _PACKAGES:
        if module.startswith(package) and not isinstance(x, type):
            is_public = getattr(sys.modules.get(package), str(name), None) is x
            return f"{package}.{name}" if is_public else None
    return None


class OnHost(StandIn):
    """The stand-in for a function that is called on the host."""

    def __init__(self, real: Any, name: str) -> None:
        super().__init__(real)
        self._name = name
        self._function, self._pure = _callers(real, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        both: Any = (args, kwargs)
        function, trace = self._pure, current_trace()
        if any(type(x) is Selection for x in leaves_in(both)):
            if not isinstance(trace, SegmentedTrace):
                raise UnsupportedOpError(f"{self._name}: cannot trace an argument such as x[mask]")
            both = replaced(both, lambda x: x.settled() if type(x) is Selection else x)
            args, kwargs = both
        if isinstance(trace, SegmentedTrace) and tracers_in(both):
            try:
                return host.run_now(trace, function, args, kwargs)
            except ResultsChangedError:  # (then it gets the arrays themselves)
                for leaf in leaves_in(both):
                    if isinstance(leaf, Tracer) and not leaf._storage.scalar:
                        trace.expose(leaf)
                return host.run_now(trace, self._function, args, kwargs)
        if not contains_traced(args) and not contains_traced(kwargs):
            if not tracers_in(both):
                return run_known(self._function, args, kwargs)
            try:
                return run_known(function, args, kwargs)
            except ResultsChangedError as error:
                raise UnsupportedOpError(str(error)) from None
        by_name = dict(zip(parameters_of(self._real), args, strict=False)) | kwargs
        for name, x in by_name.items():
            if name in _CRASHING and contains_traced(x):
                raise UnsupportedOpError(
                    f"{self._name}: cannot trace its argument {name} (SciPy may crash with made-up"
                    " values)"
                )
        others = (host.ones, host.eye, host.various)
        results = host.call_on_host(function, args, kwargs, name=self._name, others=others)
        if any(0 in np.shape(x) for x in leaves_in(results)):
            # The function may search for things, such as peaks. It has found none in the example
            # values, but may find some in others.
            raise UnsupportedOpError(f"{self._name}: cannot trace a result without elements")
        return as_laid_out_by(function, args, kwargs, results)


def is_compiled(x: Any) -> bool:
    """Whether x is a function of an extension module that is neither Python's nor NumPy's, or a
    function of numpy.testing that compares arrays. (It knows arrays by their class.)"""
    if isinstance(x, types.FunctionType):
        of_testing = str(x.__module__).startswith("numpy.testing.")
        return of_testing and not x.__code__.co_flags & inspect.CO_VARARGS  # (not assert_raises)
    if type(x).__name__ == _OF_F2PY:
        return True
    if type(x).__name__ == "GUFunc":  # (numba's; dynamic if it has no declared types)
        return bool(x.is_dynamic)
    if not isinstance(x, types.BuiltinFunctionType) and type(x).__name__ not in _COMPILED:
        return False
    module = module_of(x)
    return isinstance(module, str) and not is_library(module)


def module_of(x: Any) -> Any:
    """The name of the module of a compiled function, or of the class of a method. Empty if it is
    not known."""
    owner, name = attribute(x, "__self__"), attribute(x, "__module__")
    if isinstance(owner, types.ModuleType):
        return owner.__name__
    if owner is not None and name is None:
        kind: Any = owner if isinstance(owner, type) else type(owner)
        kind = next((base for base in kind.__mro__ if x.__name__ in vars(base)), kind)
        # (Classes of extension modules may be without a module, as SciPy's SuperLU.)
        return "" if kind.__module__ == "builtins" and kind not in _PYTHONS else kind.__module__
    is_unknown = owner is name is None and "." not in attribute(x, "__qualname__", ".")
    return "" if is_unknown else name


@functools.cache
def has_stand_in(kind: type) -> bool:
    """Whether functions or classes of this type may have stand-ins."""
    return kind in _FUNCTIONS or kind.__name__ in (*_COMPILED, _OF_F2PY)


def is_of_compiler(kind: type) -> bool:
    """Whether a class belongs to a package that compiles functions. Such functions never get traced
    arrays, so neither do the methods of its classes."""
    return package_of(kind) in _COMPILERS


# Packages that compile functions at run time.
_COMPILERS = ("numba",)
# The types of functions that Cython and numba compile.
_OF_CYTHON = ("cython_function_or_method", "fused_cython_function")
_COMPILED = (*_OF_CYTHON, "CPUDispatcher", "StencilFunc")
_OF_F2PY = "fortran"
# Python's own classes, which have methods in C.
_PYTHONS = {x for held in (builtins, types) for x in vars(held).values() if isinstance(x, type)} | {
    *map(type, ({}.keys(), {}.values(), {}.items()))
}
_OF_NDARRAY = (types.MethodDescriptorType, types.WrapperDescriptorType)
_FUNCTIONS = (
    *(types.FunctionType, types.BuiltinFunctionType, np.ufunc, type(np.sum), type),
    *_OF_NDARRAY,
)
_DATA = (np.ndarray, np.generic, Tracer, *PLAIN)


_OWN = ("_real", "__module__", "__doc__")  # attributes of the stand-in itself


class Compiled(StandIn):
    """The stand-in for a function that is called at once, with NumPy's arrays."""

    def __setattr__(self, name: str, value: Any) -> None:
        trace = current_trace()
        if name in _OWN and name not in vars(self):
            object.__setattr__(self, name, value)
        elif trace is None or isinstance(trace, SegmentedTrace):
            setattr(self._real, name, value if trace is None else in_memory(trace, value))
        else:
            raise UnsupportedOpError(
                f"{type(self._real).__name__}: cannot trace an assignment to its attribute {name!r}"
            )

    def __getitem__(self, types: Any) -> Compiled:  # (of Cython's fused functions)
        return Compiled(self._real[types])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        both: Any = (args, kwargs)
        is_traced = any(type(x) in (Tracer, Selection) for x in leaves_in(both))
        # (NumPy may call a function that outlives its trace.)
        if not is_traced and current_trace() is None:
            return self._real(*args, **kwargs)
        trace = require_trace()
        may_act = may_act_unseen(module_of(self._real))
        if (is_traced or may_act) and not isinstance(trace, SegmentedTrace):
            name = getattr(self._real, "__name__", type(self._real).__name__)
            what = (
                "numpy.testing" if isinstance(self._real, types.FunctionType) else "compiled code"
            )
            raise UnsupportedOpError(f"{name}: cannot trace {what}\nhint: call it outside")
        if not isinstance(trace, SegmentedTrace):
            return self._real(*args, **kwargs)
        if is_traced:
            args, kwargs = in_memory(trace, args), in_memory(trace, kwargs)
            result = trace.run_now(self._real, args, kwargs)
        else:
            result = self._real(*args, **kwargs)
        if not trace.done:
            for x in leaves_in(result):
                if not isinstance(x, _DATA):
                    trace.give_up(f"the methods of a {type(x).__name__} take NumPy's arrays only")
        return result


def method_in_c(method: Any) -> Any:
    """The object to call for a method in C. Those of extension modules get NumPy's arrays."""
    if type(method.__self__) in _PYTHONS or current_trace() is None:
        return method
    function = method.__func__ if type(method) is types.MethodType else method  # (Cython's)
    return Compiled(method) if is_compiled(function) else method


def shuffling(method: Any) -> Any:
    """The object to call for a method with the name `shuffle`. In segments, a generator's gets
    NumPy's arrays, because it would read and write each item of a traced one."""
    is_segmented = isinstance(current_trace(), SegmentedTrace)
    is_of_generator = type(attribute(method, "__self__")).__module__ in OF_GENERATORS
    return Compiled(method) if is_segmented and is_of_generator else method


def in_memory(trace: SegmentedTrace, x: Any) -> Any:
    """x with NumPy's arrays and numbers in place of traced ones. Lists and dicts are changed in
    place, since a function may change them as well."""
    if type(x) is Selection:
        x = x.settled()
    if type(x) is Tracer:
        if x._storage.scalar:
            return x._element("number")
        trace.expose(x)
        return x._array()
    if type(x) is tuple:
        items = tuple(in_memory(trace, item) for item in x)
        return x if all(map(operator.is_, items, x)) else items
    if type(x) in (list, dict):
        for key, item in list(x.items() if type(x) is dict else enumerate(x)):
            new = in_memory(trace, item)
            if new is not item:
                x[key] = new
    return x


@functools.cache
def _callers(
    function: Callable[..., Any], name: str
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """What calls a function apart, and what calls it with copies. (All traces have the same, so
    that they know what it has answered.)"""
    apart = functools.partial(_apart, function)
    return apart, functools.partial(_pure, apart, name)


def _apart(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Calls a function as if there was no trace, since it may call jitted functions. (But functions
    and objects among the arguments may use traced arrays.)"""
    if any(map(_may_use_arrays, leaves_in((args, kwargs)))) or current_trace() is None:
        return function(*args, **kwargs)
    _core.suspend_traces()
    try:
        return function(*args, **kwargs)
    finally:
        _core.resume_traces()


def _may_use_arrays(x: Any) -> bool:
    """Whether x is a function, or an object of a class that is written in Python."""
    kind: Any = type(x)
    is_object = bool(kind.__flags__ & PYTHON_CLASS) and not isinstance(x, (Tracer, np.ndarray))
    return not isinstance(x, type) and (is_object or callable(x))


def _pure(function: Callable[..., Any], name: str, /, *args: Any, **kwargs: Any) -> Any:
    """Calls a function with copies of the arrays. Raises ResultsChangedError if the function writes
    to one or returns one."""
    both: Any = (args, kwargs)
    copies = {id(x): (x.copy("K"), x) for x in leaves_in(both) if isinstance(x, np.ndarray)}
    args, kwargs = replaced(both, lambda x: copies[id(x)][0] if id(x) in copies else x)
    results = function(*args, **kwargs)
    arrays = [x for x in leaves_in(results) if isinstance(x, np.ndarray)]
    for copy, given in copies.values():
        is_written = _core.broken_guards([("content", copy, None, given)])
        if is_written or any(np.may_share_memory(copy, x) for x in arrays):
            raise ResultsChangedError(f"{name}: writes to an argument, or returns it")
    return results
