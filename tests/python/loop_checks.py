"""Compares functions with loops with NumPy, and how their loops run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from compare import assert_same

import rune_jit

ROLLED = "is a loop of the program"


def both(function: Callable[..., Any], *args: Any, ulps: float = 0) -> list[str]:
    """Compares a function's results, and what it writes to its arguments, with NumPy's; how its
    loops run, by explain()."""
    wanted, found = ([np.copy(x) if isinstance(x, np.ndarray) else x for x in args] for _ in "ab")
    jitted = rune_jit.jit(function)
    with np.errstate(all="ignore"):
        expected = function(*wanted)
        for _ in range(2):
            again = [np.copy(x) if isinstance(x, np.ndarray) else x for x in args]
            actual = jitted(*again)
            assert_same(actual, expected, ulps=ulps, scaled=True)
            assert_same(again, wanted, ulps=ulps, scaled=True)
    del found
    lines = [line.strip() for line in jitted.explain().splitlines()]
    return [line for line in lines if line.startswith("loop at")]


def rolled(function: Callable[..., Any], *args: Any, ulps: float = 0) -> None:
    """The same, and all loops are loops of the program."""
    lines = both(function, *args, ulps=ulps)
    assert lines and all(line.endswith(ROLLED) for line in lines), lines


def refused(reason: str, function: Callable[..., Any], *args: Any) -> None:
    """The same, and a loop is unrolled, for this reason."""
    lines = both(function, *args)
    assert any(reason in line for line in lines), lines
