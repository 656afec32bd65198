"""rune_jit turns Python functions over NumPy arrays into fused, compiled kernels.

import numpy as np, rune_jit

@rune_jit.jit
def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))
"""

from __future__ import annotations

from typing import Any

from rune_jit import _core
from rune_jit.backends import llvm, load_ahead  # noqa: F401  (first: LLVM is loaded meanwhile)

# isort: split
from rune_jit.arrays.array import Array
from rune_jit.calls.dynamic import Dim
from rune_jit.calls.jit import CacheInfo, JitFunction, jit
from rune_jit.calls.lowered import Lowered, targets
from rune_jit.config import options, show_config
from rune_jit.device import devices
from rune_jit.eager.creation import array, asarray, device_put, from_dlpack
from rune_jit.errors import (
    ConcretizationError,
    DataDependentShapeError,
    DTypeError,
    DynamicSizeError,
    InternalError,
    JitFallbackWarning,
    ParseError,
    RuneJitError,
    StateChangedError,
    TracerLeakError,
    UnsupportedOpError,
)
from rune_jit.tracing.tracer import Tracer

# isort: split
from rune_jit import ir, numpy, random  # these need the names above

__version__: str = _core.__version__

__all__ = [
    "Array",
    "CacheInfo",
    "ConcretizationError",
    "DTypeError",
    "DataDependentShapeError",
    "Dim",
    "DynamicSizeError",
    "InternalError",
    "JitFallbackWarning",
    "JitFunction",
    "Lowered",
    "ParseError",
    "RuneJitError",
    "StateChangedError",
    "Tracer",
    "TracerLeakError",
    "UnsupportedOpError",
    "__version__",
    "array",
    "asarray",
    "device_put",
    "devices",
    "from_dlpack",
    "ir",
    "jit",
    "numpy",
    "options",
    "random",
    "show_config",
    "targets",
]


def _compile_modules(modules: list[tuple[str, list[str]]], cache: bool, cache_dir: str) -> Any:
    return llvm.compile_modules(modules, cache=cache, cache_dir=cache_dir)


if hasattr(_core, "set_compile_hook"):
    _core.set_compile_hook(_compile_modules)
