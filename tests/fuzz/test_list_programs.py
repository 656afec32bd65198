"""Random functions with loops that append to lists give NumPy's results, also where what is
appended is the same memory as other arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lists import list_program
from loops import outcome

import rune_jit

_CALLS = 2


def difference_of(actual: Any, expected: Any) -> str | None:
    """How two nested lists and tuples of arrays and numbers differ."""
    if type(actual) is not type(expected):
        return f"a {type(actual).__name__} for a {type(expected).__name__}"
    if isinstance(expected, (list, tuple)):
        if len(actual) != len(expected):
            return f"{len(actual)} items instead of {len(expected)}"
        found = (difference_of(a, e) for a, e in zip(actual, expected, strict=True))
        return next((difference for difference in found if difference), None)
    is_number = isinstance(expected, (float, np.ndarray, np.floating))
    is_same = np.array_equal(actual, expected, equal_nan=is_number)
    if isinstance(expected, (np.ndarray, np.generic)):
        is_same &= actual.dtype == expected.dtype and actual.shape == expected.shape
    return None if is_same else f"{actual!r} instead of {expected!r}"


def check(seed: int, device: str) -> tuple[int, int]:
    """How many loops the program of a seed has, and how many became loops of the compiled one.
    Raises AssertionError if its results differ from NumPy's."""
    program = list_program(seed)
    function = program.function()
    jitted = rune_jit.jit(function, device=device)
    for call in range(_CALLS):
        wanted, found = program.arguments(call), program.arguments(call)
        expected, actual = outcome(function, wanted), outcome(jitted, found)
        difference = difference_of((actual, found), (expected, wanted))
        text = f"seed {seed}, call {call}\n{program.source}\n{jitted.explain()}"
        assert difference is None, f"{difference}\n{text}"
    lines = [line for line in jitted.explain().splitlines() if line.startswith("  loop at")]
    return len(lines), sum("is a loop of the program" in line for line in lines)


def test_list_programs(full: bool) -> None:
    counts = [check(seed, "cpu") for seed in range(20_000 if full else 120)]
    loops, rolled = (sum(count[i] for count in counts) for i in (0, 1))
    assert rolled > loops / 3, (rolled, loops)


@pytest.mark.parametrize("seed", [405_000_264, 412_000_286])
def test_found(seed: int) -> None:
    """LLVM 22 loses masks that it spreads over AVX-512's vectors and needs as numbers, too."""
    check(seed, "cpu")
