"""Scenarios: scripts that yield results, run with and without jit."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import optree
import pytest
from compare import assert_same
from devices import HAS_FLOAT64, devices

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


def needs_float64(scenario: Scenario) -> Scenario:
    scenario.needs_float64 = True  # type: ignore[attr-defined]
    return scenario


def snapshot(result: Any) -> Any:
    return optree.tree_map(lambda x: x.copy() if isinstance(x, np.ndarray) else x, result)


def eager(function: Any, **options: Any) -> Any:
    """Stands for jit in the run that says what is right."""
    return function


def steps(scenario: Scenario, jit: Any) -> list[Any]:
    return [snapshot(result) for result in scenario(jit)]


def in_float32(scenario: Scenario) -> Scenario:
    """The scenario with float32 where NumPy's constructors give float64 by default."""

    def narrowed(constructor: Callable[..., Any]) -> Callable[..., Any]:
        def construct(*args: Any, **options: Any) -> Any:
            array = constructor(*args, **options)
            wide = "dtype" not in options and getattr(array, "dtype", None) == np.float64
            return array.astype(np.float32) if wide else array

        return construct

    numpy = types.ModuleType("numpy")
    vars(numpy).update(vars(np))
    for name in ("arange", "array", "empty", "eye", "full", "linspace", "ones", "zeros"):
        setattr(numpy, name, narrowed(getattr(np, name)))
    names = {**scenario.__globals__, "np": numpy, "X": X.astype(np.float32)}
    return types.FunctionType(scenario.__code__, names, scenario.__name__)


def check_traced(scenario: Scenario, device: str) -> None:
    """A scenario that must not fall back to NumPy."""
    jit = functools.partial(rune_jit.jit, fallback="error", device=device)
    if HAS_FLOAT64:
        return assert_same(steps(scenario, jit), steps(scenario, eager), ulps=64)
    if getattr(scenario, "needs_float64", False):
        pytest.skip("the device has no float64")
    scenario = in_float32(scenario)
    try:
        actual = steps(scenario, jit)
    except rune_jit.DTypeError as error:
        assert "float64" in str(error) and "hint: " in str(error), error
        pytest.skip("the device has no float64")
    assert_same(actual, steps(scenario, eager), ulps=84)


def check_on_numpy(scenario: Scenario) -> None:
    """A scenario that cannot be traced, and says so under fallback="error"."""
    jit = functools.partial(rune_jit.jit, fallback="silent")
    assert_same(steps(scenario, jit), steps(scenario, eager), ulps=64)
    with pytest.raises((UnsupportedOpError, ConcretizationError)):
        steps(scenario, functools.partial(rune_jit.jit, fallback="error"))


def contract_tests(traced: list[Scenario], on_numpy: list[Scenario]) -> tuple[Any, Any]:
    """The test of scenarios that must not fall back to NumPy, and the test of the others."""

    @pytest.mark.parametrize("device", devices("cpu"))
    @pytest.mark.parametrize("scenario", traced, ids=lambda s: s.__name__)
    def test_traced(scenario: Scenario, device: str) -> None:
        check_traced(scenario, device)

    @pytest.mark.parametrize("scenario", on_numpy, ids=lambda s: s.__name__)
    def test_on_numpy(scenario: Scenario) -> None:
        check_on_numpy(scenario)

    return test_traced, test_on_numpy
