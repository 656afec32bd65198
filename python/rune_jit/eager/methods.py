"""Installs NumPy's protocols and Python's operators on Arrays. Outside of a trace an operation runs
as a program of its own (operations.py). Inside of a trace it becomes part of the trace."""

from __future__ import annotations

import operator as op
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.arrays.array import Array
from rune_jit.arrays.conversion import to_numpy
from rune_jit.arrays.memory import to_host
from rune_jit.eager import operations
from rune_jit.eager.creation import device_put
from rune_jit.methods import BINARY, COMPARISONS, UNARY, install_operators
from rune_jit.rules.writes import check_casting
from rune_jit.tracing.context import current_trace
from rune_jit.tracing.tracer import Tracer

_OPERANDS = (Array, np.ndarray, np.generic, int, float, complex, list, tuple)
_OPERATORS = {
    "divmod": divmod,
    **{name: getattr(op, f"__{name}__") for name in (*BINARY, *COMPARISONS, *UNARY, "matmul")},
}


def _is_operand(kind: type) -> bool:
    return issubclass(kind, _OPERANDS)


def _operation(name: str) -> Callable[[tuple[Any, ...]], Any]:
    function = _OPERATORS[name]
    return lambda operands: operations.call(function, operands, {})


def _apply_in_place(name: str, x: Array, other: Any) -> Any:
    """x op= other."""
    trace = current_trace()
    if trace is not None:
        getattr(op, f"__i{name}__")(trace.stand_in(x), other)
        return x
    return operations.call(getattr(op, f"__i{name}__"), (x, other), {})


def _array_ufunc(self: Array, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    if any(isinstance(x, Tracer) for x in (*inputs, *kwargs.get("out", ()))):
        return NotImplemented
    function = ufunc if method == "__call__" else getattr(ufunc, method)
    return operations.call(function, inputs, kwargs)


def _array_function(
    self: Array, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
) -> Any:
    if any(issubclass(kind, Tracer) for kind in types):
        return NotImplemented
    return operations.call(func, args, kwargs)


def _reduce(self: Array) -> Any:
    # Unpickling imports this package, and so gives Array its operators.
    return device_put, (np.ascontiguousarray(to_host(self)).reshape(self.shape), self.device)


def _astype(
    self: Array,
    dtype: Any,
    order: str = "K",
    casting: Any = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> Any:
    """numpy.ndarray.astype. The result of a cast is in C order."""
    wanted = np.dtype(dtype)
    check_casting(self.dtype, wanted, casting)
    if wanted == self.dtype:
        return self.copy() if copy else self
    return operations.call(_cast, (self, wanted), {})


def _setitem(self: Array, index: Any, value: Any) -> None:
    trace = current_trace()
    if trace is not None:
        trace.stand_in(self)[index] = value
        return
    host = to_host(self)
    host[to_numpy(index)] = to_numpy(value)
    _store(self, host)


def _store(x: Array, host: np.ndarray) -> None:
    """Copies writes to the result of to_host to the Array."""
    if host is not x._memory:  # a copy of a device's memory
        _core.write_array(x, host)


def _flat(self: Array) -> Any:
    """numpy.ndarray.flat. In a device's memory, the `flat` of a read-only copy."""
    trace = current_trace()
    array: Any = self.__array__() if trace is None else trace.stand_in(self)
    return array.flat


def _set_flat(self: Array, value: Any) -> None:
    trace = current_trace()
    if trace is not None:
        stand_in: Any = trace.stand_in(self)
        stand_in.flat = value
        return
    host = to_host(self)
    host.flat = to_numpy(value)  # type: ignore[misc]
    _store(self, host)


def _cast(x: Any, dtype: np.dtype[Any]) -> Any:
    return x.astype(dtype)


for _name, _method in {
    "__array_ufunc__": _array_ufunc,
    "__array_function__": _array_function,
    "__getitem__": operations.getitem,
    "__setitem__": _setitem,
    "__reduce__": _reduce,
    "astype": _astype,
    "flat": property(_flat, _set_flat),
}.items():
    setattr(Array, _name, _method)
install_operators(Array, _is_operand, _operation, _apply_in_place)
