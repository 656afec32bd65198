"""The memory of Arrays: a NumPy array on the host, or memory of a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.device import has_dtype, has_host_memory, is_dtype
from rune_jit.errors import DTypeError


def to_host(x: Any) -> np.ndarray:
    """The elements: the memory itself, or a copy of a device's memory."""
    return _core.to_host(x._memory)


def from_numpy(array: np.ndarray, device: str | None = None) -> Any:
    """An Array on a device (default: the first device), which shares the NumPy array's memory if
    possible. Raises DTypeError for dtypes that are not numeric."""
    if not is_dtype(array.dtype):
        native = array.dtype.newbyteorder("=")
        if not is_dtype(native):
            raise DTypeError(
                f"asarray: cannot hold {array.dtype} in an Array (the dtype is not numeric)"
            )
        array = array.astype(native)
    device = device or _core.default_device()
    return _core.make_array(to_memory(array, device), device)


def to_memory(array: np.ndarray, device: str) -> Any:
    """The memory of an Array for a NumPy array: the array itself, or a copy on the device. Raises
    DTypeError if the device lacks the dtype."""
    if has_host_memory(device):
        return array
    if not has_dtype(device, array.dtype):
        raise DTypeError(
            f"asarray: cannot hold {array.dtype} and shape {array.shape} on {device}\n"
            "hint: convert it to a dtype that the device has, or keep it on the cpu"
        )
    return _core.DeviceMemory(array, device)


def move(x: Any, device: str) -> Any:
    """A copy of an Array on another device, or the Array itself if it is on this device."""
    if x.device == device:
        return x
    memory = x._memory
    if has_host_memory(x.device) and has_host_memory(device):
        return _core.make_array(memory.copy(), device)
    direct = isinstance(memory, _core.DeviceMemory) and not has_host_memory(device)
    memory = memory.copy_to(device) if direct else None
    if memory is None:
        memory = to_memory(to_host(x), device)
    return _core.make_array(memory, device)
