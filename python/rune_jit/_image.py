"""Position-independent images of machine code, which run in a process without LLVM.

An image is one section that holds code and constants. They refer to each other only relative to
themselves, so that the bytes run wherever they are mapped. It starts with `_MAGIC` and the offset
of each function from the start, as int32.
"""

from __future__ import annotations

import ctypes
import importlib.util
import mmap
import os
import platform
import re
import struct
import sys

__all__ = ["SUPPORTED", "Image", "assembly_of_image", "host_key", "is_image", "processor"]

# Elsewhere constants are addressed by page, which is relocated when an object is linked.
SUPPORTED = sys.platform == "linux" and platform.machine() == "x86_64"

_MAGIC = b"rjimage\0"
# Patterns compile when first used: most processes find all their code in the cache.
_SECTION = r"(?m)^\s*\.section\s+\"?([\w.\-]+)"
# Directives that choose a section or make a symbol visible to others.
_DROPPED = r"(?m)^\s*\.(?:section|text|globl|file|addrsig)\b.*\n"
# What is in memory of its own, because it is written or differs by thread.
_WRITABLE = r"(?m)^\s*\.(?:data|bss|comm|lcomm|local)\b"
_READ_ONLY = (".text", ".rodata", ".note.GNU-stack")
# The lines of /proc/cpuinfo that say which instructions a processor has.
_IDENTITY = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")


def assembly_of_image(assembly: str, names: list[str]) -> str | None:
    """LLVM IR that assembles to the image of a module, as its only code; None if there is none.

    The object has relocations if the module calls what is outside of it; it is no image then.
    """
    sections = re.findall(_SECTION, assembly)
    if re.search(_WRITABLE, assembly) or not all(name.startswith(_READ_ONLY) for name in sections):
        return None
    head = [".text", ".p2align 6", "rune_jit_image:"]
    head.append(f".byte {', '.join(map(str, _MAGIC))}")
    head += [f".long {name} - rune_jit_image" for name in names]
    lines = head + re.sub(_DROPPED, "", assembly).splitlines()
    quoted = (line.replace("\\", "\\5C").replace('"', "\\22") for line in lines if line)
    return "".join(f'module asm "{line}"\n' for line in quoted)


def is_image(code: bytes) -> bool:
    return code.startswith(_MAGIC)


def host_key() -> bytes | None:
    """What machine code depends on besides its IR: the processor and the LLVM that is installed.

    None if this cannot be told without loading LLVM.
    """
    package = importlib.util.find_spec("llvmlite")
    if not SUPPORTED or package is None or package.origin is None:
        return None
    try:
        folder = os.path.dirname(package.origin)
        library = os.stat(os.path.join(folder, "binding", "libllvmlite.so"))
        key = [f"{library.st_size} {library.st_mtime_ns}"]
    except OSError:
        return None
    lines = processor()
    return "\n".join([*key, *lines]).encode() if lines else None


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
        offsets = struct.unpack_from(f"<{functions}i", code, len(_MAGIC))
        self.addresses = [address + offset for offset in offsets]
