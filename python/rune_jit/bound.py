"""Jitted functions as methods of objects, and in pickles."""

from __future__ import annotations

import inspect
import sys
import types
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from rune_jit import _core

if TYPE_CHECKING:
    from rune_jit.calls.lowered import Lowered

P = ParamSpec("P")
R = TypeVar("R")


def found_by_name(module: str | None, qualname: str) -> Any:
    found = sys.modules.get(module or "")
    for name in qualname.split("."):
        found = getattr(found, name, None)
    return found


def is_pickled_by_value() -> bool:
    """Whether cloudpickle, which pickles the functions of scripts by value, calls __reduce__."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("cloudpickle"):
            return True
        frame = frame.f_back
    return False


def signature_of(function: Any) -> inspect.Signature:
    """The signature of a function. Raises AttributeError if Python does not know it."""
    try:
        return inspect.signature(function)
    except ValueError as error:
        raise AttributeError(str(error)) from None


class BoundJit(Generic[P, R]):
    # A jitted function as a method of an instance.
    __slots__ = ("__self__", "_jit")
    # The method's own documentation; a docstring here would hide it.
    __doc__ = property(lambda self: self._jit.__doc__)
    __func__ = property(lambda self: self._jit)
    __class__ = property(lambda self: types.MethodType)  # for isinstance and inspect.ismethod
    __signature__ = property(lambda self: signature_of(types.MethodType(self._jit, self.__self__)))

    def __init__(self, function: Any, instance: Any) -> None:
        self._jit = function
        self.__self__ = instance

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        # (calls/early_end.py finds the arguments in this variable.)
        every = (self.__self__, *args)
        return self._jit(*every, **kwargs)  # type: ignore[no-any-return]

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowered:
        return self._jit.lower(self.__self__, *args, **kwargs)  # type: ignore[no-any-return]

    def trace(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        return self._jit.trace(self.__self__, *args, **kwargs)

    def __reduce__(self) -> Any:
        return getattr, (self.__self__, self._jit._name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jit, name)


# Classes of functions that are bound to an object.
METHODS = (types.MethodType, BoundJit)


def method_of(function: Any, instance: Any) -> Any:
    """A function as a method of an object."""
    is_jitted = isinstance(function, _core.Dispatcher)
    return BoundJit(function, instance) if is_jitted else types.MethodType(function, instance)
