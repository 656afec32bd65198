"""Every operation of the table, on every device, against NumPy."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import assert_matches
from guarded import guarded
from op_cases import CASES, REALS, SPECIAL, SPECIAL_BINARY, SPECIAL_UNARY, OpCase

_PARAMETERS = [
    pytest.param(case, dtype, id=f"{case.name}-{dtype}") for case in CASES for dtype in case.dtypes
]


@pytest.mark.parametrize(("case", "dtype"), _PARAMETERS)
def test_op(run: Callable[..., Any], case: OpCase, dtype: str) -> None:
    arguments = [guarded(x, "end") for x in case.arguments(dtype)]
    with np.errstate(all="ignore"):
        expected = case.function(*arguments)
    assert_matches(run(case.function, *arguments), expected, case.ulps)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("name", SPECIAL_UNARY)
def test_special_values(run: Callable[..., Any], name: str, dtype: str) -> None:
    function = getattr(np, name)
    x = SPECIAL.astype(dtype)
    with np.errstate(all="ignore"):
        expected = function(x)
    actual = run(function, x)
    assert_matches(actual, expected)
    np.testing.assert_array_equal(
        np.signbit(actual)[expected == 0], np.signbit(expected)[expected == 0]
    )


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("name", SPECIAL_BINARY)
def test_special_pairs(run: Callable[..., Any], name: str, dtype: str) -> None:
    function = getattr(np, name)
    x, y = (a.ravel().astype(dtype) for a in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        expected = function(x, y)
    assert_matches(run(function, x, y), expected)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="NumPy's code for x86")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_second_of_two_zeros(run: Callable[..., Any], dtype: str) -> None:
    def all_of_them(x: Any, y: Any) -> Any:
        zero = x.dtype.type(0)
        pairs = [(x, y), (y, x), (zero, x), (x, zero), (-zero, x), (x, -zero), (y, -y)]
        limits = [(zero, 1), (-zero, 1), (-1, zero), (-1, -zero), (zero, None), (None, -zero)]
        return [f(a, b) for f in (np.maximum, np.minimum) for a, b in pairs] + [
            np.clip(a, *pair) for a in (x, y) for pair in [*limits, (x, y + 1), (y - 1, x)]
        ]

    x, y = (a.ravel().astype(dtype) for a in np.meshgrid([0.0, -0.0, 1, -1], [0.0, -0.0]))
    for actual, expected in zip(run(all_of_them, x, y), all_of_them(x, y), strict=True):
        assert_matches(actual, expected, 0)


@pytest.mark.parametrize("x", [[1.0, np.nan, 3.0, np.nan], [np.nan] * 2, [3.0, 3.0, 1.0, 1.0]])
def test_arg_reductions_take_the_first(run: Callable[..., Any], x: list[float]) -> None:
    array = np.array(x)
    assert run(lambda v: (v.argmax(), v.argmin()), array) == (array.argmax(), array.argmin())


def test_int64_and_uint64_compare_by_value(run: Callable[..., Any]) -> None:
    a = np.array([-1, 0, 2**63 - 1, -(2**63)], np.int64)
    b = np.array([2**64 - 1, 0, 2**63 - 1, 2**63], np.uint64)
    functions = (np.less, np.less_equal, np.equal, np.not_equal, np.greater, np.greater_equal)

    def both(x: Any, y: Any) -> Any:
        return [f(x, y) for f in functions] + [f(y, x) for f in functions]

    assert_matches(run(both, a, b), both(a, b))


def test_numbers_out_of_range_compare_by_value(run: Callable[..., Any]) -> None:
    x = np.array([0, 200], np.uint8)

    def compare(v: Any) -> Any:
        return [v < 300, v > -1, v == 300, v != 1000, v <= -5, v <= 2**70]

    assert_matches(run(compare, x), compare(x))
