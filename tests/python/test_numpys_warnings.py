"""NumPy's warnings about complex numbers that lose their imaginary part, and about where= without
out=. Calls give as many as NumPy does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune_jit

X = np.arange(1.0, 7.0)
COMPLEX = X + 1j


def cast(x: Any) -> Any:
    return x.astype(float)


def cast_in_segments(x: Any) -> Any:
    x[0].tolist()
    return x.astype(float) * 2


def assigned(x: Any) -> Any:
    made = np.zeros(6)
    made[:] = x
    made[0] = x[1]
    return made


def in_a_loop(x: Any) -> Any:
    made = np.zeros(6)
    for i in range(6):
        made[i] = x[i]
    return made


def in_some_iterations(x: Any) -> Any:
    made = np.zeros(6)
    for i in range(6):
        if i % 2:
            made[i] = x[i]
    return made


def filled(x: Any) -> Any:
    return np.full(3, x[0], dtype=float)


def of_class(x: Any) -> Any:
    return np.float32(x[0])


def summed(x: Any) -> Any:
    return np.sum(x, dtype=float)


def masked(x: Any) -> Any:
    return np.add(x, x, where=np.ones(6, bool))


def ignored(x: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x.astype(float)


USES = [
    *(cast, cast_in_segments, assigned, in_a_loop, in_some_iterations, filled, of_class, summed),
    *(masked, ignored),
]


def given(function: Callable[..., Any], action: Any) -> list[tuple[type, str]]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter(action)
        function(COMPLEX)
    return [(w.category, str(w.message)) for w in seen]


@pytest.mark.parametrize("use", USES)
def test_each_call_gives_them(use: Callable[..., Any]) -> None:
    jitted = rune_jit.jit(use)
    for _ in range(4):
        assert given(jitted, "always") == given(use, "always")
    assert given(jitted, "ignore") == []


def test_each_line_gives_them_once_by_default() -> None:
    jitted = rune_jit.jit(in_a_loop)
    given(jitted, "always")
    globals()["__warningregistry__"].clear()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for _ in range(4):
            jitted(COMPLEX)
    assert [w.filename for w in seen] == [__file__]
    assert [w.lineno for w in seen] == [in_a_loop.__code__.co_firstlineno + 3]


@pytest.mark.parametrize("use", [cast, cast_in_segments, in_a_loop, masked])
def test_they_are_raised_as_errors(use: Callable[..., Any]) -> None:
    jitted = rune_jit.jit(use)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wanted = np.exceptions.ComplexWarning if use is not masked else UserWarning
        for _ in range(3 if given(use, "always") else 0):
            with pytest.raises(wanted):
                jitted(COMPLEX)
