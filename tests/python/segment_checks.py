"""Compares functions that run in segments with NumPy."""

import copy
import math
import types

import numpy as np
import pytest

import rune_jit
from rune_jit.calls.segmented import Segmented
from rune_jit.calls.trial import Trial
from rune_jit.tracing import conditions, programs, timed


@pytest.fixture(autouse=True)
def never_numpy(monkeypatch):
    """Segments run compiled even where NumPy or the interpreter would do, and for conditions
    outside of loops."""
    monkeypatch.setattr(conditions, "MOST", 0)
    monkeypatch.setattr(timed, "_SLOW", math.inf)
    monkeypatch.setattr(programs, "_SLOW_COMPILATION", math.inf)
    monkeypatch.setattr(programs, "_INTERPRETED", math.inf)
    monkeypatch.setattr(Trial, "verdict", lambda self: None)


def segmented(function, *args, calls=3, **kwargs):
    """Calls a function and its jitted form with copies of the arguments; checks that results,
    errors and arguments are NumPy's. The Segmented that ran it."""
    jitted = rune_jit.jit(function)
    for _ in range(calls):
        ours, theirs = (copy.deepcopy((args, kwargs)) for _ in range(2))
        got, expected = (outcome(f, *given) for f, given in ((jitted, ours), (function, theirs)))
        check(got, expected)
        check(ours, theirs)
    (entry,) = jitted._runner.known.cache.entries()
    assert isinstance(entry, Segmented)
    assert entry.runs_on_numpy is None
    return entry


def outcome(function, args, kwargs):
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)


def check(got, expected):
    assert type(got) is type(expected), (got, expected)
    if isinstance(expected, (list, tuple)):
        assert len(got) == len(expected), (got, expected)
        for a, b in zip(got, expected, strict=True):
            check(a, b)
    elif isinstance(expected, dict):
        assert list(got) == list(expected)
        check(list(got.values()), list(expected.values()))
    elif isinstance(expected, types.SimpleNamespace):
        check(vars(got), vars(expected))
    elif isinstance(expected, (np.ndarray, np.generic)):
        assert got.dtype == expected.dtype
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-9)
    elif isinstance(expected, float):
        assert got == pytest.approx(expected, rel=1e-6, nan_ok=True)
    else:
        assert got == expected


def x(n=6):
    return np.linspace(-1.0, 2.0, n)
