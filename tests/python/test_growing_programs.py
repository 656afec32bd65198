"""Programs whose arrays grow and shrink as data decide (growing_programs.py): under jit as without
it, with few compilations however many lengths there are."""

import copy
import math

import pytest
from growing_programs import PROGRAMS
from segment_checks import check, outcome

import rune_jit
from rune_jit.calls.segmented import Segmented
from rune_jit.calls.trial import Trial
from rune_jit.rules import known
from rune_jit.tracing import programs, timed


@pytest.mark.parametrize("name", PROGRAMS)
def test_default_settings(name):
    function, arguments, _ = PROGRAMS[name]
    compare(rune_jit.jit(function), function, arguments)


@pytest.mark.parametrize(
    ("least", "interprets"), [(0, False), (40, False), (40, True), (10_000, False)]
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_compilations(name, least, interprets, monkeypatch):
    """Segments run even where NumPy would be faster, on arrays of so many elements. At most three
    of them do so much that they are compiled."""
    if not interprets:
        monkeypatch.setattr(programs, "_INTERPRETED", math.inf)
    monkeypatch.setattr(timed, "_SLOW", math.inf)
    monkeypatch.setattr(programs, "_SLOW_COMPILATION", math.inf)
    monkeypatch.setattr(Trial, "verdict", lambda self: None)
    monkeypatch.setattr(known, "WORTH_TRACING", least)
    function, arguments, most = PROGRAMS[name]
    jitted = rune_jit.jit(function)
    compare(jitted, function, arguments)
    for entry in jitted._runner.known.cache.entries():
        if isinstance(entry, Segmented):
            assert entry.runs_on_numpy is None
            assert entry.programs.compiled <= (3 if interprets else most)
            assert not entry.programs.refusals


def compare(jitted, function, arguments):
    for _ in range(3):
        ours, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
        check(outcome(jitted, ours, {}), outcome(function, theirs, {}))
        check(list(ours), list(theirs))
