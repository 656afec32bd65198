"""Finds NVRTC and cuBLAS, and keeps compiled CUDA code on disk. The CUDA backend calls these
functions.

NVRTC comes from a Python package (`pip install 'rune_jit[cuda]'`). So does cuBLAS, which is
optional (`pip install 'rune_jit[cublas]'`). They are found without importing NVIDIA's packages."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from rune_jit.backends import object_cache

__all__ = ["cublas_files", "nvrtc_files", "read_cache", "write_cache"]

# Folders in the namespace package `nvidia`, for CUDA 13 and for CUDA 12.
_NVRTC = ("cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.12")
_CUBLAS = ("cu13/lib/libcublas.so.13", "cublas/lib/libcublas.so.12")


def nvrtc_files() -> list[str]:
    """The files of NVRTC that Python packages installed, the newest first."""
    return _installed(_NVRTC)


def cublas_files() -> list[str]:
    """The files of cuBLAS that Python packages installed, the newest first."""
    return _installed(_CUBLAS)


def _installed(places: tuple[str, ...]) -> list[str]:
    package = importlib.util.find_spec("nvidia")
    folders = list(package.submodule_search_locations or []) if package else []
    files = [Path(folder, place) for place in places for folder in folders]
    return [str(file) for file in files if file.exists()]


def read_cache(cache_dir: str, key: str) -> bytes | None:
    """The code that was kept under this key. (The key contains everything on which the code
    depends.)"""
    return object_cache.Entry(cache_dir, "cuda", key).read()


def write_cache(cache_dir: str, key: str, code: bytes) -> None:
    object_cache.Entry(cache_dir, "cuda", key).write(code)
