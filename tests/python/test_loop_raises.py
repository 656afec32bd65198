"""`raise` and `assert` under conditions in loops: the program finds out whether one is met, and
Python runs such calls from their start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import raising_programs as programs
from loop_checks import ROLLED

import rune_jit

FINE = np.abs(np.random.default_rng(0).random(30)) * 3 + 1
FINE[1] = 0.5
NEGATIVE = np.where(np.arange(30) == 17, -3.0, FINE)
FIRST = np.where(np.arange(30) == 0, -30.0, FINE)
GROWING = np.where(np.arange(30) == 1, 2.5, FINE)
LARGE = np.tile([1.0, 2.0, 45.0], 10)
CALLS = [FINE, NEGATIVE, FINE * 1.01, FIRST, GROWING, LARGE, np.zeros(30), FINE, NEGATIVE]
FUNCTIONS = [
    programs.only_checks,
    programs.effects_before,
    programs.in_what_it_calls,
    programs.second_side,
    programs.assertion,
    programs.several,
    programs.no_convergence,
    programs.divergence,
    programs.nested,
    programs.before_an_index,
    programs.before_a_division,
    programs.beside_jumps,
    programs.after_the_loop,
    programs.else_of_a_loop,
    programs.else_of_an_inner_loop,
    programs.exits,
    programs.mode_that_is_known,
]


def _outcome(function: Callable[..., Any], given: np.ndarray) -> tuple[Any, ...]:
    """What a call returns or raises, and what it leaves."""
    programs.log.clear()
    x, result, raised = given.copy(), None, None
    try:
        result = function(x)
    except (Exception, SystemExit) as error:
        raised = type(error), error.args, type(error.__cause__)
    return result, raised, x, programs.log.copy()


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_calls_that_raise_and_calls_that_do_not(function: Callable[..., Any]) -> None:
    jitted = rune_jit.jit(function)
    raised = 0
    for given in CALLS:
        expected, found = _outcome(function, given), _outcome(jitted, given)
        raised += expected[1] is not None
        assert found[1] == expected[1]
        assert found[3] == expected[3]
        np.testing.assert_allclose(found[2], expected[2])
        if expected[1] is None:
            np.testing.assert_allclose(found[0], expected[0])
    assert 0 < raised < len(CALLS)
    lines = jitted.explain().splitlines()
    assert lines[0].endswith("as one program") and len(lines) > 1
    assert all(line.endswith(ROLLED) for line in lines[1:]), lines


@pytest.mark.parametrize("function", [programs.caught, programs.caught_by_the_caller])
def test_exceptions_that_the_function_handles(function: Callable[..., Any]) -> None:
    jitted = rune_jit.jit(function)
    for given in (FINE, NEGATIVE, FINE, FIRST):
        assert jitted(given) == pytest.approx(function(given))


def test_the_other_way_of_a_condition_has_its_program() -> None:
    """A way that is not taken, whose loop would raise, does not make Python run the call."""
    jitted = rune_jit.jit(programs.positive_parts)
    for given in (FINE, NEGATIVE, FINE, NEGATIVE):
        np.testing.assert_allclose(jitted(given), programs.positive_parts(given))
    assert "2 programs, one for each way" in jitted.explain()
