"""Random functions that keep histories in lists, and the best of what they meet, give NumPy's
results."""

from __future__ import annotations

import pytest
from histories import history_program
from outcomes import explained

from rune_jit.calls.segmented import Trial

_CALLS = 4


def check(seed: int, device: str) -> str:
    """How the program of a seed ran. Raises AssertionError if its results differ from NumPy's."""
    options = {"device": device, "fallback": "silent"}
    return explained(history_program(seed), f"seed {seed}", _CALLS, **options)


def test_history_programs(full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)
    hows = [check(seed, "cpu") for seed in range(4000 if full else 40)]
    assert sum("as one program" in how for how in hows) > len(hows) / 3
