"""Statements of loops that print, warn or log something."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune_jit

X = np.random.default_rng(0).random(300)
LOGGER = logging.getLogger("test_loop_reports")


def told(function: Callable[..., Any], capsys: Any, caplog: Any, *args: Any) -> Any:
    """The result of a call, and what it prints, warns of and logs."""
    caplog.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*args)
    logged = [record.getMessage() for record in caplog.records]
    return result, capsys.readouterr().out, [str(x.message) for x in caught], logged


def clipped(x: Any, limit: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        s += x[i] * 0.5
        if s > limit:
            print(f"reset at {i}: {s}")
            LOGGER.error("reset at %d", i)
            warnings.warn(f"reset {i}", stacklevel=1)
            s = 0.0
    return s


def test_what_data_decide_to_report_is_left_to_python(capsys: Any, caplog: Any) -> None:
    jitted = rune_jit.jit(clipped)
    for limit in (1e9, 40.0, 1e9, 70.0, 1e9):
        expected = told(clipped, capsys, caplog, X, limit)
        assert told(jitted, capsys, caplog, X, limit) == expected
        assert bool(expected[1]) == (limit < 1e9)
    assert "is a loop of the program" in jitted.explain()


def test_a_loop_that_reports_in_each_call_runs_in_segments(capsys: Any, caplog: Any) -> None:
    jitted = rune_jit.jit(clipped)
    for limit in (10.0, 20.0, 30.0, 40.0, 50.0, 60.0):
        expected = told(clipped, capsys, caplog, X, limit)
        assert expected[1] and told(jitted, capsys, caplog, X, limit) == expected
    assert "as one program" not in jitted.explain()


def test_an_argument_that_is_false_leaves_the_loop_to_the_program(capsys: Any, caplog: Any) -> None:
    def f(x: Any, verbose: bool) -> Any:
        s = 0.0
        for i in range(len(x)):
            s += x[i] * 0.5
            if verbose:
                print("step", i, s)
        return s

    jitted = rune_jit.jit(f)
    for verbose in (False, False, True, False):
        expected = told(f, capsys, caplog, X[:50], verbose)
        assert told(jitted, capsys, caplog, X[:50], verbose) == expected
    assert "is a loop of the program" in jitted.explain()


def test_what_counters_decide_to_print_is_printed_by_the_program(capsys: Any, caplog: Any) -> None:
    def counter(x: Any) -> Any:
        s = 0.0
        print("begin", len(x))
        for i in range(len(x)):
            s += x[i] * 0.5
            if i % 20 == 0:
                print(i, s)
                for k in range(4):
                    print("  inner", k, k * i, sep=":")
            if i == 7:
                print("seven", x[:3].round(2))
        print("end")
        return s

    jitted = rune_jit.jit(counter)
    for _ in range(4):
        assert told(jitted, capsys, caplog, X[:50]) == told(counter, capsys, caplog, X[:50])
    assert "is a loop of the program" in jitted.explain()


@pytest.mark.parametrize("kind", ("break", "function"))
def test_what_each_call_reports_is_run_by_python(kind: str, capsys: Any, caplog: Any) -> None:
    def print_all(*values: Any) -> None:
        seen.append(values)

    seen: list[Any] = []

    def left(x: Any) -> Any:
        s = 0.0
        for i in range(len(x)):
            s += x[i] * 0.5
            if s > 5:
                print(f"enough at {i}")
                break
        return s

    def replaced(x: Any) -> Any:
        print = print_all
        s = 0.0
        for i in range(len(x)):
            s += x[i] * 0.5
            if s > 5:
                print(i, float(s))
        return s

    function = {"break": left, "function": replaced}[kind]
    jitted = rune_jit.jit(function)
    for _ in range(4):
        seen.clear()
        expected = told(function, capsys, caplog, X[:50]), list(seen)
        seen.clear()
        assert (told(jitted, capsys, caplog, X[:50]), list(seen)) == expected
    assert "is a loop of the program" not in jitted.explain()
