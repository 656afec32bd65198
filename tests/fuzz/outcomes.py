"""What calls of random programs do, and how that differs from Python and NumPy."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

import rune_jit

_ERRORS = (
    AttributeError, IndexError, OverflowError, TypeError, UnboundLocalError, ValueError,
    ZeroDivisionError,
)  # fmt: skip
_MOST_AT_AN_END = 30
_LARGE = 2.0**50  # floats beyond this are not all exact


def outcome(function: Any, arguments: Sequence[Any]) -> Any:
    """What it returns, or the type and the text of the exception that it raises."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*arguments)
        except _ERRORS as error:
            return type(error), str(error)


def is_exact(x: Any) -> bool:
    """Whether all floats in nested lists and tuples are so small that their sums are exact."""
    if isinstance(x, (list, tuple)):
        return all(map(is_exact, x))
    if isinstance(x, (type, str)):
        return True
    x = np.asarray(x)
    return x.dtype.kind != "f" or bool(np.all(np.abs(x) < _LARGE))


def difference_of(actual: Any, expected: Any) -> str | None:
    """How two nested lists and tuples of arrays and numbers differ."""
    if type(actual) is not type(expected):
        return f"a {type(actual).__name__} for a {type(expected).__name__}"
    if isinstance(expected, (list, tuple)):
        if len(actual) != len(expected):
            return f"{len(actual)} items instead of {len(expected)}"
        found = (difference_of(a, e) for a, e in zip(actual, expected, strict=True))
        return next((difference for difference in found if difference), None)
    is_number = isinstance(expected, (float, np.ndarray, np.floating))
    is_same = np.array_equal(actual, expected, equal_nan=is_number)
    if isinstance(expected, (np.ndarray, np.generic)):
        is_same &= actual.dtype == expected.dtype and actual.shape == expected.shape
    return None if is_same else f"{actual!r} instead of {expected!r}"


def sharing(*values: Any) -> list[tuple[bool, bool]]:
    """For each pair of the arrays in nested lists, tuples and dicts: whether both are one object,
    and whether they share memory. (Of many arrays, the first ones and the last ones.)"""
    arrays: list[Any] = []

    def collect(x: Any) -> None:
        if isinstance(x, np.ndarray):
            arrays.append(x)
        elif isinstance(x, (list, tuple)):
            for item in x:
                collect(item)
        elif isinstance(x, dict):
            collect(list(x.values()))

    collect(values)
    if len(arrays) > 2 * _MOST_AT_AN_END:
        arrays = arrays[:_MOST_AT_AN_END] + arrays[-_MOST_AT_AN_END:]
    return [(a is b, np.shares_memory(a, b)) for a, b in itertools.combinations(arrays, 2)]


def explained(program: Any, name: str, calls: int, **options: Any) -> str:
    """How the calls of a program ran. Raises AssertionError if their results or arguments differ
    from Python's."""
    function = program.function()
    jitted = rune_jit.jit(function, **options)
    for call in range(calls):
        wanted, found = program.arguments(call), program.arguments(call)
        expected, actual = outcome(function, wanted), outcome(jitted, found)
        difference = difference_of((actual, found), (expected, wanted))
        if difference is None and sharing(actual, found) != sharing(expected, wanted):
            difference = "other memory"
        text = f"{name}, call {call}\n{program.source}\n{jitted.explain()}"
        assert difference is None, f"{difference}\n{text}"
    return jitted.explain()


def count_loops(explanation: str) -> tuple[int, int]:
    """How many loops explain() lists, and how many of them are loops of the program."""
    lines = [line for line in explanation.splitlines() if line.startswith("  loop at")]
    return len(lines), sum("is a loop of the program" in line for line in lines)
