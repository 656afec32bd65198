"""Tracer: the array that a traced function sees. It has a shape and a dtype, but no values."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from rune_jit import trace as _trace
from rune_jit.errors import ConcretizationError, TracerLeakError, UnsupportedOpError


class Tracer:
    """Stands for an array (or a Python number) in a traced function.

    Operators, methods and NumPy's functions on it build the graph; results have the shapes and
    dtypes that NumPy gives. Asking for its values (``bool``, ``float``, ``numpy.asarray`` ...) raises
    ConcretizationError.
    """

    __slots__ = ("__weakref__", "_made_at", "_trace", "_value")
    __array_priority__ = 1000

    def __init__(self, trace: _trace.Trace, value: Any) -> None:
        self._trace = trace
        self._value = value
        self._made_at = _trace.user_site()

    def _value_in(self, trace: _trace.Trace) -> Any:
        if self._trace is not trace:
            raise TracerLeakError(
                f"a traced array of {self._trace.name}, made at {self._site()}, is used "
                + ("after its trace ended" if self._trace.done else f"in the trace of {trace.name}")
                + "\nhint: return it from the function instead of storing it"
            )
        return self._value

    def _site(self) -> str:
        filename, line = self._made_at
        return f"{os.path.basename(filename)}:{line}"

    # What is known without values.

    @property
    def shape(self) -> tuple[int, ...]:
        return self._value.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._value.dtype  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for n in self.shape:
            size *= n
        return size

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def T(self) -> Tracer:
        return self.transpose()

    @property
    def mT(self) -> Tracer:
        return self.swapaxes(-1, -2)

    @property
    def real(self) -> Tracer:
        return self

    @property
    def flat(self) -> Iterator[Tracer]:
        return iter(self.ravel())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tracer]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    def __repr__(self) -> str:
        what = self._value.weak or self.dtype.name
        return f"Tracer({what}{list(self.shape)}, made at {self._site()})"

    # What needs values.

    def _concretization(self, what: str, hint: str) -> NoReturn:
        filename, line = _trace.user_site()
        raise ConcretizationError(
            f"{what}: cannot take the value of a traced array ({self.dtype.name}{list(self.shape)},"
            f" made at {self._site()})\n  at {filename}:{line}\nhint: {hint}"
        )

    def __bool__(self) -> bool:
        self._concretization(
            "bool",
            "write np.where(condition, a, b) instead of if/and/or, or pass what decides as"
            " static: jit(static_argnums=...)",
        )

    def __float__(self) -> float:
        self._concretization(
            "float", "keep it an array: x.astype(np.float64), or np functions instead of math's"
        )

    def __complex__(self) -> complex:
        self._concretization("complex", "complex numbers cannot be traced")

    def __int__(self) -> int:
        self._concretization(
            "int",
            "keep it an array: x.astype(np.int64), or pass the number as static:"
            " jit(static_argnums=...)",
        )

    def __index__(self) -> int:
        self._concretization(
            "index",
            "sizes, axes and loop bounds must be known while tracing: pass the argument as static"
            " with jit(static_argnums=...), or take it from x.shape",
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        self._concretization(
            "numpy.asarray",
            "use np.stack([...]) instead of np.array([...]), and the traced array itself instead of"
            " np.asarray(x)",
        )

    def __hash__(self) -> int:
        self._concretization("hash", "pass the argument as static: jit(static_argnums=...)")

    def item(self, *args: Any) -> Any:
        self._concretization("item", "return the array, and call item() on the result")

    def tolist(self) -> Any:
        self._concretization("tolist", "return the array, and call tolist() on the result")

    def tobytes(self, order: str = "C") -> bytes:
        self._concretization("tobytes", "return the array, and call tobytes() on the result")

    # NumPy's protocols.

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _dispatch.call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        return _dispatch.call_function(func, args, kwargs)

    def __getitem__(self, index: Any) -> Tracer:
        return _dispatch.getitem(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise UnsupportedOpError(
            "setitem: cannot trace writes to an array\n"
            "hint: write np.where(mask, new, x), or np.concatenate of the parts"
        )

    # Methods: NumPy's functions with this array first.

    def astype(
        self,
        dtype: Any,
        order: str = "K",
        casting: str = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Tracer:
        if not np.can_cast(self.dtype, dtype, casting):  # type: ignore[arg-type]
            raise TypeError(
                f"Cannot cast array data from {self.dtype!r} to {np.dtype(dtype)!r} according to"
                f" the rule '{casting}'"
            )
        trace = _trace.require_trace()
        return Tracer(trace, trace.builder.astype(trace.operand(self), dtype))

    def copy(self, order: str = "C") -> Tracer:
        return Tracer(self._trace, self._value_in(_trace.require_trace()))

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Tracer:
        wanted = shape[0] if len(shape) == 1 else shape
        return np.reshape(self, wanted, order=order)  # type: ignore[call-overload, no-any-return]

    def transpose(self, *axes: Any) -> Tracer:
        wanted = axes[0] if len(axes) == 1 else (axes or None)
        return np.transpose(self, wanted)  # type: ignore[return-value, arg-type]

    def flatten(self, order: str = "C") -> Tracer:
        return np.ravel(self, order=order)  # type: ignore[return-value, arg-type]

    def dot(self, other: Any) -> Tracer:
        return np.dot(self, other)  # type: ignore[no-any-return, arg-type]

    def clip(self, min: Any = None, max: Any = None, **kwargs: Any) -> Tracer:
        return np.clip(self, min, max, **kwargs)  # type: ignore[no-any-return, call-overload]

    def conj(self) -> Tracer:
        return np.conjugate(self)  # type: ignore[no-any-return, call-overload]

    conjugate = conj

    def is_integer(self) -> Any:
        self._concretization("is_integer", "write x == np.floor(x)")


# Methods that are NumPy's functions of the same name.
_METHODS = [
    "all",
    "any",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "diagonal",
    "max",
    "mean",
    "min",
    "nonzero",
    "prod",
    "ptp",
    "ravel",
    "repeat",
    "round",
    "searchsorted",
    "sort",
    "squeeze",
    "std",
    "sum",
    "swapaxes",
    "take",
    "trace",
    "var",
]


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def method(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"numpy.{name} of this array."
    return method


for _name in _METHODS:
    setattr(Tracer, _name, _method(_name))


# Operators: (method, ufunc). Each has a reflected form; comparisons Python mirrors itself.
_BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}
_COMPARISONS = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}
_UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}


def _binary(name: str, ufunc: str, reflected: bool) -> Callable[..., Any]:
    def operator(self: Tracer, other: Any) -> Any:
        if not _dispatch.is_operand(other):
            return NotImplemented
        operands = (other, self) if reflected else (self, other)
        return _dispatch.operator(ufunc, operands)

    operator.__name__ = name
    return operator


def _unary(name: str, ufunc: str) -> Callable[..., Any]:
    def operator(self: Tracer) -> Any:
        return _dispatch.operator(ufunc, (self,))

    operator.__name__ = name
    return operator


for _name, _ufunc in _BINARY.items():
    setattr(Tracer, f"__{_name}__", _binary(f"__{_name}__", _ufunc, False))
    setattr(Tracer, f"__r{_name}__", _binary(f"__r{_name}__", _ufunc, True))
for _name, _ufunc in _COMPARISONS.items():
    setattr(Tracer, f"__{_name}__", _binary(f"__{_name}__", _ufunc, False))
for _name, _ufunc in _UNARY.items():
    setattr(Tracer, f"__{_name}__", _unary(f"__{_name}__", _ufunc))


def _matmul(self: Tracer, other: Any) -> Any:
    return np.matmul(self, other) if _dispatch.is_operand(other) else NotImplemented  # type: ignore[arg-type]


def _rmatmul(self: Tracer, other: Any) -> Any:
    return np.matmul(other, self) if _dispatch.is_operand(other) else NotImplemented  # type: ignore[arg-type]


def _divmod(self: Tracer, other: Any) -> Any:
    return self // other, self % other  # type: ignore[operator]


def _rdivmod(self: Tracer, other: Any) -> Any:
    return other // self, other % self


def _round(self: Tracer, ndigits: int | None = None) -> Any:
    return np.round(self, ndigits or 0)  # type: ignore[call-overload]


Tracer.__matmul__ = _matmul  # type: ignore[attr-defined]
Tracer.__rmatmul__ = _rmatmul  # type: ignore[attr-defined]
Tracer.__divmod__ = _divmod  # type: ignore[attr-defined]
Tracer.__rdivmod__ = _rdivmod  # type: ignore[attr-defined]
Tracer.__round__ = _round  # type: ignore[attr-defined]

from rune_jit import numpy_dispatch as _dispatch  # noqa: E402  (needs Tracer)
