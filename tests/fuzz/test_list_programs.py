"""Random functions with loops that append to lists give NumPy's results, also where what is
appended is the same memory as other arrays."""

from __future__ import annotations

import pytest
from lists import list_program
from outcomes import count_loops, explained

_CALLS = 2


def check(seed: int, device: str) -> tuple[int, int]:
    """How many loops the program of a seed has, and how many became loops of the compiled one.
    Raises AssertionError if its results differ from NumPy's."""
    return count_loops(explained(list_program(seed), f"seed {seed}", _CALLS, device=device))


def test_list_programs(full: bool) -> None:
    counts = [check(seed, "cpu") for seed in range(20_000 if full else 120)]
    loops, rolled = (sum(count[i] for count in counts) for i in (0, 1))
    assert rolled > loops / 3, (rolled, loops)


@pytest.mark.parametrize("seed", [405_000_264, 412_000_286])
def test_found(seed: int) -> None:
    """LLVM 22 loses masks that it spreads over AVX-512's vectors and needs as numbers, too."""
    check(seed, "cpu")
