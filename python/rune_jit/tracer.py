"""Tracer: the array that a traced function sees. It has a shape and a dtype, but no values.
(More than 500 lines: the methods and operators of one class.)"""

from __future__ import annotations

import dis
import operator as op
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from rune_jit import _core
from rune_jit import trace as _trace
from rune_jit.errors import ConcretizationError, TracerLeakError, UnsupportedOpError
from rune_jit.shaped import Shaped
from rune_jit.storage import Step, Storage, refuse_write_to_numpy


class Tracer(Shaped):
    """Stands for an array (or a Python number) in a traced function.

    Operators, methods and NumPy's functions on it build the graph; results have the shapes and
    dtypes that NumPy gives. Writes act as NumPy's, through views too (storage.py). Asking for
    values (``bool``, ``float``, ``numpy.asarray`` ...) raises ConcretizationError.
    """

    __slots__ = (
        "__weakref__",
        "_made_at",
        "_steps",
        "_storage",
        "_trace",
        "_type",
        "_value",
        "_version",
        "_writeable",
    )
    __array_priority__ = 1000

    def __init__(self, trace: _trace.Trace, value: Any, *, scalar: bool | None = None) -> None:
        """An array of its own with this value; 0-d ones are NumPy scalars unless told otherwise."""
        self._init(trace, Storage(value), (), value.shape, value.dtype)
        self._value, self._version = value, 0
        self._storage.scalar = value.ndim == 0 if scalar is None else scalar

    def _init(
        self,
        trace: _trace.Trace,
        storage: Storage,
        steps: tuple[Step, ...],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> None:
        self._trace = trace
        self._storage = storage
        self._steps = steps
        self._type = (tuple(shape), dtype)
        self._value, self._version = None, -1  # the value of this view in a version of the storage
        self._writeable = True
        self._made_at = _trace.user_site()

    @classmethod
    def known(cls, trace: _trace.Trace, array: np.ndarray, fill: Any = None) -> Tracer:
        """An array whose values are known until a traced value is written to it. It is not copied.
        `fill` is what all elements are, if it is known."""
        self = cls.__new__(cls)
        storage = Storage(None, array)
        storage.fill = fill
        self._init(trace, storage, (), array.shape, array.dtype)
        return self

    @classmethod
    def captured(cls, trace: _trace.Trace, array: Any) -> Tracer:
        """An array that is no argument of the traced function."""
        self = cls.__new__(cls)
        self._init(trace, Storage(captured=array), (), array.shape, array.dtype)
        self._writeable = not isinstance(array, np.ndarray) or array.flags.writeable
        return self

    def _view(self, step: Step, shape: tuple[int, ...], value: Any = None) -> Tracer:
        """A view of this array; `value` is its value now, if it is known."""
        view = Tracer.__new__(Tracer)
        view._init(self._trace, self._storage, (*self._steps, step), shape, self.dtype)
        view._writeable = self._writeable and step.kind not in ("broadcast_to", "diagonal")
        if value is not None:
            view._value, view._version = value, self._storage.version
        return view

    def _array(self) -> np.ndarray | None:
        """The array itself while its values are known: writes to it are writes to this one."""
        array = self._storage.array
        if array is not None:
            for step in self._steps:
                array = step.of_array(array)
        return array

    def _is_left_over(self) -> bool:
        """Whether this is an array made in a trace, met outside of any: it acts as NumPy's then."""
        return self._storage.array is not None and _trace.current_trace() is None

    def _check_trace(self, trace: _trace.Trace) -> None:
        """Raises TracerLeakError if the array belongs to another trace."""
        if self._trace is not trace:
            raise TracerLeakError(
                f"a traced array of {self._trace.name}, made at {self._site()}, is used "
                + ("after its trace ended" if self._trace.done else f"in the trace of {trace.name}")
                + "\nhint: return it from the function instead of storing it"
            )

    def _value_in(self, trace: _trace.Trace) -> Any:
        """The value of the array's present version."""
        self._check_trace(trace)
        if self._version != self._storage.version or self._value is None:
            value = self._storage.current(trace)
            for step in self._steps:
                value = step.of(trace.builder, value)
            self._value, self._version = value, self._storage.version
        return self._value

    def _site(self) -> str:
        filename, line = self._made_at
        return f"{os.path.basename(filename)}:{line}"

    # What is known without values.

    @property
    def shape(self) -> tuple[int, ...]:
        return self._type[0]

    @shape.setter
    def shape(self, value: Any) -> NoReturn:
        raise UnsupportedOpError("ndarray.shape: cannot trace a write to it\nhint: use reshape")

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._type[1]

    @dtype.setter
    def dtype(self, value: Any) -> NoReturn:
        raise UnsupportedOpError("ndarray.dtype: cannot trace a write to it\nhint: use astype")

    @property
    def device(self) -> str:
        """The default device: where a program runs is known when it is compiled."""
        return _core.default_device()  # type: ignore[no-any-return]

    def to_device(self, device: str, /, *, stream: Any = None) -> Tracer:
        if device == self.device and stream is None:
            return self
        raise UnsupportedOpError(
            "to_device: cannot move an array while tracing\nhint: move arguments before the call"
        )

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        from rune_jit.array import array_namespace

        return array_namespace(api_version)

    @property
    def T(self) -> Tracer:
        return self.transpose()

    @property
    def mT(self) -> Tracer:
        return self.swapaxes(-1, -2)  # type: ignore[no-any-return]

    @property
    def real(self) -> Tracer:
        return self

    @property
    def flat(self) -> Any:
        return _index_writes.Flat(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        self.flat[:] = value

    def __repr__(self) -> str:
        what = getattr(self._value, "weak", None) or self.dtype.name
        return f"Tracer({what}{list(self.shape)}, made at {self._site()})"

    # What needs values.

    def _concretization(self, what: str, hint: str) -> NoReturn:
        filename, line = _trace.user_site()
        raise ConcretizationError(
            f"{what}: cannot take the value of a traced array ({self.dtype.name}{list(self.shape)},"
            f" made at {self._site()})\n  at {filename}:{line}\nhint: {hint}"
        )

    def __bool__(self) -> bool:
        if (array := self._array()) is not None:
            return bool(array)
        _refuse_store()
        self._concretization(
            "bool",
            "write np.where(condition, a, b) instead of if/and/or, or pass what decides as"
            " static: jit(static_argnums=...)",
        )

    def __float__(self) -> float:
        if (array := self._array()) is not None:
            return float(array)
        _refuse_store()
        self._concretization(
            "float", "keep it an array: x.astype(np.float64), or np functions instead of math's"
        )

    def __complex__(self) -> complex:
        if (array := self._array()) is not None:
            return complex(array)
        _refuse_store()
        self._concretization("complex", "complex numbers cannot be traced")

    def __int__(self) -> int:
        if (array := self._array()) is not None:
            return int(array)
        _refuse_store()
        self._concretization(
            "int",
            "keep it an array: x.astype(np.int64), or pass the number as static:"
            " jit(static_argnums=...)",
        )

    def __index__(self) -> int:
        if (array := self._array()) is not None:
            return op.index(array)
        self._concretization(
            "index",
            "sizes, axes and loop bounds must be known while tracing: pass the argument as static"
            " with jit(static_argnums=...), or take it from x.shape",
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if (array := self._array()) is not None:
            return np.array(array, dtype)
        _refuse_store()
        self._concretization(
            "numpy.asarray",
            "use np.stack([...]) instead of np.array([...]), x.astype(np.float32) instead of"
            " np.float32(x), and the traced array itself instead of np.asarray(x)",
        )

    def __copy__(self) -> Tracer:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self.copy()

    def __hash__(self) -> int:
        self._concretization("hash", "pass the argument as static: jit(static_argnums=...)")

    def item(self, *args: Any) -> Any:
        if (array := self._array()) is not None:
            return array.item(*args)
        self._concretization("item", "return the array, and call item() on the result")

    def tolist(self) -> Any:
        if (array := self._array()) is not None:
            return array.tolist()
        self._concretization("tolist", "return the array, and call tolist() on the result")

    def tobytes(self, order: Any = "C") -> bytes:
        if (array := self._array()) is not None:
            return array.tobytes(order)
        self._concretization("tobytes", "return the array, and call tobytes() on the result")

    # NumPy's protocols.

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _dispatch.call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        return _dispatch.call_function(func, args, kwargs)

    def __getitem__(self, index: Any) -> Tracer:
        return _indexing.getitem(self, index)  # type: ignore[no-any-return]

    def __setitem__(self, index: Any, value: Any) -> None:
        _writes.setitem(self, index, value)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(np.ndarray, name):
            raise UnsupportedOpError(f"ndarray.{name}: cannot trace this attribute")
        raise AttributeError(f"'Tracer' object has no attribute {name!r}")

    # Methods: NumPy's functions with this array first.

    def astype(
        self,
        dtype: Any,
        order: str = "K",
        casting: str = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Tracer:
        _writes.check_casting(self.dtype, np.dtype(dtype), casting)
        if not copy and np.dtype(dtype) == self.dtype:
            return self
        if (array := self._array()) is not None:
            return _dispatch.known(array.astype(dtype))  # type: ignore[no-any-return]
        trace = _trace.require_trace()
        value = trace.builder.astype(trace.operand(self), dtype)
        result = Tracer(trace, value, scalar=self._storage.scalar)
        return _dispatch.laid_out_as(result, [self])

    def copy(self, order: str = "C") -> Tracer:
        if (array := self._array()) is not None:
            return _dispatch.known(array.copy())  # type: ignore[no-any-return]
        trace = _trace.require_trace()
        result = Tracer(trace, self._value_in(trace), scalar=self._storage.scalar)
        if order == "F" and self.ndim > 1:
            raise UnsupportedOpError("ndarray.copy: cannot trace order='F'")
        return result if order == "C" else _dispatch.laid_out_as(result, [self])

    def fill(self, value: Any) -> None:
        self[...] = value

    def view(self, *args: Any) -> Tracer:
        if args and np.dtype(args[0]) != self.dtype:
            raise UnsupportedOpError("ndarray.view: cannot trace a view as another dtype")
        return self[...]

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        np.put(self, indices, values, mode=mode)  # type: ignore[arg-type]

    def sort(self, axis: int = -1, *args: Any, **kwargs: Any) -> None:
        self[...] = np.sort(self, axis, *args, **kwargs)

    def partition(self, kth: Any, axis: int = -1, *args: Any, **kwargs: Any) -> None:
        self[...] = np.partition(self, kth, axis, *args, **kwargs)

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Tracer:
        return np.compress(condition, self, axis, out)  # type: ignore[no-any-return]

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Tracer:
        wanted = shape[0] if len(shape) == 1 else shape
        return np.reshape(self, wanted, order=order)  # type: ignore[call-overload, no-any-return]

    def transpose(self, *axes: Any) -> Tracer:
        wanted = axes[0] if len(axes) == 1 else (axes or None)
        return np.transpose(self, wanted)  # type: ignore[return-value]

    def flatten(self, order: str = "C") -> Tracer:
        return np.ravel(self, order=order).copy()  # type: ignore[call-overload, no-any-return]

    def dot(self, other: Any, out: Any = None) -> Tracer:
        return np.dot(self, other, out)  # type: ignore[no-any-return]

    def clip(self, min: Any = None, max: Any = None, out: Any = None, **kwargs: Any) -> Tracer:
        return np.clip(self, min, max, out, **kwargs)  # type: ignore[no-any-return]

    def conj(self) -> Tracer:
        return np.conjugate(self)  # type: ignore[return-value]

    conjugate = conj

    def is_integer(self) -> Any:
        self._concretization("is_integer", "write x == np.floor(x)")


# Methods that are NumPy's functions of the same name.
_METHODS = [
    "all",
    "any",
    "argmax",
    "argmin",
    "argpartition",
    "argsort",
    "choose",
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


def _in_place(name: str, ufunc: str) -> Callable[..., Any]:
    def operator(self: Tracer, other: Any) -> Any:
        if not _dispatch.is_operand(other):
            return NotImplemented
        return _writes.in_place(ufunc, self, other)

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
    setattr(Tracer, f"__i{_name}__", _in_place(f"__i{_name}__", _ufunc))
for _name, _ufunc in _COMPARISONS.items():
    setattr(Tracer, f"__{_name}__", _binary(f"__{_name}__", _ufunc, False))
for _name, _ufunc in _UNARY.items():
    setattr(Tracer, f"__{_name}__", _unary(f"__{_name}__", _ufunc))


def _matmul(self: Tracer, other: Any) -> Any:
    return np.matmul(self, other) if _dispatch.is_operand(other) else NotImplemented


def _rmatmul(self: Tracer, other: Any) -> Any:
    return np.matmul(other, self) if _dispatch.is_operand(other) else NotImplemented


def _imatmul(self: Tracer, other: Any) -> Any:
    return np.matmul(self, other, out=self)  # type: ignore[call-overload]


def _divmod(self: Tracer, other: Any) -> Any:
    return self // other, self % other


def _rdivmod(self: Tracer, other: Any) -> Any:
    return other // self, other % self


def _round(self: Tracer, ndigits: int | None = None) -> Any:
    return np.round(self, ndigits or 0)


Tracer.__matmul__ = _matmul  # type: ignore[operator]
Tracer.__rmatmul__ = _rmatmul  # type: ignore[attr-defined]
Tracer.__imatmul__ = _imatmul  # type: ignore[attr-defined]
Tracer.__divmod__ = _divmod  # type: ignore[operator]
Tracer.__rdivmod__ = _rdivmod  # type: ignore[attr-defined]
Tracer.__round__ = _round  # type: ignore[attr-defined]


_STORE = frozenset(dis.opmap[name] for name in ("STORE_SUBSCR", "STORE_SLICE") if name in dis.opmap)


def _refuse_store() -> None:
    """Raises UnsupportedOpError if the caller of the caller is about to assign to an item, as in
    `array[0] = tracer`."""
    frame = sys._getframe(2)
    if frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] in _STORE:
        refuse_write_to_numpy("setitem")


from rune_jit import index_writes as _index_writes  # noqa: E402
from rune_jit import indexing as _indexing  # noqa: E402
from rune_jit import numpy_dispatch as _dispatch  # noqa: E402  (these need Tracer)
from rune_jit import writes as _writes  # noqa: E402
