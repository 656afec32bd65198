"""Fixtures of the Python tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest
import rune_jit
from graph_reference import evaluate

DEVICES = ["reference", "interpreter", "cpu"]


def run_reference(function: Callable[..., Any], *args: Any) -> Any:
    """Traces a function and evaluates the graph with NumPy (tests/python/graph_reference.py)."""
    jitted = rune_jit.jit(function, fallback="error")
    call = jitted._take_apart(args, {})
    traced = jitted._trace(call)
    inputs = [call.leaves[i] for i in traced.input_leaves] + traced.captured
    computed = []
    if traced.graph is not None:
        assert traced.graph.verify() == []
        computed = evaluate(str(traced.graph), inputs)
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


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    """Where a test's programs run: the graph itself, the Lowered IR's interpreter, the CPU."""
    return request.param


@pytest.fixture
def run(device: str) -> Callable[..., Any]:
    """run(function, *args): the function's result on the device."""
    if device == "reference":
        return run_reference
    return lambda function, *args: rune_jit.jit(function, device=device, fallback="error")(*args)


# Relative and absolute error allowed, in units of the last place of 1.0 in the result's dtype.
_ULPS = 8


def assert_matches(actual: Any, expected: Any, ulps: float = _ULPS) -> None:
    """Same tree, dtypes, shapes; integers equal, floats within some ulps of the largest magnitude
    that can have met them, NaN and infinities in the same places."""
    got, tree = optree.tree_flatten(actual)
    want, expected_tree = optree.tree_flatten(expected)
    assert tree == expected_tree
    for a, e in zip(got, want, strict=True):
        assert np.shape(a) == np.shape(e)
        assert getattr(a, "dtype", type(a)) == getattr(e, "dtype", type(e))
        e = np.asarray(e)
        if e.dtype.kind in "biu":
            np.testing.assert_array_equal(a, e)
            continue
        limits = np.finfo(np.float32) if e.dtype.itemsize == 2 else np.finfo(e.dtype)
        eps = {2: 2.0**-10 if e.dtype == np.float16 else 2.0**-7}.get(e.dtype.itemsize, limits.eps)
        a, e = np.asarray(a, np.float64), e.astype(np.float64)
        np.testing.assert_allclose(a, e, rtol=ulps * float(eps), atol=ulps * float(eps))
