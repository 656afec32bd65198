"""Compares functions whose loops append to lists with NumPy, and says how the loops have run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_same
from segment_checks import outcome

import rune_jit
from rune_jit.capture.loops.apart import LoopApart


def data(k: int) -> tuple[Any, ...]:
    return (np.random.default_rng(k).normal(size=150 + k),)


@pytest.fixture(name="ran")
def loops_apart(monkeypatch):
    """How the loops that ran apart have run."""
    found: list[str] = []
    note = LoopApart._note

    def noting(self, trace, function):
        note(self, trace, function)
        found.append(function.explain())

    monkeypatch.setattr(LoopApart, "_note", noting)
    return found


def compared(
    function: Callable[..., Any], make: Callable[[int], tuple[Any, ...]] = data, calls: int = 3
) -> Any:
    """Compares calls with NumPy's: results, arguments and exceptions."""
    jitted = rune_jit.jit(function)
    for k in range(calls):
        wanted, given = make(k), make(k)
        expected, got = outcome(function, wanted, {}), outcome(jitted, given, {})
        assert_same(got, expected, ulps=16, scaled=True)
        assert_same(given, wanted, ulps=16, scaled=True)
    return jitted
