"""Executes Metal source on machines without Metal.

The text is compiled unmodified by clang against `tests/metal_emulator/msl/include/metal_stdlib`
and run on the CPU by `tests/gpu_emulator`, which checks every access of memory for bounds and
data races and every barrier for threads that do not reach it. What it needs is built once, under
`build/`.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
EMULATOR = ROOT / "tests" / "metal_emulator" / "msl"
SHARED = ROOT / "tests" / "gpu_emulator"
BUILD = Path(os.environ.get("RUNE_TEST_BUILD", ROOT / "build")) / "metal_emulator"
_ERROR_BYTES = 1 << 16
# Between buffers, so that an access behind one of them does not meet another.
_GAP = 4096


class MetalError(Exception):
    """What Metal's compiler would refuse, or what a kernel did wrong."""


def compiler() -> str:
    """clang 17 or later. Skips the test without one."""
    for name in ("clang++-19", "clang++-18", "clang++-17"):
        path = shutil.which(name)
        if path is not None:
            return path
    pytest.skip("no clang++ 17 or later on this machine to execute Metal source with")


@functools.cache
def _library() -> ctypes.CDLL:
    sources = sorted([*EMULATOR.glob("*.cpp"), *SHARED.glob("*.cpp")])
    command = [compiler(), "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    command += ["-I", str(SHARED.parent), f'-DRUNE_GPU_INCLUDE="{SHARED / "include"}"']
    key = hashlib.sha256(" ".join(command).encode())
    for path in sorted([*EMULATOR.glob("*.*"), *SHARED.glob("**/*.*")]):
        key.update(path.read_bytes())
    target = BUILD / f"libmsl_emulator-{key.hexdigest()[:16]}.so"
    if not target.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        fresh = target.with_suffix(f".{os.getpid()}")
        subprocess.run([*command, *map(str, sources), "-o", str(fresh), "-ldl"], check=True)
        fresh.rename(target)
    library = ctypes.CDLL(str(target))
    library.rune_msl_compile.restype = ctypes.c_void_p
    library.rune_msl_release.argtypes = [ctypes.c_void_p]
    return library


class Msl:
    """A compiled text. Raises MetalError with the compiler's messages."""

    def __init__(self, source: str) -> None:
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        self._core = _library()
        self._handle = self._core.rune_msl_compile(
            source.encode(),
            str(EMULATOR / "include").encode(),
            str(BUILD / "kernels").encode(),
            error,
            ctypes.c_size_t(_ERROR_BYTES),
        )
        if not self._handle:
            raise MetalError(error.value.decode())

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._core.rune_msl_release(self._handle)

    def run(
        self,
        kernel: str,
        arrays: Sequence[np.ndarray] | Mapping[int, np.ndarray],
        grid: Sequence[int],
        local: Sequence[int],
        reverse: bool = False,
    ) -> None:
        """Runs a grid of threadgroups of `local` threads; arrays (C-contiguous) by buffer index are
        read and written. Raises MetalError for what the kernel does wrong. `reverse` runs the last
        threads and threadgroups first."""
        buffers = dict(enumerate(arrays)) if not isinstance(arrays, Mapping) else dict(arrays)
        count = max(buffers, default=-1) + 1
        offsets, total = {}, _GAP
        for index, array in buffers.items():
            assert array.flags.c_contiguous, f"array {index} is not contiguous"
            offsets[index] = total
            total += -(-array.nbytes // _GAP) * _GAP + _GAP
        memory = np.zeros(total + _GAP, np.uint8)
        base = -(-memory.ctypes.data // _GAP) * _GAP - memory.ctypes.data
        pointers, sizes = (ctypes.c_void_p * count)(), (ctypes.c_size_t * count)()
        places = {}
        for index, array in buffers.items():
            begin = base + offsets[index]
            places[index] = memory[begin : begin + array.nbytes]
            places[index][:] = array.reshape(-1).view(np.uint8)
            pointers[index], sizes[index] = memory.ctypes.data + begin, array.nbytes
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        failed = self._core.rune_msl_run(
            ctypes.c_void_p(self._handle), kernel.encode(), pointers, sizes, ctypes.c_size_t(count),
            (ctypes.c_uint * 3)(*_three(grid)), (ctypes.c_uint * 3)(*_three(local)),
            int(reverse), error, ctypes.c_size_t(_ERROR_BYTES),
        )  # fmt: skip
        if failed:
            raise MetalError(error.value.decode())
        for index, array in buffers.items():
            if array.flags.writeable:
                array.reshape(-1).view(np.uint8)[:] = places[index]


def _three(sizes: Sequence[int]) -> list[int]:
    return [*sizes, 1, 1, 1][:3]


@functools.lru_cache(maxsize=256)
def compile_msl(source: str) -> Msl:
    return Msl(source)


def run_msl(
    source: str,
    kernel: str,
    arrays: Sequence[np.ndarray] | Mapping[int, np.ndarray],
    grid: Sequence[int],
    local: Sequence[int],
    reverse: bool = False,
) -> None:
    """Compiles and runs one kernel; see Msl.run."""
    compile_msl(source).run(kernel, arrays, grid, local, reverse)
