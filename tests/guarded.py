"""Arrays whose memory ends, or begins, where memory that nobody may touch begins: an access out of
bounds ends the process, and faulthandler says where."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

#: Where an array lies in the memory that may be accessed.
PLACEMENTS = ("end", "start")
_GUARD = 1 << 20  # bytes on each side: what a wrong index may reach
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def _guarded_bytes(size: int) -> np.ndarray:
    """Whole pages that hold `size` bytes, between inaccessible ones."""
    pages = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = np.frombuffer(mmap.mmap(-1, pages + 2 * _GUARD), np.uint8)
    address = memory.ctypes.data
    for begin in (address, address + _GUARD + pages):
        if _libc.mprotect(begin, _GUARD, mmap.PROT_NONE if hasattr(mmap, "PROT_NONE") else 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    return memory[_GUARD : _GUARD + pages]


def guarded(value: Any, placement: str) -> Any:
    """A copy of an array with its strides, alignment and flags, flush against inaccessible memory
    at its end or at its start, as far as its alignment permits. What is no array, or has no
    elements, stays as it is."""
    if not isinstance(value, np.ndarray) or not value.size:
        return value
    low, high = np.lib.array_utils.byte_bounds(value)
    before = value.ctypes.data - low
    memory = _guarded_bytes(high - low + value.itemsize)
    begin = 0 if placement == "start" else memory.size - (high - low)
    # The first element's address has the same remainder as before.
    step = 1 if placement == "start" else -1
    while (memory.ctypes.data + begin + before - value.ctypes.data) % value.itemsize:
        begin += step
    source = np.ndarray(high - low, np.uint8, _bytes_at(low, high - low))
    memory[begin : begin + high - low] = source
    made = np.ndarray(value.shape, value.dtype, memory, begin + before, value.strides)
    made.flags.writeable = value.flags.writeable
    return made


def _bytes_at(address: int, size: int) -> Any:
    return (ctypes.c_uint8 * size).from_address(address)
