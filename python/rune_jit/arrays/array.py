"""rune_jit.Array: an array in the memory of a device, with the semantics of NumPy and of the array
API standard.

In the host's memory an Array holds a numpy.ndarray. Slices and reshapes are views of it, and writes
are writes to it. Memory of a device never changes. A write gives the Array and its views (views.py)
new memory. Operations come from NumPy through its protocols. Outside of a trace each operation runs
as a program of its own (eager/). Inside of a trace it becomes part of the trace."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from rune_jit import _core
from rune_jit.arrays.memory import move, to_host
from rune_jit.methods import ArrayMethods
from rune_jit.tracing.context import current_trace
from rune_jit.tracing.storage import layout


class Array(ArrayMethods, _core.ArrayBase):
    """An n-dimensional array on a device. `rune_jit.asarray` and compiled programs make it.

    It has the attributes and methods of numpy.ndarray. NumPy's functions, Python's operators and
    the functions of `rune_jit.numpy` take Arrays and return Arrays. Slices, transposes and reshapes
    are views, as in NumPy.

    Sources: numpy.ndarray; the Python array API standard 2024.12.

    Examples:
        >>> import numpy as np, rune_jit
        >>> x = rune_jit.asarray(np.arange(4.0))
        >>> np.sqrt(x) + 1
        Array([1.        , 2.        , 2.41421356, 2.73205081])
        >>> x[0] = 9
        >>> x.max(), x.shape, x.device
        (Array(9.), (4,), 'cpu')
    """

    __slots__ = ("__weakref__",)
    _memory: Any  # defined by ArrayBase: a numpy.ndarray or a _core.DeviceMemory
    _device: str
    _views: Any  # defined by ArrayBase: None, or a views.Views in a device's memory
    __array_priority__ = 900
    __hash__ = None  # type: ignore[assignment]

    if TYPE_CHECKING:  # methods.py and eager/methods.py make these

        def _binary(self, other: Any, /) -> Array: ...
        def _unary(self) -> Array: ...
        def _method(self, *args: Any, **kwargs: Any) -> Array: ...
        def __getitem__(self, index: Any) -> Array: ...
        def __eq__(self, other: object) -> Array: ...  # type: ignore[override]
        def __ne__(self, other: object) -> Array: ...  # type: ignore[override]
        def __iter__(self) -> Iterator[Array]: ...
        def __divmod__(self, other: Any, /) -> tuple[Array, Array]: ...
        def __rdivmod__(self, other: Any, /) -> tuple[Array, Array]: ...
        def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Array: ...
        def nonzero(self) -> tuple[Array, ...]: ...
        def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...

        __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = _binary
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = _binary
        __rpow__ = __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = __matmul__ = _binary
        __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = __rmatmul__ = _binary
        __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = _binary
        __ipow__ = __iand__ = __ior__ = __ixor__ = __ilshift__ = __irshift__ = _binary
        __imatmul__ = __lt__ = __le__ = __gt__ = __ge__ = _binary
        __neg__ = __pos__ = __abs__ = __invert__ = _unary
        all = any = argmax = argmin = argpartition = argsort = choose = clip = conj = _method
        compress = conjugate = dot = _method
        cumprod = cumsum = diagonal = flatten = max = mean = min = prod = _method
        ravel = repeat = reshape = round = searchsorted = squeeze = std = sum = _method
        swapaxes = take = trace = transpose = var = _method

        @property
        def T(self) -> Array: ...
        @property
        def mT(self) -> Array: ...

        real: Array
        imag: Array

    # Attributes that do not need the elements.

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements: a numpy.dtype, or ml_dtypes' bfloat16."""
        return self._memory.dtype  # type: ignore[no-any-return]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of elements along each axis."""
        return self._memory.shape  # type: ignore[no-any-return]

    @property
    def device(self) -> str:
        """The name of the device: "cpu", "metal" ..."""
        return self._device

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes from one element to the next along each axis, in NumPy's layout."""
        return self._laid_out().strides

    @property
    def flags(self) -> Any:
        """numpy.ndarray.flags. In a device's memory, the flags of NumPy's array with this
        layout."""
        return self._laid_out().flags

    def _laid_out(self) -> np.ndarray:
        """NumPy's array. In a device's memory, an array with the layout of NumPy's, whose elements
        must not be read or written."""
        if isinstance(self._memory, np.ndarray):
            return self._memory
        if self._views is not None:
            return self._views.laid_out(self)  # type: ignore[no-any-return]
        return layout(self.shape, self.dtype, ())

    def __contains__(self, x: Any) -> bool:
        return bool((self == x).any())

    # The elements.

    def _values(self, what: str) -> np.ndarray:
        """The elements. Raises ConcretizationError while a function is traced, because its program
        would contain the present values."""
        trace = current_trace()
        if trace is not None:
            trace.stand_in(self)._concretization(
                what, "pass the array as an argument, or take its values outside the function"
            )
        return to_host(self)

    def block_until_ready(self) -> Array:
        """Waits until the elements are there.

        Returns:
            The Array itself.

        Raises:
            IndexError: if the program that computed it met an index out of bounds.
            RuntimeError: if the device failed.
        """
        _core.synchronize(self.device)
        if isinstance(self._memory, _core.DeviceMemory):
            self._memory.verify()
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        values = self._values("numpy.asarray")
        if values is not self._memory:  # a copy of a device's memory; writes to it would be lost
            values.flags.writeable = False
        return np.array(values, dtype, copy=copy)

    def __repr__(self) -> str:
        return "Array" + np.array_repr(to_host(self)).removeprefix("array")

    def __str__(self) -> str:
        return str(to_host(self))

    def __format__(self, spec: str) -> str:
        return format(self._values("format")[()], spec)

    # Copies and other devices.

    def copy(self, order: str = "C") -> Array:
        """An Array with the same elements on the same device. Writes to one do not reach the other.

        Args:
            order: as for numpy.ndarray.copy, in host memory.
        """
        trace = current_trace()
        if trace is not None:
            return trace.stand_in(self).copy()  # type: ignore[no-any-return]
        memory = self._memory
        if isinstance(memory, np.ndarray):
            memory = memory.copy(order)  # type: ignore[arg-type]
        return _core.make_array(memory, self._device)  # type: ignore[no-any-return]

    def to_device(self, device: str, /, *, stream: Any = None) -> Array:
        """The array on another device.

        Args:
            device: its name.
            stream: None; devices have one stream each.

        Returns:
            The Array itself if it is on this device, otherwise a copy.

        Raises:
            ValueError: if `stream` is not None, or there is no device with this name.
            DTypeError: if the device lacks the dtype.
        """
        if stream is not None:
            raise ValueError(f"to_device: cannot use stream={stream!r} (devices have one each)")
        return move(self, device)  # type: ignore[no-any-return]

    # Protocols.

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule of the elements. It is in the device's memory if other libraries can use
        that, and otherwise in host memory.

        In a device's memory, consumers of DLPack 1 get the elements read-only. Older versions
        cannot express that. Their consumers get a copy, or with copy=False the memory itself, to
        which they must not write.

        Args:
            stream: work that the consumer puts into this stream runs after the computation of the
                elements. None is the legacy default stream. -1 means that the consumer waits
                itself.
            max_version: the newest version of DLPack that the consumer knows.
            dl_device: (1, 0) asks for host memory.
            copy: True asks for a copy, False forbids it.

        Raises:
            BufferError: for other devices, and in host memory for dtypes that NumPy does not export
                (bfloat16).

        Source: array API standard 2024.12.
        """
        own = None if isinstance(self._memory, np.ndarray) else _core.dlpack_device(self._memory)
        if own is not None and dl_device in (None, own):
            versioned = max_version is not None and max_version >= (1, 0)
            is_copied = copy or (copy is None and not versioned)
            memory = self._memory.copy() if is_copied else self._memory
            number = {None: 1, -1: None}.get(stream, stream)
            return _core.export_dlpack(memory, number, versioned)
        return to_host(self).__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's numbers for the kind of device and for the device.

        Source: array API standard 2024.12.
        """
        own = None if isinstance(self._memory, np.ndarray) else _core.dlpack_device(self._memory)
        if own is not None:
            return own
        kind, number = np.empty(0).__dlpack_device__()
        return int(kind), int(number)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the protocol. The elements must not be written to. (The protocol has a flag
        for this, but torch refuses arrays with the flag.)

        Raises AttributeError unless the elements are on a CUDA device. Source: numba's
        documentation."""
        memory = self._memory
        own = None if isinstance(memory, np.ndarray) else _core.dlpack_device(memory)
        if own is None or own[0] != _CUDA:
            raise AttributeError(f"the elements are on {self.device}, not on a CUDA device")
        # A write gives the Array other memory. The consumer keeps this memory as long as the Array
        # lives.
        weakref.finalize(self, id, memory).atexit = False
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (_core.address_of(memory), False),
            "version": 3,
            "stream": _core.stream_of(memory),
        }


_CUDA = 2  # in DLPack

_core.set_array_class(Array)
