"""The available devices, their dtypes, their memory and their streams."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from rune_jit import _core


def is_dtype(dtype: np.dtype[Any]) -> bool:
    """Whether Arrays of this dtype exist."""
    return _core.is_supported_dtype(dtype)


@functools.lru_cache
def has_host_memory(device: str) -> bool:
    """Whether a device computes on the host's memory. Raises an error if the device cannot run
    here."""
    return _core.has_host_memory(device)


def release_memory() -> None:
    """Gives memory that is kept for reuse back to the system. Arrays in use do not change.

    The memory of freed arrays is kept for new ones: up to RUNE_JIT_ALLOCATOR_CACHE_MIB, and on the
    CPU for at most RUNE_JIT_ALLOCATOR_CACHE_SECONDS.

    Examples:
        >>> import rune_jit
        >>> rune_jit.release_memory()
    """
    _core.release_memory()


# Targets that compute nothing, or for tests of the compiler only.
_NOT_FOR_USE = re.compile(r"null|interpreter.*|.*-interpreted|test-.*")


def devices() -> list[str]:
    """The devices of this machine that programs can run on.

    Returns:
        Their names, "cpu" among them. A name is what `jit(device=...)` takes.

    Examples:
        >>> import rune_jit
        >>> "cpu" in rune_jit.devices()
        True
    """
    found = []
    for name in _core.targets():
        if _NOT_FOR_USE.fullmatch(name):
            continue
        try:
            has_host_memory(name)
        except MemoryError:  # other processes use all memory of the card
            pass
        except (RuntimeError, ValueError):
            continue
        found.append(name)
    return found


@contextmanager
def use_stream(stream: Any, device: str = "cuda") -> Iterator[None]:
    """Orders calls in a `with` block with the work that another library puts into a stream.

    Calls in the block run after the work that is in `stream` when the block begins. Work that is
    put into `stream` after the block runs after these calls. The host does not wait. (Programs run
    in a stream of their device. It waits for `stream` where the block begins, and `stream` waits
    for it where the block ends.)

    Args:
        stream: a stream of torch, CuPy or cuda.core, or a number as in DLPack: 1 is the legacy
            default stream, with which all calls are ordered anyway; 2 is the thread's default
            stream; others are handles (cudaStream_t).
        device: a device that has streams.

    Raises:
        TypeError: if `stream` is no stream.
        ValueError: if the device has no streams.

    Examples:
        >>> import rune_jit, torch  # doctest: +SKIP
        >>> s = torch.cuda.Stream()  # doctest: +SKIP
        >>> with torch.cuda.stream(s):  # doctest: +SKIP
        ...     x = torch.rand(1000, device="cuda") * 2
        ...     with rune_jit.use_stream(s):
        ...         y = torch.from_dlpack(f(rune_jit.from_dlpack(x)))
        ...     z = y + 1
    """
    check_name(device)
    number = _number_of(stream)
    _core.order_streams(device, number, False)
    try:
        yield
    finally:
        _core.order_streams(device, number, True)


def _number_of(stream: Any) -> int:
    if hasattr(stream, "__cuda_stream__"):  # (version, handle)
        stream = stream.__cuda_stream__()[1]
    for attribute in ("cuda_stream", "ptr"):  # torch's and CuPy's
        stream = getattr(stream, attribute, stream)
    if isinstance(stream, bool) or not isinstance(stream, int) or stream < 0:
        raise TypeError(f"use_stream: cannot use {stream!r} (no stream of CUDA)")
    return stream or 1  # of CUDA, 0 is the legacy default stream


def check_name(device: Any) -> None:
    """Raises TypeError or ValueError if `device` is not the name of a device. The message has the
    names."""
    if isinstance(device, str) and device.partition(":")[0] in _core.targets():
        return
    names = ", ".join(repr(name) for name in _core.targets() if not _NOT_FOR_USE.fullmatch(name))
    hint = f"hint: the devices are {names}; this machine has {', '.join(map(repr, devices()))}"
    if not isinstance(device, str):
        raise TypeError(
            f"jit: cannot use device={device!r} ({type(device).__name__}, not str)\n{hint}"
        )
    raise ValueError(f"jit: cannot use device={device!r} (there is no such device)\n{hint}")


def has_dtype(device: str, dtype: np.dtype[Any]) -> bool:
    """Whether Arrays on a device may have a dtype."""
    return _core.has_dtype(device, dtype)


def default_dtype(device: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """NumPy's default dtype on a device: float32 if the device has no float64."""
    lacks = dtype == np.float64 and not has_dtype(device, dtype)
    return np.dtype(np.float32) if lacks else dtype
