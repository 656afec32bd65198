"""What tests of the Metal device share: its emulator's counters and faults."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune_jit
from rune_jit import _core

_LIBRARY = ctypes.CDLL(_core.__file__)
EMULATED = hasattr(_LIBRARY, "rune_metal_emulator_count")
if EMULATED:
    _LIBRARY.rune_metal_emulator_inject.argtypes = [ctypes.c_char_p, ctypes.c_long]
    _LIBRARY.rune_metal_emulator_count.restype = ctypes.c_long

AVAILABLE = EMULATED or sys.platform == "darwin"
on_metal = pytest.mark.skipif(
    not AVAILABLE, reason="neither a Mac nor a build with -DRUNE_METAL_EMULATOR=ON"
)
on_emulator = pytest.mark.skipif(not EMULATED, reason="no build with -DRUNE_METAL_EMULATOR=ON")


def inject(fault: str, value: int) -> None:
    assert _LIBRARY.rune_metal_emulator_inject(fault.encode(), value) == 1


def count(what: str) -> int:
    number = _LIBRARY.rune_metal_emulator_count(what.encode())
    assert number >= 0, what
    return int(number)


def jit(function: Callable[..., Any]) -> Any:
    return rune_jit.jit(function, device="metal", fallback="error")


def end_faults() -> None:
    """What no test may leave for the next one."""
    if EMULATED:
        for fault in (
            "fail_allocations", "fail_libraries", "fail_command_buffers", "time_outs", "lost",
            "latency_us", "empty_adoptions", "ignores_after_errors", "pipeline_us",
        ):  # fmt: skip
            inject(fault, 0)
        inject("max_threads", 1024)
        inject("simd_width", 32)
        assert count("without_pool") == 0


STEPS = 45


def chain(x: Any) -> Any:
    """A kernel a step, which needs all of the step before it."""
    for _ in range(STEPS):
        x = np.tanh(x @ x)
    return x
