"""A just-in-time compiler for NumPy code.

import numpy as np, rune_jit

@rune_jit.jit
def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))

y = gelu(np.ones(1000))  # compiled at the first call
print(gelu.explain())    # how calls run, and why
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from rune_jit import _core
from rune_jit._core import targets
from rune_jit.arrays.array import Array
from rune_jit.calls.dynamic import Dim
from rune_jit.calls.function import JitFunction
from rune_jit.calls.jit import jit
from rune_jit.calls.lowered import Lowered
from rune_jit.calls.options import CacheInfo
from rune_jit.config import clear_cache, options, show_config
from rune_jit.device import devices, release_memory, use_stream
from rune_jit.errors import (
    ConcretizationError,
    DataDependentShapeError,
    DTypeError,
    DynamicSizeError,
    InternalError,
    JitFallbackWarning,
    ParseError,
    RuneJitError,
    SlowCompilationWarning,
    StateChangedError,
    TracerLeakError,
    UnsupportedOpError,
)
from rune_jit.methods import ArrayMethods

if TYPE_CHECKING:
    from rune_jit import ir, numpy, random
    from rune_jit.backends.calibration import calibrate
    from rune_jit.control import (
        associative_scan,
        cond,
        fori_loop,
        iterate,
        map,
        scan,
        switch,
        while_loop,
    )
    from rune_jit.eager.creation import array, asarray, device_put, from_dlpack
    from rune_jit.profiling.profile import Profile, profile
    from rune_jit.tracing.tracer import Tracer

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
    "Profile",
    "RuneJitError",
    "SlowCompilationWarning",
    "StateChangedError",
    "Tracer",
    "TracerLeakError",
    "UnsupportedOpError",
    "__version__",
    "array",
    "asarray",
    "associative_scan",
    "calibrate",
    "clear_cache",
    "cond",
    "device_put",
    "devices",
    "fori_loop",
    "from_dlpack",
    "ir",
    "iterate",
    "jit",
    "map",
    "numpy",
    "options",
    "profile",
    "random",
    "release_memory",
    "scan",
    "show_config",
    "switch",
    "targets",
    "use_stream",
    "while_loop",
]


# What is loaded at its first use: names by the module that has them.
_LATER = {
    "backends.calibration": "calibrate",
    "control": "associative_scan cond fori_loop iterate map scan switch while_loop",
    "eager.creation": "array asarray device_put from_dlpack",
    "profiling.profile": "Profile profile",
    "tracing.tracer": "Tracer",
}
_MODULE_OF = {name: module for module, names in _LATER.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in ("ir", "numpy", "random"):
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _compile_module(ir: str, names: list[str], cache: bool, cache_dir: str) -> Any:
    # Imported only here, because a process may compile nothing for the CPU.
    from rune_jit.backends import llvm

    return llvm.compile_module(ir, names, cache=cache, cache_dir=cache_dir)


def _cuda_module() -> Any:
    from rune_jit.backends import cuda

    return cuda


def _array_namespace(self: Any, *, api_version: str | None = None) -> Any:
    """The array API standard's functions for an array: `rune_jit.numpy`. Raises ValueError for
    other versions of the standard."""
    return importlib.import_module(f"{__name__}.numpy").array_namespace(
        self, api_version=api_version
    )


ArrayMethods.__array_namespace__ = _array_namespace  # type: ignore[attr-defined]
_core.set_compile_hook(_compile_module)
_core.set_cuda_module(_cuda_module)
