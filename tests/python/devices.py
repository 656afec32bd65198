"""Which devices tests run on, and what these lack.

Tests that take a device run on several. With RUNE_TEST_DEVICE=metal they run on that one instead,
and nothing else runs: a sample of them, or with --full all (see tests/conftest.py).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune_jit

ALONE = os.environ.get("RUNE_TEST_DEVICE", "")
HAS_FLOAT64 = ALONE != "metal"
HAS_DENORMALS = ALONE != "metal"  # of float32


def devices(*usual: str) -> list[str]:
    """The devices to run on: `usual`, if no other is asked for."""
    return [ALONE] if ALONE else list(usual)


def flushed(expected: Any) -> Any:
    """The array with zeros for denormal float32, where the device flushes them."""
    if HAS_DENORMALS or expected.dtype != np.float32:
        return expected
    return np.where(
        np.abs(expected) < np.finfo(np.float32).tiny, np.copysign(0, expected), expected
    )


def run_metal(function: Callable[..., Any], *args: Any) -> Any:
    """Skips the test if the program needs float64, which Metal does not have: the error must say
    so, and the same program on the CPU must have it."""
    try:
        return rune_jit.jit(function, device="metal", fallback="error")(*args)
    except rune_jit.DTypeError as error:
        assert re.search(r"float64(.|\n)*hint: ", str(error)), error
        assert "f64" in str(rune_jit.jit(function, device="cpu").lower(*args).graph)
        pytest.skip("Metal has no float64")
