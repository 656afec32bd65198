"""Which devices tests run on, and what these lack.

Tests that take a device run on several. With RUNE_TEST_DEVICE=metal they run on that one instead,
and nothing else runs: a sample of them, or with --full all (see tests/conftest.py).
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

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
