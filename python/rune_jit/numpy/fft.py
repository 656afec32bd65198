"""The Fourier transform extension of the array API standard 2024.12. Its functions are numpy.fft's,
which run on the host."""

# mypy: disable-error-code=empty-body
from __future__ import annotations

from typing import Any, Literal

import numpy as np

from rune_jit.arrays.array import Array
from rune_jit.eager.creation import asarray as _asarray
from rune_jit.numpy.namespace import install as _install

_Norm = Literal["backward", "ortho", "forward"]


def _one_axis(
    x: Any, /, *, n: int | None = None, axis: int = -1, norm: _Norm = "backward"
) -> Array: ...
def _axes(x: Any, /, *, s: Any = None, axes: Any = None, norm: _Norm = "backward") -> Array: ...
def _shift(x: Any, /, *, axes: Any = None) -> Array: ...


fft = ifft = rfft = irfft = hfft = ihfft = _one_axis
fftn = ifftn = rfftn = irfftn = _axes
fftshift = ifftshift = _shift
_install(globals(), np.fft)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: str | None = None) -> Array:
    """numpy.fft.fftfreq, as float64 or the given dtype."""
    return _asarray(np.fft.fftfreq(n, d), dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: str | None = None) -> Array:
    """numpy.fft.rfftfreq, as float64 or the given dtype."""
    return _asarray(np.fft.rfftfreq(n, d), dtype, device=device)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
