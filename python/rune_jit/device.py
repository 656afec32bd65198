"""The available devices, their dtypes, and memory on them."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np

from rune_jit import _core


def is_dtype(dtype: np.dtype[Any]) -> bool:
    """Whether Arrays of this dtype exist."""
    return _core.is_supported_dtype(dtype)


@functools.lru_cache
def has_host_memory(device: str) -> bool:
    """Whether a device computes on the host's memory. Raises for one that cannot run here."""
    return _core.has_host_memory(device)


def release_memory() -> None:
    """Returns the memory that devices keep for reuse to the system.

    Freed arrays keep up to RUNE_JIT_ALLOCATOR_CACHE_MIB, on the CPU for at most
    RUNE_JIT_ALLOCATOR_CACHE_SECONDS. Arrays in use stay as they are.

    >>> import rune_jit
    >>> rune_jit.release_memory()
    """
    _core.release_memory()


# Targets that compute nothing, or for tests of the compiler only.
_NOT_FOR_USE = re.compile(r"null|interpreter.*|.*-interpreted|test-.*")


def devices() -> list[str]:
    """The devices of this machine that programs can run on."""
    found = []
    for name in _core.targets():
        if _NOT_FOR_USE.fullmatch(name):
            continue
        try:
            has_host_memory(name)
        except (RuntimeError, ValueError):
            continue
        found.append(name)
    return found


def check_name(device: Any) -> None:
    """Raises TypeError or ValueError, with the names of devices, for what is none of them."""
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
    """What NumPy's default dtype is on a device: float32 where there is no float64."""
    lacks = dtype == np.float64 and not has_dtype(device, dtype)
    return np.dtype(np.float32) if lacks else dtype
