"""Random functions whose loops carry numbers of mixed types and exchange arrays give NumPy's
results, with the same types and the same arrays shared."""

from __future__ import annotations

import pytest
from exchanges import exchange_program
from outcomes import difference_of, is_exact, outcome, sharing

import rune_jit
from rune_jit.calls.segmented import Trial

_CALLS = 3


def check(seed: int, device: str) -> str:
    """How the program of a seed ran. Raises AssertionError if its results differ from NumPy's."""
    program = exchange_program(seed)
    function = program.function()
    jitted = rune_jit.jit(function, device=device, fallback="silent")
    for call in range(_CALLS):
        wanted, found = program.arguments(call), program.arguments(call)
        expected = outcome(function, wanted)
        if not is_exact((expected, wanted)):
            continue
        actual = outcome(jitted, found)
        how = jitted.explain()
        difference = difference_of((actual, found), (expected, wanted))
        if difference is None and sharing(actual, found) != sharing(expected, wanted):
            difference = "other memory"
        assert difference is None, (
            f"{difference}\nseed {seed}, call {call}\n{program.source}\n{how}"
        )
    return jitted.explain()


@pytest.fixture(autouse=True)
def _never_on_numpy_because_it_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)


@pytest.mark.parametrize("device", ("cpu", "interpreter"))
def test_exchange_programs(device: str, full: bool) -> None:
    ways = [check(seed, device) for seed in range(20_000 if full else 40)]
    assert sum("as one program" in way for way in ways) > len(ways) / 10
    assert sum("more of loops" in way for way in ways) > len(ways) / 10


def test_loops_apart_in_loops_apart_that_exchange_arrays() -> None:
    check(371, "cpu")
