"""A jitted function: its options, its surface, and what it is as a Python object. Its calls are
traced and run by running.py, which is imported at the first of them."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from rune_jit import _core, trees
from rune_jit.bound import BoundJit, found_by_name, is_pickled_by_value, signature_of
from rune_jit.calls import reloading
from rune_jit.calls.dynamic import DynamicAxes
from rune_jit.calls.options import CacheInfo, JitOptions
from rune_jit.calls.parameters import Parameters
from rune_jit.device import check_name
from rune_jit.tracing.context import running_trace

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from rune_jit.calls.lowered import Lowered
    from rune_jit.calls.running import Runner

I = TypeVar("I")  # noqa: E741
P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")


class JitFunction(_core.Dispatcher, Generic[P, R]):
    """A function that runs as compiled programs. `jit` returns it.

    Call it like the function itself: it has the function's signature, name and docstring.
    It also has the attributes that describe a function's code, such as `__code__`.
    `__wrapped__` is the function without rune_jit. As an attribute of a class it is a method. It
    can be pickled.
    """

    _fast_hits: int  # calls that ran without a Python frame; _core.Dispatcher defines it

    def __init__(self, fn: Callable[P, R], **options: Unpack[JitOptions]) -> None:
        self._wrap(fn, options)
        for other in reloading.older(self):
            other._wrap(fn, options)
            other._forget()

    def _wrap(self, fn: Callable[P, R], options: JitOptions) -> None:
        """Makes this object the result of `jit(fn, **options)`, whatever it was before."""
        device, dynamic = options["device"], options["dynamic"]
        if device is not None:
            check_name(device)
        self._options = options
        functools.update_wrapper(self, fn)
        self.__wrapped__ = fn
        self._fn = fn
        self._code = getattr(fn, "__code__", None)
        if inspect.iscoroutinefunction(fn) and sys.version_info >= (3, 12):
            inspect.markcoroutinefunction(self)
        self._name = getattr(fn, "__name__", type(fn).__name__)
        self._device = device
        self._may_run_on_numpy = device in (None, "cpu") and options["fallback"] != "error"
        parameters = Parameters(self._name, fn)
        self._bound = parameters.bind
        self._static_names = parameters.static(
            options["static_argnums"], options["static_argnames"]
        )
        parameters.at(options["donate_argnums"], "donate_argnums")  # checks them
        self._dynamic: DynamicAxes | None = None
        if dynamic is not None:
            self._dynamic = DynamicAxes(self._name, dynamic, parameters.names)
        axes = self._dynamic.by_position() if self._dynamic else []
        self._set_parameters(*parameters.keyed(self._static_names, axes), trees.describe)
        self._made: Runner | None = None
        # Names of rune_jit's attributes, which are not attributes of the function.
        self._own = vars(self).keys() - getattr(fn, "__dict__", {}).keys()

    if TYPE_CHECKING:  # _core.Dispatcher calls without a Python frame

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self: JitFunction[Concatenate[I, Q], R], instance: I, owner: type | None = None
    ) -> BoundJit[Q, R]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else BoundJit(self, instance)

    def __getattr__(self, name: str) -> Any:
        fn = vars(self).get("__wrapped__")
        if name == "__signature__" and fn is not None:
            return signature_of(fn)
        if name in _OF_FUNCTIONS and fn is not None:
            return getattr(fn, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __repr__(self) -> str:
        info = self.cache_info()
        return f"<jit {self._name}: {info.size} signatures, {info.hits} hits>"

    def __reduce__(self) -> Any:
        # A function that another process finds by its name is pickled by its name. cloudpickle does
        # not assume that the other process has run this script, so it pickles the script's
        # functions by value.
        name = getattr(self, "__qualname__", "")
        by_name = found_by_name(self.__module__, name) is self
        if by_name and not (self.__module__ == "__main__" and is_pickled_by_value()):
            return name
        return _unpickle, (self._fn, self._options)

    # Inspection.

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowered:
        """Traces the function for these arguments and lowers it for the device.

        It runs nothing, except for the operations that compute a size that depends on data.

        Returns:
            The program, to be read or compiled. If an argument is a dask array, the result is the
            plan of blocks, with `explain()` and `plan.text`.

        Raises:
            UnsupportedOpError: if the function does something that cannot be traced.
            ConcretizationError: if the function needs the value of a traced array.
            DTypeError: if the device lacks a dtype.
            Exception: whatever the function itself raises.

        Examples:
            >>> import numpy as np, rune_jit
            >>> rune_jit.jit(lambda x: x * 2).lower(np.ones(3)).cost_analysis()["kernels"]
            1.0
        """
        return self._runner.lower(args, kwargs)

    def trace(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """The graph for these arguments, before any pass. `str()` of it is its text.

        Raises:
            UnsupportedOpError: if the function does something that cannot be traced.
            ConcretizationError: if the function needs the value of a traced array.

        Examples:
            >>> import numpy as np, rune_jit
            >>> "sin" in str(rune_jit.jit(np.sin).trace(np.ones(3)))
            True
        """
        return self._runner.trace(args, kwargs)

    def cache_info(self) -> CacheInfo:
        """How many calls ran a known program, how many were traced, and how signatures run."""
        return self._runner.cache_info()

    def explain(self) -> str:
        """How calls run, and why: as a program, in segments or on NumPy.

        There is one line for each signature, and one for each loop that a trace has met: it says
        whether the loop is one of the program, or why not. (`lower(...).explain()` says what a
        program does.)

        Examples:
            >>> import numpy as np, rune_jit
            >>> f = rune_jit.jit(lambda x: x * x.sum().item())
            >>> f(np.ones(3))
            array([3., 3., 3.])
            >>> print(f.explain())  # doctest: +ELLIPSIS
            <lambda>: in segments (2 programs): item: cannot take the value of a traced array (...)
        """
        return self._runner.explain()

    def clear_cache(self) -> None:
        """Forgets all programs. The next call traces again."""
        self._forget()
        self._runner.clear()

    # Calls.

    @property
    def _runner(self) -> Runner:
        """What traces and runs calls that _core.Dispatcher does not know."""
        if self._made is None:
            self._made = _runner_class()(self)
        return self._made

    def _slow_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # _core.Dispatcher calls this if it does not know the call's program. Inside another trace
        # the function is part of the graph under construction.
        trace = running_trace()
        if trace is not None:
            return trace.rebind(self._fn)(*args, **kwargs)
        if getattr(self._fn, "__code__", None) is not self._code:  # edited: start anew
            self._forget()
            self._wrap(self._fn, self._options)
        return self._runner.call(args, kwargs)

    def _eager_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], why: str) -> Any:
        # _core.Dispatcher calls this if the call has to run on NumPy.
        return self._runner.eager_call(args, kwargs, why)


# Attributes that Python's functions have, besides those that functools.update_wrapper copies.
_OF_FUNCTIONS = ("__code__", "__defaults__", "__kwdefaults__", "__globals__", "__closure__")


@functools.cache
def _runner_class() -> type[Runner]:
    # Imported at the first call, because this loads all of tracing. Processes that only define
    # functions do not need it.
    from rune_jit.calls import running

    running.compile_loops_with(_silently)
    return running.Runner


def _silently(function: Callable[..., Any], device: str) -> JitFunction[Any, Any]:
    options = JitOptions(
        device=device,
        static_argnums=(),
        static_argnames=(),
        donate_argnums=(),
        fallback="silent",
        cache_size=256,
        dynamic=None,
    )
    return JitFunction(function, **options)


def _unpickle(function: Callable[..., Any], options: JitOptions) -> JitFunction[Any, Any]:
    return JitFunction(function, **options)
