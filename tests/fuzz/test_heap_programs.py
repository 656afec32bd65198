"""Random functions with loops over heaps give Python's results, and leave heaps as Python does."""

from __future__ import annotations

import pytest
from heaps import heap_program
from outcomes import explained

from rune_jit.calls.segmented import Trial

_CALLS = 3


def check(seed: int, device: str) -> str:
    """How the program of a seed ran. Raises AssertionError if its results differ from Python's."""
    options = {"device": device, "fallback": "silent"}
    return explained(heap_program(seed), f"seed {seed}", _CALLS, **options)


def test_heap_programs(full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)
    hows = [check(seed, "cpu") for seed in range(2000 if full else 20)]
    assert sum("more of loops" in how for how in hows) > len(hows) / 4
