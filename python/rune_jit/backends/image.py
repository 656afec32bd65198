"""Position-independent images of machine code, which run in a process without LLVM.

An image is one section that holds code and constants. They refer to each other only relative to
themselves, so that the bytes run wherever they are mapped. It starts with `MAGIC` and the offset
of each function from the start, as int32.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import mmap
import os
import platform
import struct
import sys

__all__ = ["MAGIC", "SUPPORTED", "Image", "host_key", "is_image", "library_path", "processor"]

# Elsewhere constants are addressed by page, which is relocated when an object is linked.
SUPPORTED = sys.platform == "linux" and platform.machine() == "x86_64"

MAGIC = b"rjimage\0"
# The lines of /proc/cpuinfo that say which instructions a processor has.
_IDENTITY = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")


def is_image(code: bytes) -> bool:
    return code.startswith(MAGIC)


@functools.cache
def library_path() -> str | None:
    """Where LLVM is: the library in the package llvmlite; None if that is not installed."""
    package = importlib.util.find_spec("llvmlite")
    if package is None or package.origin is None:
        return None
    names = {"darwin": "libllvmlite.dylib", "win32": "llvmlite.dll"}
    name = names.get(sys.platform, "libllvmlite.so")
    return os.path.join(os.path.dirname(package.origin), "binding", name)


@functools.cache
def host_key() -> bytes | None:
    """What machine code depends on besides its IR: the processor and the LLVM that is installed.

    None if this cannot be told without loading LLVM.
    """
    path = library_path() if SUPPORTED else None
    if path is None:
        return None
    try:
        library = os.stat(path)
        key = [f"{library.st_size} {library.st_mtime_ns}"]
    except OSError:
        return None
    lines = processor()
    return "\n".join([*key, *lines]).encode() if lines else None


@functools.cache
def processor() -> list[str] | None:
    """What the system says the first processor is; None if it does not say."""
    lines = []
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                name = line.partition(":")[0].strip()
                if name in _IDENTITY:
                    lines.append(line)
                if name == "flags":  # the last of the first processor
                    return lines
    except OSError:
        pass
    return None


class Image:
    """An image in executable memory, which is unmapped when this object dies.

    Raises OSError if the system allows no executable memory.
    """

    __slots__ = ("_memory", "_start", "addresses")

    def __init__(self, code: bytes, functions: int) -> None:
        self._memory = mmap.mmap(-1, len(code))
        self._memory.write(code)
        self._start = ctypes.c_char.from_buffer(self._memory)
        address = ctypes.addressof(self._start)
        # Never writable and executable at once.
        libc = ctypes.CDLL(None, use_errno=True)
        protect = mmap.PROT_READ | mmap.PROT_EXEC
        if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(len(code)), protect):
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        offsets = struct.unpack_from(f"<{functions}i", code, len(MAGIC))
        self.addresses = [address + offset for offset in offsets]
