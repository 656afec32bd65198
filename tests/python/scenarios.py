"""Scenarios: scripts that yield results, run with and without jit."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import optree
import pytest

import rune_jit
from rune_jit import ConcretizationError, UnsupportedOpError

Scenario = Callable[[Any], Iterator[Any]]
X = np.arange(4.0)


def collection() -> tuple[list[Scenario], Callable[[Scenario], Scenario]]:
    """A list of scenarios, and the decorator that adds to it."""
    scenarios: list[Scenario] = []

    def add(scenario: Scenario) -> Scenario:
        scenarios.append(scenario)
        return scenario

    return scenarios, add


def snapshot(result: Any) -> Any:
    return optree.tree_map(lambda x: x.copy() if isinstance(x, np.ndarray) else x, result)


def assert_same(actual: list[Any], expected: list[Any]) -> None:
    assert len(actual) == len(expected)
    for step, (a, e) in enumerate(zip(actual, expected, strict=True)):
        flat_a, tree_a = optree.tree_flatten(a)
        flat_e, tree_e = optree.tree_flatten(e)
        assert tree_a == tree_e, step
        for x, y in zip(flat_a, flat_e, strict=True):
            assert type(x) is type(y), step
            if isinstance(y, (np.ndarray, np.generic)):
                assert x.dtype == y.dtype, step
                np.testing.assert_allclose(x, y, rtol=1e-12, err_msg=f"step {step}")
            else:
                assert x == y, step


def eager(function: Any, **options: Any) -> Any:
    """Stands for jit in the run that says what is right."""
    return function


def steps(scenario: Scenario, jit: Any) -> list[Any]:
    return [snapshot(result) for result in scenario(jit)]


def check_traced(scenario: Scenario) -> None:
    """A scenario that must not fall back to NumPy."""
    jit = functools.partial(rune_jit.jit, fallback="error")
    assert_same(steps(scenario, jit), steps(scenario, eager))


def check_on_numpy(scenario: Scenario) -> None:
    """A scenario that cannot be traced, and says so under fallback="error"."""
    jit = functools.partial(rune_jit.jit, fallback="silent")
    assert_same(steps(scenario, jit), steps(scenario, eager))
    with pytest.raises((UnsupportedOpError, ConcretizationError)):
        steps(scenario, functools.partial(rune_jit.jit, fallback="error"))
