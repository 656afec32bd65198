"""Functions that ask for the class of a number of which data decide whether it is Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit


def matched(x: Any) -> str:
    match x:
        case np.floating():
            return "NumPy's"
        case float():
            return "Python's"
    return ""


ASKED = [
    lambda z: type(z).__name__,
    lambda z: type(z) is float,
    lambda z: type(z + 1).__name__,
    lambda z: type(max(z, 0.0)).__name__,
    lambda z: z.__class__.__name__,
    lambda z: hasattr(z, "dtype"),
    lambda z: getattr(z, "dtype", None) is None,
    lambda z: isinstance(z, np.floating),
    lambda z: issubclass(type(z), np.generic),
    lambda z: type(z)(3),
    matched,
]


@pytest.mark.parametrize("asked", ASKED)
def test_after_a_condition(asked: Callable[[Any], Any]) -> None:
    def begins_with_numpys(x: Any) -> Any:
        z = x[0]
        for i in range(len(x)):
            if x[i] > 2:
                z = float(x[i])
        return z, asked(z)

    def begins_with_pythons(x: Any) -> Any:
        z = 0.5
        for i in range(len(x)):
            if x[i] > 2:
                z = x[i]
                break
        return z, asked(z)

    x = np.array([1.0, -2.0, 3.0, 0.5, 4.0])
    for function in (begins_with_numpys, begins_with_pythons):
        jitted = rune_jit.jit(function)
        for given in (x, x / 4, -x, x / 4):
            assert_same(jitted(given), function(given))
