"""Where NVRTC is installed, and compiled CUDA code on disk. The CUDA backend calls these functions.

NVRTC comes from a Python package (`pip install 'rune_jit[cuda]'`), which is found without importing
anything of NVIDIA's.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from rune_jit.backends import object_cache

__all__ = ["nvrtc_files", "read_cache", "write_cache"]

# Inside of the namespace package `nvidia`: of nvidia-cuda-nvrtc, and of nvidia-cuda-nvrtc-cu12.
_PLACES = ("cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.12")


def nvrtc_files() -> list[str]:
    """The files of NVRTC that Python packages installed, the newest first."""
    package = importlib.util.find_spec("nvidia")
    folders = list(package.submodule_search_locations or []) if package else []
    places = [Path(folder, place) for place in _PLACES for folder in folders]
    return [str(place) for place in places if place.exists()]


def read_cache(cache_dir: str, key: str) -> bytes | None:
    """The code that was kept under this key, which names all that it depends on."""
    return object_cache.Entry(cache_dir, "cuda", key).read()


def write_cache(cache_dir: str, key: str, code: bytes) -> None:
    object_cache.Entry(cache_dir, "cuda", key).write(code)
