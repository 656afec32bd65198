"""The result of `rune_jit.numpy.__array_namespace_info__()`."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.device import default_dtype, has_dtype
from rune_jit.device import devices as _devices
from rune_jit.numpy.dtypes import DTYPES

_KINDS = ("bool", "signed integer", "unsigned integer", "real floating", "complex floating")
# NumPy's dtypes for Python's numbers.
_DEFAULTS = {
    "real floating": "float64",
    "complex floating": "complex128",
    "integral": "int64",
    "indexing": "int64",
}


class Info:
    """The inspection API of the array API standard 2024.12."""

    def capabilities(self) -> dict[str, Any]:
        """The capabilities. (Masks as indices and shapes that depend on data are possible only
        outside of `rune_jit.jit`.)"""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        return _core.default_device()

    def devices(self) -> list[str]:
        return _devices()

    def default_dtypes(self, *, device: str | None = None) -> dict[str, np.dtype[Any]]:
        device = device or self.default_device()
        return {kind: default_dtype(device, np.dtype(name)) for kind, name in _DEFAULTS.items()}

    def dtypes(
        self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype[Any]]:
        """The standard's dtypes of the given kinds that Arrays on a device may have."""
        device = device or self.default_device()
        wanted = _KINDS if kind is None else kind
        return {
            name: np.dtype(name)
            for name in DTYPES
            if name not in ("bfloat16", "float16")
            and np.isdtype(np.dtype(name), wanted)
            and has_dtype(device, np.dtype(name))
        }


def __array_namespace_info__() -> Info:
    """The inspection functions, as methods of an object."""
    return Info()
