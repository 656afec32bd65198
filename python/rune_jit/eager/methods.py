"""Installs NumPy's protocols and Python's operators on Arrays. Outside of a trace an operation
runs as a program of its own (operations.py); inside it becomes part of the trace."""

from __future__ import annotations

import operator as op
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit.arrays.array import Array
from rune_jit.arrays.conversion import to_numpy
from rune_jit.arrays.memory import to_host, to_memory
from rune_jit.eager import operations
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
    """x op= other: x gets new memory."""
    trace = current_trace()
    if trace is not None:
        getattr(op, f"__i{name}__")(trace.stand_in(x), other)
        return x
    result = operations.call(_OPERATORS[name], (x, other), {})
    if result.shape != x.shape:
        raise ValueError(
            f"__i{name}__: cannot broadcast the result from {list(x.shape)} to"
            f" {list(result.shape)} (the shape of what is written to stays)"
        )
    if not np.can_cast(result.dtype, x.dtype, "same_kind"):
        raise TypeError(
            f"__i{name}__: cannot cast the result from {result.dtype} to {x.dtype} with casting"
            " rule 'same_kind'"
        )
    x._memory = result.astype(x.dtype, copy=False)._memory
    return x


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


def _astype(
    self: Array,
    dtype: Any,
    order: str = "K",
    casting: Any = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> Any:
    """numpy.ndarray.astype; Arrays are in C order always."""
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
    array = np.array(to_host(self))
    array[to_numpy(index)] = to_numpy(value)
    self._memory = to_memory(array, self.device)


def _cast(x: Any, dtype: np.dtype[Any]) -> Any:
    return x.astype(dtype)


for _name, _method in {
    "__array_ufunc__": _array_ufunc,
    "__array_function__": _array_function,
    "__getitem__": operations.getitem,
    "__setitem__": _setitem,
    "astype": _astype,
}.items():
    setattr(Array, _name, _method)
install_operators(Array, _is_operand, _operation, _apply_in_place)
