"""Functions that have the globals of other functions as a dict (of `exec`)."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune_jit

SOURCE = """
def step(k):
    global u
    u = u + k
    v[0] += 1
    return u
"""


def namespace() -> dict[str, Any]:
    names: dict[str, Any] = {"u": np.arange(4.0), "v": np.zeros(2)}
    exec(SOURCE, names)
    return names


def direct(names: dict[str, Any]) -> Callable[[float], Any]:
    def run(k: float) -> Any:
        return names["step"](k), names["u"].copy(), names["v"].sum()

    return run


def nested(names: dict[str, Any]) -> Callable[[float], Any]:
    holder = [names]

    def run(k: float) -> Any:
        held = holder[0]
        return held["step"](k), held["u"] * 2, float(held["v"][0])

    return run


@pytest.mark.parametrize("make", [direct, nested])
def test_globals_as_a_dict(make: Callable[..., Any]) -> None:
    before = dict(vars(builtins))
    ours, theirs = namespace(), namespace()
    jitted, plain = rune_jit.jit(make(ours)), make(theirs)
    for k in range(5):
        for got, expected in zip(jitted(float(k)), plain(float(k)), strict=True):
            np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(ours["u"], theirs["u"])
        np.testing.assert_array_equal(ours["v"], theirs["v"])
    assert vars(builtins) == before
