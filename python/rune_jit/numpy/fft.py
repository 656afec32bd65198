"""The Fourier transform extension of the array API standard 2024.12: numpy.fft's functions, which
run on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from rune_jit.eager.creation import asarray as _asarray
from rune_jit.numpy.namespace import make_all as _make_all

_FUNCTIONS = {
    "x, /, *, n=None, axis=-1, norm='backward'": "fft ifft rfft irfft hfft ihfft",
    "x, /, *, s=None, axes=None, norm='backward'": "fftn ifftn rfftn irfftn",
    "x, /, *, axes=None": "fftshift ifftshift",
}
globals().update(_make_all(_FUNCTIONS, np.fft, __name__))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: str | None = None) -> Any:
    """numpy.fft.fftfreq, as float64 or the given dtype."""
    return _asarray(np.fft.fftfreq(n, d), dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: str | None = None) -> Any:
    """numpy.fft.rfftfreq, as float64 or the given dtype."""
    return _asarray(np.fft.rfftfreq(n, d), dtype, device=device)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
