"""Fixtures of the Python tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from devices import devices, run_metal
from graph_reference import evaluate
from metal_testing import end_faults

import rune_jit
from rune_jit.calls import costs, trial, untried


@pytest.fixture(autouse=True)
def no_call_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, NumPy takes its turns and is not found faster, and new
    signatures are traced. Tests of that undo this."""
    monkeypatch.setattr(costs, "_SECONDS", math.inf)
    monkeypatch.setattr(untried, "_LONG", math.inf)
    monkeypatch.setattr(trial, "_CLEARLY", math.inf)
    monkeypatch.setattr(trial.Trial, "verdict", lambda self: None)


def run_reference(function: Callable[..., Any], *args: Any) -> Any:
    """Traces a function and evaluates the graph with NumPy (tests/python/graph_reference.py)."""
    jitted = rune_jit.jit(function, fallback="error")
    call = jitted._runner.take_apart(args, {})
    traced = jitted._runner.known.traced(call)[1]
    inputs = [call.leaves[i] for i in traced.input_leaves] + traced.captured
    for i, axes in traced.transposed_inputs:
        inputs[i] = inputs[i].transpose(axes)
    computed = []
    if traced.graph is not None:
        assert traced.graph.verify() == []
        computed = evaluate(str(traced.graph), inputs, traced.functions)
    for i, axes in traced.transposed_results:
        computed[i] = computed[i].transpose(axes)
    results = []
    for plan in traced.outputs:
        if plan[0] == "computed":
            value = computed[plan[1]]
            results.append(value[()] if value.ndim == 0 else value)
        else:
            results.append(call.leaves[plan[1]] if plan[0] == "leaf" else plan[1])
    if traced.unflatten is None:
        return results[0]
    return traced.unflatten(results)


@pytest.fixture
def faults_end() -> Iterator[None]:
    """Ends the faults of Metal's emulator that a test injects."""
    yield
    end_faults()


@pytest.fixture(params=devices("reference", "interpreter", "cpu"))
def device(request: pytest.FixtureRequest) -> str:
    """Where a test's programs run: the graph itself, the Lowered IR's interpreter, the CPU."""
    return request.param


@pytest.fixture
def run(device: str) -> Callable[..., Any]:
    """run(function, *args): the function's result on the device."""
    if device == "reference":
        return run_reference
    if device == "metal":
        return run_metal
    return lambda function, *args: rune_jit.jit(function, device=device, fallback="error")(*args)
