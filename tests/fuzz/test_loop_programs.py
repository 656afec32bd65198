"""Random functions with loops give NumPy's results; most of their loops are the compiled one's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from loops import loop_program
from outcomes import count_loops, is_exact, outcome, sharing

import rune_jit

_CALLS = 2


def _is_same(actual: Any, expected: Any) -> bool:
    if type(actual) is not type(expected):
        return False
    if not isinstance(expected, (np.ndarray, np.generic)):
        return bool(actual == expected)
    same_type = actual.dtype == expected.dtype and actual.shape == expected.shape
    return same_type and np.array_equal(actual, expected)


def check(seed: int, device: str) -> tuple[int, int] | None:
    """How many loops the program of a seed has, and how many became loops of the compiled one; None
    if it has no results to compare. Raises AssertionError if they differ from NumPy's."""
    program = loop_program(seed)
    function = program.function()
    jitted = rune_jit.jit(function, device=device)
    compared = 0
    for call in range(_CALLS):
        wanted, found = program.arguments(call), program.arguments(call)
        expected, actual = outcome(function, wanted), outcome(jitted, found)
        if not is_exact((expected, wanted)):
            continue
        text = f"seed {seed}, call {call}\n{program.source}\n{jitted.explain()}"
        if isinstance(expected[0], type):  # the arguments are those of a part of the function
            assert actual == expected, f"{actual!r} instead of {expected!r}\n{text}"
            continue
        compared += 1
        for a, e in zip((*actual, *found), (*expected, *wanted), strict=True):
            assert _is_same(a, e), f"{a!r} instead of {e!r}\n{text}"
        assert sharing(actual, found) == sharing(expected, wanted), f"other memory\n{text}"
    if not compared:
        return None
    return count_loops(jitted.explain())


@pytest.mark.parametrize("device", ("cpu", "interpreter"))
def test_loop_programs(device: str, full: bool) -> None:
    count = 50_000 if full else 80 if device == "cpu" else 40
    counts = [check(seed, device) for seed in range(count)]
    loops, rolled = (sum(c[i] for c in counts if c) for i in (0, 1))
    assert counts.count(None) < len(counts) / 4
    assert rolled > loops / 3, (rolled, loops)


def test_unused_loops_go_while_others_become_axes() -> None:
    """When a loop on a grid has become an axis, there may be fewer loops than were looked at."""
    check(9700871, "interpreter")


@pytest.mark.parametrize("seed", [70199, 70370])
def test_loops_apart_in_loops_apart_that_exchange_arrays(seed: int) -> None:
    """Each of them gives these arrays numbers of its own."""
    check(seed, "cpu")


def test_integers_of_nested_loops_that_depend_on_each_other() -> None:
    """Their ranges depend on each other in exponentially many ways."""
    check(1_500_200_468, "cpu")
