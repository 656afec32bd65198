"""Comparison with NumPy: of results, of calls and of graphs."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import optree
from guarded import PLACEMENTS, guarded

import rune_jit
from rune_jit import ir

# Relative and absolute error allowed, in units of the last place of 1.0 in the result's dtype.
_ULPS = 8.0


def assert_matches(
    actual: Any, expected: Any, ulps: float = _ULPS, what: str = "", scaled: bool = False
) -> None:
    """Same tree, dtypes, shapes; integers equal, floats within some ulps of themselves or of 1.0
    (`scaled`: of the largest of the array), NaN and infinities in the same places. With 0 ulps the
    signs of zeros are the same, too."""
    got, tree = optree.tree_flatten(actual)
    want, expected_tree = optree.tree_flatten(expected)
    assert tree == expected_tree, what
    for a, e in zip(got, want, strict=True):
        assert np.shape(a) == np.shape(e), what
        assert getattr(a, "dtype", type(a)) == getattr(e, "dtype", type(e)), what
        e = np.asarray(e)
        if e.dtype.kind in "fV":  # V: bfloat16
            _assert_close(np.asarray(a), e, ulps, what, scaled)
        else:
            np.testing.assert_array_equal(a, e, what)


@np.errstate(invalid="ignore")
def _assert_close(a: np.ndarray, e: np.ndarray, ulps: float, what: str, scaled: bool) -> None:
    if ulps == 0:
        np.testing.assert_array_equal(np.signbit(a[a == 0]), np.signbit(e[e == 0]), what)
    eps = {2: 2.0**-10 if e.dtype == np.float16 else 2.0**-7}.get(e.dtype.itemsize)
    limit = ulps * (eps or float(np.finfo(e.dtype).eps))
    a, e = a.astype(np.float64), e.astype(np.float64)
    largest = np.max(np.abs(e), initial=1, where=np.isfinite(e)) if scaled else 1
    np.testing.assert_allclose(a, e, rtol=limit, atol=limit * largest, err_msg=what)


def assert_same(
    actual: Any, expected: Any, what: str = "", ulps: float = 0, scaled: bool = False
) -> None:
    """As assert_matches with 0 ulps, and the leaves are of the same types."""
    assert_matches(actual, expected, ulps, what, scaled)
    for a, e in zip(optree.tree_leaves(actual), optree.tree_leaves(expected), strict=True):
        assert type(a) is type(e), what


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a call returns, or the exception that it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's own, of 0 / 0
        try:
            return function(*arguments)
        except Exception as error:
            return error


def run(function: Callable[..., Any], device: str, *arguments: Any) -> Any:
    """What the jitted function returns on a device."""
    return rune_jit.jit(function, device=device, fallback="error")(*arguments)


def own(arguments: Any, placement: str) -> Any:
    """Copies of the arrays in a tree, at inaccessible memory (guarded.py); an array that is there
    twice is so in the copy."""
    known: dict[int, Any] = {}

    def copied(leaf: Any) -> Any:
        if id(leaf) not in known:
            plain = type(leaf) is np.ndarray and not leaf.dtype.hasobject
            known[id(leaf)] = guarded(leaf, placement) if plain else copy.deepcopy(leaf)
        return known[id(leaf)]

    return optree.tree_map(copied, arguments)


def check(
    function: Callable[..., Any],
    *arguments: Any,
    ulps: float = _ULPS,
    jit: Callable[..., Any] = rune_jit.jit,
    traces: int = 1,
    **options: Any,
) -> Any:
    """The jitted function, of which a first and a second call return and raise what the function
    does, and leave the arguments as it does. Nothing falls back, and it is traced at most so many
    times."""
    jitted = jit(function, **{"fallback": "error", **options})
    for placement in PLACEMENTS:
        ours, theirs = own(arguments, placement), own(arguments, placement)
        found, wanted = outcome(jitted, *ours), outcome(function, *theirs)
        if isinstance(wanted, Exception) or isinstance(found, Exception):
            assert type(found) is type(wanted), (found, wanted)
        else:
            assert_matches(found, wanted, ulps)
        assert_matches(ours, theirs, ulps)
    assert jitted.cache_info().misses <= traces
    return jitted


def run_graph(graph: ir.Builder, outputs: list[ir.Value], device: str) -> list[Any]:
    """What a program of the graph computes of the builder's arguments."""
    program = ir.Program(graph.finish(*outputs), device, graph.functions)
    return program.run(*graph.arguments)
