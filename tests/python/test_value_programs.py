"""Programs that ask for values (value_programs.py): under jit as without it."""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections import deque

import checking_programs  # noqa: F401
import class_programs  # noqa: F401
import discrete_programs  # noqa: F401
import graph_programs  # noqa: F401
import numpy as np
import optimization_programs  # noqa: F401
import pytest
import stateful_programs  # noqa: F401
from value_programs import PROGRAMS

import rune_jit
from rune_jit.calls.segmented import Segmented
from rune_jit.tracing import programs, segments, timed


def outcome(function, args):
    """What a call returns or raises, and what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = function(*args)
        except Exception as error:
            result = type(error), str(error)
    return result, printed.getvalue()


def check(got, expected, where="result"):
    assert type(got) is type(expected), (where, type(got), type(expected), got, expected)
    if isinstance(expected, (list, tuple, deque)):
        assert len(got) == len(expected), (where, got, expected)
        for i, (a, b) in enumerate(zip(got, expected, strict=True)):
            check(a, b, f"{where}[{i}]")
    elif isinstance(expected, dict):
        assert list(got) == list(expected), where
        for key in expected:
            check(got[key], expected[key], f"{where}[{key!r}]")
    elif isinstance(expected, (np.ndarray, np.generic)):
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape), where
        if expected.dtype.kind in "biu":
            np.testing.assert_array_equal(got, expected, where)
        else:
            np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-8, err_msg=where)
    elif isinstance(expected, float):
        assert got == pytest.approx(expected, rel=1e-6, abs=1e-8, nan_ok=True), where
    elif isinstance(expected, np.random.Generator):
        assert got.bit_generator.state == expected.bit_generator.state, where
    elif hasattr(expected, "__dict__") and not callable(expected):
        check(vars(got), vars(expected), where)
    else:
        assert got == expected, where


def compare(name):
    """Calls a program three times under jit and without it, on arguments of their own."""
    make, make_arguments = PROGRAMS[name]
    jitted, plain = rune_jit.jit(ours := make()), (theirs := make())
    for call in range(3):
        given, args = (make_arguments(np.random.default_rng(call)) for _ in range(2))
        for i, argument in enumerate(given):
            if callable(argument):
                args = (*args[:i], argument, *args[i + 1 :])
        got, expected = outcome(jitted, given), outcome(plain, args)
        check(got, expected, f"call {call}")
        check(given, args, f"arguments of call {call}")
        if hasattr(theirs, "__self__"):
            check(vars(ours.__self__), vars(theirs.__self__), f"state after call {call}")
    return [e for e in jitted._runner.known.cache.entries() if isinstance(e, Segmented)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    compare(name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_in_segments(name, monkeypatch):
    monkeypatch.setattr(timed, "_SLOW", math.inf)
    monkeypatch.setattr(programs, "_SLOW_COMPILATION", math.inf)
    monkeypatch.setattr(Segmented, "_choose", lambda self: None)
    for entry in compare(name):
        assert entry.runs_on_numpy is None or "errstate" in entry.runs_on_numpy

        assert entry.programs.compiled <= 3


def cuts():
    """Of every other program the first, of the others a later one; with --full both of all."""
    for i, name in enumerate(PROGRAMS):
        for cut in (1, 3):
            marks = () if (cut == 1) == (i % 2 == 0) else (pytest.mark.full,)
            yield pytest.param(name, cut, marks=marks)


@pytest.mark.parametrize(("name", "cuts"), list(cuts()))
def test_program_that_gives_up(name, cuts, monkeypatch):
    """NumPy takes over within a call: at its first cut, or later."""

    def give_up(self):
        self.cuts = getattr(self, "cuts", 0) + 1
        if self.cuts == cuts:
            self.give_up("the test says so")

    monkeypatch.setattr(segments.SegmentedTrace, "give_up_if_slow", give_up)
    # Each call begins in segments.
    never = property(lambda self: None, lambda self, why: None)
    monkeypatch.setattr(Segmented, "runs_on_numpy", never, raising=False)
    compare(name)


def test_the_rest_of_a_call_is_as_fast_as_numpy(monkeypatch):
    """Variables have NumPy's arrays when NumPy has taken over, and so have results."""
    seen = []

    def variables(x, n):
        y, total, view = x * 2, 0.0, x[1:]
        kept = [y]

        def nested(z):
            return z + y

        for _ in range(n):
            y = y * 0.5 + x
            total += float(y[0])
            seen.append((type(x), type(y), type(view), type(kept[0] + 1), type(nested(y))))
        view += 1
        return y, total

    monkeypatch.setattr(timed, "_SLOW", 0.0)
    monkeypatch.setattr(timed, "_SLOWER", 0.0)
    x, n = np.arange(5.0), 3
    before = x.copy()
    y, total = rune_jit.jit(variables)(x, n)
    assert seen == [(np.ndarray,) * 5] * 3
    expected = before.copy()
    seen.clear()
    expected_y, expected_total = variables(expected, n)
    check((x, y, total), (expected, expected_y, expected_total))


def test_numbers_of_objects_are_numpys_when_it_has_taken_over(monkeypatch):
    """An object that a loop moves has traced numbers, of which each iteration makes others."""

    class Body:
        def __init__(self):
            self.x = 0.0

    def move(x, n):
        body = Body()
        for _ in range(n):
            body.x = body.x + x[0] * x[1]
            if len(f"{body.x:.3f}") > 30:
                break
        return body.x

    after = []

    def values(self, wanted):
        if self.gave_up:
            after.append(len(wanted))
        return of_segments(self, wanted)

    of_segments = segments.SegmentedTrace.values
    monkeypatch.setattr(segments.SegmentedTrace, "values", values)
    monkeypatch.setattr(timed, "_SLOW", 0.0)
    monkeypatch.setattr(timed, "_SLOWER", 0.0)
    x = np.arange(1.0, 4.0)
    result = rune_jit.jit(move)(x, 300)
    assert 0 < len(after) < 100, "segments go on"
    check(result, move(x, 300))
