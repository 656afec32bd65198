"""rune_jit.Array: an array in the memory of a device, with NumPy's semantics and the Array API's.

Arrays do not change: writing to one gives it new memory, and others that shared the old one keep
their elements. What computes is NumPy itself, through its protocols: each operation runs as a
program of its own (eager.py), or as part of a traced function."""

from __future__ import annotations

import operator as op
from collections.abc import Callable
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.device import default_dtype, has_host_memory, is_dtype, to_memory
from rune_jit.errors import DTypeError
from rune_jit.shaped import Shaped
from rune_jit.trace import Trace, current_trace
from rune_jit.tracer import _BINARY, _COMPARISONS, _METHODS, _UNARY, Tracer


class Array(Shaped, _core.ArrayBase):  # type: ignore[misc]
    """An n-dimensional array on a device, from `rune_jit.asarray`, or a result of a program.

    NumPy's functions, Python's operators and the functions of `rune_jit.numpy` take it and return
    Arrays. Sources: numpy.ndarray; the Python array API standard 2024.12.
    """

    __slots__ = ("__weakref__",)
    _memory: Any  # of ArrayBase: a numpy.ndarray, or a _core.DeviceMemory
    _device: str
    __array_priority__ = 900
    __hash__ = None  # type: ignore[assignment]

    # What is known without the elements.

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._memory.dtype  # type: ignore[no-any-return]

    @property
    def shape(self) -> tuple[int, ...]:
        return self._memory.shape  # type: ignore[no-any-return]

    @property
    def device(self) -> str:
        """The name of the device: "cpu", "metal" ..."""
        return self._device

    @property
    def T(self) -> Any:
        return np.transpose(self)

    @property
    def mT(self) -> Any:
        return np.matrix_transpose(self)

    @property
    def real(self) -> Any:
        return np.real(self)

    @property
    def imag(self) -> Any:
        return np.imag(self)

    def __contains__(self, x: Any) -> bool:
        return bool((self == x).any())

    # The elements.

    def _values(self, what: str) -> np.ndarray:
        """The elements; raises ConcretizationError while a function is traced, whose program would
        keep the values that it meets."""
        trace = current_trace()
        if trace is not None:
            trace.stand_in(self)._concretization(
                what, "pass the array as an argument, or take its values outside the function"
            )
        return to_host(self)

    def block_until_ready(self) -> Array:
        """Waits until the elements are there; raises what the computation of them met."""
        _core.synchronize(self.device)
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        view = self._values("numpy.asarray")[...]
        view.flags.writeable = False
        return np.array(view, dtype, copy=copy)

    def item(self, *args: Any) -> Any:
        return self._values("item").item(*args)

    def tolist(self) -> Any:
        return self._values("tolist").tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        return self._values("tobytes").tobytes(order)

    def __bool__(self) -> bool:
        return bool(self._values("bool"))

    def __int__(self) -> int:
        return int(self._values("int"))

    def __float__(self) -> float:
        return float(self._values("float"))

    def __complex__(self) -> complex:
        return complex(self._values("complex"))

    def __index__(self) -> int:
        return op.index(self._values("index"))

    def __repr__(self) -> str:
        return "Array" + np.array_repr(to_host(self)).removeprefix("array")

    def __str__(self) -> str:
        return str(to_host(self))

    def __format__(self, spec: str) -> str:
        return format(self._values("format")[()], spec)

    # Copies and other devices.

    def copy(self, order: str = "C") -> Any:
        trace = current_trace()
        if trace is not None:
            return trace.stand_in(self).copy()
        return _core.make_array(self._memory, self._device)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def __reduce__(self) -> Any:
        return device_put, (np.ascontiguousarray(to_host(self)).reshape(self.shape), self.device)

    def to_device(self, device: str, /, *, stream: Any = None) -> Array:
        """The array on another device. Raises ValueError for a stream: devices have one each."""
        if stream is not None:
            raise ValueError(f"to_device: cannot use stream={stream!r} (devices have one each)")
        return device_put(self, device)

    def astype(self, dtype: Any, *, copy: bool = True) -> Any:
        """numpy.ndarray.astype with casting="unsafe"."""
        wanted = np.dtype(dtype)
        if wanted == self.dtype:
            return self.copy() if copy else self
        return _eager.call(_astype, (self, wanted), {})

    def flatten(self) -> Any:
        return np.ravel(self)

    def reshape(self, *shape: Any, copy: bool | None = None) -> Any:
        wanted = shape[0] if len(shape) == 1 else shape
        return np.reshape(self, wanted)

    def transpose(self, *axes: Any) -> Any:
        wanted = axes[0] if len(axes) == 1 else (axes or None)
        return np.transpose(self, wanted)

    def dot(self, other: Any) -> Any:
        return np.dot(self, other)

    def clip(self, min: Any = None, max: Any = None) -> Any:
        return np.clip(self, min, max)

    def conj(self) -> Any:
        return np.conjugate(self)

    conjugate = conj

    # Protocols.

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return array_namespace(api_version)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, Tracer) for x in (*inputs, *kwargs.get("out", ()))):
            return NotImplemented
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        return _eager.call(function, inputs, kwargs)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        if any(issubclass(kind, Tracer) for kind in types):
            return NotImplemented
        return _eager.call(func, args, kwargs)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule of the elements in host memory.

        Consumers of DLPack 1 get them read-only. Older ones, who cannot be told, get a copy, or
        with copy=False the memory itself, which they must not write to. Raises BufferError for
        dtypes that NumPy does not export (bfloat16) and devices that are not the host.
        """
        if max_version is None or max_version < (1, 0):
            host = to_host(self) if copy is False else np.array(to_host(self))
            return host.__dlpack__(dl_device=dl_device)
        return np.asarray(self).__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = np.empty(0).__dlpack_device__()
        return int(kind), int(number)

    # Indexing.

    def __getitem__(self, index: Any) -> Any:
        return _eager.getitem(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        trace = current_trace()
        if trace is not None:
            trace.stand_in(self)[index] = value
            return
        array = np.array(to_host(self))
        array[_eager.to_numpy(index)] = _eager.to_numpy(value)
        self._memory = to_memory(array, self.device)


def _astype(x: Any, dtype: np.dtype[Any]) -> Any:
    return x.astype(dtype)


def array_namespace(api_version: str | None = None) -> Any:
    """`rune_jit.numpy`. Raises ValueError for another version of the standard than it has."""
    from rune_jit import numpy as namespace

    if api_version not in (None, *namespace.SUPPORTED_VERSIONS):
        raise ValueError(
            f"__array_namespace__: cannot give version {api_version!r} of the array API standard"
            f" (the versions are {', '.join(namespace.SUPPORTED_VERSIONS)})"
        )
    return namespace


# Making Arrays.


def to_host(x: Array) -> np.ndarray:
    """The elements: the memory itself, which must not be written to, or a copy of a device's."""
    return _core.to_host(x._memory)  # type: ignore[no-any-return]


def from_numpy(array: np.ndarray, device: str | None = None) -> Array:
    """An Array on a device (default: the first), sharing the NumPy array's memory where it can.
    Raises DTypeError for dtypes without numbers."""
    if not is_dtype(array.dtype):
        native = array.dtype.newbyteorder("=")
        if not is_dtype(native):
            raise DTypeError(f"asarray: cannot hold {array.dtype} in an Array (no number)")
        array = array.astype(native)
    device = device or _core.default_device()
    return _core.make_array(to_memory(array, device), device)  # type: ignore[no-any-return]


def asarray(
    obj: Any,
    /,
    dtype: Any = None,
    *,
    device: str | None = None,
    copy: bool | None = None,
) -> Any:
    """An Array of anything that numpy.asarray takes, an Array, or what has `__dlpack__`.

    With copy=None memory is shared where it can be (of C-contiguous aligned NumPy arrays, as
    numpy.asarray does), with copy=True never; copy=False raises ValueError if sharing is not
    possible. Python's floats are float64, or float32 on a device without it. Inside a traced
    function it is a traced array. Raises DTypeError for dtypes without numbers and those that the
    device lacks.
    """
    trace = current_trace()
    if trace is not None:
        return trace_asarray(trace, obj, dtype, copy)
    if isinstance(obj, Array):
        same = (dtype is None or np.dtype(dtype) == obj.dtype) and device in (None, obj.device)
        if not same and copy is False:
            raise ValueError("asarray: cannot make an Array of another dtype or device uncopied")
        result = obj if dtype is None else obj.astype(dtype, copy=False)
        result = result if device is None else result.to_device(device)
        return result.copy() if copy and result is obj else result
    array = np.array(obj, dtype, copy=copy)
    if dtype is None and device is not None and not hasattr(obj, "dtype"):
        array = array.astype(default_dtype(device, array.dtype), copy=False)
    if copy is not False and not (array.flags.c_contiguous and array.flags.aligned):
        array = np.ascontiguousarray(array).reshape(array.shape)
    return from_numpy(array, device)


def trace_asarray(trace: Trace, obj: Any, dtype: Any, copy: bool | None) -> Any:
    from rune_jit.shim import _array, _asarray

    if isinstance(obj, Array):
        obj = trace.stand_in(obj)
    return _array(obj, dtype) if copy else _asarray(obj, dtype)


def array(obj: Any, /, dtype: Any = None, *, device: str | None = None) -> Any:
    """As asarray, with memory of its own."""
    return asarray(obj, dtype, device=device, copy=True)


def device_put(x: Any, device: str | None = None) -> Array:
    """x (anything that asarray takes) on a device; default: the first one."""
    device = device or _core.default_device()
    if not isinstance(x, Array):
        return asarray(x, device=device)  # type: ignore[no-any-return]
    if x.device == device:
        return x
    memory = x._memory
    if not (has_host_memory(x.device) and has_host_memory(device)):
        memory = to_memory(to_host(x), device)
    return _core.make_array(memory, device)  # type: ignore[no-any-return]


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Array:
    """An Array of what has `__dlpack__`, sharing its memory where it can.

    copy=True never shares; copy=False raises ValueError or BufferError if sharing is not possible.
    Raises BufferError for memory that NumPy cannot address. Source: array API standard 2024.12.
    """
    if isinstance(x, Array):
        return asarray(x, device=device, copy=copy)  # type: ignore[no-any-return]
    if x.__dlpack_device__()[0] == 1:
        array = np.from_dlpack(x, copy=copy)
    else:
        array = np.from_dlpack(x, device="cpu", copy=copy)
    return from_numpy(array, device)


# Operators and methods, of the tables that tracers have, too.

_OPERANDS = (Array, np.ndarray, np.generic, int, float, complex)


def _binary(name: str, function: Callable[..., Any], reflected: bool) -> Callable[..., Any]:
    def operator(self: Array, other: Any) -> Any:
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        return _eager.call(function, (other, self) if reflected else (self, other), {})

    operator.__name__ = name
    return operator


def _in_place(
    name: str, function: Callable[..., Any], in_trace: Callable[..., Any]
) -> Callable[..., Any]:
    def operator(self: Array, other: Any) -> Any:
        trace = current_trace()
        if trace is not None:
            in_trace(trace.stand_in(self), other)
            return self
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        result = function(self, other)
        if result.shape != self.shape:
            raise ValueError(
                f"{name}: cannot broadcast the result from {list(self.shape)} to"
                f" {list(result.shape)} (the shape of what is written to stays)"
            )
        if not np.can_cast(result.dtype, self.dtype, "same_kind"):
            raise TypeError(
                f"{name}: cannot cast the result from {result.dtype} to {self.dtype} with casting"
                " rule 'same_kind'"
            )
        self._memory = result.astype(self.dtype, copy=False)._memory
        return self

    operator.__name__ = name
    return operator


def _unary(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def operator(self: Array) -> Any:
        return _eager.call(function, (self,), {})

    operator.__name__ = name
    return operator


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def method(self: Array, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"numpy.{name} of this array."
    return method


def _set_operators() -> None:
    for name in (*_BINARY, "matmul"):
        function = getattr(op, f"__{name}__")
        setattr(Array, f"__{name}__", _binary(f"__{name}__", function, False))
        setattr(Array, f"__r{name}__", _binary(f"__r{name}__", function, True))
        in_trace = getattr(op, f"__i{name}__")
        setattr(Array, f"__i{name}__", _in_place(f"__i{name}__", function, in_trace))
    for name in _COMPARISONS:
        setattr(Array, f"__{name}__", _binary(f"__{name}__", getattr(op, f"__{name}__"), False))
    for name in _UNARY:
        setattr(Array, f"__{name}__", _unary(f"__{name}__", getattr(op, f"__{name}__")))
    for name in ("divmod", "rdivmod"):
        setattr(Array, f"__{name}__", _binary(f"__{name}__", divmod, name == "rdivmod"))
    for name in _METHODS:
        setattr(Array, name, _method(name))


def _round(self: Array, ndigits: int | None = None) -> Any:
    return np.round(self, ndigits or 0)


_set_operators()
Array.__round__ = _round

_core.set_array_class(Array)

from rune_jit import eager as _eager  # noqa: E402  (it needs Array)
