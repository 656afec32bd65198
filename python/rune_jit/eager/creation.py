"""Creates Arrays from NumPy arrays, numbers, sequences and DLPack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes  # noqa: F401  (gives NumPy the name "bfloat16", for arguments `dtype`)
import numpy as np

from rune_jit import _core
from rune_jit.arrays.array import Array
from rune_jit.arrays.memory import from_numpy, move
from rune_jit.capture.creation import REPLACED
from rune_jit.device import default_dtype
from rune_jit.tracing.context import current_trace

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


def asarray(
    obj: Any,
    /,
    dtype: DTypeLike | None = None,
    *,
    device: str | None = None,
    copy: bool | None = None,
) -> Array:
    """Makes an Array of an array, a number or a nested sequence of numbers.

    Inside of a traced function the result is a traced array.

    Args:
        obj: what numpy.asarray takes, an Array, or an array of another library with `__dlpack__`.
        dtype: of the result. Default: as for numpy.asarray, but Python's floats become float32 on a
            device without float64.
        device: the device of the elements. Default: the device of `obj`, or the default device if
            `obj` has none.
        copy: None shares memory if possible, as numpy.asarray does. True always copies. False
            never copies.

    Returns:
        An Array of the same shape. If it shares memory with `obj`, writes to one change the other.

    Raises:
        ValueError: if copy=False and memory cannot be shared.
        DTypeError: if the dtype is not numeric, or the device lacks it.

            Source: array API standard 2024.12.

    Examples:
        >>> import numpy as np, rune_jit
        >>> x = rune_jit.asarray(np.arange(3.0))
        >>> (x + 1).sum()  # computed by compiled programs
        Array(6.)
    """
    trace = current_trace()
    if trace is not None:
        obj = trace.stand_in(obj) if isinstance(obj, Array) else obj
        return REPLACED["array" if copy else "asarray"](obj, dtype)  # type: ignore[no-any-return]
    if isinstance(obj, Array):
        same = (dtype is None or np.dtype(dtype) == obj.dtype) and device in (None, obj.device)
        if not same and copy is False:
            raise ValueError("asarray: cannot make an Array of another dtype or device uncopied")
        result = obj if dtype is None else obj.astype(dtype, copy=False)
        result = result if device is None else result.to_device(device)
        return result.copy() if copy and result is obj else result
    if _dlpack_kind(obj) in _SHARED_DEVICES:
        shared = from_dlpack(obj, device=device, copy=copy)
        return shared if dtype is None else shared.astype(dtype, copy=False)
    array = np.array(obj, dtype, copy=copy)
    if dtype is None and device is not None and not hasattr(obj, "dtype"):
        array = array.astype(default_dtype(device, array.dtype), copy=False)
    return from_numpy(array, device)  # type: ignore[no-any-return]


def array(obj: Any, /, dtype: DTypeLike | None = None, *, device: str | None = None) -> Array:
    """Makes an Array with memory of its own. Apart from that it is like `asarray`.

    Args:
        obj: what `asarray` takes.
        dtype: of the result. Default: as `asarray`.
        device: the device of the elements. Default: as `asarray`.

    Returns:
        An Array of the same shape that shares no memory with `obj`.

    Raises:
        DTypeError: if the dtype is not numeric, or the device lacks it.

            Source: numpy.array.

    Examples:
        >>> import numpy as np, rune_jit
        >>> original = np.zeros(2)
        >>> copied, shared = rune_jit.array(original), rune_jit.asarray(original)
        >>> original[0] = 7
        >>> copied, shared
        (Array([0., 0.]), Array([7., 0.]))
    """
    return asarray(obj, dtype, device=device, copy=True)


def device_put(x: Any, device: str | None = None) -> Array:
    """Puts an array on a device.

    Args:
        x: what `asarray` takes.
        device: the name of the device. Default: the default device of this machine.

    Returns:
        An Array of the same shape and dtype. It may share memory with `x` if `x` is there already.

    Raises:
        ValueError: if there is no device of this name.
        DTypeError: if the device lacks the dtype.

    Source: the function of this name of JAX.

    Examples:
        >>> import numpy as np, rune_jit
        >>> rune_jit.device_put(np.ones(2, np.float32), "cpu").device
        'cpu'
    """
    device = device or _core.default_device()
    return move(x, device) if isinstance(x, Array) else asarray(x, device=device)


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Array:
    """Makes an Array of another library's array, and shares its memory if possible.

    Memory on an NVIDIA card stays there: the Array's device is "cuda" or "cuda:<number>", unless
    `device` names another one. Elements that are not in C order are copied.

    Args:
        x: an array with `__dlpack__`, of NumPy, torch, JAX, CuPy or another library.
        device: the device of the elements. Default: the device of `x`.
        copy: None shares memory if possible. True always copies. False never copies.

    Returns:
        An Array of the same shape and dtype.

    Raises:
        ValueError: if copy=False and memory cannot be shared. (The other library may raise
            BufferError instead.)
        BufferError: if the memory is neither NumPy's nor on an NVIDIA card.

    Source: array API standard 2024.12.

    Examples:
        >>> import numpy as np, rune_jit
        >>> rune_jit.from_dlpack(np.arange(3))
        Array([0, 1, 2])
    """
    if isinstance(x, Array):
        return asarray(x, device=device, copy=copy)
    if _dlpack_kind(x) in _SHARED_DEVICES:
        return _from_device(x, device, copy)
    if x.__dlpack_device__()[0] == 1:
        array = np.from_dlpack(x, copy=copy)
    else:
        array = np.from_dlpack(x, device="cpu", copy=copy)
    return from_numpy(array, device)  # type: ignore[no-any-return]


# Targets, by DLPack's number of the kind of device.
_SHARED_DEVICES = {2: "cuda"}


def _dlpack_kind(x: Any) -> int | None:
    describe = getattr(x, "__dlpack_device__", None)
    return None if describe is None else int(describe()[0])


def _from_device(x: Any, device: str | None, copy: bool | None) -> Array:
    """An Array that shares the memory of another library's array on a device."""
    kind, number = x.__dlpack_device__()
    here = _SHARED_DEVICES[kind] + (f":{number}" if number else "")
    # The other library makes this device's stream wait for the computation of the elements.
    stream = _core.stream_of_device(here)
    try:
        capsule = x.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # it is older than DLPack 1
        capsule = x.__dlpack__(stream=stream)
    memory, shape, strides, first = _core.import_dlpack(capsule, here)
    result = _core.make_array(memory, here)
    target = device or here
    if strides is None and target == here:
        return _core.make_array(memory.copy(), here) if copy else result  # type: ignore[no-any-return]
    if copy is False:
        raise ValueError(f"from_dlpack: cannot share {shape} elements on {here} uncopied")
    if strides is not None:
        index = np.full(shape, first)
        for axis, (size, stride) in enumerate(zip(shape, strides, strict=True)):
            index += (np.arange(size) * stride).reshape((-1,) + (1,) * (len(shape) - axis - 1))
        result = result[index]
    return result.to_device(target)  # type: ignore[no-any-return]
