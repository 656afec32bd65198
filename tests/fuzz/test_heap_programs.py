"""Random functions with loops over heaps give Python's results, and leave heaps as Python does."""

from __future__ import annotations

import pytest
from heaps import heap_program
from loops import outcome
from test_list_programs import difference_of

import rune_jit
from rune_jit.calls.segmented import Trial

_CALLS = 3


def check(seed: int, device: str) -> str:
    """How the program of a seed ran. Raises AssertionError if its results differ from Python's."""
    program = heap_program(seed)
    function = program.function()
    jitted = rune_jit.jit(function, device=device, fallback="silent")
    for call in range(_CALLS):
        wanted, found = program.arguments(call), program.arguments(call)
        expected, actual = outcome(function, wanted), outcome(jitted, found)
        differs = difference_of((actual, found), (expected, wanted))
        text = f"seed {seed}, call {call}\n{program.source}\n{jitted.explain()}"
        assert differs is None, f"{differs}\n{text}"
    return jitted.explain()


def test_heap_programs(full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)
    hows = [check(seed, "cpu") for seed in range(2000 if full else 20)]
    assert sum("more of loops" in how for how in hows) > len(hows) / 4
