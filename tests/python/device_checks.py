"""Checks that every GPU's device must pass. `jit` compiles a function for the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Jit = Callable[[Callable[..., Any]], Any]


def check_indices_out_of_range(jit: Jit) -> None:
    x, i = np.arange(5, dtype=np.float32), np.array([0, 4, -5])
    function = jit(lambda x, i: x[i] * 2)
    np.testing.assert_array_equal(function(x, i), x[i] * 2)
    with pytest.raises(IndexError):
        function(x, np.array([0, 5, 1]))
    np.testing.assert_array_equal(function(x, i), x[i] * 2)


def check_many_buffers(jit: Jit) -> None:
    """One kernel of more buffers than Metal has slots."""
    arrays = [np.full(50, i, np.float32) for i in range(70)]
    function = jit(lambda *a: (sum(x * (i + 1) for i, x in enumerate(a)), a[3] - a[69]))
    assert len(function.lower(*arrays).kernels) == 1
    got = function(*arrays)
    np.testing.assert_array_equal(got[0], sum(x * (i + 1) for i, x in enumerate(arrays)))
    np.testing.assert_array_equal(got[1], arrays[3] - arrays[69])
